"""What every objective offers: a scalar to make small, from the embedded columns of a batch and its labels."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.types import Embeddings

__all__ = ["MANY", "Objective", "check_classes", "check_scores", "numbers"]

MANY = sys.maxsize
"""Most text columns of an objective that takes as many as there are."""


class Objective(nn.Module, ABC):
    """A training objective. Its parameters, if it has any, are a head that is trained, saved and resumed.

    Everything is computed in float32 or better, also where the encoder ran under autocast, and in float64 where
    the tokens are.
    """

    n_sides: tuple[int, int]
    """Fewest and most text columns."""
    needs_labels: bool = False
    """A row of a data set has a label beside its texts."""

    def forward(self, sides: Sequence[Embeddings], labels: Tensor | None = None) -> Tensor:
        """The loss of a batch, the mean over its rows.

        Args:
            sides: The embedded columns, each with as many texts; their tokens are torch tensors.
            labels: One label a row; None for an objective without labels.

        Returns:
            A scalar, differentiable in the tokens and in the objective's parameters.

        Raises:
            InputError: Too few or too many columns, columns of unequal length or dim, too few or too many labels,
                or labels that do not fit (see `check`). Labels that lie on a GPU are counted, not looked at,
                since that would wait for it: check them before.
        """
        self._check_sides(sides)
        if self.needs_labels:
            if labels is None or labels.is_cpu:
                self.check(labels)
            if labels is not None and len(labels) != len(sides[0]):
                raise InputError(f"{len(labels)} labels for {len(sides[0])} rows of texts; give one label a row")
        with torch.autocast(device_type=sides[0].tokens.device.type, enabled=False):
            return self._loss(sides, labels)

    def check(self, labels: Any) -> None:
        """Refuse labels that this objective cannot learn from: those of a batch, or of a whole data set.

        Args:
            labels: A sequence of numbers, an array or a tensor; None if the data has none.

        Raises:
            InputError: Labels are missing, not finite, or out of range; the first bad row is named.
        """
        if self.needs_labels and labels is None:
            raise InputError(
                f"{type(self).__name__} needs a label for each row and the data set has none; give labels, or take "
                "an objective that needs none, such as Contrastive"
            )

    @abstractmethod
    def _loss(self, sides: Sequence[Embeddings], labels: Tensor | None) -> Tensor:
        """The loss of a batch that has been checked."""

    def _check_sides(self, sides: Sequence[Embeddings]) -> None:
        fewest, most = self.n_sides
        if not fewest <= len(sides) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} or more" if most == MANY else f"{fewest} to {most}"
            raise InputError(
                f"{type(self).__name__} takes {wanted} columns of texts and got {len(sides)}; choose the columns of "
                "the data set, or another objective"
            )
        if len({(len(side), side.dim) for side in sides}) > 1:
            shown = ", ".join(f"{len(side)} texts of dim {side.dim}" for side in sides)
            raise InputError(f"the columns of a batch differ: {shown}; give as many texts in each, from one encoder")


def check_classes(labels: Any, n_classes: int) -> None:
    """Labels are whole numbers from 0 to `n_classes - 1`, one a row.

    Raises:
        InputError: One is not; the first is named.
    """
    what = f"{n_classes} classes are numbered 0 to {n_classes - 1}"
    found = numbers(labels, what)
    if found.ndim != 1:
        raise InputError(f"labels have shape {found.shape}; give one class a row")
    bad = ((found < 0) | (found >= n_classes) | (found % 1 != 0)).nonzero()[0]
    if len(bad):
        raise InputError(
            f"label {found[bad[0]]:g} of row {bad[0]} is no class: {what}; was the classifier made for another data "
            "set, or are these scores, which are for regression?"
        )


def check_scores(labels: Any, low: float, high: float) -> None:
    """Labels lie between `low` and `high`, one a row.

    Raises:
        InputError: One does not; the first is named.
    """
    found = numbers(labels, f"gold scores lie in [{low:g}, {high:g}]")
    if found.ndim != 1:
        raise InputError(f"labels have shape {found.shape}; give one gold score a row")
    bad = ((found < low) | (found > high)).nonzero()[0]
    if len(bad):
        raise InputError(
            f"label {found[bad[0]]:g} of row {bad[0]} is outside [{low:g}, {high:g}]; scores on another scale, such as "
            "0 to 5, must be rescaled first (divide by 5)"
        )


def numbers(labels: Any, what: str) -> np.ndarray:
    """Labels as float64, once they are known to be numbers.

    Args:
        labels: A sequence, an array or a tensor.
        what: What a label is, for the message.

    Raises:
        InputError: A label is no number, or not finite.
    """
    given = labels.detach().cpu().double().numpy() if isinstance(labels, Tensor) else labels
    try:
        found = np.atleast_1d(np.asarray(given, np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"labels are not numbers ({error}); {what}") from error
    bad = np.flatnonzero(~np.isfinite(found).all(axis=tuple(range(1, found.ndim))))
    if len(bad):
        raise InputError(f"label {found[bad[0]]} of row {bad[0]} is not finite; {what}")
    return found
