"""Metrics that are means over examples, such as accuracy or nDCG: their intervals, and two systems compared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from likewise.errors import InputError
from likewise.evaluation.measures import Measure
from likewise.evaluation.statistics import (
    RESAMPLES,
    Comparison,
    compare_resamples,
    interval_or_reason,
    mcnemar,
    resampled,
    too_few,
    wilson,
)
from likewise.evaluation.worst import WorstPair

__all__ = ["ExampleScores"]


@dataclass(frozen=True, eq=False)
class ExampleScores:
    """What one model achieves under one similarity on each example."""

    task: str
    """Name of the task."""
    model: str
    """Name of the model."""
    similarity: str
    """How it compared; empty for a protocol that compares nothing."""
    examples: Sequence[Hashable]
    """What the values are of, by which it is known whether two systems can be compared."""
    values: Mapping[str, Float[np.ndarray, " n"]]
    """Metric → its value on each example. For "accuracy" that is 0 for each that is wrong."""
    reason: str | None = None
    """Why there are no values."""
    wrong: Sequence[Sequence[WorstPair]] = ()
    """What is wrong, the worst first; each entry has the pairs that belong together."""
    others: Sequence[Measure] = ()
    """Numbers that are no means over examples, such as F1."""
    n_resamples: int = RESAMPLES
    """Resamples of the intervals; 0 for no intervals."""
    seed: int = 0
    """Of the resamples."""
    top: float = 100.0
    """The largest value that an example can have."""

    def measures(self) -> list[Measure]:
        """The mean of each metric with its 95 % interval, or the reason why there is none; then `others`.

        The interval is Wilson's where each value is 0 or `top`, as for an accuracy, and is else of a bootstrap; fewer
        than `likewise.evaluation.statistics.LEAST` examples then have none, nor have such that are all alike.
        """
        place, n = (self.task, "all", self.model, self.similarity), len(self.examples)
        measures = []
        for metric, each in self.values.items():
            if self.reason is not None:
                measures.append(Measure(*place, metric, None, n, reason=self.reason))
                continue
            interval, reason = self._interval(metric, each)
            low, high = interval or (None, None)
            measures.append(Measure(*place, metric, float(each.mean()), n, low, high, reason))
        return [*measures, *self.others]

    def _interval(self, metric: str, each: Float[np.ndarray, " n"]) -> tuple[tuple[float, float] | None, str | None]:
        """The interval of a mean, or the reason why there is none."""
        n = len(each)
        if not self.n_resamples or not n:
            return None, None
        if np.isin(each, (0, self.top)).all():
            low, high = wilson(int(np.count_nonzero(each)), n)
            return (self.top * low, self.top * high), None
        return interval_or_reason(self._draws[metric], n)

    def compare(self, first: ExampleScores) -> list[Comparison]:
        """This system minus `first`: intervals by a paired bootstrap, p values too; of accuracy by McNemar's test.

        Fewer than `likewise.evaluation.statistics.LEAST` examples have no intervals, and p values by McNemar alone.

        Raises:
            InputError: The two were not measured on the same examples with the same resamples.
        """
        if (self.seed, self.n_resamples, list(self.examples)) != (first.seed, first.n_resamples, list(first.examples)):
            raise InputError("two systems are compared on the same examples with the same seed; measure both on them")
        names = (first.similarity, self.similarity)
        if self.model != first.model:
            names = (f"{first.model} {first.similarity}".strip(), f"{self.model} {self.similarity}".strip())
        return [self._comparison(metric, names, first) for metric in self.values if metric in first.values]

    def worst(self, k: int = 3) -> list[WorstPair]:
        """The pairs of the k worst entries of `wrong`."""
        return [pair for pairs in self.wrong[:k] for pair in pairs]

    def _comparison(self, metric: str, names: tuple[str, str], first: ExampleScores) -> Comparison:
        place, n = (self.task, "all", metric, *names), len(self.examples)
        reason = self.reason or first.reason
        if reason is not None:
            return Comparison(*place, None, n, reason=reason)
        before, now = first.values[metric], self.values[metric]
        interval, p_value = None, None
        if self.n_resamples:
            interval, p_value = compare_resamples(first._draws[metric], self._draws[metric], n=n)
            reason = too_few(n)
        test = "paired bootstrap"
        if metric == "accuracy":
            p_value, test = mcnemar(before > 0, now > 0), "McNemar"
        low, high = interval or (None, None)
        return Comparison(*place, float(now.mean() - before.mean()), n, low, high, p_value, test, reason)

    @cached_property
    def _draws(self) -> dict[str, Float[np.ndarray, " resamples"]]:
        return {
            metric: resampled("mean", each, resamples=self.n_resamples, seed=self.seed)
            for metric, each in self.values.items()
        }
