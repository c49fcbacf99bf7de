"""Pairs of arguments on one topic, and how alike people found them."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

from likewise.data.examples import ArgumentPair
from likewise.data.lines import read_lines
from likewise.data.rows import Rows, csv_rows, expect, number_in, records, tab_rows, text_of
from likewise.errors import DataError, DataNotFoundError

__all__ = ["argument_files", "read_arguments"]

_ROWS = {"BWS_corpus": 3400, "UKP_ASPECT": 3595}
_AFS_TOPICS = {"ArgPairs_GC": "gun control", "ArgPairs_GM": "gay marriage", "ArgPairs_DP": "death penalty"}
_FILES = {
    "AFS": tuple(f"{name}.csv" for name in _AFS_TOPICS),
    "BWS": ("BWS_corpus.csv",),
    "UKP aspect": ("UKP_ASPECT.tsv",),
}
"""Corpus → its files, in the order in which they are read."""
_ASPECT = {"DTORCD": 0.0, "NS": 0.0, "SS": 1.0, "HS": 2.0}
"""Different topic or cannot decide, no, some, high similarity; the first two are one class in the paper, too."""

_DAMAGED = {
    b"\x89\xdb\xcf": b"\x93",
    b"\x89\xdb\x9d": b"\x94",
    b"\x89\xdb\xf7": b"\x91",
    b"\x89\xdb\xaa": b"\x92",
    b"\x89\xdb\xd2": b"\x96",
    b"\x89\xdb\xd3": b"\x97",
    b"\x89\xdb\xa2": b"\x95",
    b"\x89\xdb_": b"\x85",
}
"""Quotes, dashes and dots as the AFS files have them after two wrong conversions → as they were, in cp1252."""


def read_arguments(path: str | os.PathLike[str]) -> Rows[ArgumentPair]:
    """Argument pairs of any of three corpora, told from the header.

    - AFS, as its authors release it (`ArgPairs_GC.csv`, `ArgPairs_GM.csv`, `ArgPairs_DP.csv`; real CSV with
      `regression_label`, `sentence_1` and `sentence_2` among its columns): gold 0 to 5; the topic is told from the
      name of the file. The files are not UTF-8; a file that is not is read as cp1252, its damaged quotes and dashes
      mended.
    - BWS (`BWS_corpus.csv`; real CSV, with `topic` and `regression_label`): gold 0 to 1.
    - UKP aspect (`UKP_ASPECT.tsv`; tabs, quotes literal): labels become gold 0 (different topic or cannot decide,
      no similarity), 1 (some) and 2 (high).

    Args:
        path: A file, or a folder that holds one of the corpora under these names; the files of AFS are read in the
            order given above.

    Raises:
        DataError: A missing file or column, a folder that holds several corpora, a broken row, an empty text, a gold
            value outside its range, or a count other than the published one (BWS and UKP aspect).

    Source:
        Misra et al. 2016 (AFS), Thakur et al. 2021 (BWS), Reimers et al. 2019 (UKP aspect).
    """
    path = Path(path)
    if path.is_dir():
        return Rows(pair for each in argument_files(path) for pair in read_arguments(each))
    header = next((line for _, line in read_lines(_bytes(path))), "").lower()
    if "\t" in header:
        pairs = _aspect(path)
    elif "topic" in header.split(","):
        pairs = _csv(path, csv_rows(path), high=1.0, topic=None)
    else:
        pairs = _csv(path, csv_rows(path, _afs_lines(path)), high=5.0, topic=_AFS_TOPICS.get(path.stem, path.stem))
    return expect(Rows(pairs), _ROWS.get(path.stem), path, "pairs")


def argument_files(path: Path) -> list[Path]:
    """The files that `read_arguments` reads: `path`, or those of the one corpus in that folder.

    Raises:
        DataError: The folder holds no corpus, or several.
    """
    if not path.is_dir():
        return [path]
    found = {corpus: [path / name for name in names if (path / name).is_file()] for corpus, names in _FILES.items()}
    held = [corpus for corpus, paths in found.items() if paths]
    if not held:
        names = ", ".join(name for names in _FILES.values() for name in names)
        raise DataNotFoundError(f"none of {names} in {path}; name a folder that holds one of them, or a file")
    if len(held) > 1:
        raise DataError(f"{path} holds several corpora ({', '.join(held)}); name the file of one")
    return found[held[0]]


def _csv(
    path: Path, rows: Iterator[tuple[int, list[str]]], *, high: float, topic: str | None
) -> Iterator[ArgumentPair]:
    aliases = {"a": ("sentence_1",), "b": ("sentence_2",), "gold": ("regression_label",)}
    for number, row in records(rows, aliases if topic else {**aliases, "topic": ("topic",)}, path):
        a, b = (text_of(row[side], path, number) for side in "ab")
        yield ArgumentPair(topic or row["topic"], a, b, number_in(row["gold"], 0.0, high, path, number))


def _aspect(path: Path) -> Iterator[ArgumentPair]:
    rows = tab_rows(path, lambda n: n == 4, "4 (topic, two sentences, label)")
    next(rows)
    for number, (topic, a, b, label) in rows:
        if label not in _ASPECT:
            raise DataError(f"{path}, line {number}: the label {label!r} is none of {', '.join(_ASPECT)}")
        yield ArgumentPair(topic, text_of(a, path, number), text_of(b, path, number), _ASPECT[label])


def _bytes(path: Path) -> io.BytesIO:
    """The whole file, under its name."""
    try:
        stream = io.BytesIO(path.read_bytes())
    except OSError as error:
        raise DataNotFoundError(f"cannot read {path}: {error.strerror or error}; check the path") from error
    stream.name = str(path)
    return stream


def _afs_lines(path: Path) -> Iterator[tuple[int, str]]:
    content = _bytes(path)
    data = content.getvalue()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        for damaged, meant in _DAMAGED.items():
            data = data.replace(damaged, meant)
        mended = io.BytesIO(data)
        mended.name = str(path)
        return read_lines(mended, "cp1252")
    return read_lines(content)
