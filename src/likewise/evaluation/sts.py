"""Semantic textual similarity: rank and linear correlation of scores with what people said."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.data import ScoredPair
from likewise.errors import InputError
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.pair_scores import score_pairs
from likewise.evaluation.statistics import (
    RESAMPLES,
    Comparison,
    compare_resamples,
    interval_or_reason,
    no_correlation,
    resampled,
    scaled,
    too_few,
)
from likewise.similarity import Similarity, by_name

__all__ = [
    "AVERAGE",
    "METRICS",
    "UNNORMALISED",
    "Correlation",
    "SystemScores",
    "TaskScores",
    "Tasks",
    "correlate",
    "evaluate_pairs",
    "evaluate_sts",
    "score_sts",
    "subset_of",
]

Tasks = Mapping[str, Mapping[str, Sequence[ScoredPair]]]
"""Task → source → pairs, such as `{"STS12": {"MSRpar": [...], ...}, "STS-b": {"all": [...]}}`."""

METRICS = ("spearman", "pearson")
"""What is measured, both times 100."""

UNNORMALISED = " (unnormalised)"
"""End of the name of a similarity of vectors before a final scaling to length 1, where that makes a difference."""

AVERAGE = "Avg."
"""Task under which the mean over the tasks stands."""


_NOT_ASKED = "no resamples were asked for"


@dataclass(frozen=True)
class Correlation:
    """How well scores follow the gold, times 100."""

    n: int
    """Pairs."""
    spearman: float | None
    """Rank correlation, -100 to 100; None if it does not exist."""
    pearson: float | None
    """Linear correlation, -100 to 100; None if it does not exist."""
    reason: str | None = None
    """Why there is no correlation."""


@dataclass(frozen=True, eq=False)
class TaskScores:
    """What one system says about one task."""

    task: str
    """Name of the task."""
    sources: Mapping[str, slice]
    """Source → its pairs."""
    pairs: Sequence[ScoredPair]
    """The pairs of all sources, one source after the other."""
    scores: Float[np.ndarray, " n"]
    """The system's score of each; larger means more alike."""

    @cached_property
    def gold(self) -> Float[np.ndarray, " n"]:
        """[n] what people said."""
        return np.asarray([pair.gold for pair in self.pairs], np.float64)

    @property
    def subsets(self) -> dict[str, slice]:
        """Each source, where there are several, see `subset_of`, and then "all"."""
        several = self.sources.items() if len(self.sources) > 1 else ()
        return {**{subset_of(name): rows for name, rows in several}, "all": slice(0, len(self.pairs))}


def subset_of(source: str) -> str:
    """What the rows of a source are called: "all" and "mean", which the table has itself, are marked."""
    return f"{source} (source)" if source.removesuffix(" (source)") in ("all", "mean") else source


@dataclass(frozen=True)
class _Cell:
    """One number and what is needed for its interval and its comparison."""

    value: float | None
    n: int
    reason: str | None
    resamples: Float[np.ndarray, " resamples"]
    unsure: str | None = None  # why there are no resamples of a value


_Key = tuple[str, str, str]  # task, subset, metric


