"""What is asked of a reproduction and what it gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from likewise.errors import InputError
from likewise.evaluation.papers import PublishedRow, PublishedTable
from likewise.model import Model

__all__ = ["SIZES", "OurRow", "PairScorer", "Reproduction", "Request"]

SIZES = ("smoke", "small", "full")
"""Does it run at all · whole evaluation sets, small baselines · baselines of the papers' size."""

T = TypeVar("T")


@runtime_checkable
class PairScorer(Protocol):
    """What reads both texts at once, such as `likewise.model.CrossEncoder`."""

    @property
    def name(self) -> str:
        """Short name for tables."""

    def score(self, a: Any, b: Any, *, progress: bool | None = None) -> Any:
        """A score for each pair of texts, row by row."""


@dataclass(frozen=True)
class Request:
    """What is to be measured, and on what."""

    models: Iterable[Model]
    """Models to measure, one held at a time."""
    data: Path | None = None
    """Folder of all data sets; None for tables that need none."""
    size: str = "small"
    """One of `SIZES`."""
    cross_encoders: Iterable[PairScorer] = ()
    """Cross-encoders, for the table that has rows of them (sbert-table2)."""
    word_vectors: Path | None = None
    """Text file of word vectors, for the baselines that need one."""
    progress: bool | None = None
    """Show bars on standard error."""

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise InputError(f"unknown size {self.size!r}; known are {', '.join(SIZES)}")

    def folder(self) -> Path:
        """The data folder.

        Raises:
            InputError: None was given.
        """
        if self.data is None:
            raise InputError("this table is measured on data; name the folder of the data sets with --data")
        return self.data

    def some(self, items: Sequence[T], n: int) -> Sequence[T]:
        """All items; at the size "smoke" about n of them, evenly from all parts."""
        return items if self.size != "smoke" else items[:: max(len(items) // n, 1)]


@dataclass(frozen=True)
class OurRow:
    """One system as measured here."""

    system: str
    """Its name."""
    values: tuple[float | None, ...]
    """One number a column of the reproduction."""
    beside: PublishedRow | None = None
    """The published row that it is to be read beside."""
    reasons: tuple[str, ...] = ()
    """Why numbers are missing."""

    @property
    def differences(self) -> tuple[float | None, ...]:
        """Ours minus published, column by column."""
        theirs: tuple[float | None, ...] = self.beside.values if self.beside else ()
        return tuple(
            None if own is None or other is None else own - other
            for own, other in zip(self.values, (*theirs, *[None] * len(self.values)), strict=False)
        )


@dataclass(frozen=True)
class Reproduction:
    """A published table, our numbers, and what makes them differ."""

    table: PublishedTable
    """What the paper printed."""
    columns: tuple[str, ...]
    """The table's columns, and further ones that only ours have."""
    rows: tuple[OurRow, ...]
    """What was measured here."""
    notes: tuple[str, ...]
    """Which differences the setting explains."""
