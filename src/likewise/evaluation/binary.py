"""Pairs that mean the same, or not: how well scores tell duplicates from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from likewise.data import BinaryPair
from likewise.errors import InputError, InputTypeError
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.pair_scores import score_pairs
from likewise.evaluation.statistics import (
    RESAMPLES,
    Comparison,
    compare_resamples,
    interval_or_reason,
    mcnemar,
    resample_counts,
    too_few,
    wilson,
)
from likewise.evaluation.worst import WorstPair
from likewise.similarity import Similarity, by_name

__all__ = ["BinaryScores", "Operating", "evaluate_binary", "operate", "score_binary"]


@dataclass(frozen=True)
class Operating:
    """Where to cut scores into "the same" and "not", and how good the best cut is. A text pair is the same from the
    threshold on."""

    accuracy: float
    """Highest accuracy of any cut, 0 to 1."""
    accuracy_threshold: float
    """A cut that has it."""
    f1: float | None
    """Highest F1 of any cut; None if no pair is the same."""
    f1_threshold: float | None
    """A cut that has it."""
    ap: float | None
    """Average precision; None if no pair is the same."""


def operate(scores: Float[Any, " n"], same: Bool[Any, " labels"]) -> Operating:
    """Best thresholds and average precision of scores, larger meaning more alike.

    Equal scores cannot be told apart: a cut lies between two different scores (in their middle), or outside all of
    them, and average precision steps from one different score to the next. Of equally good cuts the highest counts.

    Raises:
        InputError: Unequal lengths, no pair, or scores that are NaN or infinite.
    """
    given, same = np.asarray(scores), np.asarray(same, bool)
    scores = given.astype(np.float64)
    if scores.shape != same.shape:
        raise InputError(f"{len(scores)} scores do not fit {len(same)} labels")
    reason = _no_value(scores)
    if reason:
        raise InputError(f"no threshold can be chosen: {reason}")
    order, ends = _descending(scores)
    true = np.concatenate([[0], np.cumsum(same[order])[ends]])
    false = np.concatenate([[0], np.cumsum(~same[order])[ends]])
    values = scores[order][ends]
    inner = (values[:-1] + values[1:]) / 2
    above = np.nextafter(given.max(), given.dtype.type(np.inf))  # so that it is above in the precision given, too
    cuts = np.concatenate([[above], inner, [values[-1]]])
    n_same = int(same.sum())
    accuracy = (true + (len(same) - n_same) - false) / len(same)
    at = int(accuracy.argmax())
    if not n_same:
        return Operating(float(accuracy[at]), float(cuts[at]), None, None, None)
    f1 = 2 * true / (true + false + n_same)
    best = int(f1.argmax())
    ap = float((np.diff(true) / n_same * true[1:] / (true + false)[1:]).sum())
    return Operating(float(accuracy[at]), float(cuts[at]), float(f1[best]), float(cuts[best]), ap)


@dataclass(frozen=True, eq=False)
class BinaryScores:
    """What one model says under one similarity about pairs that are the same, or not."""

    task: str
    """Name of the task."""
    model: str
    """Name of the model."""
    similarity: str
    """How it compared."""
    pairs: Sequence[BinaryPair]
    """The pairs."""
    scores: Float[np.ndarray, " n"]
    """The score of each; larger means more alike."""
    chosen: Operating | None = None
    """Thresholds chosen on other pairs, such as those of the development set."""
    n_resamples: int = RESAMPLES
    """Resamples of the intervals; 0 for none."""
    seed: int = 0
    """Of the resamples."""

    def measures(self) -> list[Measure]:
        """Accuracy and F1 (times 100) at thresholds chosen elsewhere, if there are any, and average precision.

        `best_accuracy` and `best_f1` are those of the best threshold on these very pairs, and so are optimistic;
        `accuracy_threshold` and `f1_threshold` are the thresholds in use. Intervals hold the thresholds fixed; those
        of accuracies are Wilson's, the others those of a bootstrap over the pairs.
        """
        place = self.task, "all", self.model, self.similarity
        if self._reason:
            metrics = ["ap", "best_accuracy", "best_f1"]
            return [Measure(*place, metric, None, len(self.pairs), reason=self._reason) for metric in metrics]
        measures = []
        for metric, (value, draws) in self._cells.items():
            (low, high), reason = self._interval(metric, value, draws)
            measures.append(Measure(*place, metric, value, len(self.pairs), low, high, reason))
        used = self.chosen or self._own
        for metric, cut in (("accuracy_threshold", used.accuracy_threshold), ("f1_threshold", used.f1_threshold)):
            if cut is not None:
                measures.append(Measure(*place, metric, cut, len(self.pairs)))
        return measures

    def worst(self, k: int = 3) -> list[WorstPair]:
        """The k pairs farthest on the wrong side of the threshold in use for accuracy; fewer if fewer are wrong."""
        if k < 0:
            raise InputError(f"{k} worst pairs cannot be listed; give 0 or more")
        if self._reason:
            return []
        cut = (self.chosen or self._own).accuracy_threshold
        distances = np.abs(self.scores - cut)
        wrong = np.flatnonzero(~self._right("accuracy"))
        listed = []
        for i in wrong[np.argsort(-distances[wrong], kind="stable")][:k]:
            pair, side = self.pairs[i], "above" if self.scores[i] >= cut else "below"
            said = "called the same, is different" if side == "above" else "called different, is the same"
            verdict = f"{said}: {distances[i]:.4f} {side} the threshold"
            place = self.task, self.model, self.similarity
            listed.append(WorstPair(*place, pair.a, pair.b, float(self.scores[i]), verdict))
        return listed

    def compare(self, first: BinaryScores) -> list[Comparison]:
        """This system minus `first`: intervals by a paired bootstrap; p values for accuracy by McNemar's test.

        Raises:
            InputError: The two were not measured on the same pairs with the same resamples and thresholds elsewhere.
        """
        if (self.seed, self.n_resamples, list(self.pairs)) != (first.seed, first.n_resamples, list(first.pairs)):
            raise InputError("the two systems were not scored on the same pairs with the same seed; score both on them")
        if (self.chosen is None) != (first.chosen is None):
            raise InputError("one system has thresholds from elsewhere and the other has not; give both or neither")
        names = f"{first.model} {first.similarity}", f"{self.model} {self.similarity}"
        if self.model == first.model:
            names = first.similarity, self.similarity
        if self._reason or first._reason:
            reason = self._reason or first._reason
            return [Comparison(self.task, "all", "ap", *names, None, len(self.pairs), reason=reason)]
        return [self._comparison(metric, names, first) for metric in self._cells]

    def _comparison(self, metric: str, names: tuple[str, str], first: BinaryScores) -> Comparison:
        (before, draws), (now, other) = first._cells[metric], self._cells[metric]
        place = self.task, "all", metric, *names
        if before is None or now is None:
            why = (first if before is None else self)._why_none(metric)
            return Comparison(*place, None, len(self.pairs), reason=why)
        n = len(self.pairs)
        interval, p_value = compare_resamples(draws, other, n=n) if len(draws) else (None, None)
        low, high = interval or (None, None)
        reason = too_few(n) if self.n_resamples else "no resamples were asked for"
        test = "paired bootstrap"
        if metric.endswith("accuracy"):
            p_value, test = mcnemar(first._right(metric), self._right(metric)), "McNemar"
        return Comparison(*place, now - before, n, low, high, p_value, test, reason)

    def _interval(
        self, metric: str, value: float | None, draws: Float[np.ndarray, " resamples"]
    ) -> tuple[tuple[float | None, float | None], str | None]:
        """The interval, and why there is none, or no value."""
        nothing = None, None
        if value is None:
            return nothing, self._why_none(metric)
        if not self.n_resamples:
            return nothing, None
        if metric.endswith("accuracy"):
            right = self._right(metric)
            low, high = wilson(int(right.sum()), len(right))
            return (100 * low, 100 * high), None
        interval, reason = interval_or_reason(draws, len(self.pairs))
        return interval or nothing, reason

    def _why_none(self, metric: str) -> str:
        if metric == "f1" and self._same.any():
            return "no pair on which thresholds were chosen is the same, so that F1 has none"
        return "no pair is the same"

    @property
    def _reason(self) -> str | None:
        return _no_value(self.scores)

    @cached_property
    def _same(self) -> Bool[np.ndarray, " n"]:
        return np.asarray([pair.same for pair in self.pairs], bool)

    @cached_property
    def _own(self) -> Operating:
        return operate(self.scores, self._same)

    def _right(self, metric: str) -> Bool[np.ndarray, " n"]:
        used = self._own if metric.startswith("best") or self.chosen is None else self.chosen
        return (self.scores >= used.accuracy_threshold) == self._same

    @cached_property
    def _cells(self) -> dict[str, tuple[float | None, Float[np.ndarray, " resamples"]]]:
        """Metric → value and values on resamples."""
        same, n = self._same, len(self._same)
        uses = {} if self.chosen is None else {"": self.chosen}
        right, predicted = {}, {}
        metrics = [f"{name}{metric}" for metric in ("accuracy", "f1") for name in (*uses, "best_")]
        for name, used in {**uses, "best_": self._own}.items():
            right[f"{name}accuracy"] = self._right(f"{name}accuracy").astype(np.float64)
            if used.f1_threshold is not None:
                predicted[f"{name}f1"] = self.scores >= used.f1_threshold
        order, ends = _descending(self.scores.astype(np.float64))
        draws: dict[str, list[np.ndarray]] = {}
        for counts in resample_counts(n, self.n_resamples, self.seed):
            for metric, ones in right.items():
                draws.setdefault(metric, []).append(counts @ ones / n)
            for metric, positive in predicted.items():
                draws.setdefault(metric, []).append(_f1(positive, same, counts))
            draws.setdefault("ap", []).append(_resampled_ap(counts[:, order], same[order], ends))
        whole = np.ones((1, n))
        values: dict[str, float | None] = dict.fromkeys(metrics)
        for metric, ones in right.items():
            values[metric] = float(ones.mean())
        for metric, positive in predicted.items():
            values[metric] = float(_f1(positive, same, whole)[0]) if same.any() else None
        values["ap"] = self._own.ap
        every = {metric: np.concatenate(parts) for metric, parts in draws.items()}
        nothing = np.zeros(0)
        return {
            metric: (None if value is None else 100 * value, 100 * every.get(metric, nothing))
            for metric, value in values.items()
        }


def score_binary(
    model: Embedder,
    pairs: Sequence[BinaryPair],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "duplicates",
    choose_on: Sequence[BinaryPair] = (),
    n_resamples: int = RESAMPLES,
    seed: int = 0,
    progress: bool | None = None,
) -> list[BinaryScores]:
    """Score every pair under each similarity; each distinct text is encoded once.

    Args:
        model: The model to evaluate.
        pairs: Pairs that mean the same, or not.
        similarities: Names or objects. Distances take part as minus the distance.
        task: Name for the table.
        choose_on: Other pairs, such as the development set, on which thresholds are chosen.
        n_resamples: Resamples of the intervals; 0 for none.
        seed: Of the resamples.
        progress: Show a bar on standard error while encoding.

    Raises:
        InputTypeError: A pair is no `BinaryPair`.
        InputError: See `score_pairs`; or the scores of `choose_on` are NaN.
    """
    for given in (pairs, choose_on):
        _check_types(given)
    texts = [(pair.a, pair.b) for pair in (*choose_on, *pairs)]
    found = score_pairs(model, texts, similarities, progress=progress)
    systems = []
    for similarity, scores in zip(similarities, found, strict=True):
        other, own = scores[: len(choose_on)], scores[len(choose_on) :]
        chosen = operate(other, np.asarray([pair.same for pair in choose_on])) if choose_on else None
        systems.append(BinaryScores(task, model.name, by_name(similarity).name, pairs, own, chosen, n_resamples, seed))
    return systems


def evaluate_binary(
    model: Embedder,
    pairs: Sequence[BinaryPair],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "duplicates",
    choose_on: Sequence[BinaryPair] = (),
    n_resamples: int = RESAMPLES,
    progress: bool | None = None,
) -> list[Measure]:
    """Accuracy, F1, average precision: see `score_binary` for the arguments, `BinaryScores.measures` for the rows."""
    systems = score_binary(
        model, pairs, similarities, task=task, choose_on=choose_on, n_resamples=n_resamples, progress=progress
    )
    return [measure for system in systems for measure in system.measures()]


def _check_types(pairs: Sequence[Any]) -> None:
    wrong = next(((at, pair) for at, pair in enumerate(pairs) if not isinstance(pair, BinaryPair)), None)
    if wrong is not None:
        raise InputTypeError(
            f"pair {wrong[0]} is of type {type(wrong[1]).__name__}, not a BinaryPair; make it one: "
            "likewise.data.BinaryPair(a, b, same)"
        )


def _no_value(scores: Float[np.ndarray, " n"]) -> str | None:
    if not len(scores):
        return "there is no pair"
    n_bad = int((~np.isfinite(scores)).sum())
    return f"{n_bad} of the scores are NaN or infinite" if n_bad else None


def _descending(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places from the largest score to the smallest, and where in that order each run of equal scores ends."""
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    return order, ends


def _f1(positive: np.ndarray, same: np.ndarray, counts: np.ndarray) -> np.ndarray:
    both = 2 * (counts @ (positive & same).astype(np.float64))
    total = counts @ (positive.astype(np.float64) + same)
    return np.divide(both, total, out=np.full(len(both), np.nan), where=total > 0)


def _resampled_ap(counts: np.ndarray, same: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Average precision of resamples; `counts` and `same` in descending order of the scores."""
    true = np.cumsum(counts * same, axis=1)[:, ends]
    drawn = np.cumsum(counts, axis=1)[:, ends]
    n_same = true[:, -1]
    gained = np.diff(true, axis=1, prepend=0)
    sums = (gained * np.divide(true, drawn, out=np.zeros_like(true), where=drawn > 0)).sum(axis=1)
    return np.divide(sums, n_same, out=np.full(len(sums), np.nan), where=n_same > 0)
