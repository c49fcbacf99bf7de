"""The safe-load report says what a folder holds without loading it."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from likewise import inspect
from likewise.errors import ModelNotFoundError
from likewise.model import Report


def _formats(report: Report) -> dict[str, str]:
    return {file.name: file.format for file in report.files}


def test_a_full_chain(sentence_folder: Callable[..., Path]) -> None:
    from sentence_transformers.base.modules import Dense, Normalize

    folder = sentence_folder(
        "bert",
        ("cls", "mean"),
        [Dense(64, 16), Normalize()],
        transformer={"max_seq_length": 24},
        prompts={"query": "query: "},
        similarity_fn_name="dot",
    )
    report = inspect(folder)
    assert report.modules == (
        "Transformer",
        "Pooling cls+mean",
        "Dense 64 → 16, tanh, on the pooled vector",
        "Normalize the pooled vector",
    )
    assert (report.pooling, report.similarity, report.max_length) == ("cls+mean", "dot", 24)
    assert report.prompts["query"] == "query: "
    assert (report.architecture, report.source, report.loadable) == ("BertModel (bert)", "folder", "yes")
    assert report.would_run.startswith("nothing")
    assert report.folder == str(folder)


def test_every_file_is_listed_with_its_hash(mean_folder: Path) -> None:
    report = inspect(mean_folder)
    paths = sorted(path for path in mean_folder.rglob("*") if path.is_file())
    assert [file.name for file in report.files] == [path.relative_to(mean_folder).as_posix() for path in paths]
    for file, path in zip(report.files, paths, strict=True):
        assert file.n_bytes == path.stat().st_size
        assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert json.loads(json.dumps(report.to_dict()))["files"][0]["name"] == report.files[0].name


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('the pickle was opened')",)


def test_pickle_and_code_are_named_and_not_run(mean_copy: Path) -> None:
    (mean_copy / "pytorch_model.bin").write_bytes(pickle.dumps(_Bomb()))
    (mean_copy / "modeling.py").write_text("raise SystemExit('the code was run')")
    report = inspect(mean_copy)
    assert _formats(report)["pytorch_model.bin"] == "pickle, never read"
    assert _formats(report)["modeling.py"] == "code, never run"
    assert _formats(report)["model.safetensors"] == "safetensors"
    assert report.loadable == "yes"


def test_a_plain_checkpoint(checkpoint: Callable[[str], Path]) -> None:
    report = inspect(checkpoint("mpnet"))
    assert report.modules == ()
    assert report.pooling.startswith("not stored")
    assert "--pooling mean on the command line" in report.pooling
    assert report.loadable.startswith("yes, if a pooling is named")
    assert report.max_length == 64


def test_a_token_level_model(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    from likewise import Model

    Model.load(checkpoint("bert"), pooling="none").save(tmp_path / "tokens")
    report = inspect(tmp_path / "tokens")
    assert (report.pooling, report.similarity) == ("none: a token-level model", "rcmd")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda at: (at / "config.json").unlink(), "config.json is missing"),
        (lambda at: [(at / name).unlink() for name in ("config.json", "modules.json")], "it is not a model folder"),
        (lambda at: (at / "config.json").write_text("{"), "is not JSON"),
        (lambda at: (at / "config.json").write_text('{"auto_map": {"AutoModel": "x"}}'), "never run"),
        (lambda at: (at / "model.safetensors").rename(at / "pytorch_model.bin"), "no safetensors weights"),
        (lambda at: (at / "1_Pooling/config.json").unlink(), "is missing"),
        (lambda at: (at / "modules.json").write_text("{}"), "not a list of modules"),
    ],
)
def test_why_a_folder_does_not_load(damage: Callable[[Path], object], reason: str, mean_copy: Path) -> None:
    damage(mean_copy)
    report = inspect(mean_copy)
    assert report.loadable.startswith("no: ")
    assert reason in report.loadable
    assert report.files
    assert "--pooling" not in report.pooling


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlanguage: en\nlicense: apache-2.0\n---\n# Model", "apache-2.0"),
        ("# Model\nlicense: mit", "not stated in the model card"),
        ("---\nlanguage: en\n---\nlicense: mit", "not stated in the model card"),
    ],
)
def test_the_licence_of_the_card(card: str, licence: str, mean_copy: Path) -> None:
    (mean_copy / "README.md").write_text(card)
    assert inspect(mean_copy).licence == licence


def test_nothing_to_report_on(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        inspect(tmp_path / "missing")


@pytest.mark.model
def test_the_default_model(minilm: object) -> None:
    report = inspect()
    assert report.modules == ("Transformer", "Pooling mean", "Normalize the pooled vector")
    assert (report.max_length, report.licence, report.loadable) == (256, "apache-2.0", "yes")
