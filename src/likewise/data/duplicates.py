"""Pairs that mean the same, or not: MRPC and Quora question pairs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from likewise.data.examples import BinaryPair, DuplicateSet
from likewise.data.rows import Rows, chosen, csv_rows, expect, find, records, tab_rows, text_of
from likewise.errors import DataError, DataNotFoundError

__all__ = ["duplicates_among", "read_mrpc", "read_qqp", "read_qqp_duplicates"]

_MRPC_ROWS = {"train": 4076, "test": 1725}
_QQP_ROWS = {"train": 384_348, "dev": 10_000, "test": 10_000}
_QQP_HEAD = "train_head_preprocess2500.csv"
_SAME = {"0": False, "1": True}


def read_mrpc(folder: str | os.PathLike[str], split: str = "test") -> Rows[BinaryPair]:
    """Microsoft paraphrases: `msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`; quotes literal.

    Args:
        folder: Where the files are, or a folder that has them in `raw/`, `mrpc/raw/`, or in the tokenised copy
            of SentEval, `MRPC/` or `tokenized/MRPC/`.
        split: "train" or "test".

    Raises:
        DataError: A missing file, a wrong number of columns, an empty text, an unknown label, or a count other
            than the published one.

    Source:
        Dolan, Quirk & Brockett 2004.
    """
    name = f"msr_paraphrase_{chosen(split, _MRPC_ROWS, 'split of MRPC')}.txt"
    places = ("", "raw/", "mrpc/raw/", "mrpc/", "MRPC/", "tokenized/MRPC/")
    path = find(folder, [place + name for place in places], "MRPC")
    rows = tab_rows(path, lambda n: n == 5, "5 (label, two ids, two sentences)")
    next(rows, None)
    pairs = Rows(_pair(row[3], row[4], row[0], path, number) for number, row in rows)
    return expect(pairs, _MRPC_ROWS[split], path, "pairs")


def read_qqp(folder: str | os.PathLike[str], split: str = "test") -> Rows[BinaryPair]:
    """Quora question pairs in the common split: label, two questions and an id, separated by tabs, no header.

    `dev.tsv` and `test.tsv` hold bytes that are not UTF-8; where a readable copy `dev.utf8_replaced.tsv` lies beside
    one, it is read. A question that the export quoted (it stands in quotes and all quotes inside are doubled) is
    unquoted; any other quote is literal.

    Args:
        folder: Where the files are, or a folder that has them in `qqp/`.
        split: "dev", "test" or "train".

    Raises:
        DataError: A missing file, bytes that are not UTF-8, a wrong number of columns, an empty text, an unknown
            label, or a count other than the published one.

    Source:
        Iyer et al. 2017 (data); Wang et al. 2017 (split).
    """
    endings = (".utf8_replaced.tsv", ".tsv")
    name = chosen(split, _QQP_ROWS, "split of QQP")
    path = find(folder, [f"{place}{name}{ending}" for place in ("", "qqp/") for ending in endings], "QQP")
    pairs = Rows(
        _pair(_unquoted(row[1]), _unquoted(row[2]), row[0], path, number)
        for number, row in tab_rows(path, lambda n: n == 4, "4 (label, two questions, id)")
    )
    return expect(pairs, _QQP_ROWS[split], path, "pairs")


def read_qqp_duplicates(folder: str | os.PathLike[str]) -> DuplicateSet:
    """All questions of the dev and test split, and of `train_head_preprocess2500.csv` if it is there, for mining.

    Every distinct question occurs once, in the order of the files. The pairs are those labelled as duplicates: what
    is not among them was for the most part never labelled, so that precision measured on them is a lower bound.

    Raises:
        DataError: As `read_qqp`; or `train_head_preprocess2500.csv` is not CSV or lacks a column.
    """
    pairs = [pair for split in ("dev", "test") for pair in read_qqp(folder, split)]
    with contextlib.suppress(DataNotFoundError):  # it is an extra
        pairs += _head(find(folder, [_QQP_HEAD, f"qqp/{_QQP_HEAD}"], "QQP"))
    return duplicates_among(pairs)


def duplicates_among(pairs: Sequence[BinaryPair]) -> DuplicateSet:
    """All distinct texts of the pairs, in the order of their first place, and those pairs that mean the same."""
    places: dict[str, int] = {}
    for text in (text for pair in pairs for text in (pair.a, pair.b)):
        places.setdefault(text, len(places))
    same = {tuple(sorted((places[pair.a], places[pair.b]))) for pair in pairs if pair.same and pair.a != pair.b}
    return DuplicateSet(tuple(places), frozenset((low, high) for low, high in same))


def _head(path: Path) -> Iterator[BinaryPair]:
    aliases = {"a": ("question1",), "b": ("question2",), "label": ("is_duplicate",)}
    for number, row in records(csv_rows(path), aliases, path):
        yield _pair(row["a"], row["b"], row["label"], path, number)


def _pair(a: str, b: str, label: str, path: Path, number: int) -> BinaryPair:
    if label not in _SAME:
        raise DataError(f"{path}, line {number}: the label {label!r} is neither 0 nor 1; the columns have shifted")
    return BinaryPair(text_of(a, path, number), text_of(b, path, number), _SAME[label])


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    quoted = len(text) > 1 and text[0] == text[-1] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else text
