"""The ONNX export: it runs elsewhere, agrees with the model, and leaves nothing behind when it does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

from likewise import Model
from likewise.cli import main
from likewise.errors import InputError, MissingExtraError, ModelError
from likewise.model.onnx import export

TEXTS = ["A plane is taking off.", "", "a man plays the flute and the guitar in a large green park", "Cats"]


def run(folder: Path, texts: list[str]) -> dict[str, np.ndarray]:
    """What a stranger does with the folder: its own tokenizer pads, onnxruntime computes."""
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    padding = json.loads((folder / "config.json").read_text())["pad_token_id"]
    tokenizer.enable_padding(pad_id=padding, pad_token="[PAD]")
    encodings = tokenizer.encode_batch(texts)
    session = InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    ids, mask = (np.asarray([getattr(one, key) for one in encodings]) for key in ("ids", "attention_mask"))
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    names = [output.name for output in session.get_outputs()]
    found = session.run(None, {one.name: values[one.name] for one in session.get_inputs()})
    return dict(zip(names, found, strict=True))


def modules() -> list[Any]:
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize

    torch.manual_seed(3)
    return [Dense(32, 24, activation_function=torch.nn.Tanh()), Normalize()]


@pytest.mark.parametrize(
    ("architecture", "pooling"), [("bert", "mean"), ("roberta", "cls"), ("mpnet", "max"), ("bert", "weightedmean")]
)
def test_the_graph_gives_what_the_model_gives(
    sentence_folder: Callable[..., Path], tmp_path: Path, architecture: str, pooling: str
) -> None:
    model = Model.load(sentence_folder(architecture, pooling, modules()), device="cpu")
    parity = export(model, tmp_path / "onnx")
    expected = model.encode(TEXTS)
    found = run(tmp_path / "onnx", TEXTS)["sentence_embedding"]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    for text, vector in zip(TEXTS, expected, strict=True):
        alone = run(tmp_path / "onnx", [text])["sentence_embedding"][0]
        np.testing.assert_allclose(alone, vector, atol=1e-4)
    assert parity.n_texts >= 50
    assert parity.worst <= 1e-4
    assert json.loads((tmp_path / "onnx" / "parity.json").read_text()) == parity.to_dict()
    assert {f"sentence_embedding, {manner}" for manner in ("padded", "unpadded")} <= set(parity.differences)


def test_a_token_level_model_gives_its_tokens(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    model = Model.load(checkpoint("bert"), pooling="none", device="cpu")
    export(model, tmp_path / "onnx")
    found = run(tmp_path / "onnx", TEXTS)["token_embeddings"]
    embeddings = model.embed(TEXTS)
    for i, length in enumerate(embeddings.lengths):
        np.testing.assert_allclose(found[i, :length], embeddings.text(i), atol=1e-4)


@pytest.fixture(scope="module")
def graph(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph of `tiny`, traced once."""
    folder = tmp_path_factory.mktemp("traced") / "onnx"
    export(tiny, folder)
    return folder / "model.onnx"


@pytest.fixture
def traced(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exports of `tiny` that take that graph."""
    monkeypatch.setattr("likewise.model.onnx._write_graph", lambda model, path: shutil.copyfile(graph, path))


@pytest.mark.usefixtures("traced")
def test_a_graph_that_disagrees_is_not_kept(tiny: Model, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"by up to \S+e-\d+, above the limit of 0, and was not kept"):
        export(tiny, tmp_path / "onnx", limit=0.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("traced")
def test_a_value_that_is_nan_is_not_within_any_limit(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Model, "encode", lambda self, texts, **_: np.full((len(texts), self.dim), np.nan))
    with pytest.raises(ModelError, match="by up to nan"):
        export(tiny, tmp_path / "onnx", limit=10.0)
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_not_touched(tiny: Model, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="holds other files"):
        export(tiny, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_absent_package_is_named(tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnxscript" else object())
    with pytest.raises(MissingExtraError, match=r"onnxscript.*likewise\[onnx\]"):
        export(tiny, tmp_path / "onnx")


def test_the_verb_prints_the_report_and_replaces_an_earlier_export(mean_folder: Path, tmp_path: Path) -> None:
    words = ["export", str(mean_folder), "--onnx", str(tmp_path / "onnx")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "sentence_embedding, unpadded" in done.stdout
    told = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert told["n_texts"] >= 50


@pytest.mark.usefixtures("traced")
def test_a_failed_export_leaves_an_earlier_one_as_it_was(tiny: Model, tmp_path: Path) -> None:
    target = tmp_path / "onnx"
    target.mkdir()
    (target / "parity.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match="above the limit"):
        export(tiny, target, limit=0.0)
    assert (target / "parity.json").read_text(encoding="utf-8") == "{}"
    assert [path.name for path in target.iterdir()] == ["parity.json"]
