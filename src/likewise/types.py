"""The values that travel between rooms. Each is checked once, when it is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import array_api_compat
import numpy as np
from array_api_compat import device, is_numpy_array, is_torch_array

from likewise.errors import InputError, InputTypeError

__all__ = ["Array", "Embeddings", "TextTokens", "Token", "array_namespace", "computable"]

Array: TypeAlias = Any
"""A numpy array or a torch tensor; shapes stand in the jaxtyping annotations."""


def array_namespace(*arrays: Array) -> Any:
    """The functions of the array API standard for these arrays, all of one library.

    numpy has them itself since 2.1; the compatible namespace would import all of its corners at every start.

    Raises:
        TypeError: The arrays are of different libraries, or of none.
    """
    if hasattr(np, "astype") and all(isinstance(array, np.ndarray | np.generic) for array in arrays) and arrays:
        return np
    return array_api_compat.array_namespace(*arrays)


def computable(array: Array) -> Array:
    """The array in float32 or better: half precision and integers are widened, float64 stays."""
    xp = array_namespace(array)
    return array if array.dtype in (xp.float32, xp.float64) else xp.astype(array, xp.float32)


@dataclass(frozen=True)
class Token:
    """One token of a text, as the model saw it."""

    text: str
    """The tokenizer's piece, such as `##ing`."""
    start: int
    """First character of the token in the original text."""
    end: int
    """One past its last character; `text[start:end]` is what the token covers."""
    special: bool
    """Added by the tokenizer or by a prompt, so that it covers no character of the text."""


