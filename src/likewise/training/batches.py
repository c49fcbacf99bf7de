"""From data sets to packed batches: texts tokenized once, columns laid end to end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from likewise.errors import InputError
from likewise.training.config import Dataset

__all__ = ["Batch", "Batches", "Place", "Reader", "Tokenized"]


@runtime_checkable
class Reader(Protocol):
    """What turns texts into ids."""

    def tokenize(self, texts: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Ids of the texts laid end to end, and where each starts; of the tuples of texts where rows are joint."""


@dataclass(frozen=True)
class Place:
    """Which rows a batch is made of."""

    dataset: int
    """Number of the data set."""
    rows: np.ndarray
    """[n] numbers of its rows."""


Batch = dict[str, Any]
"""What the encoder and the objective need:

"ids"      [total] vocabulary ids of all texts, column after column; [total, 2] with token types where rows are joint
"offsets"  [n_sides * n + 1] where each text starts
"n_sides"  number of columns
"labels"   [n], or None
"place"    the rows, for messages
"""


class Tokenized:
    """One data set as ids: distinct texts once, and which of them each row has.

    Args:
        data: The data set.
        reader: Its tokenizer cuts and reads the texts.
        joint: The columns of a row are read as one text.
    """

    def __init__(self, data: Dataset, reader: Reader, *, joint: bool = False) -> None:
        columns: Any = [list(zip(*data.columns, strict=True))] if joint else data.columns
        self.name, self.n_sides, self.weight = data.name, len(columns), data.weight
        numbers: dict[Any, int] = {}
        texts = [[numbers.setdefault(text, len(numbers)) for text in column] for column in columns]
        self._ids, self._offsets = reader.tokenize(numbers)
        self.texts = np.asarray(texts, dtype=np.int64).T
        self.labels = _labels(data.labels)
        self.lengths = np.diff(self._offsets)[self.texts].sum(axis=1)

    def __len__(self) -> int:
        return len(self.texts)

    def keys(self) -> np.ndarray:
        """[rows, columns] numbers that are equal where the model reads the same tokens."""
        spans = zip(self._offsets[:-1].tolist(), self._offsets[1:].tolist(), strict=True)
        numbers: dict[bytes, int] = {}
        same = [numbers.setdefault(self._ids[start:stop].tobytes(), len(numbers)) for start, stop in spans]
        return np.asarray(same, dtype=np.int64)[self.texts]

    def add_to(self, digest: Any) -> None:
        """Hash what is read."""
        labels = np.zeros(0) if self.labels is None else self.labels.numpy()
        for array in (self._ids, self._offsets, self.texts, labels, np.asarray(self.weight)):
            digest.update(np.ascontiguousarray(array).tobytes())

    def batch(self, place: Place) -> Batch:
        """The rows of a batch, packed."""
        texts = self.texts[place.rows].T.reshape(-1)
        starts, lengths = self._offsets[texts], np.diff(self._offsets)[texts]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        tokens = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return {
            "ids": torch.from_numpy(self._ids[tokens].astype(np.int64)),
            "offsets": offsets,
            "n_sides": self.n_sides,
            "labels": None if self.labels is None else self.labels[torch.from_numpy(place.rows)],
            "place": place,
        }


class Batches(TorchDataset[Batch]):
    """All data sets; an item is a whole batch, named by its place.

    Args:
        datasets: What is trained on.
        reader: Its tokenizer reads the texts.
        joint: The columns of a row are read as one text.

    Raises:
        InputError: There is no data set.
    """

    def __init__(self, datasets: Sequence[Dataset], reader: Reader, *, joint: bool = False) -> None:
        if not datasets:
            raise InputError("there is no data set to train on; give one or more")
        self.sets = [Tokenized(one, reader, joint=joint) for one in datasets]

    def __len__(self) -> int:
        return sum(len(one) for one in self.sets)

    def __getitem__(self, place: Place) -> Batch:
        return self.sets[place.dataset].batch(place)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that is read: texts, rows and labels."""
        digest = hashlib.sha256()
        for one in self.sets:
            one.add_to(digest)
        return digest.hexdigest()

    def describe(self, places: Sequence[tuple[int, int]]) -> str:
        """Rows by name, for messages."""
        shown = ", ".join(f"row {row} of {self.sets[dataset].name!r}" for dataset, row in places[:5])
        return shown + (f" and {len(places) - 5} more" if len(places) > 5 else "")


def _labels(labels: Any) -> Tensor | None:
    """Whole numbers stay so, since they may be classes."""
    if labels is None:
        return None
    array = np.asarray(labels)
    return torch.from_numpy(array.astype(np.int64 if np.issubdtype(array.dtype, np.integer) else np.float32))
