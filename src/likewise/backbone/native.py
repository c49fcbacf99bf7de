"""The native engine: BERT-family encoders on the CPU, without torch, without padding, the same bytes in any batch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from likewise.backbone.base import Backbone
from likewise.backbone.definition import Definition, distance_buckets
from likewise.backbone.tensors import Tensors
from likewise.errors import InputError, ModelError
from likewise.kernels import native

__all__ = ["PRECISIONS", "Named", "NativeBackbone", "unfit"]

PRECISIONS = ("float32", "bfloat16", "int8", "int8+")
"""Number formats; int8+ keeps the second feed-forward matrix in bfloat16."""

_ACTIVATIONS = {"gelu": 0, "gelu_tanh": 1, "relu": 2}
_ROLES = ("query", "key", "value", "output", "up", "down")
_SMOOTHING = 0.6
"""How much of a channel's range moves from activations to weights. Found on STS-b dev; the feed-forward's second
matrix is better without."""


def unfit(definition: Definition) -> str:
    """Why the engine cannot run an encoder; "" if it can."""
    if native.library() is None:
        return "the compiled extension is not in use"
    widths = (definition.hidden, definition.feed, definition.word_dim, definition.hidden // definition.heads)
    if any(width % 16 for width in widths) or definition.hidden % definition.heads:
        return f"widths {widths} are not multiples of 16"
    return ""


class NativeBackbone(Backbone):
    """An encoder whose weights were packed once for the compiled engine.

    Args:
        definition: What the encoder is made of.
        folder: Where its weights are.
        precision: One of `PRECISIONS`.
        calibration: Turns texts into packed ids and offsets, for the ranges that int8 needs.

    Raises:
        ModelError: A tensor is missing, has another shape, or holds NaN; or there are more layers than the config says.
    """

    def __init__(
        self,
        definition: Definition,
        folder: Path,
        precision: str = "float32",
        calibration: Callable[[list[str]], tuple[np.ndarray, np.ndarray]] | None = None,
    ) -> None:
        self._definition, self._precision, self._folder = definition, precision, folder
        tensors = Named(Tensors(folder), definition)
        tensors.refuse_more_layers()
        ranges = None
        if precision.startswith("int8") and calibration is not None:
            observer = _build(definition, tensors, "float32", None)
            ranges = np.asarray(observer.ranges(*calibration(_calibration_texts())), np.float32)
        self._engine = _build(definition, tensors, precision, ranges)

    @property
    def dim(self) -> int:
        """Length of a token state."""
        return self._definition.hidden

    @property
    def max_length(self) -> int | None:
        """Tokens that the position table holds."""
        return self._definition.max_length

    @property
    def vocabulary(self) -> int | None:
        """Rows of the word table."""
        return self._definition.vocabulary

    def states(
        self, ids: Int[np.ndarray, " total"], offsets: Int[np.ndarray, " ends"]
    ) -> Float[np.ndarray, "total dim"]:
        """Last hidden states of packed texts, float32."""
        out = np.empty((len(ids), self.dim), np.float32)
        self._engine.run(self._checked(ids, offsets), offsets, out, None, False, native.n_threads())
        return out

    def pooled(
        self, ids: Int[np.ndarray, " total"], offsets: Int[np.ndarray, " ends"], mode: str
    ) -> Float[np.ndarray, "n dim"] | None:
        """Mean or CLS vectors of packed texts without their token states; None for other poolings."""
        if mode not in ("mean", "cls"):
            return None
        out = np.empty((len(offsets) - 1, self.dim), np.float32)
        self._engine.run(self._checked(ids, offsets), offsets, None, out, mode == "cls", native.n_threads())
        return out

    def describe(self) -> str:
        """One line: architecture, precision, instruction set."""
        size = self._engine.n_bytes / 1e6
        return (
            f"{self._definition.model_type}, {self._definition.n_layers} layers of {self.dim}, {self._precision}, "
            f"{size:.0f} MB packed, native engine on {self._engine.instruction_set}"
        )

    def _checked(self, ids: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Ids as the engine reads them, which looks up words and positions without a check of its own."""
        lengths = np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != len(ids) or lengths.min(initial=0) < 0:
            raise InputError(
                f"offsets go from {offsets[0]} to {offsets[-1]}; they must rise from 0 to {len(ids)}, the number of ids"
            )
        if (longest := int(lengths.max(initial=0))) > self._definition.max_length:
            raise InputError(
                f"text {int(lengths.argmax())} of {longest} tokens is longer than the {self._definition.max_length} "
                f"positions of {self._folder}; cut it"
            )
        strange = ids[(ids < 0) | (ids >= self._definition.vocabulary)]
        if len(strange):
            raise ModelError(
                f"token id {int(strange[0])} is not among the {self._definition.vocabulary} words of {self._folder}; "
                "tokenizer and weights belong to different models; fetch both from one place"
            )
        return np.ascontiguousarray(ids, np.int32)


