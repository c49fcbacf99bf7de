"""Learning from a teacher: its vectors, or how much nearer it finds one text than another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from likewise.errors import InputError
from likewise.objectives.base import MANY, Objective, numbers
from likewise.similarity import Similarity, by_name
from likewise.types import Embeddings

__all__ = ["MarginDistillation", "VectorDistillation"]


class VectorDistillation(Objective):
    """Mean squared error of pooled vectors and the teacher's vectors, which are the labels.

    With several columns each is drawn to the teacher's vector of the row: a text and its translations, for one.

    Source:
        Reimers & Gurevych 2020 (Making monolingual sentence embeddings multilingual), section 2.
    """

    n_sides = (1, MANY)
    needs_labels = True

    def check(self, labels: Any) -> None:
        """Labels are vectors [n, dim].

        Raises:
            InputError: They have another shape, or are not finite.
        """
        super().check(labels)
        what = "give the teacher's pooled vectors, [n, dim]"
        if (found := numbers(labels, what)).ndim != 2:
            raise InputError(f"labels have shape {found.shape}; {what}")

    def _loss(self, sides: Sequence[Embeddings], labels: Tensor | None) -> Tensor:
        assert labels is not None
        if labels.shape[1] != sides[0].dim:
            raise InputError(
                f"the teacher's vectors have {labels.shape[1]} components and the student's {sides[0].dim}; reduce "
                "the teacher's (by PCA, say), or give the student a projection"
            )
        return torch.stack([F.mse_loss(pooled, labels.to(pooled)) for pooled in (x.pooled() for x in sides)]).mean()


class MarginDistillation(Objective):
    """Mean squared error of `s(a, p) - s(a, n)` and the same margin of the teacher, which is the label.

    The columns are anchors, positives and negatives; a cross-encoder is the usual teacher. A margin has no
    unit: bring the teacher's to the scale of the similarity.

    Args:
        similarity: Any similarity, or its name.

    Raises:
        InputError: An unknown similarity.

    Source:
        Hofstätter et al. 2020 (Improving efficient neural ranking models with cross-architecture knowledge
        distillation), section 3.2.
    """

    n_sides = (3, 3)
    needs_labels = True

    def __init__(self, similarity: Similarity | str = "cosine") -> None:
        super().__init__()
        self.similarity = by_name(similarity)

    def check(self, labels: Any) -> None:
        """Labels are one finite margin a row.

        Raises:
            InputError: One is not.
        """
        super().check(labels)
        what = "give the teacher's margins, score of the positive minus score of the negative"
        if (found := numbers(labels, what)).ndim != 1:
            raise InputError(f"labels have shape {found.shape}; {what}")

    def extra_repr(self) -> str:
        """Its settings."""
        return self.similarity.name

    def _loss(self, sides: Sequence[Embeddings], labels: Tensor | None) -> Tensor:
        assert labels is not None
        anchor, positive, negative = sides
        margin = self.similarity.score(anchor, positive) - self.similarity.score(anchor, negative)
        return F.mse_loss(margin, labels.to(margin))
