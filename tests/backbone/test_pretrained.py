"""The backbone that transformers computes is what transformers computes on a padded, masked batch."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from transformers import AlbertConfig, AlbertModel, AutoConfig, AutoModel, BertConfig

from likewise.backbone import load_backbone, read_config, tokenizer_json
from likewise.backbone.pretrained import PretrainedBackbone, load_pretrained
from likewise.errors import InputError, MissingExtraError, ModelError

NAMES = ("bert", "roberta", "mpnet", "distilbert", "electra", "xlm-roberta")
LENGTHS = (40, 3, 0, 17, 3, 1)


def _load(folder: Path, precision: str = "float32") -> PretrainedBackbone:
    return load_pretrained(folder, read_config(folder), device="cpu", precision=precision)


def _texts(backbone: PretrainedBackbone, *lengths: int) -> tuple[np.ndarray, np.ndarray]:
    assert backbone.vocabulary is not None
    ids = np.random.default_rng(len(lengths)).integers(5, backbone.vocabulary, sum(lengths)).astype(np.int32)
    return ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _padded(folder: Path, ids: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """States of a padded, masked batch, its padding cut away."""
    lengths = np.diff(offsets)
    table = torch.full((len(lengths), int(lengths.max())), int(read_config(folder)["pad_token_id"]))
    mask = torch.arange(table.shape[1]) < torch.from_numpy(lengths)[:, None]
    table[mask] = torch.from_numpy(ids).long()
    with torch.inference_mode():
        model = AutoModel.from_pretrained(folder).eval()
        return model(input_ids=table, attention_mask=mask.long()).last_hidden_state[mask].numpy()


@pytest.fixture
def copy(checkpoint: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint("bert"), tmp_path / "bert"))


@pytest.mark.parametrize("name", NAMES)
def test_states_equal_a_padded_batch(name: str, checkpoint: Callable[[str], Path]) -> None:
    backbone = _load(checkpoint(name))
    packed = _texts(backbone, *LENGTHS)
    states = backbone.states(*packed)
    assert states.dtype == np.float32
    np.testing.assert_allclose(states, _padded(checkpoint(name), *packed), atol=1e-5, rtol=0)


def test_many_texts_are_computed_in_several_calls(
    checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = _load(checkpoint("mpnet"))
    packed = _texts(backbone, *[5, 9, 30] * 20)
    together = backbone.states(*packed)
    for budget in (1, 12, 64):
        monkeypatch.setattr("likewise.backbone.pretrained._TOKENS_AT_ONCE", budget)
        np.testing.assert_allclose(backbone.states(*packed), together, atol=1e-5, rtol=0)


def test_no_texts_and_no_pooling(checkpoint: Callable[[str], Path]) -> None:
    backbone = _load(checkpoint("bert"))
    for offsets in (np.zeros(1, np.int64), np.zeros(3, np.int64)):
        assert backbone.states(np.zeros(0, np.int32), offsets).shape == (0, 32)
    assert backbone.pooled(*_texts(backbone, 3), "mean") is None


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_position_table_can_be_used(name: str, checkpoint: Callable[[str], Path]) -> None:
    backbone = _load(checkpoint(name))
    assert backbone.max_length == (64 if name in ("roberta", "mpnet", "xlm-roberta") else 66)
    assert np.isfinite(backbone.states(*_texts(backbone, backbone.max_length, backbone.max_length))).all()
    with pytest.raises((IndexError, RuntimeError)):
        backbone.states(*_texts(backbone, backbone.max_length + 1))


def test_other_types_whose_positions_start_behind_the_padding(tmp_path: Path) -> None:
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 1}
    for kind in ("camembert", "xlm-roberta-xl"):
        config = AutoConfig.for_model(kind, vocab_size=50, max_position_embeddings=20, pad_token_id=1, **sizes)
        AutoModel.from_config(config).save_pretrained(tmp_path / kind)
        backbone = _load(tmp_path / kind)
        assert backbone.max_length == 18
        backbone.states(*_texts(backbone, 18))
        with pytest.raises((IndexError, RuntimeError)):
            backbone.states(*_texts(backbone, 19))


@pytest.mark.parametrize("name", NAMES)
def test_what_it_says_of_itself(name: str, checkpoint: Callable[[str], Path]) -> None:
    backbone = _load(checkpoint(name))
    tokenizer = json.loads(tokenizer_json(checkpoint(name)))
    assert backbone.dim == 32
    assert backbone.vocabulary == len(tokenizer["model"]["vocab"])
    assert "float32 on cpu, by transformers" in backbone.describe()


@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-4), ("bfloat16", 0.2), ("float16", 0.02)])
def test_precision(precision: str, tolerance: float, checkpoint: Callable[[str], Path]) -> None:
    plain, other = _load(checkpoint("bert")), _load(checkpoint("bert"), precision)
    packed = _texts(plain, 9, 9)
    states = other.states(*packed)
    assert states.dtype == np.float32
    assert precision in other.describe()
    assert 0 < np.abs(states - plain.states(*packed)).max() < tolerance


@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_with_the_path_that_serves_float64(name: str, checkpoint: Callable[[str], Path]) -> None:
    served = load_backbone(checkpoint(name), device="cpu", precision="float64")
    assert "float64 on cpu" in served.describe()
    ours = _load(checkpoint(name), "float64")
    packed = _texts(ours, *LENGTHS)
    np.testing.assert_allclose(served.states(*packed), ours.states(*packed), atol=1e-6, rtol=0)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_an_architecture_of_its_own(precision: str, tmp_path: Path) -> None:
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "embedding_size": 16}
    AlbertModel(AlbertConfig(vocab_size=50, pad_token_id=0, **sizes)).save_pretrained(tmp_path)
    served = load_backbone(tmp_path, device="cpu", precision=precision)
    assert isinstance(served, PretrainedBackbone)
    assert f"{precision} on cpu, by transformers" in served.describe()
    packed = _texts(served, *LENGTHS)
    np.testing.assert_allclose(served.states(*packed), _padded(tmp_path, *packed), atol=1e-5, rtol=0)


@pytest.mark.parametrize("precision", ["int8", "int8+", "fast"])
def test_a_precision_that_torch_has_not(precision: str, checkpoint: Callable[[str], Path]) -> None:
    with pytest.raises(InputError, match="needs the native engine; with torch known are float32, bfloat16, float16"):
        _load(checkpoint("bert"), precision)


@pytest.mark.parametrize("name", NAMES)
def test_the_weights_are_those_of_the_file(name: str, checkpoint: Callable[[str], Path]) -> None:
    ours = _load(checkpoint(name)).module.state_dict()
    for key, tensor in load_file(checkpoint(name) / "model.safetensors").items():
        np.testing.assert_array_equal(ours[key].numpy(), tensor)


def test_no_weight_is_made_up(copy: Path) -> None:
    """A checkpoint without a pooler stays without one, and the library's dice are not thrown."""
    stored = load_file(copy / "model.safetensors")
    assert [key for key in _load(copy).module.state_dict() if "pooler" in key]
    tensors = {key: tensor for key, tensor in stored.items() if "pooler" not in key}
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    state = torch.random.get_rng_state()
    assert not [key for key in _load(copy).module.state_dict() if "pooler" in key]
    assert torch.equal(torch.random.get_rng_state(), state)


