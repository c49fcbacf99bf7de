"""Tables of measures: as grids of text, as JSON and as CSV.

A measure is one number. A `Grid` sets those of one metric, or of one task, beside each other as papers do: systems are
rows and tasks are columns. The terminal, LaTeX and HTML show the same grids; JSON and CSV hold every measure.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from likewise.errors import DataError
from likewise.evaluation.measures import Measure
from likewise.evaluation.provenance import Provenance
from likewise.evaluation.statistics import Comparison
from likewise.evaluation.worst import WorstPair
from likewise.files import atomic_file

__all__ = [
    "Grid",
    "Results",
    "decimals",
    "grids",
    "number",
    "p_value",
    "printable",
    "score_of",
    "short_names",
    "to_csv",
    "to_json",
    "to_records",
    "with_minus",
    "write_csv",
]

Entry: TypeAlias = Measure | Comparison
"""What a cell can hold."""

_NOT_RANKED = re.compile(r"threshold|_s$|_bytes$")
"""Metrics whose largest value is not the best."""

_LOPSIDED = 1.5
"""Longer arm of an interval over its shorter one, from which ± would mislead and the ends are printed."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

_HEADER = [field.name for field in fields(Measure)]


@dataclass(frozen=True)
class Results:
    """Everything that one evaluation found."""

    title: str
    """What was evaluated."""
    measures: Sequence[Measure]
    """Every number."""
    comparisons: Sequence[Comparison] = ()
    """Differences of systems, where there were several."""
    slices: Sequence[Measure] = ()
    """Numbers of kinds of pairs."""
    worst: Sequence[WorstPair] | None = None
    """Pairs that a system gets most wrong, none where nothing is wrong; None if they were not asked for."""
    notes: Sequence[str] = ()
    """What a reader of the numbers has to know, a sentence each."""
    how: Provenance | None = None
    """How they were measured."""

    @property
    def models(self) -> list[str]:
        """Every model's name, in the order of the measures."""
        return list(dict.fromkeys(one.model for one in self.measures))

    def faultless(self) -> list[tuple[str, str, str]]:
        """(task, model, similarity) of the systems without an error, on the tasks on which others have some."""
        found = {(one.task, one.model, one.similarity) for one in self.worst or ()}
        tasks = {task for task, _, _ in found}
        places = ((one.task, one.model, one.similarity) for one in self.measures if one.value is not None)
        return [place for place in dict.fromkeys(places) if place[0] in tasks and place not in found]


@dataclass(frozen=True)
class Grid:
    """Numbers set beside each other."""

    title: str
    """What all of them have in common."""
    corner: tuple[str, ...]
    """Names of the columns of labels."""
    columns: tuple[str, ...]
    """Heads of the columns of numbers."""
    labels: tuple[tuple[str, ...], ...]
    """Labels of each row."""
    cells: tuple[tuple[Entry | None, ...], ...]
    """The numbers of each row; None where there is none."""
    digits: Mapping[str, int]
    """Metric → decimals that are printed."""

    def printed(self) -> list[list[str]]:
        """Each number as text; see `number`. A column with a lopsided interval has the ends of all."""
        columns = zip(*self.cells, strict=True)
        ends = [any(_lopsided(cell, self.digits) for cell in column) for column in columns]
        return [
            [number(cell, self.digits, ends=both) for cell, both in zip(row, ends, strict=True)] for row in self.cells
        ]

    def best(self) -> set[tuple[int, int]]:
        """Places (row, column) of the best of each task, subset and metric, where not all systems are equally good."""
        places: dict[tuple[str, str, str], list[tuple[float, int, int]]] = {}
        for i, row in enumerate(self.cells):
            for j, cell in enumerate(row):
                if isinstance(cell, Measure) and cell.value is not None and not _NOT_RANKED.search(cell.metric):
                    places.setdefault((cell.task, cell.subset, cell.metric), []).append((cell.value, i, j))
        rivals = [found for found in places.values() if len({value for value, _, _ in found}) > 1]
        return {(i, j) for found in rivals for value, i, j in found if value == max(found)[0]}

    def reasons(self) -> list[str]:
        """Why numbers are missing, each reason once, with the first place that it stands for."""
        found: dict[str, str] = {}
        for labels, row in zip(self.labels, self.cells, strict=True):
            for head, cell in zip(self.columns, row, strict=True):
                if cell is not None and cell.reason:
                    found.setdefault(cell.reason, f"{' '.join(filter(None, labels))}, {head}")
        return [f"{place}: {reason}" for reason, place in found.items()]


_ONE = 1 + 1e-6
"""A threshold may lie above the cosine 1 of equal texts by rounding."""

