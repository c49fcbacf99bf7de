"""RCMD: each token moves wholly to its nearest token of the other text; both directions averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.kernels import rcmd_matrix, rcmd_pairs, rcmd_plans
from likewise.similarity.base import Decomposition, Similarity, check_same_dim, check_same_rows, warn_if_empty
from likewise.types import Embeddings, array_namespace

__all__ = ["RCMD"]


class RCMD(Similarity):
    """Relaxed contextualised token mover's similarity, in [-1, 1].

    `½ [mean_i max_j cos(x_i, y_j) + mean_j max_i cos(x_i, y_j)]`. One minus it never exceeds the
    exact transport distance. Symmetric; 1 for a text with itself; the length of a token does not count.

    Source:
        Lee et al. 2022 (CLRCMD), section 3.2.
    """

    name = "rcmd"
    needs_tokens = True

    def score(self, a: Embeddings, b: Embeddings) -> Float[Any, " rows"]:
        """Row by row, [n] in [-1, 1]; 0 with a warning where a text has no token."""
        forward, backward = self.directions(a, b)
        return (forward + backward) / 2

    def directions(self, a: Embeddings, b: Embeddings) -> tuple[Float[Any, " rows"], Float[Any, " rows"]]:
        """The two relaxed scores: how well `b` covers `a` (`mean_i max_j`), and `a` covers `b`.

        Raises:
            InputError: `a` and `b` differ in rows or dim.
        """
        check_same_rows(a, b)
        warn_if_empty(a, b)
        return rcmd_pairs(*_alike(a, b))

    def matrix(self, a: Embeddings, b: Embeddings) -> Float[Any, "rows columns"]:
        """All against all, [n, m] in [-1, 1]; 0 with a warning where a text has no token."""
        check_same_dim(a, b)
        warn_if_empty(a, b)
        return rcmd_matrix(*_alike(a, b))

    def decompose(self, a: Embeddings, b: Embeddings) -> list[Decomposition]:
        """Plans of mass 1: the mean of the two relaxed ones. A tie sends to the first nearest token."""
        check_same_rows(a, b)
        warn_if_empty(a, b)
        return [Decomposition(cosine, plan) for cosine, plan in rcmd_plans(*_alike(a, b))]


def _alike(a: Embeddings, b: Embeddings) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Both sides in one precision, float32 or better."""
    xp = array_namespace(a.tokens, b.tokens)
    wide = xp.float64 if xp.float64 in (a.tokens.dtype, b.tokens.dtype) else xp.float32
    return xp.astype(a.tokens, wide, copy=False), a.offsets, xp.astype(b.tokens, wide, copy=False), b.offsets
