"""What the encoder needs of a backbone."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from jaxtyping import Float, Int

__all__ = ["Backbone"]


class Backbone(ABC):
    """A pretrained transformer on packed texts, so that it never sees padding."""

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
    def states(
        self, ids: Int[np.ndarray, " total"], offsets: Int[np.ndarray, " ends"]
    ) -> Float[np.ndarray, "total dim"]:
        """Last hidden states in float32.

        Args:
            ids: Vocabulary ids of all texts, laid end to end.
            offsets: [n + 1] text i owns the ids offsets[i] to offsets[i + 1].
        """

    @abstractmethod
    def pooled(
        self, ids: Int[np.ndarray, " total"], offsets: Int[np.ndarray, " ends"], mode: str
    ) -> Float[np.ndarray, "n dim"] | None:
        """Pooled states without the tokens' own, where the backbone can do that for this pooling; else None."""

    @abstractmethod
    def describe(self) -> str:
        """One line: architecture, size, device, precision."""
