"""The encoder definition read by torch: one module on flat tokens, for training, for GPUs, and where nothing compiles.

Texts lie end to end, so everything but attention runs on the concatenation, and attention runs on groups of equally
long texts: nothing is padded, so nothing is masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.backbone.base import Backbone
from likewise.backbone.definition import Definition, distance_buckets
from likewise.backbone.linear import Layer, plain, prepacked, proves
from likewise.backbone.native import Named
from likewise.backbone.tensors import Tensors
from likewise.errors import InputError, ModelError

__all__ = ["FlatBackbone", "FlatEncoder", "dropouts"]

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}

_TOKENS_A_CALL, _TOKENS_A_CALL_ELSEWHERE = 2_048, 32_768
"""Tokens that one call of the module is filled with: on the CPU what its caches hold, on a GPU what keeps it busy."""


class FlatEncoder(nn.Module):
    """An encoder of the BERT family on flat tokens, in float32 and in evaluation mode at first. Differentiable.

    Args:
        definition: What it is made of.
        tensors: Its weights by their names in the checkpoint.
        dropout: Probability of dropping a component of a state, and of dropping an attention weight; only in
            training mode.

    Raises:
        ModelError: A tensor is missing, has another shape, or holds NaN; or sizes or layers do not fit.
    """

    def __init__(self, definition: Definition, tensors: Named, *, dropout: tuple[float, float] = (0.0, 0.0)) -> None:
        super().__init__()
        d = self.definition = definition
        if d.hidden % d.heads:
            raise ModelError(f"{d.heads} heads do not divide a width of {d.hidden}; fetch config.json again")
        tensors.refuse_more_layers()
        self._dropout = dropout
        after_attention = 0.0 if d.model_type == "distilbert" else dropout[0]
        with torch.device("meta"):  # shapes alone: every value comes from the checkpoint
            self.words = nn.Parameter(torch.empty(d.vocabulary, d.word_dim))
            self.positions = nn.Parameter(torch.empty(d.n_positions, d.word_dim))
            if d.has_types:
                n_types = tensors.rows("embeddings.token_type_embeddings.weight")
                self.types = nn.Parameter(torch.empty(n_types, d.word_dim))
            self.embedding_norm = nn.LayerNorm(d.word_dim, d.epsilon)
            self.projection = nn.Linear(d.word_dim, d.hidden) if d.word_dim != d.hidden else nn.Identity()
            if d.n_buckets:
                self.distances = nn.Parameter(torch.empty(d.n_buckets, d.heads))
            self.layers = nn.ModuleList(Layer(d, (after_attention, dropout[0])) for _ in range(d.n_layers))
        shapes = {name: tuple(parameter.shape) for name, parameter in self.named_parameters()}
        # A copy, since the file is mapped read-only and a parameter is written to.
        read = {role: torch.tensor(tensors(name, *shapes[role])) for role, name in _names(d).items()}
        self.load_state_dict(read, assign=True)
        self.eval()

    def forward(
        self,
        ids: Int[Tensor, " total"],
        offsets: Int[np.ndarray, " ends"],
        types: Int[Tensor, " total"] | None = None,
    ) -> Float[Tensor, "total dim"]:
        """Last hidden states, in the order of the tokens.

        Args:
            ids: Vocabulary ids of all texts, laid end to end, on the module's device.
            offsets: [n + 1] text i owns the ids offsets[i] to offsets[i + 1].
            types: Which part of its text a token belongs to, where the model has types (`n_types`); 0 by default.

        Raises:
            InputError: A text has more tokens than there are positions.
        """
        lengths = np.diff(offsets)
        if lengths.size and lengths.max() > self.definition.max_length:
            raise InputError(
                f"a text of {lengths.max()} tokens is longer than the {self.definition.max_length} positions; cut it"
            )
        order = np.argsort(lengths, kind="stable")
        if (np.diff(lengths) >= 0).all():
            return self._sorted(ids, lengths, types)
        rows = torch.from_numpy(_rows(offsets, order)).to(ids.device)
        types = None if types is None else types[rows]
        return self._sorted(ids[rows], lengths[order], types)[torch.argsort(rows)]

    @property
    def n_types(self) -> int:
        """Rows of the token type table; 0 where there is none."""
        return len(self.types) if self.definition.has_types else 0

    def checkpoint(self) -> dict[str, Tensor]:
        """Its weights by the names that transformers gives them."""
        own = self.state_dict()
        return {name: own[role] for role, name in _names(self.definition).items()}

    def _sorted(self, ids: Tensor, lengths: np.ndarray, types: Tensor | None) -> Tensor:
        groups = _groups(lengths)
        x = self._embedded(ids, lengths, types)
        biases = [self._bias(length) for length, _ in groups]
        for layer in self.layers if groups else ():
            x = layer(x, lambda joint: self._attend(joint, groups, biases))
        return x

    def _embedded(self, ids: Tensor, lengths: np.ndarray, types: Tensor | None) -> Tensor:
        places = self._places(ids, lengths)
        x = F.embedding(ids, self.words) + F.embedding(places, self.positions)
        if self.definition.has_types:
            x = x + (self.types[0] if types is None else F.embedding(types, self.types))
        return self.projection(F.dropout(self.embedding_norm(x), self._dropout[0], self.training))

    def _places(self, ids: Tensor, lengths: np.ndarray) -> Tensor:
        """[total] rows of the position table. Where they begin behind padding, its tokens stand there, uncounted."""
        first = self.definition.first_position
        starts = torch.from_numpy(np.repeat(np.cumsum(lengths) - lengths, lengths)).to(ids.device)
        if not first:
            return torch.arange(len(ids), device=ids.device) - starts
        counted = (ids != first - 1).long()
        before = torch.cumsum(counted, 0) - counted
        return torch.where(counted == 1, before - before[starts] + first, first - 1)

    def _bias(self, length: int) -> Tensor | None:
        """[heads, length, length] what the distance of key and query adds to their logit."""
        if not self.definition.n_buckets:
            return None
        place = np.arange(length)
        buckets = distance_buckets(self.definition.n_buckets, length)[place - place[:, None] + length - 1]
        return F.embedding(torch.from_numpy(buckets).to(self.distances.device), self.distances).permute(2, 0, 1)

    def _attend(self, joint: Tensor, groups: list[tuple[int, int]], biases: list[Tensor | None]) -> Tensor:
        heads, p = self.definition.heads, self._dropout[1] if self.training else 0.0
        parts = joint.split([length * n for length, n in groups])
        out = []
        for (length, n), part, bias in zip(groups, parts, biases, strict=True):
            query, key, value = part.view(n, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
            bias = None if bias is None else bias.to(query.dtype).expand(n, -1, -1, -1)
            mixed = F.scaled_dot_product_attention(query, key, value, bias, p)
            out.append(mixed.transpose(1, 2).reshape(n * length, -1))
        return torch.cat(out)


class FlatBackbone(Backbone):
    """A `FlatEncoder` for inference, with its linear layers packed once for oneDNN where that proves right.

    Args:
        definition: What the encoder is made of.
        folder: Where its weights are.
        device: A torch device; by default the first GPU, else the CPU.
        precision: Of the products: "float32", "bfloat16", "float16" or "float64". Sums, normalisations and what
            comes out are float32 (inside, float64 with "float64").

    Raises:
        InputError: An unknown precision, or a device that is not there.
        ModelError: See `FlatEncoder`.
    """

    def __init__(
        self, definition: Definition, folder: Path, *, device: str | None = None, precision: str = "float32"
    ) -> None:
        if precision not in _DTYPES:
            raise InputError(f"precision {precision!r} needs the native engine; torch has {', '.join(_DTYPES)}")
        self._definition, self._folder, self._precision = definition, folder, precision
        self._device, dtype = _place(device), _DTYPES[precision]
        tensors = Tensors(folder)
        module = FlatEncoder(definition, Named(tensors, definition)).requires_grad_(False)
        tensors.release()
        self._size = sum(parameter.numel() for parameter in module.parameters())
        self._module = module.to(self._device, torch.float64 if precision == "float64" else torch.float32)
        layers: list[Any] = list(module.layers)
        self._packed = self._device.type == "cpu" and all(proves(layer.steps(dtype)) for layer in layers[:1])
        for layer in layers:
            layer.prepare(prepacked if self._packed else plain, dtype)

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
        """Last hidden states of packed texts in float32, computed in order of length."""
        out = np.empty((len(ids), self.dim), np.float32)
        for some, lengths in self._calls(offsets):
            rows = _rows(offsets, some)
            out[rows] = self._hidden(ids[rows], lengths).float().numpy(force=True)
        return out

    def pooled(
        self, ids: Int[np.ndarray, " total"], offsets: Int[np.ndarray, " ends"], mode: str
    ) -> Float[np.ndarray, "n dim"] | None:
        """Mean or CLS vectors of packed texts, pooled on the device; zeros for empty texts; None for other poolings."""
        if mode not in ("mean", "cls"):
            return None
        out = np.zeros((len(offsets) - 1, self.dim), np.float32)
        for some, lengths in self._calls(offsets):
            hidden = self._hidden(ids[_rows(offsets, some)], lengths)
            groups = _groups(lengths)
            parts = hidden.split([length * n for length, n in groups])
            texts = [part.view(n, length, -1) for part, (length, n) in zip(parts, groups, strict=True)]
            vectors = [text[:, 0] if mode == "cls" else text.mean(1) for text in texts]
            out[some] = torch.cat(vectors).float().numpy(force=True)
        return out

    def describe(self) -> str:
        """One line: architecture, size, precision, device."""
        d = self._definition
        return (
            f"{d.model_type}, {d.n_layers} layers of {d.hidden}, {self._size / 1e6:.1f} M parameters, "
            f"{self._precision} on {self._device}, by torch on flat tokens"
            f"{' (oneDNN, packed once)' if self._packed else ''}"
        )

    def _calls(self, offsets: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Texts that have tokens, shortest first, so many at once as fill a call; and their lengths."""
        lengths = np.diff(offsets)
        budget = _TOKENS_A_CALL if self._device.type == "cpu" else _TOKENS_A_CALL_ELSEWHERE
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        first, total = 0, 0
        for at, length in enumerate(lengths[order].tolist()):
            if total and total + length > budget:
                yield order[first:at], lengths[order[first:at]]
                first, total = at, 0
            total += length
        if total:
            yield order[first:], lengths[order[first:]]

    def _hidden(self, ids: np.ndarray, lengths: np.ndarray) -> Tensor:
        if not 0 <= int(ids.min()) <= int(ids.max()) < self._definition.vocabulary:
            raise ModelError(
                f"token id {int(ids.max())} is not among the {self._definition.vocabulary} words of {self._folder}; "
                "tokenizer and weights belong to different models; fetch both from one place"
            )
        with torch.inference_mode():
            tokens = torch.from_numpy(np.ascontiguousarray(ids, np.int64)).to(self._device)
            hidden: Tensor = self._module(tokens, np.concatenate([[0], np.cumsum(lengths)]))
            return hidden


