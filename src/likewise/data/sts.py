"""Pairs of sentences with a gold score of how alike they are."""

from __future__ import annotations

import os
from pathlib import Path

from likewise.data.examples import ScoredPair
from likewise.data.lines import read_lines
from likewise.errors import DataError

__all__ = ["read_stsb"]

_STSB_ROWS = {"train": 5749, "dev": 1500, "test": 1379}
"""Rows as published; a copy with other counts is not the benchmark."""


def read_stsb(folder: str | os.PathLike[str], split: str = "test") -> list[ScoredPair]:
    """The STS benchmark as released: `sts-train.csv`, `sts-dev.csv`, `sts-test.csv`.

    In spite of their name the files are separated by tabs: genre, file, year, id, score, two sentences,
    and sometimes two more columns. Quotes are literal.

    Args:
        folder: Where the files are, or a folder that has them in `raw/` or `stsbenchmark/raw/`.
        split: "train", "dev" or "test".

    Raises:
        DataError: A missing file, a row with too few columns, a score that is not in 0 to 5, or a count
            other than the published one.

    Source:
        Cer et al. 2017, SemEval-2017 task 1.
    """
    if split not in _STSB_ROWS:
        raise DataError(f"unknown split {split!r} of the STS benchmark; known are {', '.join(_STSB_ROWS)}")
    path = _find(Path(folder), f"sts-{split}.csv")
    pairs = []
    for number, line in read_lines(path):
        columns = line.split("\t")
        if len(columns) < 7:
            raise DataError(
                f"{path}, line {number}: {len(columns)} columns, at least 7 expected; is it separated by tabs?"
            )
        pairs.append(ScoredPair(columns[5], columns[6], _gold(columns[4], path, number)))
    if len(pairs) != _STSB_ROWS[split]:
        raise DataError(
            f"{path}: {len(pairs)} pairs, {_STSB_ROWS[split]} expected; the copy is not whole; fetch it again"
        )
    return pairs


def _find(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / "raw" / name, folder / "stsbenchmark" / "raw" / name):
        if candidate.is_file():
            return candidate
    raise DataError(
        f"no {name} in {folder}; download the STS benchmark from its authors and name the folder that holds it"
    )


def _gold(text: str, path: Path, number: int) -> float:
    try:
        gold = float(text)
    except ValueError as error:
        raise DataError(
            f"{path}, line {number}: the score {text!r} is not a number; the columns have shifted"
        ) from error
    if not 0 <= gold <= 5:
        raise DataError(f"{path}, line {number}: the score {gold} is outside 0 to 5; the columns have shifted")
    return gold
