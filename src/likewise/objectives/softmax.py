"""Classification of a pair of texts: what their vectors have in common, through one linear layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.errors import InputError
from likewise.objectives.base import Objective, check_classes
from likewise.types import Embeddings

__all__ = ["CONCATENATIONS", "Softmax"]

_PARTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "|u-v|": lambda u, v: (u - v).abs(),
    "u*v": lambda u, v: u * v,
}

CONCATENATIONS = ("u,v", "|u-v|", "u*v", "|u-v|,u*v", "u,v,u*v", "u,v,|u-v|", "u,v,|u-v|,u*v")
"""What can be laid side by side for the layer: the rows of SBERT's table 6."""


class Softmax(Objective):
    """Cross-entropy of `softmax(W (u, v, |u - v|))` and the class of the pair.

    The layer is only there for training; its state dict is what is saved and resumed with the model.

    Args:
        dim: Length of a pooled vector.
        n_classes: Number of classes; labels run from 0 to one less.
        concatenation: One of `CONCATENATIONS`.
        bias: Give the layer a bias, too; the paper has none.

    Raises:
        InputError: A size below 1 (below 2 for the classes), or an unknown concatenation.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 3 and table 6.
    """

    n_sides = (2, 2)
    needs_labels = True

    def __init__(self, dim: int, n_classes: int, concatenation: str = "u,v,|u-v|", *, bias: bool = False) -> None:
        super().__init__()
        if concatenation not in CONCATENATIONS:
            raise InputError(f"unknown concatenation {concatenation!r}; known are {' · '.join(CONCATENATIONS)}")
        if dim < 1 or n_classes < 2:
            raise InputError(f"a classifier of {n_classes} classes on vectors of {dim}; give at least 2 and 1")
        self.dim, self.n_classes, self.concatenation = dim, n_classes, concatenation
        self._parts = concatenation.split(",")
        self.classifier = nn.Linear(dim * len(self._parts), n_classes, bias=bias)

    def logits(self, a: Embeddings, b: Embeddings) -> Float[Tensor, "rows classes"]:
        """Row by row, the score of each class before the softmax.

        Raises:
            InputError: The vectors are not as long as the layer takes them.
        """
        if (a.dim, b.dim) != (self.dim, self.dim):
            raise InputError(
                f"vectors of {a.dim} and {b.dim} for a layer made for {self.dim}; make Softmax({a.dim}, …)"
            )
        u, v = a.pooled(), b.pooled()
        joint = torch.cat([_PARTS[part](u, v) for part in self._parts], dim=1)
        return self.classifier(joint.to(self.classifier.weight.dtype))

    def check(self, labels: Any) -> None:
        """Labels are whole numbers from 0 to `n_classes - 1`.

        Raises:
            InputError: One is not; the first is named.
        """
        super().check(labels)
        check_classes(labels, self.n_classes)

    def extra_repr(self) -> str:
        """Its settings."""
        return repr(self.concatenation)

    def _loss(self, sides: Sequence[Embeddings], labels: Tensor | None) -> Tensor:
        assert labels is not None
        return F.cross_entropy(self.logits(*sides), labels.to(self.classifier.weight.device, torch.long))