_TIMES_100 = ("spearman", "pearson")
"""Metrics that are times 100 however small they are."""


def decimals(measures: Sequence[Measure]) -> dict[str, int]:
    """Metric → decimals that tables print: two; four where all values are between -1 and 1, but for correlations."""
    largest: dict[str, float] = {}
    for one in measures:
        largest[one.metric] = max(largest.get(one.metric, 0.0), abs(one.value or 0.0))
    return {metric: 4 if value <= _ONE and metric not in _TIMES_100 else 2 for metric, value in largest.items()}


def grids(
    entries: Sequence[Entry],
    digits: Mapping[str, int],
    *,
    every_subset: bool = False,
    names: Mapping[str, str] | None = None,
) -> list[Grid]:
    """The numbers as tables: one a metric with a column a task, or for a single task one with a column a metric.

    Args:
        entries: Measures, or comparisons.
        digits: Of the measures; see `decimals`.
        every_subset: Show every subset with its n, one table a task; otherwise "all" stands for a task that has it.
        names: Model → what it is called in the table; see `short_names`. By default the name itself.
    """
    names = names or {}
    if every_subset:
        tasks = dict.fromkeys(one.task for one in entries)
        parts = [(task, [one for one in entries if one.task == task]) for task in tasks]
        return [grid for task, part in parts for grid in _by_metric(part, f"{task}, ", digits, names, with_n=True)]
    whole = {one.task for one in entries if one.subset == "all"}
    shown = [one for one in entries if one.subset == "all" or one.task not in whole]
    if len({(one.task, one.subset) for one in shown}) > 1:
        return _by_metric(shown, "", digits, names)
    if not shown:
        return []
    return [_grid(f"{_place(shown[0], True)} (n = {shown[0].n:,})", shown, lambda one: one.metric, digits, names)]


def number(entry: Entry | None, digits: Mapping[str, int], *, ends: bool = False) -> str:
    """A value with half of its interval, such as `72.37 ±1.84`; for a comparison its p value, too.

    Args:
        entry: The measure or comparison; "–" if it has no value, nothing if it is None, and "identical" for two
            systems that do not differ in any resample.
        digits: Metric → decimals.
        ends: Print both ends of the interval, such as `77.14 [0.00, 100.00]`.
    """
    if entry is None:
        return ""
    value, places = _value(entry), digits.get(entry.metric, 2)
    if value is None:
        return "–"
    if isinstance(entry, Comparison) and value == 0 == entry.low == entry.high:
        return "identical"
    sign = "" if isinstance(entry, Measure) else "+"
    text = f"{value:{sign}.{places}f}"
    if entry.low is not None and entry.high is not None:
        low, high = (f"{end:{sign}.{places}f}" for end in (entry.low, entry.high))
        text += f" [{low}, {high}]" if ends else f" ±{(entry.high - entry.low) / 2:.{places}f}"
    if isinstance(entry, Comparison) and entry.p_value is not None:
        text += f" p={p_value(entry.p_value)}"
    return with_minus(text)


def p_value(value: float) -> str:
    """Three decimals; smaller ones in full."""
    return with_minus(f"{value:.3f}" if value >= 0.001 else f"{value:.1g}")


def with_minus(text: str) -> str:
    """Numbers with the sign of subtraction for a hyphen, as the labels of differences have it."""
    return text.replace("-", "−")


def score_of(pair: WorstPair) -> str:
    """The score of a pair in a few words, with what it is a score of where that is not plain."""
    how = [] if pair.compared_by is None else [f"by {pair.compared_by}"]
    how += [f"behind {pair.prompt!r}"] if pair.prompt else []
    return " ".join([f"score {pair.score:.4f}", *how])


def printable(text: str) -> str:
    """The text without what no page and no terminal can show, such as NUL and half a surrogate pair: � stands there."""
    return _UNPRINTABLE.sub("\ufffd", text)


def to_records(measures: Sequence[Measure]) -> list[dict[str, Any]]:
    """One record for each task, subset, model and similarity, its metrics by name; for JSON lines.

    Nothing but records of this one shape: differences and the worst errors are in `to_json`.
    """
    records: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for one in measures:
        key = (one.task, one.subset, one.model, one.similarity)
        start = dict(zip(("task", "subset", "model", "similarity"), key, strict=True))
        record = records.setdefault(key, {**start, "n": one.n})
        record[one.metric] = one.value
        if one.low is not None:
            record.setdefault("intervals", {})[one.metric] = [one.low, one.high]
        if one.reason:
            record["reason"] = one.reason
    return list(records.values())


