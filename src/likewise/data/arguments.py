"""Pairs of arguments on one topic, and how alike people found them."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

from likewise.data.examples import ArgumentPair
from likewise.data.lines import read_lines
from likewise.data.rows import Rows, columns_named, csv_rows, expect, number_in, tab_rows, text_of
from likewise.errors import DataError, DataNotFoundError

__all__ = ["read_arguments"]

_ROWS = {"BWS_corpus": 3400, "UKP_ASPECT": 3595}
_AFS_TOPICS = {"ArgPairs_GC": "gun control", "ArgPairs_GM": "gay marriage", "ArgPairs_DP": "death penalty"}
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
        path: A file, or a folder with the files of AFS, which are read in the order given above.

    Raises:
        DataError: A missing file or column, a broken row, an empty text, a gold value outside its range, or a count
            other than the published one (BWS and UKP aspect).

    Source:
        Misra et al. 2016 (AFS), Thakur et al. 2021 (BWS), Reimers et al. 2019 (UKP aspect).
    """
    path = Path(path)
    if path.is_dir():
        paths = [path / f"{name}.csv" for name in _AFS_TOPICS if (path / f"{name}.csv").is_file()]
        if not paths:
            raise DataNotFoundError(
                f"no ArgPairs_*.csv in {path}; name a folder that holds the AFS corpus, or one file"
            )
        return Rows(pair for each in paths for pair in read_arguments(each))
    header = next((line for _, line in read_lines(_bytes(path))), "").lower()
    if "\t" in header:
        pairs = _aspect(path)
    elif "topic" in header.split(","):
        pairs = _csv(path, csv_rows(path), high=1.0, topic=None)
    else:
        pairs = _csv(path, csv_rows(path, _afs_lines(path)), high=5.0, topic=_AFS_TOPICS.get(path.stem, path.stem))
    return expect(Rows(pairs), _ROWS.get(path.stem), path, "pairs")


def _csv(
    path: Path, rows: Iterator[tuple[int, list[str]]], *, high: float, topic: str | None
) -> Iterator[ArgumentPair]:
    header = next(rows, (1, [""]))[1]
    aliases = {"a": ("sentence_1",), "b": ("sentence_2",), "gold": ("regression_label",)}
    places = columns_named(header, aliases if topic else {**aliases, "topic": ("topic",)}, path)
    for number, row in rows:
        if len(row) != len(header):
            raise DataError(
                f"{path}, line {number}: {len(row)} columns, {len(header)} expected as in the header; is a text with a "
                "comma not quoted?"
            )
        a, b = (text_of(row[places[side]], path, number) for side in "ab")
        gold = number_in(row[places["gold"]], 0.0, high, path, number)
        yield ArgumentPair(topic or row[places["topic"]], a, b, gold)


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
