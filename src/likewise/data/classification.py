"""Texts and their classes: the transfer tasks of SentEval."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from likewise.data.examples import LabelledText
from likewise.data.lines import read_lines
from likewise.data.rows import Rows, chosen, find, tab_rows
from likewise.errors import DataError

__all__ = ["CLASSIFICATION_TASKS", "read_classification"]


@dataclass(frozen=True)
class _Part:
    """One file."""

    split: str
    names: tuple[str, ...]
    """What it may be called, the preferred one first."""
    n: int
    """Published rows, blank ones included."""
    label: str | None = None
    """The class of all its rows; None if each row says its own."""


_PARTS: dict[str, tuple[_Part, ...]] = {
    "MR": (_Part("all", ("rt-polarity.pos",), 5331, "pos"), _Part("all", ("rt-polarity.neg",), 5331, "neg")),
    "CR": (_Part("all", ("custrev.pos",), 2407, "pos"), _Part("all", ("custrev.neg",), 1368, "neg")),
    "SUBJ": (
        _Part("all", ("subj.objective",), 5000, "objective"),
        _Part("all", ("subj.subjective",), 5000, "subjective"),
    ),
    "MPQA": (_Part("all", ("mpqa.pos",), 3312, "pos"), _Part("all", ("mpqa.neg",), 7294, "neg")),
    "SST2": (
        _Part("train", ("sentiment-train",), 67_349),
        _Part("dev", ("sentiment-dev",), 872),
        _Part("test", ("sentiment-test",), 1821),
    ),
    "TREC": (
        _Part("train", ("train_5500.label.utf8", "train_5500.label"), 5452),
        _Part("test", ("TREC_10.label",), 500),
    ),
}
_FOLDERS = {"SST2": ("SST2", "SST/binary")}

CLASSIFICATION_TASKS = tuple(_PARTS)
"""The tasks that `read_classification` knows; MRPC is read by `read_mrpc`."""


def read_classification(folder: str | os.PathLike[str], task: str) -> dict[str, Rows[LabelledText]]:
    """A transfer task of SentEval, tokenised as SentEval has it.

    MR, CR, SUBJ and MPQA hold one file a class, without a split. SST2 is the binary Stanford Sentiment Treebank (its
    train split holds phrases, too), text and 0 or 1 separated by a tab. TREC gives the six coarse classes (`DESC` of
    `DESC:manner How …`). Blanks at line ends are dropped. A blank line is no example: it is counted in `n_skipped`
    (CR has four, MPQA three), and in the published counts.

    Args:
        folder: Where the files are, or a folder that has them in `TASK/`, perhaps in `tokenized/` or
            `senteval_transfer/tokenized/`. Of TREC's train split the copy in UTF-8, `train_5500.label.utf8`, is
            read if it is there, else the original, which is latin-1.
        task: One of `CLASSIFICATION_TASKS`.

    Returns:
        "all" → texts for the tasks without a split, else "train", "dev" (SST2) and "test".

    Raises:
        DataError: A missing file, a row without a class, or a count other than the published one.

    Source:
        Conneau & Kiela 2018 (SentEval).
    """
    splits: dict[str, Rows[LabelledText]] = {}
    for part in _PARTS[chosen(task, _PARTS, "transfer task")]:
        inner = [f"{outer}{name}/" for outer in ("", "tokenized/", "senteval_transfer/tokenized/")
                 for name in _FOLDERS.get(task, (task,))]  # fmt: skip
        path = find(folder, [f"{place}{name}" for place in ("", *inner) for name in part.names], task)
        rows = splits.setdefault(part.split, Rows())
        n_before = len(rows) + rows.n_skipped
        for text, label in _rows(path, task, part.label):
            if text.strip():
                rows.append(LabelledText(text, label))
            else:
                rows.n_skipped += 1
        n = len(rows) + rows.n_skipped - n_before
        if n != part.n:
            raise DataError(f"{path}: {n} rows, {part.n} expected; the copy is not whole; fetch it again")
    return splits


def _rows(path: Path, task: str, label: str | None) -> Iterator[tuple[str, str]]:
    if label is not None:
        for _, line in read_lines(path):
            yield line.rstrip(" "), label
    elif task == "TREC":
        for number, line in read_lines(path, "latin-1" if path.name == "train_5500.label" else "utf-8"):
            coarse, colon, rest = line.partition(":")
            text = rest.partition(" ")[2].rstrip(" ")
            if not colon or not coarse.isupper() or not text:
                raise DataError(f"{path}, line {number}: {line!r} does not begin with a class such as 'DESC:manner'")
            yield text, coarse
    else:
        for number, (text, binary) in tab_rows(path, lambda n: n == 2, "2 (text, class)"):
            if binary not in ("0", "1"):
                raise DataError(f"{path}, line {number}: the class {binary!r} is neither 0 nor 1")
            yield text.rstrip(" "), binary
