"""What a recipe trains on and is measured with, read below one data folder."""

from __future__ import annotations

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
    drop_overlapping,
    nli_triplets,
    read_arguments,
    read_articles,
    read_ists,
    read_lines,
    read_nli,
    read_nli_triplets,
    read_section_triplets,
    read_sick,
    read_sts,
    read_stsb,
    section_triplets,
)
from likewise.errors import InputError
from likewise.recipes.recipe import DataPart

__all__ = ["Counted", "examples_of", "read_arguments_part", "scaled"]

_HIGHEST = {"BWS_corpus": 1.0, "UKP_ASPECT": 2.0}
"""Highest gold of corpora of arguments other than AFS, whose is 5."""

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


def examples_of(part: DataPart, folder: Path, *, seed: int = 0) -> Counted:
    """The rows of a part of a recipe, without what overlaps with evaluation sets, cut to the limit.

    Args:
        part: What to read.
        folder: Where the data sets are.
        seed: Decides which rows stay where there is a limit.

    Raises:
        DataError: A file is missing or broken.
        InputError: An unknown kind or evaluation set.
    """
    if part.kind not in _KINDS:
        raise InputError(f"unknown kind of data {part.kind!r}; known are {', '.join(_KINDS)}")
    read, columns_of = _KINDS[part.kind]
    found = read([folder / path for path in part.paths])
    kept: Sequence[Any] = found
    if part.without:
        kept = drop_overlapping(found, [one for name in part.without for one in _evaluation_set(folder, name)])
    n_overlapping = len(found) - len(kept)
    if part.limit is not None and len(kept) > part.limit:
        places = np.random.default_rng(seed).permutation(len(kept))[: part.limit]
        kept = [kept[place] for place in sorted(places.tolist())]
    columns, labels = columns_of(kept)
    return Counted(f"{part.kind} of {', '.join(part.paths)}", columns, labels, len(found), n_overlapping)


def read_arguments_part(part: DataPart, folder: Path) -> list[ArgumentPair]:
    """Arguments with their gold in 0 to 1."""
    paths = [folder / path for path in part.paths]
    return [
        scaled(pair, _HIGHEST.get(path.stem, _FULL_SCALE)) for path in paths for pair in read_arguments(path)
    ]


def scaled(pair: ArgumentPair, highest: float) -> ArgumentPair:
    """The pair with its gold divided by the highest of its scale."""
    return ArgumentPair(pair.topic, pair.a, pair.b, pair.gold / highest)


# ------------------------------------------------------------------------------------------ kinds of data

_Read = Callable[[list[Path]], Sequence[Any]]
_Columns = Callable[[Sequence[Any]], tuple[tuple[list[str], ...], "list[int] | list[float] | None"]]


def _read_triplets(paths: list[Path]) -> list[Any]:
    """Triplets as files have them, and those that all labelled pairs together give."""
    ready = [path for path in paths if path.name == "nli_for_simcse.csv"]
    pairs = [pair for path in paths if path not in ready for pair in read_nli(path)]
    return [*(triplet for path in ready for triplet in read_nli_triplets(path)), *nli_triplets(pairs)]


def _read_sentences(paths: list[Path]) -> list[str]:
    """One sentence a line, or the sentences of articles, told from a first line such as `= Title =`."""
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


def _read_sections(paths: list[Path]) -> list[Any]:
    """Triplets as `.csv` files have them, and those that articles give."""
    ready = [path for path in paths if path.suffix == ".csv"]
    articles = [article for path in paths if path not in ready for article in read_articles(path)]
    return [*(triplet for path in ready for triplet in read_section_triplets(path)), *section_triplets(articles)]


def _texts(*names: str) -> Callable[[Sequence[Any]], tuple[list[str], ...]]:
    return lambda rows: tuple([getattr(row, name) for row in rows] for name in names)


_pair, _triplet = _texts("a", "b"), _texts("anchor", "positive", "negative")

_KINDS: dict[str, tuple[_Read, _Columns]] = {
    "nli": (
        lambda paths: [pair for path in paths for pair in read_nli(path)],
        lambda rows: (_texts("premise", "hypothesis")(rows), [NLI_LABELS.index(row.label) for row in rows]),
    ),
    "nli-triplets": (_read_triplets, lambda rows: (_triplet(rows), None)),
    "sentences": (_read_sentences, lambda rows: ((list(rows), list(rows)), None)),
    "stsb": (
        lambda paths: [pair for path in paths for pair in read_stsb(path, "train")],
        lambda rows: (_pair(rows), [row.gold / _FULL_SCALE for row in rows]),
    ),
    "sections": (_read_sections, lambda rows: (_triplet(rows), None)),
}


# ------------------------------------------------------------------------------------------ leaks


@cache
def _evaluation_set(folder: Path, name: str) -> tuple[Any, ...]:
    """All examples of an evaluation set."""
    if name == "sts":
        return tuple(pair for year in STS_SOURCES for pairs in read_sts(folder, year).values() for pair in pairs)
    if name == "stsb":
        return tuple(pair for split in ("dev", "test") for pair in read_stsb(folder, split))
    if name == "sick":
        return tuple(read_sick(folder, "test"))
    if name == "ists":
        pairs = (pair for subset in ("images", "headlines") for pair in read_ists(folder, subset, "test"))
        return tuple(text for pair in pairs for text in (pair.left.text, pair.right.text))
    raise InputError(f"unknown evaluation set {name!r}; known are sts, stsb, sick, ists")
