"""The modules behind the backbone with parameters that can be trained; all texts of a batch at once.

The formulas are those of `likewise.encoder.Head.fold`, which serves a saved model text by text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.encoder import Dense, Head, Normalize
from likewise.encoder.head import ACTIVATIONS
from likewise.errors import InputError
from likewise.pooling import Pooling
from likewise.types import Embeddings, computable

__all__ = ["PROJECTIONS", "TrainableHead"]

PROJECTIONS = ("none", "linear", "mlp")
"""New heads: none; a linear layer on the tokens (CLRCMD, SimCSE-avg); linear and tanh on the pooled vector (SimCSE)."""

_SPREAD = 0.02
"""Standard deviation of a new layer's weights, as BERT's."""


class TrainableDense(nn.Module):
    """`f(W x + b)`, plus `x` or `R x` if it has a residual.

    Args:
        source: Where its values come from.
        only_training: It is not part of the saved model.
    """

    def __init__(self, source: Dense, *, only_training: bool = False) -> None:
        super().__init__()
        self.activation, self.only_training = source.activation, only_training
        self.weight = nn.Parameter(torch.tensor(source.weight))
        self.bias = None if source.bias is None else nn.Parameter(torch.tensor(source.bias))
        self.skips = source.residual is not None and source.residual.shape[0] == source.residual.shape[1]
        apart = source.residual is not None and not self.skips
        self.residual = nn.Parameter(torch.tensor(source.residual)) if apart else None

    @property
    def is_sum(self) -> bool:
        """Of a weighted sum it makes another weighted sum of the same tokens."""
        plain = not self.skips and self.residual is None
        return self.activation == "identity" or (plain and self.activation != "sigmoid")

    def forward(self, x: Tensor) -> Tensor:
        """The whole module, row by row."""
        out = ACTIVATIONS[self.activation](F.linear(x, self.weight, self.bias))
        if self.skips:
            return out + x
        return out if self.residual is None else out + F.linear(x, self.residual)

    def matrix(self) -> Tensor:
        """What multiplies x, a residual included."""
        if self.skips:
            return self.weight + torch.eye(len(self.weight), dtype=self.weight.dtype, device=self.weight.device)
        return self.weight if self.residual is None else self.weight + self.residual

    def frozen(self) -> Dense:
        """As the encoder room has it."""
        residual = np.eye(len(self.weight), dtype=np.float32) if self.skips else _array(self.residual)
        return Dense(_array(self.weight), _array(self.bias), self.activation, residual)


class TrainableNormalize(nn.Module):
    """Length 1; a zero vector stays zero."""

    only_training = False
    is_sum = True

    def forward(self, x: Tensor) -> Tensor:
        """Row by row."""
        return F.normalize(x, dim=1)

    def frozen(self) -> Normalize:
        """As the encoder room has it."""
        return Normalize()


class TrainableHead(nn.Module):
    """A head whose layers are torch parameters.

    Args:
        head: What the model folder has.
        dim: Length of a backbone state.
        projection: One of `PROJECTIONS`.
        keep: Let a new projection be part of the saved model; else it is there in training only.
        seed: Decides the new weights.

    Raises:
        InputError: An unknown projection, or "mlp" without a pooling.
    """

    def __init__(self, head: Head, dim: int, *, projection: str = "none", keep: bool = True, seed: int = 0) -> None:
        super().__init__()
        if projection not in PROJECTIONS:
            raise InputError(f"unknown projection {projection!r}; known are {', '.join(PROJECTIONS)}")
        if projection == "mlp" and head.pooling is None:
            raise InputError(
                "projection 'mlp' stands on the pooled vector and this model has no pooling; take projection='linear'"
            )
        self.pooling, self._skip, self.projection = head.pooling, head.skip, projection
        self.on_tokens = nn.ModuleList(_module(one) for one in head.on_tokens)
        self.on_pooled = nn.ModuleList(_module(one) for one in head.on_pooled)
        if projection == "linear":
            into = head.dims(dim)[0]
            self.on_tokens.append(TrainableDense(_new(into, "identity", seed), only_training=not keep))
        if projection == "mlp":  # before a closing normalisation
            last = len(head.on_pooled) - int(isinstance(next(reversed(head.on_pooled), None), Normalize))
            into = Head(head.pooling, head.on_tokens, head.on_pooled[:last]).dims(dim)[1]
            self.on_pooled.insert(last, TrainableDense(_new(into, "tanh", seed), only_training=not keep))
        self._dim = head.dims(dim)[1]  # a new layer is square

    @property
    def dim(self) -> int:
        """Length of a pooled vector in training; of a token vector without pooling."""
        return self._dim

    @property
    def is_sum(self) -> bool:
        """The pooled vector is a weighted sum of tokens, in training and later."""
        return all(module.is_sum for module in self.on_pooled)

    def frozen(self) -> Head:
        """The head of the saved model, without what is there in training only."""
        chains: list[list[Any]] = [list(self.on_tokens), list(self.on_pooled)]
        on_tokens, on_pooled = (tuple(one.frozen() for one in chain if not one.only_training) for chain in chains)
        return Head(self.pooling, on_tokens, on_pooled, self._skip)

    def forward(self, states: Float[Tensor, "total dim"], offsets: np.ndarray) -> Embeddings:
        """Tokens and weights whose weighted sums are the pooled vectors; weights None without pooling.

        A model whose pooled vector is no sum over tokens gives pooled vectors: a bag of one token a text.
        """
        with torch.autocast(states.device.type, enabled=False):
            tokens = computable(states)
            for module in self._active(self.on_tokens):
                tokens = module(tokens)
            if self.pooling is None:
                return Embeddings(tokens, offsets)
            return self._pooled(tokens, self.pooling, _Texts(offsets, tokens))

    def _pooled(self, tokens: Tensor, pooling: Pooling, texts: _Texts) -> Embeddings:
        weights = _weights(pooling, tokens, texts)
        if len(pooling.modes) > 1:
            tokens = torch.cat([tokens] * len(pooling.modes), dim=1)
        modules = self._active(self.on_pooled)
        if all(module.is_sum for module in modules):
            for module in modules:
                tokens, weights = _fold(module, tokens, weights, texts)
            return Embeddings(tokens, texts.offsets, weights)
        vectors = texts.sums(tokens, weights)
        for module in modules:
            vectors = module(vectors)
        return Embeddings.from_pooled(vectors * texts.filled[:, None])

    def _active(self, chain: nn.ModuleList) -> list[Any]:
        return [module for module in chain if self.training or not module.only_training]


class _Texts:
    """Which token belongs to which text."""

    def __init__(self, offsets: np.ndarray, like: Tensor) -> None:
        lengths = np.diff(offsets)
        self.offsets, self.n = offsets, len(lengths)
        self.lengths, self._like = lengths, like
        self.owner = torch.from_numpy(np.repeat(np.arange(self.n), lengths)).to(like.device)
        self.filled = self.on_device(lengths > 0)

    def on_device(self, values: np.ndarray) -> Tensor:
        """Numbers beside the tokens, in their precision."""
        return torch.as_tensor(values, dtype=self._like.dtype, device=self._like.device)

    def places(self) -> np.ndarray:
        """Place of each token in its text."""
        return np.arange(len(self.owner)) - np.repeat(self.offsets[:-1], self.lengths)

    def sums(self, tokens: Tensor, weights: Tensor) -> Tensor:
        """[n, dim] weighted sum of each text."""
        zeros = tokens.new_zeros(self.n, tokens.shape[1])
        return zeros.index_add(0, self.owner, _columns(weights) * tokens)

    def totals(self, weights: Tensor) -> Tensor:
        """[n] sum of the weights of each text."""
        return weights.new_zeros(self.n).index_add(0, self.owner, weights)


def _weights(pooling: Pooling, tokens: Tensor, texts: _Texts) -> Tensor:
    """[total], or [total, dim * modes] for max pooling and several modes."""
    columns = [_mode(mode, tokens, texts) for mode in pooling.modes]
    if len(columns) == 1:
        return columns[0]
    return torch.cat([_columns(column).expand_as(tokens) for column in columns], dim=1)


def _mode(mode: str, tokens: Tensor, texts: _Texts) -> Tensor:
    if mode == "max":
        return _largest(tokens.detach(), texts)
    counts, places = np.repeat(texts.lengths, texts.lengths), texts.places()
    if mode == "cls":
        values = places == 0
    elif mode == "lasttoken":
        values = places == counts - 1
    elif mode == "weightedmean":
        values = (places + 1) / (counts * (counts + 1) / 2)
    else:
        values = 1 / (counts if mode == "mean" else np.sqrt(counts))
    return texts.on_device(values)


def _largest(tokens: Tensor, texts: _Texts) -> Tensor:
    """[total, dim] 1 where a token is the first of its text that is largest in a dimension."""
    owner = texts.owner
    into = owner[:, None].expand_as(tokens)
    top = tokens.new_full((texts.n, tokens.shape[1]), -torch.inf).scatter_reduce_(0, into, tokens, "amax")
    place = texts.on_device(texts.places())[:, None].expand_as(tokens)
    tied = torch.where(tokens == top[owner], place, torch.inf)
    first = tokens.new_full(top.shape, torch.inf).scatter_reduce_(0, into, tied, "amin")
    return (tied == first[owner]).to(tokens.dtype)


def _fold(module: Any, tokens: Tensor, weights: Tensor, texts: _Texts) -> tuple[Tensor, Tensor]:
    if isinstance(module, TrainableNormalize):
        length = torch.linalg.vector_norm(texts.sums(tokens, weights), dim=1)
        scale = 1 / torch.where(length > 0, length, 1)[texts.owner]
        return tokens, weights * (scale[:, None] if weights.ndim == 2 else scale)
    if weights.ndim == 2:  # they differ by dimension, which the matrix mixes: they move into the tokens
        counts = texts.on_device(np.repeat(texts.lengths, texts.lengths))
        tokens, weights = weights * tokens * counts[:, None], 1 / counts
    tokens = F.linear(tokens, module.matrix())
    if module.bias is not None:
        tokens = tokens + module.bias / texts.totals(weights)[texts.owner, None]
    if module.activation == "identity":
        return tokens, weights
    z = texts.sums(tokens, weights)
    safe = torch.where(z == 0, 1, z)
    slope = torch.where(z == 0, 1, ACTIVATIONS[module.activation](safe) / safe)
    return tokens, _columns(weights) * slope[texts.owner]


def _columns(weights: Tensor) -> Tensor:
    return weights if weights.ndim == 2 else weights[:, None]


def _module(source: Dense | Normalize) -> nn.Module:
    return TrainableNormalize() if isinstance(source, Normalize) else TrainableDense(source)


def _new(dim: int, activation: str, seed: int) -> Dense:
    draw = np.random.default_rng(seed)
    weight = draw.normal(0, _SPREAD, (dim, dim)).astype(np.float32)
    return Dense(weight, np.zeros(dim, np.float32), activation)


def _array(parameter: Tensor | None) -> np.ndarray | None:
    return None if parameter is None else parameter.detach().float().numpy(force=True).copy()