@dataclass(frozen=True, eq=False)
class SystemScores:
    """What one model says under one similarity about every task: all that tables, tests and slices are made of."""

    model: str
    """Name of the model."""
    similarity: str
    """How it compared."""
    tasks: Sequence[TaskScores]
    """One entry a task."""
    n_resamples: int = RESAMPLES
    """Resamples of the intervals; 0 for none."""
    seed: int = 0
    """Of the resamples: equal seeds give equal resamples of a task, whatever the system."""

    def measures(self) -> list[Measure]:
        """Spearman and Pearson, times 100, of each source, of "all" pairs, the "mean" over sources, the task average.

        "all" is the correlation over the pairs of all sources together (Gao et al. 2021, appendix B). The task
        "Avg." is the mean of "all" over the tasks, where there are several. Nothing is NaN: a number that does not
        exist is None and has its reason, and so is every mean that it would enter. In the same way an interval of too
        few pairs, or of resamples that are all alike, is none.
        """
        measures = []
        for (task, subset, metric), cell in self._cells.items():
            interval, reason = None, cell.reason
            if cell.value is not None and self.n_resamples:
                interval, why = interval_or_reason(cell.resamples, cell.n)
                reason = cell.unsure or why
            place, (low, high) = (task, subset, self.model, self.similarity), interval or (None, None)
            measures.append(Measure(*place, metric, cell.value, cell.n, low, high, reason))
        return measures

    def compare(self, first: SystemScores) -> list[Comparison]:
        """This system minus `first`, with 95 % intervals and p values of a paired bootstrap.

        Raises:
            InputError: The two were not measured on the same pairs with the same resamples.
        """
        if _ground(self) != _ground(first):
            raise InputError(
                f"{_name(self, first)} and {_name(first, self)} were not scored on the same pairs with the same seed, "
                "so that they cannot be compared in pairs; score both on the same tasks"
            )
        names = _name(first, self), _name(self, first)
        return [_comparison(key, names, first._cells[key], cell) for key, cell in self._cells.items()]

    @cached_property
    def _cells(self) -> dict[_Key, _Cell]:
        cells: dict[_Key, _Cell] = {}
        for task in self.tasks:
            for metric in METRICS:
                found = {name: self._cell(task, name, rows, metric) for name, rows in task.subsets.items()}
                if len(found) > 1:
                    found["mean"] = _mean({name: cell for name, cell in found.items() if name != "all"})
                cells.update({(task.task, name, metric): cell for name, cell in found.items()})
        if len(self.tasks) > 1:
            for metric in METRICS:
                cells[AVERAGE, "all", metric] = _mean({t.task: cells[t.task, "all", metric] for t in self.tasks})
        return cells

    def _cell(self, task: TaskScores, subset: str, rows: slice, metric: str) -> _Cell:
        scores, gold = task.scores[rows], task.gold[rows]
        found = correlate(scores, gold)
        value: float | None = getattr(found, metric)
        unsure: str | None = _NOT_ASKED
        draws = np.zeros(0)
        if value is not None and self.n_resamples:
            name = f"{task.task}/{subset}".encode(errors="surrogatepass")  # a file's name need not be Unicode
            seed = (self.seed, zlib.crc32(name))
            draws = 100 * resampled(metric, scores, gold, resamples=self.n_resamples, seed=seed)
            unsure = too_few(found.n)
        return _Cell(value, found.n, found.reason, draws, unsure)


def correlate(scores: Float[Any, " n"], gold: Float[Any, " gold"]) -> Correlation:
    """Spearman and Pearson, both times 100; None with a reason instead of NaN.

    Raises:
        InputError: Unequal lengths.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 4.1.
    """
    from scipy import stats

    scores, gold = np.asarray(scores), np.asarray(gold, np.float64)
    if scores.shape != gold.shape:
        raise InputError(f"{len(scores)} scores do not fit {len(gold)} gold values")
    reason = no_correlation(scores if np.issubdtype(scores.dtype, np.floating) else scores.astype(np.float64), gold)
    if reason:
        return Correlation(len(scores), None, None, reason)
    scores, gold = scaled(scores), scaled(gold)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)  # what is only rounding was caught above
        spearman, pearson = stats.spearmanr(scores, gold).statistic, stats.pearsonr(scores, gold).statistic
    return Correlation(len(scores), float(100 * spearman), float(100 * pearson))


def evaluate_pairs(
    model: Embedder,
    pairs: Sequence[ScoredPair],
    similarities: Sequence[str | Similarity],
    *,
    special_tokens: bool = True,
    progress: bool | None = None,
) -> dict[str, Correlation]:
    """Correlation of each similarity with the gold; every distinct sentence is encoded once.

    Args:
        model: The model to evaluate.
        pairs: Sentences and their gold scores.
        similarities: Names or objects.
        special_tokens: Let special tokens take part.
        progress: Show a bar on standard error while encoding.

    Returns:
        By the name of the similarity, in the order given.
    """
    texts = [(pair.a, pair.b) for pair in pairs]
    found = score_pairs(model, texts, similarities, special_tokens=special_tokens, progress=progress)
    gold = np.asarray([pair.gold for pair in pairs])
    names = [by_name(similarity).name for similarity in similarities]
    return {name: correlate(scores, gold) for name, scores in zip(names, found, strict=True)}


def evaluate_sts(
    model: Embedder,
    tasks: Tasks,
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    special_tokens: bool = True,
    normalised: bool = True,
    n_resamples: int = RESAMPLES,
    progress: bool | None = None,
) -> list[Measure]:
    """The STS table of a model: see `score_sts` for the arguments and `SystemScores.measures` for what comes out."""
    systems = score_sts(
        model,
        tasks,
        similarities,
        special_tokens=special_tokens,
        normalised=normalised,
        n_resamples=n_resamples,
        progress=progress,
    )
    return [measure for system in systems for measure in system.measures()]


