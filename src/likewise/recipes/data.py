"""What a recipe trains on, read below one data folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from likewise.data import (
    NLI_LABELS,
    STS_SOURCES,
    ArgumentPair,
    TextTriplet,
    drop_overlapping,
    nli_triplets,
    read_arguments,
    read_articles,
    read_ists,
    read_lines,
    read_nli,
    read_nli_triplets,
    read_scored_pairs,
    read_section_triplets,
    read_sick,
    read_sts,
    read_stsb,
    read_triplets,
    section_triplets,
)
from likewise.data.arguments import argument_files
from likewise.evaluation.arguments import Split
from likewise.recipes.recipe import DataPart

__all__ = ["Counted", "digest_of", "examples_of", "learned", "read_argument_pairs", "some_of"]

_FULL_SCALE = 5.0
"""Highest gold of STS and AFS."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Columns of texts with labels, and how they came about."""

    name: str
    """Kind and files, for messages and the model card."""
    columns: tuple[list[str], ...]
    """Texts by role."""
    labels: list[int] | list[float] | None
    """One a row, where the kind has labels."""
    n_read: int
    """Examples in the files."""
    n_overlapping: int
    """Left out, since a sentence of theirs occurs in an evaluation set."""

    def __len__(self) -> int:
        return len(self.columns[0])

    def describe(self) -> str:
        """One line with the counts."""
        dropped = f", {self.n_overlapping:,} of them dropped for overlap" if self.n_overlapping else ""
        return f"{len(self):,} rows of {self.name} ({self.n_read:,} read{dropped})"


