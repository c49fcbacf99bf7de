"""The backbone computes what transformers computes on a padded, masked batch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

from likewise.backbone import Backbone, load_backbone, tokenizer_json
from likewise.errors import InputError, ModelError

NAMES = ("bert", "roberta", "mpnet", "distilbert", "electra", "xlm-roberta")


def _load(folder: Path, dtype: str | None = None) -> Backbone:
    return load_backbone(folder, device="cpu", dtype=dtype)


def _ids(backbone: Backbone, rows: int, length: int) -> np.ndarray:
    assert backbone.vocabulary is not None
    return np.random.default_rng(length).integers(5, backbone.vocabulary, (rows, length))


@pytest.mark.parametrize("name", NAMES)
def test_states_equal_a_padded_batch(name: str, checkpoint: Callable[[str], Path]) -> None:
    backbone = _load(checkpoint(name))
    texts = [_ids(backbone, 1, length)[0] for length in (3, 17, 40)]
    model = AutoModel.from_pretrained(checkpoint(name)).eval()
    padding = int(json.loads((checkpoint(name) / "config.json").read_text())["pad_token_id"])
    ids = torch.full((3, 40), padding)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.from_numpy(text)
    mask = (torch.arange(40) < torch.tensor([[3], [17], [40]])).long()
    with torch.inference_mode():
        padded = model(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()
    for text, wanted in zip(texts, padded, strict=True):
        states = backbone.states(text[None])
        assert states.dtype == np.float32
        np.testing.assert_allclose(states[0], wanted[: len(text)], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_position_table_can_be_used(name: str, checkpoint: Callable[[str], Path]) -> None:
    backbone = _load(checkpoint(name))
    assert backbone.max_length == (64 if name in ("roberta", "mpnet", "xlm-roberta") else 66)
    assert np.isfinite(backbone.states(_ids(backbone, 2, backbone.max_length))).all()
    with pytest.raises((IndexError, RuntimeError)):
        backbone.states(_ids(backbone, 1, backbone.max_length + 1))


@pytest.mark.parametrize("name", NAMES)
def test_what_it_says_of_itself(name: str, checkpoint: Callable[[str], Path]) -> None:
    backbone = _load(checkpoint(name))
    tokenizer = json.loads(tokenizer_json(checkpoint(name)))
    assert backbone.dim == 32
    assert backbone.vocabulary == len(tokenizer["model"]["vocab"])
    assert "float32 on cpu, by transformers" in backbone.describe()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-4), ("bfloat16", 0.2), ("float16", 0.02)])
def test_precision(dtype: str, tolerance: float, checkpoint: Callable[[str], Path]) -> None:
    plain, other = _load(checkpoint("bert")), _load(checkpoint("bert"), dtype)
    ids = _ids(plain, 2, 9)
    states = other.states(ids)
    assert states.dtype == np.float32
    assert dtype in other.describe()
    assert 0 < np.abs(states - plain.states(ids)).max() < tolerance


def test_an_unknown_precision(checkpoint: Callable[[str], Path]) -> None:
    with pytest.raises(InputError, match="unknown dtype 'int8'; known are float32, bfloat16, float16, float64"):
        _load(checkpoint("bert"), "int8")


@pytest.mark.parametrize("name", NAMES)
def test_the_weights_are_those_of_the_file(name: str, checkpoint: Callable[[str], Path]) -> None:
    from safetensors.numpy import load_file

    stored = load_file(checkpoint(name) / "model.safetensors")
    ours = {key: np.asarray(tensor) for key, tensor in _load(checkpoint(name)).weights().items()}
    for key, tensor in stored.items():
        np.testing.assert_array_equal(ours[key], tensor)


def test_no_weight_is_made_up(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """A checkpoint without a pooler stays without one, and the library's dice are not thrown."""
    from safetensors.numpy import load_file, save_file

    folder = Path(shutil.copytree(checkpoint("bert"), tmp_path / "bert"))
    tensors = {key: tensor for key, tensor in load_file(folder / "model.safetensors").items() if "pooler" not in key}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert not [key for key in _load(folder).weights() if "pooler" in key]


def test_weights_of_a_pretraining_checkpoint(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """Names with the model's prefix, and a head that no token state depends on."""
    from safetensors.numpy import load_file, save_file

    folder = Path(shutil.copytree(checkpoint("bert"), tmp_path / "bert"))
    stored = load_file(folder / "model.safetensors")
    tensors = {f"bert.{key}": tensor for key, tensor in stored.items() if "pooler" not in key}
    tensors["cls.predictions.bias"] = np.zeros(len(stored["embeddings.word_embeddings.weight"]), np.float32)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    plain, headed = _load(checkpoint("bert")), _load(folder)
    ids = _ids(plain, 2, 9)
    np.testing.assert_array_equal(headed.states(ids), plain.states(ids))


def test_weights_in_several_files(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    AutoModel.from_pretrained(checkpoint("bert")).save_pretrained(tmp_path / "bert", max_shard_size="20KB")
    assert len(list((tmp_path / "bert").glob("*.safetensors"))) > 1
    plain, sharded = _load(checkpoint("bert")), _load(tmp_path / "bert")
    ids = _ids(plain, 2, 9)
    np.testing.assert_array_equal(sharded.states(ids), plain.states(ids))
    next((tmp_path / "bert").glob("*-00002-of-*.safetensors")).unlink()
    with pytest.raises(ModelError, match="cannot load the backbone"):
        _load(tmp_path / "bert")


def test_loading_says_nothing(checkpoint: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    _load(checkpoint("mpnet"))
    assert capfd.readouterr() == ("", "")


def test_a_vocabulary_alone_makes_the_same_tokenizer(
    checkpoint: Callable[[str], Path], tmp_path: Path, edit_json: Callable[..., None]
) -> None:
    from tokenizers import Tokenizer

    folder = Path(shutil.copytree(checkpoint("bert"), tmp_path / "bert"))
    stored = tokenizer_json(folder)
    assert stored == (folder / "tokenizer.json").read_text(encoding="utf-8")
    vocabulary = json.loads(stored)["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n")
    (folder / "tokenizer.json").unlink()
    edit_json(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=True)
    text = "The naïve CAT isn't taking off; zzqx ☃."
    built, plain = (Tokenizer.from_str(one).encode(text) for one in (tokenizer_json(folder), stored))
    assert (built.ids, built.offsets) == (plain.ids, plain.offsets)


def test_no_vocabulary_at_all(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint("bert"), tmp_path / "bert"))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"neither tokenizer\.json nor a vocabulary"):
        tokenizer_json(folder)
