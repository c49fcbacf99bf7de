"""Cosine and dot product of pooled vectors, as the dense transport that they are.

With `c_i = weights_i * tokens_i` the pooled vector is `Σ c_i`, so the dot product of two texts is
`Σ_ij c_i · d_j`, and the cosine is that over the two norms: CLRCMD equation 3, a plan of rank 1.
It is exact for every pooling, max included.
"""

from __future__ import annotations

from typing import Any

from jaxtyping import Float

from likewise.kernels import cosines, unit
from likewise.similarity.base import Decomposition, Similarity, check_same_dim, check_same_rows
from likewise.types import Embeddings, array_namespace

__all__ = ["Cosine", "Dot"]


class Cosine(Similarity):
    """Cosine of the pooled vectors, in [-1, 1]; 0 where either vector is zero.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 3; Lee et al. 2022 (CLRCMD), equation 3.
    """

    name = "cosine"

    def score(self, a: Embeddings, b: Embeddings) -> Float[Any, " rows"]:
        """Row by row, [n] in [-1, 1]."""
        check_same_rows(a, b)
        xp = array_namespace(a.tokens, b.tokens)
        return xp.sum(unit(a.pooled()) * unit(b.pooled()), axis=1)

    def matrix(self, a: Embeddings, b: Embeddings) -> Float[Any, "rows columns"]:
        """All against all, [n, m] in [-1, 1]."""
        check_same_dim(a, b)
        return cosines(a.pooled(), b.pooled())

    def decompose(self, a: Embeddings, b: Embeddings) -> list[Decomposition]:
        """Plans `‖c_i‖ ‖d_j‖ / (‖s‖ ‖t‖)`, which need not have mass 1, and the cosines of the parts."""
        check_same_rows(a, b)
        return [_rank_one(a.parts(i), b.parts(i), normalise=True) for i in range(len(a))]


class Dot(Similarity):
    """Dot product of the pooled vectors, unbounded.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 3.
    """

    name = "dot"

    def score(self, a: Embeddings, b: Embeddings) -> Float[Any, " rows"]:
        """Row by row, [n]."""
        check_same_rows(a, b)
        xp = array_namespace(a.tokens, b.tokens)
        return xp.sum(a.pooled() * b.pooled(), axis=1)

    def matrix(self, a: Embeddings, b: Embeddings) -> Float[Any, "rows columns"]:
        """All against all, [n, m]."""
        check_same_dim(a, b)
        return a.pooled() @ b.pooled().T

    def decompose(self, a: Embeddings, b: Embeddings) -> list[Decomposition]:
        """Plans `‖c_i‖ ‖d_j‖` and the cosines of the parts."""
        check_same_rows(a, b)
        return [_rank_one(a.parts(i), b.parts(i), normalise=False) for i in range(len(a))]


def _rank_one(x: Any, y: Any, *, normalise: bool) -> Decomposition:
    xp = array_namespace(x, y)
    left, right = _norms(x), _norms(y)
    if normalise:
        left, right = left / _positive_norm(x), right / _positive_norm(y)
    return Decomposition(cosines=cosines(x, y), plan=xp.matmul(left[:, None], right[None, :]))


def _norms(x: Any) -> Any:
    xp = array_namespace(x)
    return xp.sqrt(xp.sum(x * x, axis=1))


def _positive_norm(x: Any) -> Any:
    """Length of the pooled vector. A zero vector gives infinity, so that the plan and the score are 0."""
    xp = array_namespace(x)
    norm = _norms(xp.sum(x, axis=0)[None, :])
    return xp.where(norm > 0, norm, xp.full_like(norm, xp.inf))
