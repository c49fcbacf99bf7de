"""SICK: sentences about pictures, with how related they are and what follows from what."""

from __future__ import annotations

import os

from likewise.data.examples import NLI_LABELS, LabelledPair, ScoredPair
from likewise.data.rows import Rows, chosen, expect, find, number_in, records, tab_rows, text_of
from likewise.errors import DataError

__all__ = ["read_sick", "read_sick_nli"]

_SPLITS = {
    "train": ("SICK_train.txt", "TRAIN", 4500),
    "dev": ("SICK_trial.txt", "TRIAL", 500),
    "test": ("SICK_test_annotated.txt", "TEST", 4927),
}
"""Split → its file of the SemEval release, its name in the column `SemEval_set` of `SICK.txt`, its rows."""

_COLUMNS = {
    "a": ("sentence_a",),
    "b": ("sentence_b",),
    "gold": ("relatedness_score",),
    "label": ("entailment_judgment", "entailment_label"),
}


def read_sick(folder: str | os.PathLike[str], split: str = "test") -> Rows[ScoredPair]:
    """Pairs with their relatedness, 1 to 5.

    Args:
        folder: Where the files are, or a folder that has them in `sick/`: the three files of the SemEval
            release, or `SICK.txt` as its authors keep it.
        split: "train", "dev" (called trial in the release) or "test".

    Raises:
        DataError: A missing file or column, a wrong number of columns, an empty text, a score that is not in 1
            to 5, an unknown judgement, or a count other than the published one.

    Source:
        Marelli et al. 2014, SemEval-2014 task 1.
    """
    return Rows(scored for scored, _ in _read(folder, split))


def read_sick_nli(folder: str | os.PathLike[str], split: str = "test") -> Rows[LabelledPair]:
    """The same pairs with their entailment judgement; arguments and errors are those of `read_sick`."""
    return Rows(labelled for _, labelled in _read(folder, split))


def _read(folder: str | os.PathLike[str], split: str) -> Rows[tuple[ScoredPair, LabelledPair]]:
    name, part, n = _SPLITS[chosen(split, _SPLITS, "split of SICK")]
    path = find(folder, [name, f"sick/{name}", "SICK.txt", "sick/SICK.txt"], "SICK")
    whole = path.name == "SICK.txt"
    aliases = {**_COLUMNS, "part": ("semeval_set",)} if whole else _COLUMNS
    rows: Rows[tuple[ScoredPair, LabelledPair]] = Rows()
    for number, row in records(tab_rows(path, lambda n: n > 1, "several"), aliases, path):
        if whole and row["part"].strip() != part:
            continue
        a, b = (text_of(row[side], path, number) for side in "ab")
        label = row["label"].lower()
        if label not in NLI_LABELS:
            raise DataError(
                f"{path}, line {number}: the judgement {row['label']!r} is none of "
                f"{', '.join(NLI_LABELS)}; the columns have shifted"
            )
        gold = number_in(row["gold"], 1.0, 5.0, path, number)
        rows.append((ScoredPair(a, b, gold), LabelledPair(a, b, label)))
    return expect(rows, n, path, "pairs")
