"""Exact optimal transport between the tokens of two texts: the oracle that RCMD relaxes."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import device
from jaxtyping import Float

from likewise.errors import InputError
from likewise.kernels import cosines
from likewise.similarity.base import Decomposition, Similarity, check_same_dim, check_same_rows, warn_if_empty
from likewise.types import Embeddings, array_namespace

__all__ = ["Transport"]

_MAX_ITERATIONS = 1_000_000


class Transport(Similarity):
    """One minus the earth mover's distance with cost `1 - cosine` and uniform marginals, in [-1, 1].

    Every token has mass 1 / L and all of it must arrive. Exact, by a network simplex in float64
    (package POT), one pair at a time: the slow truth beside RCMD, which never scores lower. Gradients
    flow through the cosines at the optimal plan, as they do for any minimum.

    Source:
        Lee et al. 2022 (CLRCMD), sections 3.1 and 3.2.
    """

    name = "transport"
    needs_tokens = True

    def score(self, a: Embeddings, b: Embeddings) -> Float[Any, " rows"]:
        """Row by row, [n] in [-1, 1]; 0 with a warning where a text has no token."""
        xp = array_namespace(a.tokens, b.tokens)
        parts = self.decompose(a, b)
        return xp.stack([one.score for one in parts]) if parts else xp.zeros(0, dtype=xp.float64)

    def matrix(self, a: Embeddings, b: Embeddings) -> Float[Any, "rows columns"]:
        """All against all, [n, m] in [-1, 1], one transport problem a pair."""
        check_same_dim(a, b)
        warn_if_empty(a, b)
        xp = array_namespace(a.tokens, b.tokens)
        if not len(a) or not len(b):
            return xp.zeros((len(a), len(b)), dtype=xp.float64)
        return xp.stack([xp.stack([_pair(x, y).score for y in b]) for x in a])

    def decompose(self, a: Embeddings, b: Embeddings) -> list[Decomposition]:
        """Optimal plans of mass 1, their rows summing to 1 / L of `a` and their columns to 1 / L of `b`."""
        check_same_rows(a, b)
        warn_if_empty(a, b)
        return [_pair(a.text(i), b.text(i)) for i in range(len(a))]


def _pair(x: Any, y: Any) -> Decomposition:
    xp = array_namespace(x, y)
    cosine = xp.astype(cosines(x, y), xp.float64)
    n, m = cosine.shape
    if not n or not m:
        return Decomposition(cosines=cosine, plan=xp.zeros_like(cosine))
    cost = 1 - np.asarray(cosine.detach().cpu() if hasattr(cosine, "detach") else cosine)
    return Decomposition(cosines=cosine, plan=xp.asarray(_emd(cost), device=device(cosine)))


def _emd(cost: np.ndarray) -> np.ndarray:
    from ot.lp import emd  # POT takes seconds to import, and only this similarity needs it

    n, m = cost.shape
    plan, log = emd(np.full(n, 1 / n), np.full(m, 1 / m), cost, numItermax=_MAX_ITERATIONS, log=True)
    if log["warning"]:
        raise InputError(
            f"the transport between {n} and {m} tokens was not solved ({log['warning']}); use similarity='rcmd'"
        )
    return plan
