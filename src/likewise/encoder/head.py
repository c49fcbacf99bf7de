"""The modules behind the backbone, in two readings that give the same pooled vector.

`pooled` applies them the short way: pool, then transform the pooled vector. `fold` rewrites the same
chain so that the pooled vector is `Σ weights * tokens`, which is what explanations stand on:

    linear      W Σ c_i + b  =  Σ w_i (W c_i / w_i + b / Σ w)      the layer moves onto the tokens
    activation  f(z)         =  Σ (f(z) / z) c_i                   a weight for each dimension (f(0) = 0)
    normalise   z / ‖z‖      =  Σ c_i / ‖z‖                        a weight for all of them
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from array_api_compat import is_torch_array
from jaxtyping import Float

from likewise.errors import InputError, ModelError
from likewise.kernels import unit
from likewise.pooling import Pooling
from likewise.types import array_namespace

__all__ = ["ACTIVATIONS", "Dense", "Head", "Normalize", "SkipTokens"]


def _tanh(z: Any) -> Any:
    return array_namespace(z).tanh(z)


def _relu(z: Any) -> Any:
    xp = array_namespace(z)
    return xp.where(z > 0, z, xp.zeros_like(z))


def _sigmoid(z: Any) -> Any:
    return (_tanh(z / 2) + 1) / 2  # exp(-z) would overflow


def _silu(z: Any) -> Any:
    return z * _sigmoid(z)


def _gelu(z: Any) -> Any:
    library = importlib.import_module("torch.special" if is_torch_array(z) else "scipy.special")
    return z * (library.erf(z / 2**0.5) + 1) / 2


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda z: z,
    "tanh": _tanh,
    "relu": _relu,
    "gelu": _gelu,
    "silu": _silu,
    "sigmoid": _sigmoid,
}
"""Element-wise functions that a `Dense` may end in."""


@dataclass(frozen=True, eq=False)
class Dense:
    """`f(W x + b)`, plus `x` or `R x` if it has a residual."""

    weight: Float[Any, "out in"]
    """[out, in] matrix W."""
    bias: Float[Any, " out"] | None = None
    """[out] vector b."""
    activation: str = "identity"
    """A key of `ACTIVATIONS`."""
    residual: Float[Any, "out in"] | None = None
    """[out, in] matrix R; the identity matrix for a plain skip connection."""

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ModelError(
                f"unknown activation {self.activation!r} in a Dense module; known are {', '.join(ACTIVATIONS)}"
            )
        for name, array in (("weight", self.weight), ("bias", self.bias), ("residual", self.residual)):
            if array is not None and not _finite(array):
                raise ModelError(f"the {name} of a Dense module holds NaN or infinity; its weight file is damaged")

    def linear(self, x: Float[Any, "rows in"]) -> Float[Any, "rows out"]:
        """`W x + b`, before the activation."""
        z = x @ self.weight.T
        return z if self.bias is None else z + self.bias

    def __call__(self, x: Float[Any, "rows in"]) -> Float[Any, "rows out"]:
        """The whole module, row by row."""
        out = ACTIVATIONS[self.activation](self.linear(x))
        return out if self.residual is None else out + x @ self.residual.T


@dataclass(frozen=True)
class Normalize:
    """Length 1; a zero vector stays zero."""

    def __call__(self, x: Float[Any, "rows dim"]) -> Float[Any, "rows dim"]:
        """Row by row."""
        return unit(x)


@dataclass(frozen=True)
class SkipTokens:
    """Tokens that take no part in scoring, such as punctuation in ColBERT models."""

    words: tuple[str, ...] = ()
    """Vocabulary pieces to leave out."""
    tasks: tuple[str, ...] = ("document",)
    """Kinds of text that this is for; texts that are compared here are documents."""


Module: TypeAlias = Dense | Normalize


@dataclass(frozen=True, eq=False)
class Head:
    """Everything behind the backbone: modules on tokens, then pooling, then modules on the pooled vector."""

    pooling: Pooling | None = Pooling()
    """None for a token-level model."""
    on_tokens: tuple[Module, ...] = ()
    """Applied to every token."""
    on_pooled: tuple[Module, ...] = ()
    """Applied to the pooled vector."""
    skip: SkipTokens = SkipTokens()
    """Tokens left out of the output."""

    def __post_init__(self) -> None:
        if self.pooling is None and self.on_pooled:
            raise ModelError("modules on the pooled vector need a pooling before them")

    def dims(self, dim: int) -> tuple[int, int]:
        """Lengths of a token vector and of a pooled vector (without pooling the same), from states of length `dim`.

        Raises:
            ModelError: A Dense does not fit what comes before it.
        """
        tokens = _through(self.on_tokens, dim)
        return tokens, _through(self.on_pooled, tokens if self.pooling is None else self.pooling.dim(tokens))

    def tokens(self, states: Float[Any, "length dim"]) -> Float[Any, "length out"]:
        """Token vectors of one text, or of many laid end to end."""
        for module in self.on_tokens:
            states = module(states)
        return states

    def pooled(self, states: Float[Any, "length dim"], start: int = 0) -> Float[Any, " out"]:
        """Pooled vector of one text, the short way.

        Args:
            states: The backbone's states of the text, special tokens as wanted.
            start: First token that takes part in the pooling.

        Raises:
            InputError: The model has no pooling.
        """
        tokens = self.tokens(states)
        weights = self.require_pooling().weights(tokens, start)
        if weights.ndim == 1:
            vector = (weights @ tokens)[None, :]
        else:
            vector = _sum(self.require_pooling().spread(tokens), weights)[None, :]
        for module in self.on_pooled:
            vector = module(vector)
        return vector[0] if states.shape[0] else vector[0] * 0  # no token, no contribution: not even a bias

    def finish(self, vectors: Float[Any, "n dim"], filled: Any) -> Float[Any, "n out"]:
        """Apply the modules on the pooled vector to many at once; zeros where a text has no token (not `filled`).

        A Dense is applied row by row, since a matrix product may round a row differently in another batch.
        """
        xp = array_namespace(vectors)
        for module in self.on_pooled:
            rows = [module(row[None, :]) for row in vectors] if isinstance(module, Dense) else [module(vectors)]
            vectors = xp.concat(rows)
        return xp.where(xp.asarray(filled)[:, None], vectors, xp.zeros_like(vectors))

    def fold(
        self, states: Float[Any, "length dim"], start: int = 0
    ) -> tuple[Float[Any, "length out"], Float[Any, "..."] | None]:
        """Tokens and weights of one text whose weighted sum is its pooled vector; weights None without pooling.

        Raises:
            InputError: A module cannot be told apart by token (an activation with f(0) ≠ 0, or a residual).
        """
        tokens = self.tokens(states)
        if self.pooling is None:
            return tokens, None
        weights = self.pooling.weights(tokens, start)
        tokens = self.pooling.spread(tokens)
        for module in self.on_pooled:
            tokens, weights = _fold(module, tokens, weights)
        return tokens, weights

    def require_pooling(self) -> Pooling:
        """The pooling, where a pooled vector is asked for.

        Raises:
            InputError: The model has none.
        """
        if self.pooling is None:
            raise InputError(
                "this is a token-level model without pooling, so it has no pooled vectors; use embed() for its token "
                "vectors, or load it with pooling='mean' (--pooling mean)"
            )
        return self.pooling


def _through(modules: tuple[Module, ...], dim: int) -> int:
    for module in modules:
        if isinstance(module, Dense):
            out, into = (int(size) for size in module.weight.shape)
            if into != dim:
                raise ModelError(
                    f"a Dense module takes {into} features where {dim} come in; its files are another model's"
                )
            dim = out
    return dim


def _fold(module: Module, tokens: Any, weights: Any) -> tuple[Any, Any]:
    xp = array_namespace(tokens)
    if isinstance(module, Normalize):
        total = _sum(tokens, weights)
        length = xp.sqrt(xp.sum(total * total))
        return tokens, weights / xp.where(length > 0, length, xp.ones_like(length))
    if module.activation == "sigmoid" or (module.residual is not None and module.activation != "identity"):
        beside = " beside a residual" if module.residual is not None else ""
        raise InputError(
            f"the pooled vector passes through '{module.activation}'{beside}, which is no sum over tokens, so token "
            "vectors and explanations do not exist for this model; encode() works"
        )
    tokens, weights = _fold_linear(module, tokens, weights)
    if module.activation == "identity":
        return tokens, weights
    z = _sum(tokens, weights)
    one = xp.ones_like(z)
    safe = xp.where(z == 0, one, z)
    slope = xp.where(z == 0, one, ACTIVATIONS[module.activation](safe) / safe)
    return tokens, _columns(weights) * slope


def _fold_linear(module: Dense, tokens: Any, weights: Any) -> tuple[Any, Any]:
    xp = array_namespace(tokens)
    matrix = module.weight if module.residual is None else module.weight + module.residual
    if weights.ndim == 2:  # the weights differ by dimension, which the matrix mixes: they move into the tokens
        tokens = weights * tokens * max(tokens.shape[0], 1)
        weights = xp.ones_like(tokens[:, 0]) / max(tokens.shape[0], 1)
    tokens = tokens @ matrix.T
    if module.bias is not None and tokens.shape[0]:
        tokens = tokens + module.bias / xp.sum(weights)
    return tokens, weights


def _sum(tokens: Any, weights: Any) -> Any:
    return array_namespace(tokens).sum(_columns(weights) * tokens, axis=0)


def _columns(weights: Any) -> Any:
    return weights if weights.ndim == 2 else weights[:, None]


def _finite(array: Any) -> bool:
    xp = array_namespace(array)
    return bool(xp.all(xp.isfinite(array)))
