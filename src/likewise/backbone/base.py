"""What the encoder needs of a backbone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

__all__ = ["Backbone"]


class Backbone(ABC):
    """A pretrained transformer that reads groups of equally long texts, so that it never sees padding."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of a token state."""

    @property
    @abstractmethod
    def max_length(self) -> int | None:
        """Tokens that the position table holds, special tokens included; None if there is no limit."""

    @property
    @abstractmethod
    def vocabulary(self) -> int | None:
        """Number of ids that it has vectors for; None if it cannot say."""

    @abstractmethod
    def states(self, ids: Int[np.ndarray, "rows length"]) -> Float[np.ndarray, "rows length dim"]:
        """Last hidden states in float32, for texts of one length."""

    @abstractmethod
    def weights(self) -> Mapping[str, Any]:
        """Every tensor by its name in the checkpoint, as stored."""

    @abstractmethod
    def describe(self) -> str:
        """One line: architecture, size, device, precision."""
