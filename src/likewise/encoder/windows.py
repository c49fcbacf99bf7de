"""Texts in windows: how many at a time, what was cut in them, and a bar that counts them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from likewise.encoder.tokenizer import Tokenized
from likewise.errors import InputError, TruncationError, TruncationWarning, warn

__all__ = ["WINDOW", "Cuts", "check_on_truncate", "chunks", "cuts_of", "progress_bar", "told_once"]

WINDOW = 2_048
"""Texts tokenized together, while the backbone computes those before them; bounds the memory of a generator."""

_QUIET_BELOW = 256
"""Calls with fewer texts show no progress bar."""


@dataclass
class Cuts:
    """Texts that are longer than the model reads, counted as they come."""

    n_texts: int = 0
    """Texts seen."""
    n_cut: int = 0
    """Those of them that were cut."""
    longest: int = 0
    """Tokens of the longest that was cut."""
    where: int = 0
    """Its position."""
    limit: int | None = None
    """Tokens that the model reads."""

    def add(self, window: Sequence[Tokenized]) -> None:
        """Count the texts of one more window."""
        for row, one in enumerate(window):
            if one.truncated:
                self.join(Cuts(0, 1, one.n_total, row))
        self.n_texts += len(window)

    def join(self, other: Cuts) -> None:
        """Count what was counted elsewhere, for the texts that follow those seen here."""
        if other.longest > self.longest:
            self.longest, self.where = other.longest, self.n_texts + other.where
        self.n_cut += other.n_cut
        self.n_texts += other.n_texts

    def check(self, on_truncate: str) -> None:
        """Raise a TruncationError if a text was cut and `on_truncate` is "raise"."""
        if self.n_cut and on_truncate == "raise":
            raise TruncationError(self._message())

    def tell(self, on_truncate: str) -> None:
        """Warn if a text was cut and `on_truncate` is "warn"."""
        if self.n_cut and on_truncate == "warn":
            warn(self._message(), TruncationWarning)

    def _message(self) -> str:
        return (
            f"{self.n_cut} of {self.n_texts} texts are longer than the {self.limit} tokens that the model reads "
            f"and were cut; the longest is text {self.where} with {self.longest} tokens; split long texts, or see "
            "coverage()"
        )


_TOGETHER: ContextVar[Cuts | None] = ContextVar("_TOGETHER", default=None)


@contextmanager
def told_once() -> Iterator[None]:
    """What calls within the block cut is counted together and told in one warning at its end.

    Within another such block it is the other one that tells.
    """
    if _TOGETHER.get() is not None:
        yield
        return
    cuts = Cuts()
    token = _TOGETHER.set(cuts)
    try:
        yield
    finally:
        _TOGETHER.reset(token)
    cuts.tell("warn")


def cuts_of(own: Cuts | None) -> tuple[Cuts, bool]:
    """Where a call counts what it cuts, and whether it is the call that tells."""
    together = _TOGETHER.get()
    if own is None and together is not None:
        return together, False
    return Cuts() if own is None else own, True


def check_on_truncate(on_truncate: str) -> None:
    """Raise an InputError for a word that is not known."""
    if on_truncate not in ("warn", "raise", "ignore"):
        raise InputError(f"unknown on_truncate {on_truncate!r}; known are warn, raise, ignore")


def chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of `size` items; the last one is shorter."""
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk


class progress_bar:
    """A progress bar on standard error, or nothing.

    Args:
        total: How many texts; below 0 if nobody knows.
        progress: Show it or not; by default only on a terminal and for long work.
    """

    def __init__(self, total: int, progress: bool | None) -> None:
        long = total < 0 or total >= _QUIET_BELOW
        terminal = sys.stderr is not None and sys.stderr.isatty()  # None if it was closed from the start
        self._shown = progress if progress is not None else (long and terminal)
        self._total = None if total < 0 else total

    def __enter__(self) -> Any:
        if not self._shown:
            self._tqdm = None
            return lambda n: None
        from tqdm import tqdm

        self._tqdm = tqdm(total=self._total, unit="text", file=sys.stderr, desc="encode")
        return self._tqdm.update

    def __exit__(self, *error: object) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