def test_weights_of_a_pretraining_checkpoint(checkpoint: Callable[[str], Path], copy: Path) -> None:
    """Names with the model's prefix, and a head that no token state depends on."""
    stored = load_file(copy / "model.safetensors")
    tensors = {f"bert.{key}": tensor for key, tensor in stored.items() if "pooler" not in key}
    tensors["cls.predictions.bias"] = np.zeros(len(stored["embeddings.word_embeddings.weight"]), np.float32)
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    plain, headed = _load(checkpoint("bert")), _load(copy)
    packed = _texts(plain, 9, 9)
    np.testing.assert_array_equal(headed.states(*packed), plain.states(*packed))


def test_weights_in_several_files(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    AutoModel.from_pretrained(checkpoint("bert")).save_pretrained(tmp_path / "bert", max_shard_size="20KB")
    assert len(list((tmp_path / "bert").glob("*.safetensors"))) > 1
    plain, sharded = _load(checkpoint("bert")), _load(tmp_path / "bert")
    packed = _texts(plain, 9, 9)
    np.testing.assert_array_equal(sharded.states(*packed), plain.states(*packed))
    next((tmp_path / "bert").glob("*-00002-of-*.safetensors")).unlink()
    with pytest.raises(ModelError, match="cannot load the backbone"):
        _load(tmp_path / "bert")


def test_damaged_weights(copy: Path) -> None:
    stored = load_file(copy / "model.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    save_file({key: stored[key] for key in stored if key != name}, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=f"1 tensors of the architecture are not in the weight file .*{name}"):
        _load(copy)
    save_file({**stored, name: stored[name].T.copy()}, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="cannot load the backbone"):
        _load(copy)
    content = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match="is damaged"):
        _load(copy)


def test_relative_positions_are_not_left_out(copy: Path, edit_json: Callable[..., None]) -> None:
    """Version 5 of transformers loads such a checkpoint as if its positions were absolute."""
    edit_json(copy / "config.json", position_embedding_type="relative_key")
    stored = load_file(copy / "model.safetensors")
    table = np.ones((131, 16), np.float32)
    tensors = {f"encoder.layer.{layer}.attention.self.distance_embedding.weight": table for layer in range(2)}
    save_file({**stored, **tensors}, copy / "model.safetensors", metadata={"format": "pt"})
    if hasattr(BertConfig(), "position_embedding_type"):
        pytest.skip("this version of transformers computes them")
    with pytest.raises(ModelError, match="relative positions"):
        load_backbone(copy, device="cpu")


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_without_torch(package: str, checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"outside the native engine .*likewise\[train\]"):
        _load(checkpoint("bert"))


def test_loading_says_nothing(checkpoint: Callable[[str], Path], capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
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
