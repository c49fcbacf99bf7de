"""Natural language inference: premise, hypothesis and label, from whichever of its many file formats."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from likewise.data.examples import NLI_LABELS, LabelledPair, TextTriplet
from likewise.data.json_lines import object_in, text_at
from likewise.data.lines import read_lines
from likewise.data.rows import Rows, csv_rows, expect, records, tab_rows, text_of
from likewise.errors import DataError

__all__ = ["nli_triplets", "read_nli", "read_nli_triplets"]

_ROWS = {
    "snli_1.0_train": 550_152,
    "snli_1.0_dev": 10_000,
    "snli_1.0_test": 10_000,
    "multinli_1.0_train": 392_702,
    "multinli_1.0_dev_matched": 10_000,
    "multinli_1.0_dev_mismatched": 10_000,
    "xnli_validation_en": 2_490,
    "xnli_test_en": 5_010,
    "taxinli10k": 10_071,
    "adversarial_train_15k": 15_000,
    "conj_dev": 623,
    "all_combined/train": 8_330,
    "all_combined/dev": 1_000,
    "all_combined/test": 2_000,
    "senteval_tokenized/dev": 9_842,
    "senteval_tokenized/test": 9_824,
    "cat_20k/train": 18_000,
    "cat_20k/test": 2_000,
}
"""Published rows, with and without a label, by the file's name; for the names that anybody uses, with its folder."""

_ALIASES = {
    "premise": ("sentence1", "premise", "prem"),
    "hypothesis": ("sentence2", "hypothesis", "hyp"),
    "label": ("gold_label", "label"),
}
_NAMES = {label: label for label in NLI_LABELS}
_XNLI = {"0": "entailment", "1": "neutral", "2": "contradiction"}
_CAT = {"1": "neutral", "2": "contradiction", "3": "entailment"}
_UNLABELLED = ("-", "")

_Row = tuple[int, str, str, str]
"""Line number, premise, hypothesis, label as written."""


def read_nli(path: str | os.PathLike[str]) -> Rows[LabelledPair]:
    """One file of natural language inference. A row labelled `-`, or not at all, is skipped and counted in `n_skipped`.

    The format is told from the file:

    - `.jsonl` of SNLI and MultiNLI: `gold_label`, `sentence1`, `sentence2`
    - `.csv`: real CSV with a header, as converted copies of SNLI and MultiNLI have it
    - anything else with a header that names the columns: separated by tabs, quotes literal. SNLI and MultiNLI `.txt`,
      XNLI (labels 0 entailment, 1 neutral, 2 contradiction), counterfactually augmented NLI, TaxiNLI, ConjNLI
    - four columns without a header: the label twice (1 neutral, 2 contradiction, 3 entailment) and two sentences
    - `s1.dev`, `s2.dev` or `labels.dev` (any of the three, or `.train`, `.test`): InferSent's tokenised copies in
      three files of equal length; blanks at line ends are dropped

    Args:
        path: The file.

    Raises:
        DataError: A missing file or column, a wrong number of columns, an empty text, an unknown label, files that
            do not fit together, or, for a file whose name is that of a published one, another number of rows.

    Source:
        Bowman et al. 2015 (SNLI), Williams et al. 2018 (MultiNLI), Conneau et al. 2018 (XNLI), Kaushik et al. 2020
        (counterfactual), Joshi et al. 2020 (TaxiNLI), Saha et al. 2020 (ConjNLI), Conneau et al. 2017 (InferSent).
    """
    path = Path(path)
    pairs: Rows[LabelledPair] = Rows()
    labels = _NAMES
    if _is_split_in_three(path):
        rows = _three_files(path)
    elif path.suffix == ".jsonl":
        rows = _json_rows(path)
    elif path.suffix == ".csv":
        rows = _named(csv_rows(path), path)
    elif _first(path).count("\t") == 3 and _first(path).split("\t")[0] in _CAT:
        rows, labels = _unnamed(path), _CAT
    else:
        rows, labels = _named(tab_rows(path, lambda n: n > 1, "several, separated by tabs,"), path), {**_NAMES, **_XNLI}
    for number, premise, hypothesis, label in rows:
        if label in _UNLABELLED:
            pairs.n_skipped += 1
        elif label not in labels:
            raise DataError(
                f"{path}, line {number}: the label {label!r} is none of {', '.join(labels)}, nor '-' for none; have "
                "the columns shifted?"
            )
        else:
            pairs.append(LabelledPair(text_of(premise, path, number), text_of(hypothesis, path, number), labels[label]))
    return _whole(pairs, path)


