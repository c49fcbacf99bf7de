"""What an encoder of the BERT family is made of: sizes from its config, and the name of every tensor.

One definition, two readings: the native engine (inference on the CPU) and the flat torch module (training, GPUs).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.errors import ModelError

__all__ = ["Definition", "define", "distance_buckets"]

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}

_BERT_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "after_attention": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "after_feed": "output.LayerNorm",
}

_MPNET_LAYER = {
    **_BERT_LAYER,
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "output": "attention.attn.o",
    "after_attention": "attention.LayerNorm",
}

_DISTILBERT_LAYER = {
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "output": "attention.out_lin",
    "after_attention": "sa_layer_norm",
    "up": "ffn.lin1",
    "down": "ffn.lin2",
    "after_feed": "output_layer_norm",
}

_FAMILY: dict[str, tuple[str, str, dict[str, str]]] = {
    "bert": ("bert.", "encoder.layer", _BERT_LAYER),
    "roberta": ("roberta.", "encoder.layer", _BERT_LAYER),
    "xlm-roberta": ("roberta.", "encoder.layer", _BERT_LAYER),
    "camembert": ("roberta.", "encoder.layer", _BERT_LAYER),
    "electra": ("electra.", "encoder.layer", _BERT_LAYER),
    "mpnet": ("mpnet.", "encoder.layer", _MPNET_LAYER),
    "distilbert": ("distilbert.", "transformer.layer", _DISTILBERT_LAYER),
}
"""Model type → prefix of its tensors in checkpoints with a head, name of the layers, names inside a layer."""

_BEHIND_PADDING = {"roberta", "xlm-roberta", "camembert", "mpnet"}
"""Types whose first position stands behind the padding index."""


@dataclass(frozen=True)
class Definition:
    """An encoder of the BERT family."""

    model_type: str
    """Its transformers model type."""
    hidden: int
    """Length of a token state."""
    heads: int
    """Attention heads of a layer."""
    feed: int
    """Width of the feed-forward half."""
    n_layers: int
    """Layers."""
    vocabulary: int
    """Rows of the word table."""
    word_dim: int
    """Length of a word vector; a projection leads to `hidden` where it differs (ELECTRA)."""
    n_positions: int
    """Rows of the position table."""
    first_position: int
    """Row of the first token's position. Where it is not 0, the row before it is the id and place of padding."""
    epsilon: float
    """Added to the variance in normalisations."""
    activation: str
    """"gelu", "gelu_tanh" or "relu"."""
    n_buckets: int = 0
    """Buckets of relative distance that bias the attention (MPNet); 0 for none."""

    @property
    def max_length(self) -> int:
        """Tokens of the longest text."""
        return self.n_positions - self.first_position

    @property
    def prefix(self) -> str:
        """What stands before every name in checkpoints that hold a head too."""
        return _FAMILY[self.model_type][0]

    def layer(self, number: int) -> dict[str, str]:
        """Role → name, without ".weight" and ".bias", of one layer's tensors."""
        _, layers, names = _FAMILY[self.model_type]
        return {role: f"{layers}.{number}.{name}" for role, name in names.items()}

    @property
    def has_types(self) -> bool:
        """A token type vector is part of every embedding."""
        return self.model_type not in ("distilbert", "mpnet")

    def layers_in(self, names: Any) -> int:
        """How many layers the tensors of a checkpoint belong to."""
        layers = _FAMILY[self.model_type][1] + "."
        numbers = [name.removeprefix(self.prefix).removeprefix(layers) for name in names]
        found = {number.partition(".")[0] for name, number in zip(names, numbers, strict=True) if layers in name}
        return 1 + max((int(number) for number in found if number.isdigit()), default=-1)


def define(config: Mapping[str, Any]) -> Definition | str:
    """The definition that a config.json describes, or why it is not one of this family.

    Raises:
        ModelError: The config belongs to the family but lacks a size.
    """
    kind = str(config.get("model_type"))
    if kind not in _FAMILY:
        return f"model type {kind!r} is not of the BERT family"
    distil = kind == "distilbert"
    activation = str(config.get("activation" if distil else "hidden_act", "gelu"))
    if activation not in _ACTIVATIONS:
        return f"activation {activation!r} is not known"
    if config.get("position_embedding_type", "absolute") not in (None, "absolute"):
        return f"position type {config['position_embedding_type']!r} is not known"
    if config.get("is_decoder"):
        return "it is a decoder"
    try:
        hidden = _size(config, "dim" if distil else "hidden_size")
        return Definition(
            model_type=kind,
            hidden=hidden,
            heads=_size(config, "n_heads" if distil else "num_attention_heads"),
            feed=_size(config, "hidden_dim" if distil else "intermediate_size"),
            n_layers=_size(config, "n_layers" if distil else "num_hidden_layers"),
            vocabulary=_size(config, "vocab_size"),
            word_dim=int(config.get("embedding_size", 128)) if kind == "electra" else hidden,
            n_positions=_size(config, "max_position_embeddings"),
            first_position=_padding(config) + 1 if kind in _BEHIND_PADDING else 0,
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            activation=_ACTIVATIONS[activation],
            n_buckets=int(config.get("relative_attention_num_buckets", 32)) if kind == "mpnet" else 0,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"config.json lacks a size of a {kind} model ({error}); fetch it again") from error


def distance_buckets(n_buckets: int, reach: int) -> np.ndarray:
    """Bucket of every relative distance from -(reach - 1) to reach - 1, as MPNet numbers them.

    Near distances have a bucket each; from a quarter of the buckets on they grow with the logarithm, up to
    distance 128. Keys behind the query use the second half.
    """
    half, near = n_buckets // 2, n_buckets // 4
    distance = np.arange(-(reach - 1), reach)
    far = np.abs(distance)
    logarithm = np.log(np.maximum(far, 1).astype(np.float32) / near) / math.log(128 / near)
    grown = np.minimum(near + (logarithm * (half - near)).astype(np.int64), half - 1)
    return np.where(far < near, far, grown) + np.where(distance > 0, half, 0)


def _size(config: Mapping[str, Any], key: str) -> int:
    size = int(config[key])
    if size < 1:
        raise ValueError(f"{key!r} is {size}")
    return size


def _padding(config: Mapping[str, Any]) -> int:
    stored = config.get("pad_token_id")
    if stored is None or config["model_type"] == "mpnet":  # whose positions start behind 1, whatever its config says
        return 1
    return int(stored)
