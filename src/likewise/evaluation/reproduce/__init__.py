"""The papers' tables measured again: ours beside theirs, and which differences the setting explains."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from likewise.errors import InputError
from likewise.evaluation.papers import TABLES
from likewise.evaluation.reproduce import accuracy, resources
from likewise.evaluation.reproduce.result import SIZES, OurRow, Reproduction, Request

__all__ = ["NAMES", "SIZES", "OurRow", "Reproduction", "Request", "reproduce"]

_MEASURED: Mapping[str, Callable[[Request], accuracy.Found]] = {
    "sbert-table1": accuracy.sbert_table1,
    "sbert-table2": accuracy.sbert_table2,
    "sbert-table3": accuracy.sbert_table3,
    "sbert-table4": accuracy.sbert_table4,
    "sbert-table5": accuracy.sbert_table5,
    "sbert-table6": accuracy.sbert_table6,
    "sbert-table7": resources.sbert_table7,
    "clrcmd-table1": accuracy.clrcmd_table1,
    "clrcmd-table2": accuracy.clrcmd_table2,
    "clrcmd-table3": resources.clrcmd_table3,
    "clrcmd-figure3": resources.clrcmd_figure3,
}

NAMES = tuple(_MEASURED)
"""Every table that can be measured."""

_OF_OURS_ONLY = {"sbert-table6": ("given model",)}
"""Columns that the paper does not have."""


def reproduce(name: str, request: Request) -> Reproduction:
    """Measure a table of the papers.

    Args:
        name: One of `NAMES`.
        request: Models, data and size.

    Raises:
        InputError: No such table, or data that was not named.
        DataError: A data set is missing or damaged.
    """
    if name not in _MEASURED:
        raise InputError(f"no table {name!r}; known are {', '.join(NAMES)}")
    found = list(_MEASURED[name](request))
    table = TABLES[name]
    notes = [*dict.fromkeys(one for one in found if isinstance(one, str)), *_general(name, request)]
    columns = (*table.columns, *_OF_OURS_ONLY.get(name, ()))
    return Reproduction(table, columns, tuple(one for one in found if isinstance(one, OurRow)), tuple(notes))


def _general(name: str, request: Request) -> list[str]:
    notes = []
    if request.size == "smoke":
        notes.append("size smoke: a few examples of each set, so the numbers say only that it runs")
    if name in _TRAINED:
        recipes = ", ".join(f"`likewise train reproduce/{recipe}.toml --size small`" for recipe in _TRAINED[name])
        notes.append(
            f"the paper's trained rows: {recipes}, then name the folder with -m; trained on the sets at hand it is a "
            "small-scale check, and not the paper's model"
        )
    return notes


_TRAINED = {
    "sbert-table1": ("sbert-nli",),
    "sbert-table2": ("sbert-stsb", "sbert-nli-stsb", "bert-stsb"),
    "sbert-table3": ("sbert-afs", "sbert-afs-cross-topic"),
    "sbert-table4": ("sbert-wikipedia-sections",),
    "sbert-table5": ("sbert-nli",),
    "sbert-table6": ("sbert-nli", "sbert-stsb"),
    "clrcmd-table1": ("clrcmd", "simcse-sup-avg", "simcse-sup-cls", "sbert-nli"),
    "clrcmd-table2": ("clrcmd", "simcse-sup-avg"),
}
"""Table → the recipes that make its trained rows."""
