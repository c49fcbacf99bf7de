"""What the engine asks of that which is trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

__all__ = ["Trained"]


class Trained(nn.Module, ABC):
    """A model and its objective as one module, so that what wraps a module (DDP, autocast) wraps both."""

    objective: nn.Module
    """What is made small; its description tells runs apart."""

    @abstractmethod
    def forward(self, ids: Tensor, offsets: np.ndarray, n_sides: int, labels: Tensor | None) -> Tensor:
        """The loss of a batch; see `batches.Batch`."""

    @abstractmethod
    def states(self, ids: Tensor, offsets: np.ndarray) -> Tensor:
        """What the model computes of some texts, to find those that give NaN."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model, without what is there in training only."""

    @abstractmethod
    def read(self, folder: Path) -> None:
        """Take over the weights that `save` wrote."""

    @abstractmethod
    def open(self, folder: Path) -> Any:
        """What `save` wrote, as its users load it and as it is evaluated."""