class Named:
    """Tensors by the names of the definition, with or without the prefix of a checkpoint with a head."""

    def __init__(self, tensors: Tensors, definition: Definition) -> None:
        self._tensors, self._definition = tensors, definition
        self._prefix = definition.prefix if any(name.startswith(definition.prefix) for name in tensors) else ""

    def __call__(self, name: str, *shape: int, resident: bool = True) -> np.ndarray:
        name = self._prefix + name
        if name not in self._tensors:  # checkpoints of before 2019 call them gamma and beta
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            name = old if old in self._tensors else name
        return self._tensors.get(name, shape, resident=resident)

    def release(self) -> None:
        """The pages of what was packed are not needed any more."""
        self._tensors.release()

    def rows(self, name: str) -> int:
        """Rows of a table."""
        name = self._prefix + name
        return self._tensors.shape(name)[0] if name in self._tensors else 0

    def refuse_more_layers(self) -> None:
        """Raise a ModelError if the checkpoint holds layers that the config does not speak of."""
        found = self._definition.layers_in(list(self._tensors))
        if found > self._definition.n_layers:
            raise ModelError(
                f"the weights hold {found} layers and config.json speaks of {self._definition.n_layers}; fetch both "
                "from one place"
            )


def _build(definition: Definition, tensors: Named, precision: str, ranges: np.ndarray | None) -> Any:
    d, code = definition, native.PRECISIONS
    # The word table is half of a small model and used a few rows at a time: it is left in the file.
    words = tensors("embeddings.word_embeddings.weight", d.vocabulary, d.word_dim, resident=False)
    sizes = [d.hidden, d.heads, d.feed, d.n_positions, d.first_position]
    engine = native.required().Encoder(sizes, d.epsilon, _ACTIVATIONS[d.activation], words)
    positions = tensors("embeddings.position_embeddings.weight", d.n_positions, d.word_dim)
    if d.has_types:
        n_types = tensors.rows("embeddings.token_type_embeddings.weight")
        positions = positions + tensors("embeddings.token_type_embeddings.weight", n_types, d.word_dim)[0]
    engine.positions(np.ascontiguousarray(positions))
    engine.embedding_norm(*(tensors(f"embeddings.LayerNorm.{part}", d.word_dim) for part in ("weight", "bias")))
    if d.word_dim != d.hidden:
        weight, bias = (
            tensors("embeddings_project.weight", d.hidden, d.word_dim),
            tensors("embeddings_project.bias", d.hidden),
        )
        engine.projection(weight, bias)
    if d.n_buckets:
        table = tensors("encoder.relative_attention_bias.weight", d.n_buckets, d.heads)
        buckets = distance_buckets(d.n_buckets, d.max_length)
        engine.distances(np.ascontiguousarray(table[buckets].T), d.max_length)
    base = code["int8"] if precision.startswith("int8") else code[precision]
    formats = [base, base, base, code["bfloat16"] if precision == "int8+" else base]
    for number in range(d.n_layers):
        own = None if ranges is None else np.split(ranges, d.n_layers)[number]
        _add_layer(engine, d, tensors, number, formats, own)
        tensors.release()
    return engine


def _add_layer(
    engine: Any, d: Definition, tensors: Named, number: int, formats: list[int], ranges: np.ndarray | None
) -> None:
    names = d.layer(number)
    into = {"up": d.hidden, "down": d.feed}
    out = {"up": d.feed}
    weights = [tensors(f"{names[r]}.weight", out.get(r, d.hidden), into.get(r, d.hidden)) for r in _ROLES]
    biases = [tensors(f"{names[r]}.bias", out.get(r, d.hidden)) for r in _ROLES]
    norms = [
        tensors(f"{names[role]}.{part}", d.hidden)
        for role in ("after_attention", "after_feed")
        for part in ("weight", "bias")
    ]
    shifts, smooths = _smoothing(d, ranges)
    engine.add_layer(weights, biases, norms, formats, shifts, smooths)


def _smoothing(d: Definition, ranges: np.ndarray | None) -> tuple[list[Any], list[Any]]:
    """Shift and scale of the inputs of qkv, output and up: wide channels are narrowed, their weights widened."""
    if ranges is None:
        return [None] * 4, [None] * 4
    shifts, smooths = [], []
    for layer in range(3):
        low, high = ranges[2 * layer * d.hidden : 2 * (layer + 1) * d.hidden].reshape(2, d.hidden)
        half = np.maximum((high - low) / 2, 1e-5)
        shifts.append(np.ascontiguousarray((high + low) / 2))
        smooths.append(np.ascontiguousarray((np.median(half) / half) ** np.float32(_SMOOTHING), np.float32))
    return [*shifts, None], [*smooths, None]


def _calibration_texts() -> list[str]:
    return resources.files("likewise.backbone").joinpath("calibration.txt").read_text("utf-8").splitlines()