@dataclass(frozen=True)
class TextTokens:
    """A text and its tokens, special tokens among them, in the order in which the backbone reads them."""

    text: str
    """The original text, untouched."""
    tokens: tuple[Token, ...]
    """One entry for each row of the text's embeddings."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Token vectors of n texts, laid end to end: packed, never padded.

    The pooled vector of a text is the sum of its `weights * tokens`, so everything that is computed
    from pooled vectors can be told apart token by token.

    Example:
        >>> two = Embeddings(np.eye(3), np.array([0, 1, 3]), np.array([1.0, 0.5, 0.5]))
        >>> len(two), two.dim, two.lengths.tolist()
        (2, 3, [1, 2])
        >>> two.pooled().tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    """

    tokens: Array
    """[total, dim] floating point, finite."""
    offsets: np.ndarray
    """[n + 1] integers: text i owns the rows offsets[i] to offsets[i + 1]."""
    weights: Array | None = None
    """Pooling weights: [total], or [total, dim] where they differ by dimension (max pooling); None if
    the model has no pooling."""

    def __post_init__(self) -> None:
        offsets = np.asarray(self.offsets)
        object.__setattr__(self, "offsets", offsets)
        if not (is_numpy_array(self.tokens) or is_torch_array(self.tokens)):
            raise InputTypeError(f"tokens are a {type(self.tokens).__name__}; give a numpy array or a torch tensor")
        if self.tokens.ndim != 2:
            raise InputError(f"tokens have shape {tuple(self.tokens.shape)}; give [total, dim]")
        if offsets.ndim != 1 or offsets.size == 0 or not np.issubdtype(offsets.dtype, np.integer):
            raise InputError("offsets must be a vector of n + 1 integers, the first 0")
        if offsets[0] != 0 or offsets[-1] != self.tokens.shape[0] or (np.diff(offsets) < 0).any():
            raise InputError(
                f"offsets must rise from 0 to the number of tokens ({self.tokens.shape[0]}); they run from "
                f"{offsets[0]} to {offsets[-1]}" + (" and fall in between" if (np.diff(offsets) < 0).any() else "")
            )
        if self.weights is not None and tuple(self.weights.shape) not in (
            (self.tokens.shape[0],),
            tuple(self.tokens.shape),
        ):
            raise InputError(
                f"weights have shape {tuple(self.weights.shape)}; give [total] or [total, dim] like the tokens"
            )
        self._refuse_non_finite()

    def _refuse_non_finite(self) -> None:
        if is_torch_array(self.tokens) and self.tokens.requires_grad and not self.tokens.is_cpu:
            return  # training on a GPU: to look would be to wait for it, and the loss shows it, too
        xp = array_namespace(self.tokens)
        with np.errstate(over="ignore", invalid="ignore"):  # a sum may overflow where no value does
            if bool(xp.isfinite(xp.sum(self.tokens))):
                return
        bad = np.asarray(~xp.all(xp.isfinite(self.tokens), axis=1))
        if bad.any():
            row = int(bad.argmax())
            text = int(np.searchsorted(self.offsets, row, side="right") - 1)
            raise InputError(
                f"token {row - int(self.offsets[text])} of text {text} holds NaN or infinity ({int(bad.sum())} such "
                "tokens in all); the weights are damaged or the precision is too low; try dtype='float32'"
            )

    @classmethod
    def from_pooled(cls, vectors: Array) -> Embeddings:
        """A batch of pooled vectors [n, dim]: a bag of one token a text."""
        xp = array_namespace(vectors)
        n = vectors.shape[0]
        weights = xp.ones(n, dtype=computable(vectors[:0]).dtype, device=device(vectors))
        return cls(vectors, np.arange(n + 1), weights)

    @classmethod
    def from_texts(cls, texts: Sequence[Array], weights: Sequence[Array] | None = None) -> Embeddings:
        """Lay token matrices [length_i, dim] end to end; mean pooling unless `weights` are given.

        Raises:
            InputError: No text at all (the dimension would be unknown), or unequal dims.
        """
        if not texts:
            raise InputError(
                "no text given, so that the dimension is unknown; build Embeddings(tokens, offsets) directly"
            )
        xp = array_namespace(*texts)
        if len({text.shape[1] for text in texts}) > 1:
            raise InputError(
                f"texts of unequal dims {sorted({text.shape[1] for text in texts})} cannot be packed together"
            )
        offsets = np.concatenate([[0], np.cumsum([text.shape[0] for text in texts])]).astype(np.int64)
        if weights is None:
            weights = [
                xp.full(text.shape[0], 1 / max(text.shape[0], 1), dtype=computable(text[:0]).dtype) for text in texts
            ]
        return cls(xp.concat(list(texts)), offsets, xp.concat(list(weights)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def dim(self) -> int:
        """Length of a token vector."""
        return int(self.tokens.shape[1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """[n] tokens of each text."""
        return np.diff(self.offsets)

    def text(self, i: int) -> Array:
        """[length, dim] tokens of text i, in float32 or better."""
        return computable(self.tokens[self._rows(i)])

    def parts(self, i: int) -> Array:
        """[length, dim] what each token gives to the pooled vector of text i; the rows sum to it.

        Raises:
            InputError: The embeddings have no pooling weights.
        """
        return self._weighted(self._rows(i))

    def pooled(self) -> Array:
        """[n, dim] pooled vectors, in float32 or better; a text without tokens gives zeros.

        Raises:
            InputError: The embeddings have no pooling weights.
        """
        if is_torch_array(self.tokens):
            # The gradient of a slice is as large as what it was cut from, so that the loop below would be quadratic.
            text = array_namespace(self.tokens).asarray(np.repeat(np.arange(len(self)), self.lengths))
            parts = self._weighted(slice(None))
            return parts.new_zeros(len(self), self.dim).index_add(0, text.to(parts.device), parts)
        if not len(self):
            return computable(self.tokens[:0])
        # Text by text: as fast as numpy is, and the same bytes whatever else is in the batch.
        return np.stack([np.sum(self.parts(i), axis=0) for i in range(len(self))])

    def select(self, rows: Sequence[int] | np.ndarray) -> Embeddings:
        """The texts `rows`, in that order; a range of neighbours shares memory with these."""
        if isinstance(rows, range) and rows.step == 1 and rows:
            ends = self.offsets[rows.start : rows.stop + 1]
            kept = slice(int(ends[0]), int(ends[-1]))
            return Embeddings(self.tokens[kept], ends - ends[0], None if self.weights is None else self.weights[kept])
        picked = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in rows] or [np.arange(0)])
        offsets = np.concatenate([[0], np.cumsum(self.lengths[list(rows)])]).astype(np.int64)
        return Embeddings(self.tokens[picked], offsets, None if self.weights is None else self.weights[picked])

    def __iter__(self) -> Iterator[Array]:
        return (self.text(i) for i in range(len(self)))

    def _weighted(self, rows: slice) -> Array:
        if self.weights is None:
            raise InputError(
                "these embeddings have no pooling weights (a token-level model), so there is no pooled vector; "
                "use similarity='rcmd' or 'transport', or name a pooling when the model is loaded"
            )
        weights = self.weights[rows]
        return (weights if weights.ndim == 2 else weights[:, None]) * computable(self.tokens[rows])

    def _rows(self, i: int) -> slice:
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))
