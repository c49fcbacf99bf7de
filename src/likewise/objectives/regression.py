"""Regression of a similarity on a gold score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from likewise.errors import InputError
from likewise.objectives.base import Objective, check_scores
from likewise.similarity import Similarity, by_name
from likewise.types import Embeddings

__all__ = ["Regression"]


class Regression(Objective):
    """Mean squared error of the similarity of two texts and their gold score.

    Args:
        similarity: Any similarity, or its name.
        low: Least gold score.
        high: Greatest gold score; 0 to 1 and -1 to 1 are usual. Published scores of 0 to 5 are not on the scale
            of a cosine and are refused until they are rescaled.

    Raises:
        InputError: An unknown similarity, or `low` is not below `high`.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 3.
    """

    n_sides = (2, 2)
    needs_labels = True

    def __init__(self, similarity: Similarity | str = "cosine", low: float = -1.0, high: float = 1.0) -> None:
        super().__init__()
        if not low < high:
            raise InputError(f"gold scores cannot run from {low} to {high}; low must be below high")
        self.similarity, self.low, self.high = by_name(similarity), low, high

    def check(self, labels: Any) -> None:
        """Labels lie between `low` and `high`.

        Raises:
            InputError: One does not; the first is named.
        """
        super().check(labels)
        check_scores(labels, self.low, self.high)

    def extra_repr(self) -> str:
        """Its settings."""
        return f"{self.similarity.name}, {self.low}, {self.high}"

    def _loss(self, sides: Sequence[Embeddings], labels: Tensor | None) -> Tensor:
        assert labels is not None
        scores = self.similarity.score(*sides)
        return F.mse_loss(scores, labels.to(scores))
