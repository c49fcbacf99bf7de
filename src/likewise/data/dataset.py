"""What is known of a data set, and whether a local copy of it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from likewise.errors import DataError, DataNotFoundError

__all__ = ["DataSet", "Download", "Part", "State", "check"]

Part = Callable[[Path], int]
"""Reads one file or split under a folder and says how many rows it has."""


@dataclass(frozen=True)
class Download:
    """A file at its original source."""

    url: str
    """Where it is."""
    name: str
    """Where it goes, below the folder of its set."""
    checksum: str | None = None
    """`sha256:…` or `md5:…`, as published or as computed from the published file; None if nobody published one."""


@dataclass(frozen=True)
class DataSet:
    """One entry of the catalogue."""

    name: str
    """How the command line calls it, and the folder that `fetch` makes."""
    about: str
    """What it is."""
    licence: str
    """Under which terms its authors give it; their text decides."""
    source: str
    """Its project page, or where its authors say how to get it."""
    parts: Mapping[str, Part]
    """Name of a split or source → reads it; together they are the whole set."""
    downloads: tuple[Download, ...] = ()
    """The files that `fetch` takes; none where the source asks for a form, or the address is not certain."""
    unit: str = "rows"
    """What `parts` count, such as "pairs"."""


@dataclass(frozen=True)
class State:
    """Whether a local copy is whole."""

    name: str
    """The set."""
    state: str
    """"complete", "incomplete" or "absent"."""
    n_rows: int
    """Rows that could be read."""
    unit: str
    """What a row is, such as "pairs"."""
    reasons: tuple[str, ...] = ()
    """Why it is not complete, one for each part that is missing or broken."""


def check(dataset: DataSet, folder: str | os.PathLike[str]) -> State:
    """Read every part of a set under `folder`: the folder of the set, or one that holds a folder of its name.

    What a reader checks is checked: the published number of rows, columns, labels and ranges, texts that are not
    empty, ids that belong together. Texts are not compared with those published, since good copies differ in
    line ends and format: a changed text passes, and so do two files of equal length whose names were swapped.

    Returns:
        "complete" if each part has the published rows, "absent" if no file of the set is there, else "incomplete".
    """
    n_rows, reasons, n_absent = 0, [], 0
    for name, part in dataset.parts.items():
        try:
            n_rows += part(Path(folder))
        except DataNotFoundError as error:
            n_absent += 1
            reasons.append(f"{name}: {error}")
        except DataError as error:
            reasons.append(f"{name}: {error}")
    state = "complete" if not reasons else "absent" if n_absent == len(dataset.parts) else "incomplete"
    return State(dataset.name, state, n_rows, dataset.unit, tuple(reasons))
