"""RCMD: each token moves wholly to its nearest token of the other text; both directions averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float

from likewise.kernels import cosines, nearest, rcmd_matrix
from likewise.similarity.base import Decomposition, Similarity, check_same_dim, check_same_rows, warn_if_empty
from likewise.types import Embeddings

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
        xp = array_namespace(a.tokens, b.tokens)
        dtype = a.text(0).dtype if len(a) else xp.float32
        forward = xp.zeros(len(a), dtype=dtype, device=device(a.tokens))
        backward = xp.zeros(len(a), dtype=dtype, device=device(a.tokens))
        for i in np.flatnonzero((a.lengths > 0) & (b.lengths > 0)).tolist():
            cosine = cosines(a.text(i), b.text(i))
            forward[i] = xp.mean(xp.max(cosine, axis=1))
            backward[i] = xp.mean(xp.max(cosine, axis=0))
        return forward, backward

    def matrix(self, a: Embeddings, b: Embeddings) -> Float[Any, "rows columns"]:
        """All against all, [n, m] in [-1, 1]; 0 with a warning where a text has no token."""
        check_same_dim(a, b)
        warn_if_empty(a, b)
        xp = array_namespace(a.tokens, b.tokens)
        wide = xp.float64 if xp.float64 in (a.tokens.dtype, b.tokens.dtype) else xp.float32
        return rcmd_matrix(xp.astype(a.tokens, wide), a.offsets, xp.astype(b.tokens, wide), b.offsets)

    def decompose(self, a: Embeddings, b: Embeddings) -> list[Decomposition]:
        """Plans of mass 1: the mean of the two relaxed ones. A tie sends to the first nearest token."""
        check_same_rows(a, b)
        warn_if_empty(a, b)
        return [_pair(a.text(i), b.text(i)) for i in range(len(a))]


def _pair(x: Any, y: Any) -> Decomposition:
    xp = array_namespace(x, y)
    cosine = cosines(x, y)
    n, m = cosine.shape
    if not n or not m:
        return Decomposition(cosines=cosine, plan=xp.zeros_like(cosine))
    rows = xp.asarray(np.arange(n), device=device(cosine))
    columns = xp.asarray(np.arange(m), device=device(cosine))
    forward = nearest(cosine)[:, None] == columns[None, :]
    backward = nearest(cosine.T)[None, :] == rows[:, None]
    plan = xp.astype(forward, cosine.dtype) / (2 * n) + xp.astype(backward, cosine.dtype) / (2 * m)
    return Decomposition(cosines=cosine, plan=plan)
