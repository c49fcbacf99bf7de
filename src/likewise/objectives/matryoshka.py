"""One objective at several lengths of the vectors, so that their first components work alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from likewise.errors import InputError
from likewise.objectives.base import Objective
from likewise.types import Embeddings

__all__ = ["Matryoshka"]


class Matryoshka(Objective):
    """The weighted sum of an objective's losses on the first `dims` components of every token.

    Cutting tokens cuts the pooled vectors, so that it holds for every similarity, RCMD among them.

    Args:
        objective: What is computed at each length; one without a head, since a head is made for one length.
        dims: Lengths, each at most that of the tokens.
        weights: What each length counts; 1 each by default.

    Raises:
        InputError: No length, a length below 1, or as many weights as there are no lengths.

    Source:
        Kusupati et al. 2022 (Matryoshka representation learning), section 3.
    """

    def __init__(self, objective: Objective, dims: Sequence[int], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        if any(True for _ in objective.parameters()):
            raise InputError(
                f"{type(objective).__name__} has a head made for vectors of one length; take an objective without "
                "one, such as Contrastive or Regression"
            )
        if not dims or min(dims) < 1 or (weights is not None and len(weights) != len(dims)):
            raise InputError(f"dims {list(dims)} and weights {weights}; give lengths from 1 up, and a weight for each")
        self.objective, self.dims = objective, tuple(dims)
        self.weights = tuple(weights) if weights is not None else (1.0,) * len(dims)
        self.n_sides, self.needs_labels = objective.n_sides, objective.needs_labels

    def check(self, labels: Any) -> None:
        """As the objective that is wrapped."""
        self.objective.check(labels)

    def extra_repr(self) -> str:
        """Its settings."""
        return f"{self.dims}, {self.weights}"

    def _loss(self, sides: Sequence[Embeddings], labels: Tensor | None) -> Tensor:
        if max(self.dims) > sides[0].dim:
            raise InputError(f"dims {list(self.dims)} for vectors of {sides[0].dim}; leave out what is longer")
        losses = [self.objective([_cut(side, dim) for side in sides], labels) for dim in self.dims]
        return torch.stack([weight * loss for weight, loss in zip(self.weights, losses, strict=True)]).sum()


def _cut(side: Embeddings, dim: int) -> Embeddings:
    weights = side.weights
    if weights is not None and weights.ndim == 2:
        weights = weights[:, :dim]
    return Embeddings(side.tokens[:, :dim], side.offsets, weights)