def dropouts(config: Mapping[str, Any]) -> tuple[float, float]:
    """Probability of dropping a component of a state, and an attention weight, that a config.json asks for."""
    distil = config.get("model_type") == "distilbert"
    hidden = config.get("dropout" if distil else "hidden_dropout_prob", 0.1)
    attention = config.get("attention_dropout" if distil else "attention_probs_dropout_prob", 0.1)
    return float(hidden), float(attention)


def _names(d: Definition) -> dict[str, str]:
    """Parameter of a `FlatEncoder` → tensor of a checkpoint."""
    both = {"embedding_norm": "embeddings.LayerNorm"}
    if d.word_dim != d.hidden:
        both["projection"] = "embeddings_project"
    for number in range(d.n_layers):
        both.update({f"layers.{number}.{role}": name for role, name in d.layer(number).items()})
    names = {"words": "embeddings.word_embeddings.weight", "positions": "embeddings.position_embeddings.weight"}
    if d.has_types:
        names["types"] = "embeddings.token_type_embeddings.weight"
    if d.n_buckets:
        names["distances"] = "encoder.relative_attention_bias.weight"
    return names | {f"{role}.{part}": f"{name}.{part}" for role, name in both.items() for part in ("weight", "bias")}


def _groups(lengths: np.ndarray) -> list[tuple[int, int]]:
    """Length and number of the equally long texts that have tokens, shortest first."""
    found, counts = np.unique(lengths[lengths > 0], return_counts=True)
    return list(zip(found.tolist(), counts.tolist(), strict=True))


def _rows(offsets: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Which tokens the texts own, text after text."""
    starts, lengths = offsets[:-1][texts], np.diff(offsets)[texts]
    return np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)


def _place(device: str | None) -> torch.device:
    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise InputError(f"unknown device {device!r}; name one as torch does, such as 'cpu' or 'cuda:0'") from error
    if place.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {device!r} is asked for and torch sees no GPU; use device='cpu'")
    return place
