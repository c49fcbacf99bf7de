"""Averaged word vectors: the simplest sentence embedding, from any word2vec or GloVe text file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.data import read_lines
from likewise.encoder import as_texts
from likewise.errors import DataError, InputError
from likewise.evaluation.baselines.words import words_of
from likewise.types import Embeddings

__all__ = ["WordVectors"]


class WordVectors:
    """A vector a word; a text is the mean of those of its words that are known.

    A word is looked up as it is written, then in lower case. A text of which no word is known has no token and
    a pooled vector of zeros. RCMD and exact transport work on the same vectors: the word mover's distance.

    Example:
        >>> two = WordVectors(["cat", "dog"], np.eye(2, dtype=np.float32))
        >>> two.encode(["A cat, a dog, a cat."]).round(2)
        array([[0.67, 0.33]], dtype=float32)

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 4; Kusner et al. 2015 for the distance.
    """

    def __init__(self, words: Sequence[str], vectors: Float[Any, "n dim"], *, name: str = "avg. word vectors") -> None:
        """Of words that are given with their vectors; of a word given twice the first vector counts.

        Raises:
            InputError: Unequal numbers of words and vectors.
        """
        if len(words) != len(vectors):
            raise InputError(f"{len(words)} words do not fit {len(vectors)} vectors; give one vector a word")
        self.name = name
        self.vectors = np.asarray(vectors, dtype=np.float32)
        self.rows: dict[str, int] = {}
        for row, word in enumerate(words):
            self.rows.setdefault(word, row)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, texts: Iterable[str] | None = None, name: str | None = None
    ) -> WordVectors:
        """Read a text file of word vectors line by line: `word number number …`.

        The format is that of word2vec and fastText (whose first line holds the number of words and the length of
        a vector) or of GloVe (which has no such line). A word may hold blanks, as a few of GloVe's do.

        Args:
            path: The file.
            texts: Keep only the vectors of words in these texts, so that a large file needs little memory.
            name: Name for tables; the file's by default.

        Raises:
            DataError: The file is missing or empty, a line has too few numbers or something else than numbers
                (file and line are named), or fewer words than its first line says.
        """
        path = Path(path)
        wanted = None if texts is None else _lookups(texts)
        found: dict[str, np.ndarray] = {}
        for word, values in _rows(path, wanted):
            found.setdefault(word, values)
        if not found:
            raise DataError(f"{path}: no word vectors; a line is a word and its numbers, separated by blanks")
        return cls(list(found), np.stack(list(found.values())), name=name or f"avg. {path.stem}")

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    def rows_of(self, text: str) -> list[int]:
        """Rows of `vectors` for the known words of a text, in their order."""
        found = (self.rows.get(word, self.rows.get(word.lower())) for word in words_of(text))
        return [row for row in found if row is not None]

    def embed(self, texts: Sequence[str], *, progress: bool | None = None) -> Embeddings:
        """The vectors of known words, packed, with the weights of their mean.

        Args:
            texts: Any number of texts.
            progress: Not used: this takes no time.
        """
        rows = [self.rows_of(text) for text in as_texts(texts)]
        lengths = np.asarray([len(one) for one in rows], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        flat = np.asarray([row for one in rows for row in one], dtype=np.int64)
        weights = np.repeat(1 / np.maximum(lengths, 1), lengths).astype(np.float32)
        return Embeddings(self.vectors[flat], offsets, weights)

    def encode(self, texts: Sequence[str], *, progress: bool | None = None) -> Float[Any, "n dim"]:
        """Means of the vectors of known words; zeros where none is known."""
        means = np.zeros((len(texts), self.dim), np.float32)
        for mean, text in zip(means, as_texts(texts), strict=True):
            if rows := self.rows_of(text):
                mean[:] = self.vectors[rows].mean(0)
        return means


def _lookups(texts: Iterable[str]) -> set[str]:
    """Everything that is looked up for these texts."""
    words = {word for text in as_texts(texts) for word in words_of(text)}
    return words | {word.lower() for word in words}


def _rows(path: Path, wanted: set[str] | None) -> Iterator[tuple[str, np.ndarray]]:
    """(word, vector) of each wanted word, and of the first line, so that the length of a vector is known."""
    dim = announced = n_rows = 0
    for number, line in read_lines(path):
        line = line.rstrip(" ")  # word2vec and fastText end lines with a blank
        if number == 1 and (header := _header(line)):
            announced, dim = header
            continue
        dim = dim or line.count(" ")
        word, *values = line.rsplit(" ", dim) if dim else [line]
        if len(values) != dim or not values or not word:
            raise DataError(f"{path}, line {number}: {_too_few(line, dim)}; a word and {dim or 'its'} numbers expected")
        n_rows += 1
        if wanted is None or word in wanted or n_rows == 1:
            yield word, _numbers(values, path, number)
    if announced and n_rows != announced:
        raise DataError(
            f"{path}: {n_rows} words, and its first line announces {announced}; the copy is not whole; fetch it again"
        )


def _header(line: str) -> tuple[int, int] | None:
    """Number of words and length of a vector, from the first line of a word2vec file."""
    parts = line.split(" ")
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 and all(part.isdecimal() for part in parts) else None


def _too_few(line: str, dim: int) -> str:
    n = line.count(" ")
    return "an empty line" if not line else "the word is empty" if n == dim > 0 else f"{n} numbers after the word"


def _numbers(values: list[str], path: Path, number: int) -> np.ndarray:
    try:
        vector = np.asarray(values, dtype=np.float32)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: {error}; a word and {len(values)} numbers expected") from error
    if not np.isfinite(vector).all():
        raise DataError(f"{path}, line {number}: NaN, or a number too large for float32; fetch the file again")
    return vector
