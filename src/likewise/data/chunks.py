"""Sentences cut into chunks, and alignments of chunks: what interpretable STS is about."""

from __future__ import annotations

import re
from dataclasses import dataclass

from likewise.errors import InputError

__all__ = ["ALIGNMENT_KINDS", "ChunkAlignment", "ChunkedPair", "ChunkedText"]

ALIGNMENT_KINDS = ("EQUI", "OPPO", "SPE1", "SPE2", "SIMI", "REL", "ALIC", "NOALI")
"""Equivalent, opposite, left or right more specific, similar, related, in context (2015 only), not aligned."""

_KIND = re.compile(f"(?:{'|'.join(ALIGNMENT_KINDS)})(?:_[A-Z]+)*")


@dataclass(frozen=True)
class ChunkedText:
    """A sentence, its words and its chunks."""

    text: str
    """The sentence."""
    words: tuple[str, ...]
    """Its words in order, each found in `text` after the one before; the id of a word is its place + 1."""
    chunks: tuple[tuple[int, ...], ...] = ()
    """Word ids of each chunk, in the order of the sentence."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_spans", tuple(self._find()))
        for chunk in self.chunks:
            if not chunk or not all(1 <= word <= len(self.words) for word in chunk):
                raise InputError(f"the chunk {chunk} does not fit a sentence of words 1 to {len(self.words)}")

    @property
    def word_spans(self) -> tuple[tuple[int, int], ...]:
        """First character of each word in `text`, and the one after its last."""
        spans: tuple[tuple[int, int], ...] = self.__dict__["_spans"]
        return spans

    @property
    def chunk_spans(self) -> tuple[tuple[int, int], ...]:
        """First character of each chunk in `text`, and the one after its last."""
        spans = self.word_spans
        return tuple((spans[min(chunk) - 1][0], spans[max(chunk) - 1][1]) for chunk in self.chunks)

    def _find(self) -> list[tuple[int, int]]:
        spans, end = [], 0
        for place, word in enumerate(self.words, start=1):
            start = self.text.find(word, end)
            if start < 0:
                raise InputError(f"word {place}, {word!r}, is not in the rest of {self.text!r}")
            end = start + len(word)
            spans.append((start, end))
        return spans


@dataclass(frozen=True)
class ChunkAlignment:
    """Words on the left that belong to words on the right."""

    left: tuple[int, ...]
    """Word ids; empty if nothing on the left belongs to `right`."""
    right: tuple[int, ...]
    """Word ids; empty if nothing on the right belongs to `left`."""
    kind: str
    """One of `ALIGNMENT_KINDS`, perhaps with suffixes such as `_FACT` or `_POL`."""
    score: float | None = None
    """How close they are, 0 to 5; None where the file says NIL."""

    def __post_init__(self) -> None:
        if not self.left and not self.right:
            raise InputError("an alignment has words on neither side; leave it out")
        if not _KIND.fullmatch(self.kind):
            raise InputError(
                f"the type {self.kind!r} is none of {', '.join(ALIGNMENT_KINDS)}, with or without a suffix"
            )
        if self.score is not None and not 0 <= self.score <= 5:
            raise InputError(f"the score {self.score} of an alignment is outside 0 to 5")


@dataclass(frozen=True)
class ChunkedPair:
    """Two sentences and how their chunks were aligned."""

    id: int
    """Number of the pair in its set, from 1."""
    left: ChunkedText
    """First sentence (called source in `.wa` files)."""
    right: ChunkedText
    """Second sentence (called translation there)."""
    alignments: tuple[ChunkAlignment, ...]
    """In the order of the file; a word may take part in several, or in none."""

    def __post_init__(self) -> None:
        for alignment in self.alignments:
            for ids, side in ((alignment.left, self.left), (alignment.right, self.right)):
                if not all(1 <= word <= len(side.words) for word in ids):
                    raise InputError(
                        f"pair {self.id}: the words {ids} do not fit a sentence of words 1 to {len(side.words)}"
                    )