def score_sts(
    model: Embedder,
    tasks: Tasks,
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    special_tokens: bool = True,
    normalised: bool = True,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
    progress: bool | None = None,
) -> list[SystemScores]:
    """Score every pair of every task; each distinct sentence is encoded once for all tasks and similarities.

    Args:
        model: The model to evaluate.
        tasks: Task → source → pairs.
        similarities: Names or objects. Distances take part as minus the distance: larger always means more alike.
        special_tokens: Let [CLS], [SEP] and the like take part.
        normalised: Compare pooled vectors as the model gives them; False compares them before a final scaling to
            length 1, which the dot product and the distances notice: their names then end in " (unnormalised)".
        n_resamples: Resamples of the intervals; 0 for none.
        seed: Of the resamples.
        progress: Show a bar on standard error while encoding.

    Returns:
        One entry a similarity, in the order given.

    Raises:
        InputError: See `score_pairs`.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 4; Gao et al. 2021 (SimCSE), appendix B.
    """
    laid = {task: [pair for source in sources.values() for pair in source] for task, sources in tasks.items()}
    found = score_pairs(
        model,
        [(pair.a, pair.b) for pairs in laid.values() for pair in pairs],
        similarities,
        special_tokens=special_tokens,
        normalised=normalised,
        progress=progress,
    )
    systems = []
    for similarity, scores in zip(similarities, found, strict=True):
        ends = np.cumsum([len(pairs) for pairs in laid.values()])[:-1]
        parts = zip(laid.items(), np.split(scores, ends), strict=True) if laid else ()
        scored = [TaskScores(task, _slices(tasks[task]), pairs, part) for (task, pairs), part in parts]
        name = by_name(similarity).name
        scale_matters = name in ("dot", "euclidean", "manhattan") and not normalised
        label = f"{name}{UNNORMALISED}" if scale_matters else name
        systems.append(SystemScores(model.name, label, scored, n_resamples, seed))
    return systems


def _slices(sources: Mapping[str, Sequence[ScoredPair]]) -> dict[str, slice]:
    ends = np.cumsum([len(pairs) for pairs in sources.values()]).tolist()
    starts = [0, *ends][: len(ends)]
    return {name: slice(start, end) for name, start, end in zip(sources, starts, ends, strict=True)}


def _mean(cells: Mapping[str, _Cell]) -> _Cell:
    """The mean over sources or tasks: of the values, and of each resample."""
    n = sum(cell.n for cell in cells.values())
    missing = [f"{name}: {cell.reason}" for name, cell in cells.items() if cell.value is None]
    if missing:
        return _Cell(None, n, "; ".join(missing), np.zeros(0))
    value = float(np.mean([cell.value for cell in cells.values() if cell.value is not None]))
    name, unsure = next(((name, cell.unsure) for name, cell in cells.items() if cell.unsure), ("", None))
    if unsure:
        return _Cell(value, n, None, np.zeros(0), unsure if unsure == _NOT_ASKED else f"{name}: {unsure}")
    return _Cell(value, n, None, np.mean([cell.resamples for cell in cells.values()], axis=0))


def _comparison(key: _Key, names: tuple[str, str], first: _Cell, second: _Cell) -> Comparison:
    task, subset, metric = key
    if first.value is None or second.value is None:
        reason = first.reason or second.reason
        return Comparison(task, subset, metric, *names, None, first.n, reason=reason)
    difference = second.value - first.value
    if first.unsure:
        return Comparison(task, subset, metric, *names, difference, first.n, reason=first.unsure)
    interval, p_value = compare_resamples(first.resamples, second.resamples, n=first.n)
    reason = None if interval else "too few resamples have a value"
    low, high = interval or (None, None)
    return Comparison(task, subset, metric, *names, difference, first.n, low, high, p_value, reason=reason)


def _ground(system: SystemScores) -> list[Any]:
    """What two systems must share to be compared."""
    tasks: Iterator[Any] = ((one.task, dict(one.sources), list(one.pairs)) for one in system.tasks)
    return [system.n_resamples, system.seed, *tasks]


def _name(system: SystemScores, beside: SystemScores) -> str:
    """The system in a few words: its similarity alone, if the model is the same."""
    return system.similarity if system.model == beside.model else f"{system.model} {system.similarity}"
