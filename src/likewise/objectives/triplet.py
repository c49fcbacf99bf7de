"""An anchor nearer to one text than to another, by a margin."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from likewise.errors import InputError
from likewise.objectives.base import Objective
from likewise.similarity import Similarity, by_name
from likewise.types import Embeddings

__all__ = ["Triplet"]


class Triplet(Objective):
    """`max(‖a - p‖ - ‖a - n‖ + margin, 0)` of anchor, positive and negative, the three columns in this order.

    Args:
        margin: How much nearer the positive has to be.
        metric: A similarity or its name; the distances are Euclidean and Manhattan, and any other similarity
            counts as its negative distance.

    Raises:
        InputError: An unknown metric, or a margin below 0.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 3.
    """

    n_sides = (3, 3)

    def __init__(self, margin: float = 1.0, metric: Similarity | str = "euclidean") -> None:
        super().__init__()
        if not margin >= 0:
            raise InputError(f"a margin of {margin} would reward a positive that is farther off; give 0 or more")
        self.margin, self.metric = margin, by_name(metric)

    def extra_repr(self) -> str:
        """Its settings."""
        return f"{self.margin}, {self.metric.name}"

    def _loss(self, sides: Sequence[Embeddings], labels: Tensor | None) -> Tensor:
        anchor, positive, negative = sides
        gap = self.metric.score(anchor, negative) - self.metric.score(anchor, positive)
        return (gap + self.margin).relu().mean()
