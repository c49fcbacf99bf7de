"""InfoNCE: each anchor picks its own positive among those of the batch, and among hard negatives."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from likewise.errors import InputError
from likewise.objectives.base import MANY, Objective
from likewise.objectives.sides import gathered, joined, process_count
from likewise.similarity import Similarity, by_name
from likewise.types import Embeddings

__all__ = ["Contrastive"]


class Contrastive(Objective):
    """`-log exp(s(a_i, p_i) / τ) / Σ_j [exp(s(a_i, p_j) / τ) + exp(s(a_i, n_j) / τ)]`, the mean over the anchors.

    The columns are anchors, positives and any number of hard negatives. With the cosine this is SimCSE, with
    RCMD it is CLRCMD. Unsupervised SimCSE is the same text in both columns, with dropout as the only difference.

    Where several processes train together, the candidates are those of all of them. With the averaged gradients
    of data-parallel training, loss and gradients are those of one process on the joined batch, also where the
    processes have unequal numbers of rows.

    Args:
        similarity: Any similarity, or its name.
        temperature: τ, above 0; small values look at the hardest negatives only.
        gather: Take the candidates of all processes; else, and in evaluation mode, each process has its own only.

    Raises:
        InputError: An unknown similarity, or a temperature that is not above 0.

    Source:
        Gao et al. 2021 (SimCSE), equations 1 and 5; Lee et al. 2022 (CLRCMD), section 3.3.
    """

    n_sides = (2, MANY)

    def __init__(
        self, similarity: Similarity | str = "cosine", temperature: float = 0.05, *, gather: bool = True
    ) -> None:
        super().__init__()
        if not temperature > 0:
            raise InputError(f"temperature {temperature} is not above 0; 0.05 is usual for scores in [-1, 1]")
        self.similarity, self.temperature, self.gather = by_name(similarity), temperature, gather

    def extra_repr(self) -> str:
        """Its settings."""
        return f"{self.similarity.name}, {self.temperature}, gather={self.gather}"

    def _loss(self, sides: Sequence[Embeddings], labels: Tensor | None) -> Tensor:
        if not self.similarity.needs_tokens:  # few numbers to gather, and each text is pooled once
            sides = [Embeddings.from_pooled(side.pooled()) for side in sides]
        anchors, candidates = sides[0], joined(sides[1:])
        first, n_processes = 0, process_count() if self.gather and self.training else 1
        if n_processes > 1:
            candidates, first = gathered(candidates)
        n_anchors = len(candidates) // (len(sides) - 1)  # of all processes
        if not self.similarity.needs_tokens:
            candidates = Embeddings.from_pooled(candidates.tokens)
        logits = self.similarity.matrix(anchors, candidates) / self.temperature
        own = torch.arange(first, first + len(anchors), device=logits.device)
        # Averaged over the processes, this is the mean over the anchors of all.
        return F.cross_entropy(logits, own, reduction="sum") * (n_processes / max(n_anchors, 1))