def digest_of(parts: Sequence[Counted]) -> str:
    """What texts and labels, in which order: equal for equal data only."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps([part.columns, part.labels]).encode())
    return digest.hexdigest()


def examples_of(part: DataPart, folder: Path, *, seed: int = 0) -> Counted:
    """The rows of a part of a recipe, without what overlaps with evaluation sets, cut to the limit.

    Args:
        part: What to read.
        folder: Where the data sets are.
        seed: Decides which rows stay where there is a limit.

    Raises:
        DataError: A file is missing or broken.
    """
    read, columns_of = _KINDS[part.kind]
    found = read([folder / path for path in part.paths])
    kept: Sequence[Any] = found
    if part.without:
        kept = drop_overlapping(found, [one for name in part.without for one in _evaluation_set(folder, name)])
    n_overlapping = len(found) - len(kept)
    columns, labels = columns_of(some_of(kept, part.limit, seed))
    return Counted(_name(part), columns, labels, len(found), n_overlapping)


def learned(part: DataPart, folder: Path, split: Split, *, seed: int = 0) -> Counted:
    """The arguments that a split learns from, cut to the limit."""
    pairs = read_argument_pairs(part, folder)
    kept = [pairs[place] for place in some_of(split.train, part.limit, seed)]
    columns, labels = _argument_columns(kept)
    return Counted(f"{_name(part)} without {split.name}", columns, labels, len(pairs), 0)


def read_argument_pairs(part: DataPart, folder: Path) -> list[ArgumentPair]:
    """Arguments with their gold in 0 to 1."""
    return _read_arguments([folder / path for path in part.paths])


def some_of(rows: Sequence[Any], limit: int | None, seed: int) -> list[Any]:
    """At most `limit` rows, drawn by the seed, in their order."""
    if limit is None or len(rows) <= limit:
        return list(rows)
    places = np.random.default_rng(seed).permutation(len(rows))[:limit]
    return [rows[place] for place in sorted(places.tolist())]


def _name(part: DataPart) -> str:
    return f"{part.kind} of {', '.join(part.paths)}"


# ------------------------------------------------------------------------------------------ kinds of data

_Read = Callable[[list[Path]], Sequence[Any]]
_Columns = Callable[[Sequence[Any]], tuple[tuple[list[str], ...], "list[int] | list[float] | None"]]


def _read_nli_triplets(paths: list[Path]) -> list[TextTriplet]:
    """Triplets as files have them, and those that all labelled pairs together give."""
    ready = [path for path in paths if path.name == "nli_for_simcse.csv"]
    pairs = [pair for path in paths if path not in ready for pair in read_nli(path)]
    return [*(triplet for path in ready for triplet in read_nli_triplets(path)), *nli_triplets(pairs)]


def _read_sentences(paths: list[Path]) -> list[str]:
    """One sentence a line, or the sentences of articles, told from a first line such as `= Title =`; each once."""
    found: dict[str, None] = {}
    for path in paths:
        first = next((line.strip() for _, line in read_lines(path) if line.strip()), "")
        if first.startswith("= ") and first.endswith(" ="):
            texts: Iterable[str] = (
                sentence
                for article in read_articles(path)
                for section in article.sections
                for sentence in section.sentences
            )
        else:
            texts = (line.strip() for _, line in read_lines(path))
        found.update(dict.fromkeys(text for text in texts if text))
    return list(found)


def _read_sections(paths: list[Path]) -> list[TextTriplet]:
    """Triplets as `.csv` files have them, and those that articles give."""
    ready = [path for path in paths if path.suffix == ".csv"]
    articles = [article for path in paths if path not in ready for article in read_articles(path)]
    return [*(triplet for path in ready for triplet in read_section_triplets(path)), *section_triplets(articles)]


def _read_arguments(paths: list[Path]) -> list[ArgumentPair]:
    return [
        ArgumentPair(pair.topic, pair.a, pair.b, pair.gold / _highest(path))
        for path in paths
        for pair in read_arguments(path)
    ]


def _highest(path: Path) -> float:
    """Highest gold of a corpus of arguments: AFS, UKP aspect, or BWS and others with a topic in each row."""
    path = argument_files(path)[0]
    if path.stem.startswith("ArgPairs"):
        return _FULL_SCALE
    return 2.0 if path.suffix == ".tsv" else 1.0


def _each(read: Callable[[Path], list[Any]]) -> _Read:
    return lambda paths: [row for path in paths for row in read(path)]


def _texts(*names: str) -> Callable[[Sequence[Any]], tuple[list[str], ...]]:
    return lambda rows: tuple([getattr(row, name) for row in rows] for name in names)


_pair, _triplet = _texts("a", "b"), _texts("anchor", "positive", "negative")


def _argument_columns(rows: Sequence[ArgumentPair]) -> tuple[tuple[list[str], ...], list[float]]:
    return _pair(rows), [row.gold for row in rows]


_KINDS: dict[str, tuple[_Read, _Columns]] = {
    "nli": (
        _each(read_nli),
        lambda rows: (_texts("premise", "hypothesis")(rows), [NLI_LABELS.index(row.label) for row in rows]),
    ),
    "nli-triplets": (_read_nli_triplets, lambda rows: (_triplet(rows), None)),
    "sentences": (_read_sentences, lambda rows: ((list(rows), list(rows)), None)),
    "stsb": (
        lambda paths: [pair for path in paths for pair in read_stsb(path, "train")],
        lambda rows: (_pair(rows), [row.gold / _FULL_SCALE for row in rows]),
    ),
    "arguments": (_read_arguments, _argument_columns),
    "sections": (_read_sections, lambda rows: (_triplet(rows), None)),
    "triplets": (_each(read_triplets), lambda rows: (_triplet(rows), None)),
    "scored-pairs": (_each(read_scored_pairs), lambda rows: (_pair(rows), [row.gold for row in rows])),
}
"""Kind → how it is read, and the columns and labels of what was read."""


# ------------------------------------------------------------------------------------------ leaks


@cache
def _evaluation_set(folder: Path, name: str) -> tuple[Any, ...]:
    """All examples of one of `EVALUATION_SETS`."""
    if name == "sts":
        return tuple(pair for year in STS_SOURCES for pairs in read_sts(folder, year).values() for pair in pairs)
    if name == "stsb":
        return tuple(pair for split in ("dev", "test") for pair in read_stsb(folder, split))
    if name == "sick":
        return tuple(read_sick(folder, "test"))
    pairs = (pair for subset in ("images", "headlines") for pair in read_ists(folder, subset, "test"))
    return tuple(text for pair in pairs for text in (pair.left.text, pair.right.text))
