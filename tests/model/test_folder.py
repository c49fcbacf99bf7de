"""Damaged folders are refused with a reason, saves are whole or absent, and nothing asks the network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from likewise import Model
from likewise.errors import InputError, ModelError, ModelNotFoundError
from likewise.model import FolderSpec
from likewise.model.devices import check_device
from likewise.model.folder import read_folder

Edit = Callable[..., None]

WEIGHTS = "model.safetensors"
TYPES = "sentence_transformers.models."


@pytest.fixture
def dense_copy(sentence_folder: Callable[..., Path], tmp_path: Path) -> Path:
    """Mean, Dense (tanh), Normalize; to be changed."""
    from sentence_transformers.base.modules import Dense, Normalize

    return Path(shutil.copytree(sentence_folder("bert", "mean", [Dense(32, 8), Normalize()]), tmp_path / "dense"))


def _change_weights(path: Path, change: Callable[[dict[str, np.ndarray]], Any]) -> None:
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


def _set_modules(folder: Path, *names: str) -> None:
    entries = [
        {"idx": i, "name": str(i), "path": "" if name == "Transformer" else f"{i}_{name}", "type": TYPES + name}
        for i, name in enumerate(names)
    ]
    (folder / "modules.json").write_text(json.dumps(entries))


# ------------------------------------------------------------------------------------------- nothing there


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"no model folder .*missing; check the path"):
        Model.load(tmp_path / "missing")


def test_a_file_instead_of_a_folder(mean_copy: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="is a file; name the model folder"):
        Model.load(mean_copy / "config.json")


def test_an_empty_folder(tmp_path: Path) -> None:
    for pooling in (None, "mean"):
        with pytest.raises(ModelError, match=r"no config\.json in .*: it is not a model folder"):
            Model.load(tmp_path, pooling=pooling)


def test_the_output_of_a_training_names_the_model_in_it(tmp_path: Path) -> None:
    (tmp_path / "seed-1" / "model").mkdir(parents=True)
    with pytest.raises(ModelError, match=r"not a model folder; name .* such as .*seed-1/model$"):
        Model.load(tmp_path)


@pytest.mark.parametrize("device", ["cuda:0", "cuda", "cpu:1", "meta", "foo", "cuda:x"])
def test_a_device_that_is_not_here(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InputError, match=rf"no device '{device}' here; this machine has cpu"):
        Model.load(tmp_path / "never-looked-at", device=device)


def test_devices_that_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    for device in (None, "cpu", "cpu:0", "cuda", "cuda:0", "cuda:1"):
        check_device(device)
    with pytest.raises(InputError, match=r"no device 'cuda:2' here; this machine has cpu, cuda:0, cuda:1"):
        check_device("cuda:2")


# ----------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_cut_weights(share: float, mean_copy: Path) -> None:
    content = (mean_copy / WEIGHTS).read_bytes()
    (mean_copy / WEIGHTS).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ModelError, match=r"cannot load|damaged"):
        Model.load(mean_copy)


def test_weights_that_lack_a_tensor(mean_copy: Path) -> None:
    name = "encoder.layer.1.attention.self.query.weight"
    _change_weights(mean_copy / WEIGHTS, lambda tensors: tensors.pop(name))
    with pytest.raises(ModelError, match=f"lack the tensor '{name}'"):
        Model.load(mean_copy)


def test_weights_of_another_shape(mean_copy: Path) -> None:
    name = "encoder.layer.1.attention.self.query.weight"
    _change_weights(mean_copy / WEIGHTS, lambda tensors: tensors.update({name: np.zeros((16, 32), np.float32)}))
    with pytest.raises(ModelError, match=rf"'{name}' .* has shape \(16, 32\), and config.json asks for \(32, 32\)"):
        Model.load(mean_copy)


def test_pickled_weights_are_never_read(mean_copy: Path) -> None:
    (mean_copy / WEIGHTS).rename(mean_copy / "pytorch_model.bin")
    with pytest.raises(
        ModelError, match=r"no safetensors weights.*pytorch_model\.bin, which is pickle and is never read"
    ):
        Model.load(mean_copy)


def test_a_nan_in_one_word_is_named_at_load(mean_copy: Path) -> None:
    _change_weights(
        mean_copy / WEIGHTS, lambda tensors: tensors["embeddings.word_embeddings.weight"].__setitem__(-1, np.nan)
    )
    with pytest.raises(ModelError, match=r"word_embeddings.*(NaN|not finite)"):
        Model.load(mean_copy)


# ------------------------------------------------------------------------------------- modules and configs

DAMAGE: dict[str, tuple[Callable[[Path, Edit], Any], str]] = {
    "modules are not JSON": (lambda at, _: (at / "modules.json").write_text("[{"), r"modules\.json is not JSON"),
    "modules are no list": (lambda at, _: (at / "modules.json").write_text('{"a": 1}'), "not a list of modules"),
    "module without a type": (lambda at, _: (at / "modules.json").write_text('[{"path": ""}]'), "with a type each"),
    "no module at all": (lambda at, _: (at / "modules.json").write_text("[]"), "not a list of modules"),
    "unknown module": (
        lambda at, _: _set_modules(at, "Transformer", "WordWeights"),
        "module 'WordWeights'.*is not known.*known are Transformer, Pooling, Dense",
    ),
    "no transformer": (lambda at, _: _set_modules(at, "BoW", "Pooling"), "starts with module 'BoW'"),
    "two poolings": (lambda at, _: _set_modules(at, "Transformer", "Pooling", "Pooling"), "pools twice|missing"),
    "no pooling": (lambda at, _: _set_modules(at, "Transformer", "Normalize"), "no Pooling module"),
    "pooling without config": (lambda at, _: (at / "1_Pooling/config.json").unlink(), r"config\.json is missing"),
    "unknown pooling": (
        lambda at, edit: edit(at / "1_Pooling/config.json", pooling_mode="median"),
        "unknown pooling .*'median'.*known are cls, max, mean",
    ),
    "pooling of no kind": (
        lambda at, edit: edit(at / "1_Pooling/config.json", pooling_mode=..., pooling_mode_mean_tokens=False),
        "names no pooling",
    ),
    "unknown pooling flag": (
        lambda at, edit: edit(at / "1_Pooling/config.json", pooling_mode=..., pooling_mode_median_tokens=True),
        "unknown pooling 'pooling_mode_median_tokens'",
    ),
    "pooling mode of a wrong type": (
        lambda at, edit: edit(at / "1_Pooling/config.json", pooling_mode=3),
        "unknown pooling .*'3'",
    ),
    "unknown activation": (
        lambda at, edit: edit(at / "2_Dense/config.json", activation_function="torch.nn.modules.activation.Mish"),
        "Mish', which is not known; known are Identity, Tanh",
    ),
    "activation outside torch": (
        lambda at, edit: edit(at / "2_Dense/config.json", activation_function="evil.Tanh"),
        r"evil\.Tanh', which is not known",
    ),
    "dense without weights": (lambda at, _: (at / "2_Dense" / WEIGHTS).unlink(), r"model\.safetensors is missing;"),
    "dense in pickle": (
        lambda at, _: (at / "2_Dense" / WEIGHTS).rename(at / "2_Dense/pytorch_model.bin"),
        r"pytorch_model\.bin is pickle and is never read",
    ),
    "dense cut short": (lambda at, _: (at / "2_Dense" / WEIGHTS).write_bytes(b"\x08"), "is damaged"),
    "dense of another size": (
        lambda at, edit: edit(at / "2_Dense/config.json", out_features=9),
        "does not hold the 9 by 32 layer",
    ),
    "dense without its bias": (
        lambda at, _: _change_weights(at / "2_Dense" / WEIGHTS, lambda tensors: tensors.pop("linear.bias")),
        "does not hold the 8 by 32 layer",
    ),
    "dense without a size": (
        lambda at, edit: edit(at / "2_Dense/config.json", out_features=...),
        "does not hold the None by 32 layer",
    ),
    "dense without its residual": (
        lambda at, edit: edit(at / "2_Dense/config.json", use_residual=True),
        "lacks the residual layer",
    ),
    "dense with NaN": (
        lambda at, _: _change_weights(
            at / "2_Dense" / WEIGHTS, lambda tensors: tensors["linear.bias"].__setitem__(3, np.nan)
        ),
        "the bias of a Dense module holds NaN",
    ),
    "dense that does not fit": (
        lambda at, edit: (
            edit(at / "2_Dense/config.json", in_features=31),
            _change_weights(
                at / "2_Dense" / WEIGHTS,
                lambda tensors: tensors.update({"linear.weight": np.zeros((8, 31), np.float32)}),
            ),
        ),
        "takes 31 features where 32 come in",
    ),
    "dense on unknown features": (
        lambda at, edit: edit(at / "2_Dense/config.json", module_input_name="all_layer_embeddings"),
        "reads 'all_layer_embeddings'",
    ),
    "dense on tokens after the pooling": (
        lambda at, edit: edit(
            at / "2_Dense/config.json", module_input_name="token_embeddings", module_output_name="token_embeddings"
        ),
        "after they were pooled",
    ),
    "code from the repository": (
        lambda at, edit: edit(at / "config.json", auto_map={"AutoModel": "modeling.Evil"}),
        "auto_map.*never run",
    ),
    "no config": (lambda at, _: (at / "config.json").unlink(), r"no config\.json"),
    "config is not JSON": (lambda at, _: (at / "config.json").write_text("{"), r"config\.json is not JSON"),
    "unknown architecture": (
        lambda at, edit: edit(at / "config.json", model_type="thunk", architectures=["ThunkModel"]),
        "cannot load the backbone",
    ),
    "tokenizer is not JSON": (lambda at, _: (at / "tokenizer.json").write_text("{}"), "tokenizer definition"),
    "no tokenizer": (
        lambda at, _: [(at / name).unlink() for name in ("tokenizer.json", "tokenizer_config.json")],
        "no tokenizer",
    ),
    "settings are no object": (
        lambda at, _: (at / "config_sentence_transformers.json").write_text("[]"),
        "should hold one JSON object",
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_folders(what: str, dense_copy: Path, edit_json: Edit) -> None:
    damage, message = DAMAGE[what]
    Model.load(dense_copy)
    damage(dense_copy, edit_json)
    with pytest.raises(ModelError, match=message):
        Model.load(dense_copy)


def test_code_beside_the_weights_is_not_run(mean_copy: Path) -> None:
    marker = mean_copy / "it-ran"
    for name in ("modeling.py", "__init__.py", "custom_st.py"):
        (mean_copy / name).write_text(f"open({str(marker)!r}, 'w')")
    Model.load(mean_copy).encode("a plane")
    assert not marker.exists()


def test_a_tokenizer_of_another_model(mean_copy: Path, checkpoint: Callable[[str], Path]) -> None:
    shutil.copy(checkpoint("roberta") / "tokenizer.json", mean_copy)
    with pytest.raises(ModelError, match=r"has 400 ids and its backbone only 216: they belong to different models"):
        Model.load(mean_copy)


def test_a_plain_checkpoint_must_be_told_its_pooling(checkpoint: Callable[[str], Path]) -> None:
    with pytest.raises(
        ModelError, match=r"does not say how it is pooled; name it: pooling='mean'.*pooling='none'.*--pooling mean"
    ):
        Model.load(checkpoint("bert"))
    with pytest.raises(ModelError, match="unknown pooling"):
        Model.load(checkpoint("bert"), pooling="median")
    assert Model.load(checkpoint("bert"), pooling="none").similarity.name == "rcmd"


def test_a_folder_that_says_its_pooling_is_not_overruled(mean_folder: Path) -> None:
    with pytest.raises(InputError, match=r"pooling= \(--pooling\) is for plain checkpoints"):
        Model.load(mean_folder, pooling="cls")


def test_a_token_level_model_has_no_cosine(checkpoint: Callable[[str], Path]) -> None:
    with pytest.raises(InputError, match="similarity 'cosine' compares pooled vectors"):
        Model.load(checkpoint("bert"), pooling="none", similarity="cosine")
    with pytest.raises(InputError, match="no pooled vectors"):
        Model.load(checkpoint("bert"), pooling="none").encode("a plane")


def test_a_plain_checkpoint_has_no_spec(checkpoint: Callable[[str], Path], mean_folder: Path) -> None:
    assert read_folder(checkpoint("bert")) is None
    assert isinstance(read_folder(mean_folder), FolderSpec)


# -------------------------------------------------------------------------------------------------- saving


def _state(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_saving_onto_a_file(tiny: Model, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="a file of that name exists"):
        tiny.save(tmp_path / "file")
    assert _state(tmp_path) == {"file": b"mine"}


def test_saving_into_a_folder_with_other_files(tiny: Model, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("mine")
    with pytest.raises(InputError, match=r"it holds other files \(no modules\.json\)"):
        tiny.save(tmp_path / "thesis")
    assert _state(tmp_path) == {"thesis/chapter.tex": b"mine"}


def test_saving_over_a_model_beside_which_somebody_keeps_notes(tiny: Model, mean_copy: Path) -> None:
    (mean_copy / "notes.txt").write_text("mine")
    before = _state(mean_copy.parent)
    with pytest.raises(InputError, match=r"it also holds notes\.txt, which would be lost; move that away"):
        tiny.save(mean_copy)
    assert _state(mean_copy.parent) == before
    assert [path.name for path in mean_copy.parent.iterdir()] == ["model"]


def test_saving_below_a_file(tiny: Model, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"cannot write .*choose a folder that is writable"):
        tiny.save(tmp_path / "file" / "model")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_saving_without_permission(tiny: Model, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot write"):
        tiny.save(tmp_path / "model")


def test_saving_into_new_and_empty_folders(tiny: Model, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for target in ("empty", "a/b/new"):
        tiny.save(tmp_path / target)
        Model.load(tmp_path / target)


def test_a_saved_folder_can_be_read_by_others(tiny: Model, tmp_path: Path) -> None:
    tiny.save(tmp_path / "model")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o777 & ~mask


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_folder(
    error: BaseException, tiny: Model, mean_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    before = _state(mean_copy.parent)
    monkeypatch.setattr("likewise.model.writing._write_modules", fail)
    for target in (mean_copy, mean_copy.parent / "new"):
        with pytest.raises(type(error)):
            tiny.save(target)
    assert _state(mean_copy.parent) == before
    assert [path.name for path in mean_copy.parent.iterdir()] == ["model"]


def test_a_save_holds_only_what_a_model_needs(mean_copy: Path, tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "modeling.py", "optimizer.pt", "notes.txt"):
        (mean_copy / name).write_text("not part of the model")
    Model.load(mean_copy).save(tmp_path / "ours")
    names = {path.name for path in (tmp_path / "ours").iterdir()}
    assert not names & {"pytorch_model.bin", "modeling.py", "optimizer.pt", "notes.txt"}


# ------------------------------------------------------------------------------------------------- network

OFFLINE = """
import socket, sys

def refuse(*arguments, **options):
    raise AssertionError(f"network used: {arguments[1:]}")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = refuse
from likewise import Model

for folder in sys.argv[1:]:
    print(float(Model.load(folder).encode("A plane is taking off.").sum()))
"""


def test_a_local_folder_never_asks_the_network(mean_copy: Path, tiny: Model, tmp_path: Path, edit_json: Edit) -> None:
    """Without the offline switch, with tokenizer.json and with a bare vocabulary."""
    bare = Path(shutil.copytree(mean_copy, tmp_path / "bare"))
    vocabulary = json.loads((bare / "tokenizer.json").read_text())["model"]["vocab"]
    (bare / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n")
    (bare / "tokenizer.json").unlink()
    edit_json(bare / "tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=True)
    online = {key: value for key, value in os.environ.items() if "OFFLINE" not in key}
    run = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(mean_copy), str(bare)],
        env={**online, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    expected = float(tiny.encode("A plane is taking off.").sum())
    assert [float(line) for line in run.stdout.split()] == pytest.approx([expected, expected], abs=1e-4)
    assert run.stderr == ""
