"""The torch reading of the definition computes what transformers and the native engine compute."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel

from likewise.backbone import linear as linear_module
from likewise.backbone import load_backbone
from likewise.backbone.choice import read_config, serving
from likewise.backbone.definition import Definition, define
from likewise.backbone.flat import FlatBackbone, FlatEncoder, dropouts
from likewise.backbone.native import Named, NativeBackbone, unfit
from likewise.backbone.tensors import Tensors
from likewise.errors import InputError, MissingExtraError, ModelError
from tests.conftest import ARCHITECTURES

LENGTHS = [7, 0, 3, 40, 7, 1, 12, 3, 64]

Folders = Callable[[str], Path]


def _definition(folder: Path) -> Definition:
    found = define(read_config(folder))
    assert isinstance(found, Definition)
    return found


def _encoder(folder: Path, dropout: tuple[float, float] = (0.0, 0.0)) -> FlatEncoder:
    definition = _definition(folder)
    return FlatEncoder(definition, Named(Tensors(folder), definition), dropout=dropout)


def _flat(folder: Path, precision: str = "float32") -> FlatBackbone:
    return FlatBackbone(_definition(folder), folder, device="cpu", precision=precision)


def _texts(folder: Path, lengths: list[int] = LENGTHS) -> tuple[np.ndarray, np.ndarray]:
    """Random ids of texts of these lengths, and their offsets."""
    ids = np.random.default_rng(0).integers(5, _definition(folder).vocabulary, sum(lengths))
    return ids.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _oracle(folder: Path, ids: np.ndarray, offsets: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval().to(dtype)
    found = []
    with torch.inference_mode():
        for start, stop in itertools.pairwise(offsets):
            if stop > start:
                found.append(model(torch.from_numpy(ids[None, start:stop]).long()).last_hidden_state[0].numpy())
    return np.concatenate(found)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_equals_transformers_without_padding(name: str, checkpoint: Folders) -> None:
    folder = checkpoint(name)
    ids, offsets = _texts(folder)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        wanted = _oracle(folder, ids, offsets, dtype)
        with torch.inference_mode():
            states = _encoder(folder).to(dtype)(torch.from_numpy(ids).long(), offsets).numpy()
        np.testing.assert_allclose(states, wanted, atol=tolerance, rtol=0)
        precision = str(dtype).removeprefix("torch.")
        np.testing.assert_allclose(_flat(folder, precision).states(ids, offsets), wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_equals_the_native_engine(name: str, checkpoint: Folders) -> None:
    folder = checkpoint(name)
    definition = _definition(folder)
    if unfit(definition):
        pytest.skip(unfit(definition))
    native, flat, packed = NativeBackbone(definition, folder), _flat(folder), _texts(folder)
    np.testing.assert_allclose(flat.states(*packed), native.states(*packed), atol=1e-5, rtol=0)
    for mode in ("mean", "cls"):
        np.testing.assert_allclose(flat.pooled(*packed, mode), native.pooled(*packed, mode), atol=1e-5, rtol=0)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_activations(activation: str, checkpoint: Folders, tmp_path: Path, edit_json: Callable[..., None]) -> None:
    for path in checkpoint("bert").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    edit_json(tmp_path / "config.json", hidden_act=activation)
    ids, offsets = _texts(tmp_path)
    wanted = _oracle(tmp_path, ids, offsets, torch.float32)
    np.testing.assert_allclose(_flat(tmp_path).states(ids, offsets), wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_gradients_equal_those_of_transformers(name: str, checkpoint: Folders) -> None:
    folder = checkpoint(name)
    ids, offsets = _texts(folder)
    module = _encoder(folder).double()
    pull = torch.from_numpy(np.random.default_rng(1).normal(size=(len(ids), module.definition.hidden)))
    (module(torch.from_numpy(ids).long(), offsets) * pull).sum().backward()
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval().double()
    for start, stop in itertools.pairwise(offsets):
        if stop > start:
            states = model(torch.from_numpy(ids[None, start:stop]).long()).last_hidden_state[0]
            (states * pull[start:stop]).sum().backward()
    wanted = dict(model.named_parameters())
    for role, parameter in module.named_parameters():
        assert parameter.grad is not None, role
        assert role.endswith("key.bias") or parameter.grad.abs().max() > 0, role  # softmax forgets the key's bias
    for name_there, tensor in module.checkpoint().items():
        assert torch.equal(tensor, wanted[name_there])
    gradients = {tensor.data_ptr(): parameter.grad for parameter in module.parameters() for tensor in [parameter.data]}
    for name_there, tensor in module.checkpoint().items():
        torch.testing.assert_close(gradients[tensor.data_ptr()], wanted[name_there].grad, atol=1e-8, rtol=1e-8)


def test_dropout_is_on_in_training_only(checkpoint: Folders) -> None:
    folder = checkpoint("bert")
    ids, offsets = _texts(folder)
    tokens = torch.from_numpy(ids).long()
    for dropout in ((0.3, 0.0), (0.0, 0.3)):
        module = _encoder(folder, dropout)
        assert not module.training
        still = module(tokens, offsets)
        torch.testing.assert_close(still, _encoder(folder)(tokens, offsets))
        module.train()
        assert (module(tokens, offsets) - still).abs().max() > 1e-2
        assert torch.equal(module.eval()(tokens, offsets), still)
    assert torch.equal(_encoder(folder).train()(tokens, offsets), still)


def test_dropout_follows_the_config(checkpoint: Folders) -> None:
    assert dropouts({"model_type": "bert", "hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0}) == (0.2, 0.0)
    assert dropouts({"model_type": "distilbert", "dropout": 0.3, "attention_dropout": 0.4}) == (0.3, 0.4)
    assert dropouts(read_config(checkpoint("mpnet"))) == (0.1, 0.1)


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_a_text_does_not_depend_on_its_batch(name: str, checkpoint: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = _flat(checkpoint(name))
    ids, offsets = _texts(checkpoint(name), LENGTHS * 20)
    together, means = backbone.states(ids, offsets), backbone.pooled(ids, offsets, "mean")
    assert means is not None
    for text in (0, 3, 8, 90, 179):
        own = ids[offsets[text] : offsets[text + 1]]
        alone = backbone.states(own, np.asarray([0, len(own)]))
        np.testing.assert_allclose(alone, together[offsets[text] : offsets[text + 1]], atol=1e-5, rtol=0)
        np.testing.assert_allclose(alone.mean(0), means[text], atol=1e-5, rtol=0)
    monkeypatch.setattr("likewise.backbone.flat._TOKENS_A_CALL", 50)  # one long text is a call of its own
    np.testing.assert_allclose(backbone.states(ids, offsets), together, atol=1e-5, rtol=0)


def test_texts_without_tokens(checkpoint: Folders) -> None:
    backbone = _flat(checkpoint("mpnet"))
    none, empty = np.zeros(0, np.int32), np.zeros(3, np.int64)
    assert backbone.states(none, empty).shape == (0, 32)
    assert backbone.states(none, np.zeros(1, np.int64)).shape == (0, 32)
    np.testing.assert_array_equal(backbone.pooled(none, empty, "mean"), np.zeros((2, 32)))
    assert backbone.pooled(none, empty, "max") is None
    module = _encoder(checkpoint("mpnet"))
    assert module(torch.zeros(0, dtype=torch.long), empty).shape == (0, 32)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_half_precision_stays_near(name: str, checkpoint: Folders) -> None:
    ids, offsets = _texts(checkpoint(name))
    exact = _flat(checkpoint(name)).states(ids, offsets)
    for precision in ("bfloat16", "float16"):
        rough = _flat(checkpoint(name), precision).states(ids, offsets)
        assert rough.dtype == np.float32
        assert np.abs(rough - exact).max() <= 2e-2 * np.abs(exact).max()
        cosines = (rough * exact).sum(1) / np.linalg.norm(rough, axis=1) / np.linalg.norm(exact, axis=1)
        assert cosines.min() >= 0.999


def _wrong(step: Any) -> Any:
    compute = linear_module.plain(step)
    return lambda x: compute(x) * 1.01 + 0.01


def _absent(step: Any) -> Any:
    raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute '_linear_pointwise'")


def _not_a_number(step: Any) -> Any:
    return lambda x: linear_module.plain(step)(x) * float("nan")


@pytest.mark.parametrize("broken", [_wrong, _absent, _not_a_number])
def test_packed_layers_must_prove_right(broken: Any, checkpoint: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkpoint("bert")
    packed = _texts(folder)
    wanted = _flat(folder).states(*packed)
    monkeypatch.setattr(linear_module, "prepacked", broken)
    monkeypatch.setattr("likewise.backbone.flat.prepacked", broken)
    backbone = _flat(folder)
    assert "oneDNN" not in backbone.describe()
    np.testing.assert_allclose(backbone.states(*packed), wanted, atol=1e-5, rtol=0)


def test_without_onednn(checkpoint: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert "oneDNN" not in _flat(checkpoint("bert")).describe()


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
def test_packed_layers_are_used_where_they_prove_right(checkpoint: Folders) -> None:
    backbone = _flat(checkpoint("bert"))
    assert backbone.describe().startswith("bert, 2 layers of 32, ")
    assert backbone.describe().endswith("float32 on cpu, by torch on flat tokens (oneDNN, packed once)")
    assert "oneDNN" not in _flat(checkpoint("bert"), "float64").describe()


def test_bad_input(checkpoint: Folders, tmp_path: Path, edit_json: Callable[..., None]) -> None:
    folder = checkpoint("bert")
    backbone = _flat(folder)
    with pytest.raises(InputError, match="67 tokens is longer than the 66 positions"):
        backbone.states(*_texts(folder, [3, 67]))
    with pytest.raises(ModelError, match="different models"):
        backbone.states(np.asarray([5, 10_000], np.int32), np.asarray([0, 2]))
    with pytest.raises(InputError, match="needs the native engine"):
        _flat(folder, "int8")
    with pytest.raises(InputError, match="unknown device"):
        FlatBackbone(_definition(folder), folder, device="nowhere")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no GPU"):
            FlatBackbone(_definition(folder), folder, device="cuda")
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for changes, message in (({"num_attention_heads": 3}, "do not divide"), ({"num_hidden_layers": 1}, "2 layers")):
        edit_json(tmp_path / "config.json", **{**json.loads((folder / "config.json").read_text()), **changes})
        with pytest.raises(ModelError, match=message):
            _flat(tmp_path)


def test_it_serves_what_the_engine_does_not(
    checkpoint: Folders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = checkpoint("bert")
    for precision in ("float16", "float64"):
        assert isinstance(load_backbone(folder, device="cpu", precision=precision), FlatBackbone)
    assert isinstance(load_backbone(folder, device="cpu:0"), FlatBackbone)
    monkeypatch.setattr("likewise.backbone.choice.unfit", lambda definition: "the compiled extension is not in use")
    for precision in ("float32", "fast", "bfloat16"):
        assert isinstance(load_backbone(folder, device="cpu", precision=precision), FlatBackbone)
    assert serving(folder) == (
        "torch on flat tokens, since the compiled extension is not in use; bert is of the BERT family"
    )
    with pytest.raises(InputError, match="compiled extension is not in use"):
        load_backbone(folder, device="cpu", precision="int8")
    (tmp_path / "config.json").write_text('{"model_type": "albert"}')
    assert serving(tmp_path) == "transformers on torch, since model type 'albert' is not of the BERT family"
    monkeypatch.delitem(sys.modules, "likewise.backbone.flat")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="pip install torch"):
        load_backbone(folder, device="cpu")