def to_json(results: Results) -> str:
    """Everything, explanations of the worst pairs included; a number that does not exist is null and has its reason."""
    worst = [
        {
            **{field.name: getattr(pair, field.name) for field in fields(pair) if field.name != "explanation"},
            "explanation": None if pair.explanation is None else pair.explanation.to_dict(),
        }
        for pair in results.worst or ()
    ]
    content = {
        "title": results.title,
        "notes": list(results.notes),
        "how": None if results.how is None else results.how.to_dict(),
        "measures": [asdict(one) for one in results.measures],
        "comparisons": [asdict(one) for one in results.comparisons],
        "slices": [asdict(one) for one in results.slices],
        "worst": worst,
    }
    text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)
    if any("\ud800" <= sign <= "\udfff" for sign in text):  # lone surrogates can only be written escaped
        text = json.dumps(content, indent=1, allow_nan=False)
    return text + "\n"


def to_csv(measures: Sequence[Measure]) -> str:
    """One line a measure under the header `task,subset,model,similarity,metric,value,n,low,high,reason`."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _HEADER, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(one) for one in measures)
    return printable(stream.getvalue())


def write_csv(measures: Sequence[Measure], path: Path, *, append: bool = False) -> None:
    """Write the measures; with `append`, after those that the file holds, whose header must be the same.

    Raises:
        DataError: The file to append to has another header.
        InputError: The file cannot be written.
    """
    before = path.read_text(encoding="utf-8") if append and path.exists() else ""
    text = to_csv(measures)
    if before:
        header = next(csv.reader([before.splitlines()[0]]), [])
        if header != _HEADER:
            raise DataError(
                f"{path}: the columns are {', '.join(header)}, and the measures have {', '.join(_HEADER)}; "
                "append to another file"
            )
        text = before.rstrip("\n") + "\n" + text.split("\n", 1)[1]
    with atomic_file(path, "w") as stream:
        stream.write(text)


def _by_metric(
    entries: Sequence[Entry], before: str, digits: Mapping[str, int], names: Mapping[str, str], with_n: bool = False
) -> list[Grid]:
    several = len({one.task for one in entries}) > 1
    metrics = dict.fromkeys(one.metric for one in entries)
    parts = [(metric, [one for one in entries if one.metric == metric]) for metric in metrics]

    def head(one: Entry) -> str:
        return _place(one, several) + (f" (n = {one.n:,})" if with_n else "")

    return [_grid(f"{before}{metric}", part, head, digits, names) for metric, part in parts]


def _place(entry: Entry, with_task: bool) -> str:
    if not with_task:
        return entry.subset
    return entry.task if entry.subset == "all" else f"{entry.task} {entry.subset}"


def _grid(
    title: str,
    entries: Sequence[Entry],
    column: Callable[[Entry], str],
    digits: Mapping[str, int],
    names: Mapping[str, str],
) -> Grid:
    columns = tuple(dict.fromkeys(column(one) for one in entries))
    found = {(_labels(one, names), column(one)): one for one in entries}
    labels = tuple(dict.fromkeys(_labels(one, names) for one in entries))
    cells = tuple(tuple(found.get((label, head)) for head in columns) for label in labels)
    corner: tuple[str, ...] = ("difference",)
    if isinstance(entries[0], Measure):
        compared = any(similarity for _, similarity in labels)
        corner = ("model", "similarity") if compared else ("model",)
    return Grid(title, corner, columns, tuple(label[: len(corner)] for label in labels), cells, digits)


def _labels(entry: Entry, names: Mapping[str, str]) -> tuple[str, ...]:
    if isinstance(entry, Measure):
        return names.get(entry.model, entry.model), entry.similarity
    first, second = (_renamed(system, names) for system in (entry.first, entry.second))
    return (f"{second} − {first}",)


def _renamed(system: str, names: Mapping[str, str]) -> str:
    """A system is its model's name and its similarity, or the similarity alone."""
    model = max((name for name in names if f"{system} ".startswith(f"{name} ")), key=len, default="")
    return names[model] + system[len(model) :] if model else system


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Name → its last part, without the organization of a hub name; the name itself where that is not unique."""
    last = {name: name.rstrip("/").rpartition("/")[2] or name for name in models}
    return last if len(set(last.values())) == len(last) else {name: name for name in last}


def _lopsided(entry: Entry | None, digits: Mapping[str, int]) -> bool:
    value = None if entry is None else _value(entry)
    if entry is None or value is None or entry.low is None or entry.high is None:
        return False
    shorter, longer = sorted((entry.high - value, value - entry.low))
    return longer > _LOPSIDED * shorter + 10.0 ** -digits.get(entry.metric, 2)  # not by rounding alone


def _value(entry: Entry) -> float | None:
    return entry.value if isinstance(entry, Measure) else entry.difference
