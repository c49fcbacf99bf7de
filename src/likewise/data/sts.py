"""Pairs of sentences with a gold score of how alike they are: STS12 to STS16 and the STS benchmark."""

from __future__ import annotations

import os
from pathlib import Path

from likewise.data.examples import ScoredPair
from likewise.data.lines import read_lines
from likewise.data.rows import Rows, chosen, expect, find, number_in, tab_rows, text_of
from likewise.errors import DataError

__all__ = ["STS_SOURCES", "read_sts", "read_stsb"]

_STSB_ROWS = {"train": 5749, "dev": 1500, "test": 1379}
"""Rows as published; a copy with other counts is not the benchmark."""

STS_SOURCES = {
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "STS14": {
        "deft-forum": 450,
        "deft-news": 300,
        "headlines": 750,
        "OnWN": 750,
        "images": 750,
        "tweet-news": 750,
    },
    "STS15": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "STS16": {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
}
"""Year → source → published number of scored pairs. The SMT source of STS13 needs another licence and is left out, as
SentEval and everybody since leaves it out."""

_RELEASED = {
    "STS12": "test-gold",
    "STS13": "test-gs",
    "STS14": "sts-en-test-gs-2014",
    "STS15": "test_evaluation_task2a",
    "STS16": "sts2016-english-with-gs-v1.0",
}
"""Folder inside the archive as released."""

_TEXTS = {"raw": "raw", "moses": "senteval_moses_lower"}
"""How the text is prepared → folder that holds it."""


def read_sts(folder: str | os.PathLike[str], year: str, *, text: str = "raw") -> dict[str, Rows[ScoredPair]]:
    """The test pairs of one SemEval STS task, by source.

    A source is two files of equal length: `STS.input.SOURCE.txt` (two tab-separated sentences; STS16 adds
    where each is from) and `STS.gs.SOURCE.txt` (a score from 0 to 5 on each line). An empty score means that
    nobody scored the pair (most of STS16, half of two sources of STS15): it is skipped and counted in
    `n_skipped`. Quotes are literal.

    Args:
        folder: Where the files are, or a folder that has them in `raw/`, in `sts12/raw/` and so on, or in the
            folder of the released archive. A folder that holds the files themselves is read as it is.
        year: "STS12" to "STS16".
        text: "raw" as released, or "moses": tokenised by Moses and lower-cased, as SentEval, SimCSE and CLRCMD
            measured (read from `senteval_moses_lower/` or from SentEval's own `STS12-en-test/`).

    Returns:
        Source → pairs, always in the order of `STS_SOURCES`.

    Raises:
        DataError: A missing file, files of unequal length, a wrong number of columns, an empty text, a score
            that is not in 0 to 5, or a count other than the published one.

    Source:
        Agirre et al. 2012 to 2016, SemEval tasks 6, 10, 10, 2 and 1.
    """
    sources = STS_SOURCES[chosen(year, STS_SOURCES, "year of STS")]
    prefixes = _folders(Path(folder), year, chosen(text, _TEXTS, "kind of text"))
    return {source: _source(folder, prefixes, year, source, n) for source, n in sources.items()}


def _folders(folder: Path, year: str, text: str) -> list[str]:
    """Where the files of a year may lie, the most telling place first."""
    inside = [_TEXTS[text], "" if text == "moses" else _RELEASED[year]]
    outer = {"raw": year.lower(), "moses": f"{year}-en-test"}[text]
    places = [f"{year.lower()}/{name}" for name in inside if name] + [outer] + [name for name in inside if name]
    other = next(name for kind, name in _TEXTS.items() if kind != text)
    return [*places, *([] if folder.name == other else ["."])]


def _source(folder: str | os.PathLike[str], prefixes: list[str], year: str, source: str, n: int) -> Rows[ScoredPair]:
    input_path, gold_path = (
        find(
            folder,
            [f"{prefix}/{name}.{kind}.{source}.txt" for prefix in prefixes for name in ("STS", f"STS20{year[3:]}")],
            year,
        )
        for kind in ("input", "gs")
    )
    golds = [gold for _, gold in read_lines(gold_path)]
    pairs = list(tab_rows(input_path, (2, 4).__contains__, "2 (or 4, with where the sentences are from)"))
    if len(pairs) != len(golds):
        raise DataError(
            f"{input_path} has {len(pairs)} lines and {gold_path} {len(golds)}; they do not belong together, or one "
            "is cut; fetch both again"
        )
    rows: Rows[ScoredPair] = Rows()
    for (number, columns), gold in zip(pairs, golds, strict=True):
        if not gold.strip():
            rows.n_skipped += 1
            continue
        a, b = (text_of(column, input_path, number) for column in columns[:2])
        rows.append(ScoredPair(a, b, number_in(gold, 0.0, 5.0, gold_path, number)))
    return expect(rows, n, input_path, "scored pairs")


def read_stsb(folder: str | os.PathLike[str], split: str = "test") -> Rows[ScoredPair]:
    """The STS benchmark as released: `sts-train.csv`, `sts-dev.csv`, `sts-test.csv`.

    In spite of their name the files are separated by tabs: genre, file, year, id, score, two sentences,
    and in some lines where each sentence is from. Quotes are literal.

    Args:
        folder: Where the files are, or a folder that has them in `raw/` or `stsbenchmark/raw/`.
        split: "train", "dev" or "test".

    Raises:
        DataError: A missing file, another number of columns, an empty text, a score that is not in 0 to 5, or
            a count other than the published one.

    Source:
        Cer et al. 2017, SemEval-2017 task 1.
    """
    name = f"sts-{chosen(split, _STSB_ROWS, 'split')}.csv"
    places = ("", "raw/", "stsbenchmark/raw/", "stsbenchmark/")
    path = find(folder, [place + name for place in places], "the STS benchmark")
    pairs = Rows(
        ScoredPair(
            text_of(columns[5], path, number),
            text_of(columns[6], path, number),
            number_in(columns[4], 0.0, 5.0, path, number),
        )
        for number, columns in tab_rows(path, (7, 9).__contains__, "7 (or 9, with where the sentences are from)")
    )
    return expect(pairs, _STSB_ROWS[split], path, "pairs")
