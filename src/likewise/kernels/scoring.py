"""Scoring without gradient: candidates prepared once, then whole matrices, the best k of each text, the best pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from likewise.errors import InputError
from likewise.kernels import native, plain
from likewise.kernels.rows import rcmd_pairs

__all__ = ["Candidates", "top_pairs"]

_MORE = 8
"""Candidates that are scored again beside twice the number asked for."""


class Candidates:
    """Texts laid out for scoring many others against them.

    Args:
        tokens: [total, dim] token vectors; only their directions count.
        offsets: [n + 1] where each text starts.
        precision: "float32"; "bfloat16", half the memory; "int8", a quarter and the fastest, one scale a token.
        rescore: Keep hold of `tokens` (as given, not copied) and let `top_k` score its best candidates once more
            in float32, so that near ties of the coarser precisions come out in their float32 order.

    Raises:
        InputError: Unknown precision, wrong shapes, or NaN and infinity in a token, which is named.

    Example:
        >>> texts = Candidates(np.eye(3, dtype=np.float32), np.array([0, 1, 3]))
        >>> texts.score(np.eye(3, dtype=np.float32)[:1], np.array([0, 1])).tolist()
        [[1.0, 0.0]]

    Source:
        Lee et al. 2022 (CLRCMD), section 3.2.
    """

    def __init__(self, tokens: Any, offsets: Any, precision: str = "float32", *, rescore: bool = False) -> None:
        if precision not in native.PRECISIONS:
            raise InputError(f"unknown precision {precision!r}; known are {', '.join(native.PRECISIONS)}")
        self.precision = precision
        tokens, self._offsets = native.checked(tokens, offsets)
        self._dim = tokens.shape[1]
        self._given = tokens if rescore and precision != "float32" else None
        self._groups: Any = None
        self._unit: Any = None
        library = native.library()
        if library is not None and int(np.diff(self._offsets).max(initial=0)) <= native.LONGEST:
            unit, _, _ = native.normalised(tokens, self._offsets)
            code = native.PRECISIONS[precision]
            self._groups = library.Candidates(unit, self._offsets, code, native.n_threads())
        else:
            self._unit = _plainly(tokens, self._offsets, precision)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def n_bytes(self) -> int:
        """Memory of the laid-out tokens."""
        return int(self._groups.n_bytes if self._groups is not None else self._unit.nbytes)

    def score(self, tokens: Any, offsets: Any) -> Float[np.ndarray, "rows columns"]:
        """RCMD of every given text with every candidate, float32; 0 where either has no token.

        Raises:
            InputError: Another dim than that of the candidates, wrong shapes, NaN or infinity.
        """
        if self._groups is None:
            unit, offsets = self._left(tokens, offsets)
            return plain.rcmd_of_unit(unit, offsets, self._unit, self._offsets)
        unit, _, offsets = native.normalised(self._same_dim(tokens), offsets)
        scores = np.empty((len(offsets) - 1, len(self)), np.float32)
        native.required().score(unit, offsets, self._groups, scores, native.n_threads())
        return scores

    def top_k(self, tokens: Any, offsets: Any, k: int) -> tuple[Float[np.ndarray, "rows k"], Int[np.ndarray, "rows k"]]:
        """The best candidates of every given text, best first; among equals the lower position first.

        Args:
            tokens: Token vectors of the texts on the left.
            offsets: Where each of them starts.
            k: How many; all candidates with a token if there are fewer.

        Returns:
            Scores and positions, [rows, min(k, candidates)]. A text without tokens, and candidates without
            tokens, find and are found by nothing: score minus infinity, position -1.

        Raises:
            InputError: k is below 1; or as `score`.
        """
        if k < 1:
            raise InputError(f"k is {k}; ask for 1 or more")
        if self._given is not None:
            return self._rescored(tokens, offsets, *self._best(tokens, offsets, min(2 * k + _MORE, len(self))), k)
        return self._best(tokens, offsets, min(k, len(self)))

    def _best(self, tokens: Any, offsets: Any, k: int) -> tuple[Float[np.ndarray, "rows k"], Int[np.ndarray, "rows k"]]:
        if self._groups is None:
            scores = self.score(tokens, offsets)
            scores[np.diff(np.asarray(offsets)) == 0] = -np.inf
            scores[:, np.diff(self._offsets) == 0] = -np.inf
            places = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            values = np.take_along_axis(scores, places, axis=1)
            return values, np.where(np.isfinite(values), places, -1)
        unit, _, offsets = native.normalised(self._same_dim(tokens), offsets)
        values = np.empty((len(offsets) - 1, k), np.float32)
        indices = np.empty((len(offsets) - 1, k), np.int64)
        native.required().top_k(unit, offsets, self._groups, values, indices, native.n_threads())
        return values, indices

    def _rescored(
        self, tokens: Any, offsets: Any, values: np.ndarray, indices: np.ndarray, k: int
    ) -> tuple[Float[np.ndarray, "rows k"], Int[np.ndarray, "rows k"]]:
        """The same hits in the order of their float32 scores."""
        tokens, offsets = native.checked(tokens, offsets)
        row, column = np.nonzero(indices >= 0)
        left, right = (tokens, offsets, row), (self._given, self._offsets, indices[row, column])
        values[row, column] = np.mean(rcmd_pairs(*_gathered(*left), *_gathered(*right)), axis=0)
        order = np.lexsort((indices, -values), axis=1)[:, :k]
        return np.take_along_axis(values, order, axis=1), np.take_along_axis(indices, order, axis=1)

    def _same_dim(self, tokens: Any) -> np.ndarray:
        tokens = np.asarray(tokens)
        if tokens.ndim != 2 or tokens.shape[1] != self._dim:
            raise InputError(f"tokens of shape {tokens.shape} cannot be scored against candidates of dim {self._dim}")
        return tokens

    def _left(self, tokens: Any, offsets: Any) -> tuple[np.ndarray, np.ndarray]:
        tokens, offsets = native.checked(self._same_dim(tokens), offsets)
        return _plainly(tokens, offsets, self.precision), offsets


def top_pairs(
    tokens: Any, offsets: Any, k: int, precision: str = "float32"
) -> tuple[Float[np.ndarray, " k"], Int[np.ndarray, "k 2"]]:
    """The k most similar pairs of one set of texts, each pair once and no text with itself.

    All pairs are scored exactly in the precision given; only the best k are kept.

    Args:
        tokens: [total, dim] token vectors.
        offsets: [n + 1] where each text starts.
        k: How many pairs; all of them if there are fewer.
        precision: As for `Candidates`.

    Returns:
        Scores, best first, and the positions of both texts, the lower first.

    Raises:
        InputError: k is below 1; or as `Candidates`.
    """
    if k < 1:
        raise InputError(f"k is {k}; ask for 1 or more")
    texts = Candidates(tokens, offsets, precision)
    filled = int(np.count_nonzero(np.diff(np.asarray(offsets)) > 0))
    k = min(k, filled * (filled - 1) // 2)
    if texts._groups is None:
        scores = texts.score(tokens, offsets)
        empty = np.flatnonzero(np.diff(np.asarray(offsets)) == 0)
        scores[empty], scores[:, empty] = -np.inf, -np.inf
        scores[np.tril_indices(len(texts))] = -np.inf
        best = np.argsort(-scores, axis=None, kind="stable")[:k]
        return scores.reshape(-1)[best], np.stack(np.unravel_index(best, scores.shape), axis=1)
    unit, _, offsets = native.normalised(tokens, offsets)
    values, left, right = np.empty(k, np.float32), np.empty(k, np.int64), np.empty(k, np.int64)
    native.required().top_pairs(unit, offsets, texts._groups, values, left, right, native.n_threads())
    return values, np.stack([left, right], axis=1)


def _gathered(tokens: Any, offsets: np.ndarray, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The given texts, packed in that order."""
    lengths = np.diff(offsets)[texts]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(ends[-1]) + np.repeat(offsets[texts] - ends[:-1], lengths)
    return tokens[rows], ends


def _plainly(tokens: np.ndarray, offsets: np.ndarray, precision: str) -> np.ndarray:
    """The tokens as the kernels of this precision see them, in float32."""
    native.refuse_non_finite(tokens, offsets)
    unit = plain.unit(tokens)
    return plain.int8_codes(unit) if precision == "int8" else plain.bfloat16(unit) if precision == "bfloat16" else unit
