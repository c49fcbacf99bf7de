"""What a config.json says of an encoder, and what makes it another path's work."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from likewise.backbone.definition import Definition, define, distance_buckets
from likewise.errors import ModelError

SIZES = {
    "hidden_size": 48,
    "num_attention_heads": 3,
    "intermediate_size": 80,
    "num_hidden_layers": 4,
    "vocab_size": 90,
    "max_position_embeddings": 70,
}
DISTIL_NAMES = {
    "hidden_size": "dim",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "num_hidden_layers": "n_layers",
}
BERT = Definition(
    model_type="bert",
    hidden=48,
    heads=3,
    feed=80,
    n_layers=4,
    vocabulary=90,
    word_dim=48,
    n_positions=70,
    first_position=0,
    epsilon=1e-12,
    activation="gelu",
)


def _config(kind: str, **changes: Any) -> dict[str, Any]:
    names = DISTIL_NAMES if kind == "distilbert" else {}
    return {"model_type": kind, **{names.get(key, key): size for key, size in SIZES.items()}, **changes}


@pytest.mark.parametrize(
    ("kind", "changes", "expected"),
    [
        ("bert", {}, {}),
        ("bert", {"layer_norm_eps": 1e-5, "pad_token_id": 7}, {"epsilon": 1e-5}),
        ("roberta", {}, {"first_position": 2}),
        ("roberta", {"pad_token_id": None}, {"first_position": 2}),
        ("roberta", {"pad_token_id": 0}, {"first_position": 1}),
        ("xlm-roberta", {"pad_token_id": 4}, {"first_position": 5}),
        ("camembert", {}, {"first_position": 2}),
        ("mpnet", {"pad_token_id": 0}, {"first_position": 2, "n_buckets": 32}),
        ("mpnet", {"relative_attention_num_buckets": 16}, {"first_position": 2, "n_buckets": 16}),
        ("distilbert", {"layer_norm_eps": 1e-6}, {"epsilon": 1e-6}),
        ("electra", {"embedding_size": 16}, {"word_dim": 16}),
        ("electra", {}, {"word_dim": 128}),
    ],
)
def test_every_type(kind: str, changes: dict[str, Any], expected: dict[str, Any]) -> None:
    assert define(_config(kind, **changes)) == replace(BERT, model_type=kind, **expected)


@pytest.mark.parametrize(
    ("kind", "longest", "has_types", "prefix", "query", "feed"),
    [
        ("bert", 70, True, "bert.", "encoder.layer.3.attention.self.query", "encoder.layer.3.output.dense"),
        ("roberta", 68, True, "roberta.", "encoder.layer.3.attention.self.query", "encoder.layer.3.output.dense"),
        ("xlm-roberta", 68, True, "roberta.", "encoder.layer.3.attention.self.query", "encoder.layer.3.output.dense"),
        ("camembert", 68, True, "roberta.", "encoder.layer.3.attention.self.query", "encoder.layer.3.output.dense"),
        ("electra", 70, True, "electra.", "encoder.layer.3.attention.self.query", "encoder.layer.3.output.dense"),
        ("mpnet", 68, False, "mpnet.", "encoder.layer.3.attention.attn.q", "encoder.layer.3.output.dense"),
        ("distilbert", 70, False, "distilbert.", "transformer.layer.3.attention.q_lin", "transformer.layer.3.ffn.lin2"),
    ],
)
def test_names_and_lengths(kind: str, longest: int, has_types: bool, prefix: str, query: str, feed: str) -> None:
    found = define(_config(kind))
    assert isinstance(found, Definition)
    assert (found.max_length, found.has_types, found.prefix) == (longest, has_types, prefix)
    assert (found.layer(3)["query"], found.layer(3)["down"]) == (query, feed)
    names = [f"{query}.weight", "embeddings.LayerNorm.weight", "lm_head.layer_norm.weight"]
    assert found.layers_in(names) == 4
    assert found.layers_in([prefix + name for name in names]) == 4
    assert found.layers_in(names[1:]) == 0


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ("gelu", "gelu"),
        ("gelu_python", "gelu"),
        ("gelu_new", "gelu_tanh"),
        ("gelu_fast", "gelu_tanh"),
        ("gelu_pytorch_tanh", "gelu_tanh"),
        ("relu", "relu"),
    ],
)
def test_activations(stored: str, read: str) -> None:
    for kind, key in (("bert", "hidden_act"), ("distilbert", "activation")):
        assert getattr(define(_config(kind, **{key: stored})), "activation", None) == read


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (_config("albert"), "model type 'albert' is not of the BERT family"),
        ({}, "model type 'None' is not of the BERT family"),
        (_config("bert", hidden_act="silu"), "activation 'silu' is not known"),
        (_config("distilbert", activation="silu"), "activation 'silu' is not known"),
        (_config("bert", position_embedding_type="relative_key"), "position type 'relative_key' is not known"),
        (_config("roberta", is_decoder=True), "it is a decoder"),
    ],
)
def test_what_is_not_of_the_family(config: dict[str, Any], reason: str) -> None:
    assert define(config) == reason


def test_settings_that_change_nothing() -> None:
    assert define(_config("bert", position_embedding_type="absolute", is_decoder=False)) == BERT
    assert define(_config("bert", position_embedding_type=None)) == BERT
    assert define(_config("bert", embedding_size=16, relative_attention_num_buckets=16)) == BERT


@pytest.mark.parametrize("kind", ["bert", "mpnet", "distilbert"])
@pytest.mark.parametrize("key", SIZES)
@pytest.mark.parametrize("value", [..., None, "many", 0, -2])
def test_a_size_that_is_none(kind: str, key: str, value: Any) -> None:
    name = DISTIL_NAMES.get(key, key) if kind == "distilbert" else key
    config = {**_config(kind), name: value}
    if value is ...:
        del config[name]
    with pytest.raises(ModelError, match=rf"config\.json lacks a size of a {kind} model") as caught:
        define(config)
    if value in (..., 0, -2):
        assert f"'{name}'" in str(caught.value)


@pytest.mark.parametrize("name", ["bert", "roberta", "mpnet", "distilbert", "electra", "xlm-roberta"])
def test_every_stored_tensor_but_the_pooler_has_a_role(name: str, checkpoint: Callable[[str], Path]) -> None:
    from safetensors.numpy import load_file

    found = define(json.loads((checkpoint(name) / "config.json").read_text()))
    assert isinstance(found, Definition)
    stored = load_file(checkpoint(name) / "model.safetensors")
    roles = {layer for number in range(found.n_layers) for layer in found.layer(number).values()}
    inside = {key.rpartition(".")[0] for key in stored if "layer." in key}
    assert inside == roles
    assert found.layers_in(stored) == found.n_layers


@pytest.mark.parametrize("n_buckets", [16, 32, 64])
def test_distance_buckets_are_those_of_mpnet(n_buckets: int) -> None:
    distances = torch.arange(-200, 201)
    wanted = MPNetEncoder.relative_position_bucket(distances, num_buckets=n_buckets).numpy()
    np.testing.assert_array_equal(distance_buckets(n_buckets, 201), wanted)
    assert len(set(wanted.tolist())) == n_buckets - 1  # no distance is both nought and behind
