"""Minus the distance of pooled vectors. A distance is not a sum over pairs of tokens, and says so."""

from __future__ import annotations

from typing import Any, NoReturn

from jaxtyping import Float

from likewise.errors import InputError
from likewise.similarity.base import Decomposition, Similarity, check_same_dim, check_same_rows
from likewise.types import Embeddings, array_namespace

__all__ = ["Euclidean", "Manhattan"]


class Euclidean(Similarity):
    """Minus the Euclidean distance of the pooled vectors, at most 0.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 3.
    """

    name = "euclidean"

    def score(self, a: Embeddings, b: Embeddings) -> Float[Any, " rows"]:
        """Row by row, [n], at most 0."""
        check_same_rows(a, b)
        return -_lengths(a.pooled() - b.pooled())

    def matrix(self, a: Embeddings, b: Embeddings) -> Float[Any, "rows columns"]:
        """All against all, [n, m], at most 0."""
        return _row_at_a_time(a, b, lambda difference: -_lengths(difference))

    def decompose(self, a: Embeddings, b: Embeddings) -> list[Decomposition]:
        """Always an error: no contributions exist."""
        _refuse(self.name)


class Manhattan(Similarity):
    """Minus the Manhattan distance of the pooled vectors, at most 0.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 3.
    """

    name = "manhattan"

    def score(self, a: Embeddings, b: Embeddings) -> Float[Any, " rows"]:
        """Row by row, [n], at most 0."""
        check_same_rows(a, b)
        return -_absolute(a.pooled() - b.pooled())

    def matrix(self, a: Embeddings, b: Embeddings) -> Float[Any, "rows columns"]:
        """All against all, [n, m], at most 0."""
        return _row_at_a_time(a, b, lambda difference: -_absolute(difference))

    def decompose(self, a: Embeddings, b: Embeddings) -> list[Decomposition]:
        """Always an error: no contributions exist."""
        _refuse(self.name)


def _lengths(difference: Any) -> Any:
    xp = array_namespace(difference)
    squares = xp.sum(difference * difference, axis=1)
    # The gradient of a root is infinite at 0, also where `where` does not choose it; the one of equal vectors is 0.
    return xp.where(squares > 0, xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares))), squares)


def _absolute(difference: Any) -> Any:
    xp = array_namespace(difference)
    return xp.sum(xp.abs(difference), axis=1)


def _row_at_a_time(a: Embeddings, b: Embeddings, negative_distance: Any) -> Any:
    # Differences, not expanded squares: exact zeros for equal vectors, and memory of one row at a time.
    check_same_dim(a, b)
    xp = array_namespace(a.tokens, b.tokens)
    left, right = a.pooled(), b.pooled()
    if not len(a):
        return left @ right.T
    return xp.stack([negative_distance(right - left[i][None, :]) for i in range(len(a))])


def _refuse(name: str) -> NoReturn:
    raise InputError(
        f"similarity '{name}' is minus a distance, which is not a sum over pairs of tokens, so it has no "
        "contributions; explain with 'cosine', 'dot', 'rcmd' or 'transport'"
    )