def read_nli_triplets(path: str | os.PathLike[str]) -> Rows[TextTriplet]:
    """Triplets as SimCSE publishes them in `nli_for_simcse.csv`: real CSV with the header `sent0,sent1,hard_neg`.

    Raises:
        DataError: A missing file, other columns (a file of two columns has no negatives), a broken row, an empty
            text, or, for `nli_for_simcse.csv`, another number of rows than the published 275,601.

    Source:
        Gao et al. 2021 (SimCSE), section 4.
    """
    path = Path(path)
    aliases = {"anchor": ("sent0",), "positive": ("sent1",), "negative": ("hard_neg",)}
    triplets = Rows(
        TextTriplet(**{name: text_of(text, path, number) for name, text in row.items()})
        for number, row in records(csv_rows(path), aliases, path)
    )
    return expect(triplets, 275_601 if path.name == "nli_for_simcse.csv" else None, path, "triplets")


def nli_triplets(pairs: Iterable[LabelledPair]) -> list[TextTriplet]:
    """(premise, entailed, contradicting) for every premise that has both, in the manner of SimCSE.

    Premises come in the order in which they first occur. Where a premise has several of both kinds, the first
    entailed goes with the first contradicting one, the second with the second, and so on: no hypothesis is used
    twice, and nothing is drawn at random. The same hypothesis given twice under one label counts once.

    Source:
        Gao et al. 2021 (SimCSE), section 4.1.
    """
    found: dict[str, dict[str, dict[str, None]]] = {}
    for pair in pairs:
        by_label = found.setdefault(pair.premise, {label: {} for label in NLI_LABELS})
        by_label[pair.label][pair.hypothesis] = None
    return [
        TextTriplet(premise, positive, negative)
        for premise, by_label in found.items()
        for positive, negative in zip(by_label["entailment"], by_label["contradiction"], strict=False)
    ]


def _first(path: Path) -> str:
    return next((line for _, line in read_lines(path)), "")


def _named(lines: Iterator[tuple[int, list[str]]], path: Path) -> Iterator[_Row]:
    for number, row in records(lines, _ALIASES, path):
        yield number, row["premise"], row["hypothesis"], row["label"]


def _unnamed(path: Path) -> Iterator[_Row]:
    for number, row in tab_rows(path, lambda n: n == 4, "4"):
        if row[0] != row[1]:
            raise DataError(f"{path}, line {number}: the label stands twice, and {row[0]!r} is not {row[1]!r}")
        yield number, row[2], row[3], row[0]


def _json_rows(path: Path) -> Iterator[_Row]:
    keys = ("sentence1", "sentence2", "gold_label")
    for number, line in read_lines(path):
        where = f"{path}, line {number}"
        row = object_in(line, where)
        premise, hypothesis, label = (text_at(row, key, where, f"{', '.join(keys)} must be there") for key in keys)
        yield number, premise, hypothesis, label


def _is_split_in_three(path: Path) -> bool:
    return path.stem in ("s1", "s2", "labels") and path.suffix in (".train", ".dev", ".test")


def _three_files(path: Path) -> Iterator[_Row]:
    paths = [path.with_name(stem + path.suffix) for stem in ("s1", "s2", "labels")]
    columns = [[line.rstrip(" ") for _, line in read_lines(each)] for each in paths]
    if len({len(column) for column in columns}) > 1:
        counts = ", ".join(f"{each.name} {len(column)}" for each, column in zip(paths, columns, strict=True))
        raise DataError(
            f"{path.parent}: the files have unequal numbers of lines ({counts}); one is cut; fetch them again"
        )
    for number, (premise, hypothesis, label) in enumerate(zip(*columns, strict=True), start=1):
        yield number, premise, hypothesis, label


def _whole(pairs: Rows[LabelledPair], path: Path) -> Rows[LabelledPair]:
    stem = path.suffix.removeprefix(".") if _is_split_in_three(path) else path.stem
    n = _ROWS.get(stem, _ROWS.get(f"{path.absolute().parent.name}/{stem}"))
    found = len(pairs) + pairs.n_skipped
    if n is not None and found != n:
        raise DataError(f"{path}: {found} rows, {n} expected; the copy is not whole; fetch it again")
    return pairs
