"""One number of a table, and what can be measured: the values that every protocol gives out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float

from likewise.types import Embeddings

__all__ = ["Embedder", "Measure"]


@dataclass(frozen=True)
class Measure:
    """One number: which model did how well at what."""

    task: str
    """Data set, such as "STS12" or "SICK-R"."""
    subset: str
    """Part of it: a source, a topic, a slice, or "all"."""
    model: str
    """Name of the model or baseline."""
    similarity: str
    """How texts were compared; "" where nothing was compared."""
    metric: str
    """Such as "spearman" (times 100), "accuracy" or "f1"."""
    value: float | None
    """The number; None where it does not exist, such as a correlation of constant scores."""
    n: int
    """Examples that it was measured on."""
    low: float | None = None
    """Lower end of its 95 % interval."""
    high: float | None = None
    """Upper end of its 95 % interval."""
    reason: str | None = None
    """Why there is no value, or no interval."""


@runtime_checkable
class Embedder(Protocol):
    """What a protocol needs of a model; `likewise.Model` and the baselines of the papers have it."""

    @property
    def name(self) -> str:
        """Short name for tables."""

    def embed(self, texts: Sequence[str], *, progress: bool | None = None) -> Embeddings:
        """Token vectors, packed, with pooling weights."""

    def encode(self, texts: Sequence[str], *, progress: bool | None = None) -> Float[Any, "n dim"]:
        """Pooled vectors."""
