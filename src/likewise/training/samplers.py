"""Which rows make up which batch: decided by seed and epoch alone, the same in every process.

A batch is of one data set and full. Every epoch has the same number of batches, which is known before it starts;
rows left over wait for an epoch with another order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler

from likewise.errors import InputError
from likewise.training.batches import Place, Tokenized

__all__ = ["BatchSampler", "distinct_batches"]

_GROUP = 50
"""Batches whose rows are sorted by length together, so that the order stays mostly random."""


class BatchSampler(Sampler[Place]):
    """The batches of an epoch, for one process of several.

    Args:
        sets: The tokenized data sets.
        size: Rows of a batch, of all processes together.
        seed: Decides the order, with the epoch.
        distinct: Let no text of a row equal a text of another row of its batch. Where that leaves rows over, rows
            of another pass fill the batches of the epoch.
        grouped: Batches of rows of like length.
        part: Number of this process and number of processes; each takes a run of neighbours of every batch.

    Raises:
        InputError: A data set gives no full batch, or a batch cannot be shared evenly.
    """

    def __init__(
        self,
        sets: Sequence[Tokenized],
        size: int,
        seed: int,
        *,
        distinct: bool = False,
        grouped: bool = False,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        if size % part[1]:
            raise InputError(
                f"a batch of {size} rows cannot be shared by {part[1]} processes; give a multiple as batch_size"
            )
        self._sets, self._size, self._seed, self._grouped, self._part = sets, size, seed, grouped, part
        self._keys = [one.keys() if distinct else None for one in sets]
        self._n_batches = [_n_batches(one, size) for one in sets]
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Another epoch, another order.

        Raises:
            InputError: Too few rows have texts of their own.
        """
        self._plan = self._planned(epoch)

    def __len__(self) -> int:
        return sum(self._n_batches)

    def __iter__(self) -> Iterator[Place]:
        rank, n = self._part
        own = slice(rank * self._size // n, (rank + 1) * self._size // n)
        return iter([Place(place.dataset, place.rows[own]) for place in self._plan])

    def _planned(self, epoch: int) -> list[Place]:
        places: list[Place] = []
        for number, (one, keys) in enumerate(zip(self._sets, self._keys, strict=True)):
            random = np.random.default_rng([self._seed, epoch, number])
            passes = (self._ordered(random.permutation(len(one)), one.lengths) for _ in itertools.count())
            found = _plain_batches(passes, self._size) if keys is None else distinct_batches(passes, keys, self._size)
            places += [Place(number, rows) for rows in itertools.islice(found, self._n_batches[number])]
            if len(places) < sum(self._n_batches[: number + 1]):
                raise InputError(
                    f"data set {one.name!r} has too few rows with texts of their own for batches of {self._size} "
                    "without equal texts; give a smaller batch_size, or no_duplicates=False"
                )
        order = np.random.default_rng([self._seed, epoch]).permutation(len(places))
        return [places[at] for at in order]

    def _ordered(self, rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        if not self._grouped:
            return rows
        width = self._size * _GROUP
        some = (rows[start : start + width] for start in range(0, len(rows), width))
        return np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in some])


def distinct_batches(passes: Iterable[np.ndarray], keys: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Full batches in which no two rows share a key.

    A row goes to the first batch with room behind those that its keys were last put in, so that each row costs a
    few steps, however many are equal. Ends when a whole pass fills no batch.

    Args:
        passes: Orders of the rows, as many as are asked for.
        keys: [rows, columns] what may be in a batch once, but for one row.
        size: Rows of a batch.
    """
    batches: list[list[int] | None] = []
    beyond: dict[int, int] = {}  # key → the batch behind the last one that has it
    following: dict[int, int] = {}  # full batch → one behind it that may have room
    for order in passes:
        n_full = len(following)
        for row, own in zip(order.tolist(), keys[order].tolist(), strict=True):
            at = _with_room(max(beyond.get(key, 0) for key in own), following)
            batches += [[] for _ in range(at + 1 - len(batches))]
            beyond.update(dict.fromkeys(own, at + 1))
            batch = batches[at]
            assert batch is not None
            batch.append(row)
            if len(batch) == size:
                yield np.asarray(batch)
                batches[at], following[at] = None, at + 1
        if len(following) == n_full:
            return


def _with_room(at: int, following: dict[int, int]) -> int:
    """The first batch from `at` on that is not full; the way there is shortened for the next time."""
    passed = []
    while at in following:
        passed.append(at)
        at = following[at]
    for one in passed:
        following[one] = at
    return at


def _plain_batches(passes: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    for order in passes:
        for start in range(0, len(order) - size + 1, size):
            yield order[start : start + size]


def _n_batches(one: Tokenized, size: int) -> int:
    n = int(len(one) * one.weight // size)
    if not n or len(one) < size:
        seen = "" if one.weight == 1 else f", of which weight {one.weight} takes {len(one) * one.weight:g} an epoch"
        raise InputError(
            f"data set {one.name!r} has {len(one)} rows{seen}: fewer than one batch of {size}; give more rows or a "
            "smaller batch_size"
        )
    return n
