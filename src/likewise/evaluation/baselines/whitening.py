"""Whitening: move a model's sentence vectors to mean zero and uncorrelated dimensions of variance one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.encoder import as_texts
from likewise.errors import InputError
from likewise.evaluation.measures import Embedder
from likewise.types import Embeddings

__all__ = ["Whitening"]


class Whitening:
    """`(p - mean) W` of the pooled vectors `p` of another model, with `W` from the covariance of given texts.

    The map is affine, so it is applied to the tokens, and a score is still the sum of its contributions. A token
    is moved by `mean / s`, where `s` is the sum of the text's weights. Where weights differ by dimension (max
    pooling), `W` would mix them: there a token becomes what it gives to the pooled vector, less an equal share of
    the mean.

    Source:
        Su et al. 2021 (Whitening Sentence Representations for Better Semantics and Faster Retrieval).
    """

    def __init__(
        self, base: Embedder, mean: Float[Any, " dim"], linear: Float[Any, "dim k"], *, name: str | None = None
    ) -> None:
        self.base = base
        self.mean = mean
        self.linear = linear
        self.name = name or f"{base.name}-whitening"

    @classmethod
    def fit(cls, base: Embedder, texts: Iterable[str], *, k: int | None = None, name: str | None = None) -> Whitening:
        """Mean and covariance of the vectors of the distinct texts.

        Args:
            base: The model whose vectors are whitened.
            texts: Unlabelled texts of the kind to be compared.
            k: Keep the k directions of largest variance only; by default all that have any.
            name: Name for tables; the model's with "-whitening" by default.

        Raises:
            InputError: Fewer than two distinct texts, or they span fewer than k directions.
        """
        distinct = list(dict.fromkeys(as_texts(texts)))
        if len(distinct) < 2:
            raise InputError(f"whitening learns a covariance, and {len(distinct)} distinct texts have none")
        vectors = np.asarray(base.encode(distinct), dtype=np.float64)
        mean = vectors.mean(0)
        variances, directions = np.linalg.eigh(np.cov(vectors, rowvar=False, bias=True).reshape(len(mean), -1))
        variances, directions = variances[::-1], directions[:, ::-1]  # largest first
        rank = int((variances > _FLAT * variances[0]).sum()) if variances[0] > 0 else 0
        if rank == 0 or (k is not None and not 1 <= k <= rank):
            asked = "at least one" if k is None else f"k = {k}"
            raise InputError(
                f"the vectors of {len(distinct)} texts vary in {rank} directions, and {asked} is asked for; give more "
                "texts, or a k between 1 and that number"
            )
        kept = slice(k or rank)
        return cls(base, mean, directions[:, kept] / np.sqrt(variances[kept]), name=name)

    def embed(self, texts: Sequence[str], *, progress: bool | None = None) -> Embeddings:
        """The model's tokens, moved, with weights so that they sum to what `encode` gives.

        Raises:
            InputError: The model has no pooling.
        """
        base = self.base.embed(texts, progress=progress)
        if base.weights is None:
            raise InputError(f"{self.base.name} is a token-level model without pooled vectors; name a pooling for it")
        tokens = np.asarray(base.tokens, dtype=np.float64)
        weights = np.asarray(base.weights, dtype=np.float64)
        if weights.ndim == 1:
            moved = tokens - self.mean / _of_each_text(weights, base)[:, None]
            return Embeddings((moved @ self.linear).astype(np.float32), base.offsets, base.weights)
        parts = weights * tokens - self.mean / np.repeat(base.lengths, base.lengths)[:, None]
        return Embeddings((parts @ self.linear).astype(np.float32), base.offsets, np.ones(len(tokens), np.float32))

    def encode(self, texts: Sequence[str], *, progress: bool | None = None) -> Float[Any, "n k"]:
        """Whitened vectors; a vector of zeros (a text without tokens) stays one."""
        vectors = np.asarray(self.base.encode(texts, progress=progress), dtype=np.float64)
        empty = ~vectors.any(axis=1)
        whitened = (vectors - self.mean) @ self.linear
        whitened[empty] = 0
        return whitened.astype(np.float32)


_FLAT = 1e-9
"""A direction with less than this share of the largest variance is rounding error: dividing by it is noise."""


def _of_each_text(weights: Float[Any, " total"], embeddings: Embeddings) -> Float[Any, " total"]:
    """For each token the sum of its text's weights."""
    filled = embeddings.lengths > 0
    if not filled.any():
        return weights
    return np.repeat(np.add.reduceat(weights, embeddings.offsets[:-1][filled]), embeddings.lengths[filled])
