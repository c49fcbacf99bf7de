"""How sure a number is: bootstrap intervals, and tests of two systems on the same examples.

A resample of n examples is a row of n counts that sum to n. Weighted by the counts, a mean, a linear and a rank
correlation of the resample are sums over the original examples: nothing is drawn, copied or sorted again.

Fewer than `LEAST` examples are not resampled: resamples of three examples that point the same way all do, and would
call that sure. Values that are all right or wrong have Wilson's interval, which holds for any number of examples and
is not of width 0 where everything is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from likewise.errors import InputError
from likewise.evaluation.measures import Measure

__all__ = [
    "LEAST",
    "RESAMPLES",
    "STATISTICS",
    "Comparison",
    "best",
    "compare_resamples",
    "interval_of",
    "interval_or_reason",
    "mcnemar",
    "no_correlation",
    "resample_counts",
    "resampled",
    "scaled",
    "too_few",
    "wilson",
]

STATISTICS = ("spearman", "pearson", "mean")
"""What can be resampled."""

RESAMPLES = 1_000
"""Resamples of an interval, unless said otherwise."""

LEAST = 10
"""Fewest examples that are resampled."""

_CELLS = 2_000_000
"""Counts held at a time, which bounds the memory."""

_ENOUGH = 0.5
"""Part of the resamples that must have a value; otherwise there is no interval."""


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same examples: second minus first."""

    task: str
    """Data set."""
    subset: str
    """Part of it."""
    metric: str
    """What was measured."""
    first: str
    """The system compared with: model and similarity."""
    second: str
    """The other system."""
    difference: float | None
    """Value of the second minus value of the first; None if either has none."""
    n: int
    """Examples, the same for both."""
    low: float | None = None
    """Lower end of the 95 % interval of the difference."""
    high: float | None = None
    """Upper end of it."""
    p_value: float | None = None
    """Two-sided: how often so large a difference would be seen if there was none."""
    test: str = "paired bootstrap"
    """How the p value was found."""
    reason: str | None = None
    """Why there is no difference or no p value."""


def best(measures: Sequence[Measure]) -> Measure | None:
    """The measure with the largest value; the first of equal ones; None if no measure has a value.

    A measure without a value, or with NaN, is never chosen, wherever it stands: a model whose scores were constant
    at its first evaluation does not stay the best for ever.
    """
    rated = [(measure.value, measure) for measure in measures if measure.value is not None]
    rated = [(value, measure) for value, measure in rated if value == value]
    return max(rated, key=lambda pair: pair[0])[1] if rated else None


def no_correlation(scores: Float[np.ndarray, " n"], gold: Float[np.ndarray, " n"]) -> str | None:
    """Why the two have no correlation; None if they have one.

    Scores that differ by rounding only count as equal: a rank correlation of them would be noise.
    """
    if len(scores) < 2:
        return f"a correlation needs two pairs or more, and there are {len(scores)}"
    if not np.isfinite(scores).all():
        return f"{int((~np.isfinite(scores)).sum())} of the scores are NaN or infinite"
    if not np.isfinite(gold).all():
        return f"{int((~np.isfinite(gold)).sum())} of the gold values are NaN or infinite"
    wide = scaled(scores)
    rounding = 8 * np.finfo(scores.dtype).eps * float(np.abs(wide).max())
    if float(np.ptp(wide)) <= rounding:
        return "all scores are equal"
    return "all gold values are equal" if gold.min() == gold.max() else None


def scaled(values: Float[Any, " n"]) -> Float[np.ndarray, " n"]:
    """The values in float64 times a power of two that brings the largest to 1 or near it.

    No digit changes, and so no correlation; but squares of what was 1e300 or 1e-300 can be taken.
    """
    wide = np.asarray(values, np.float64)
    return np.ldexp(wide, -int(np.frexp(np.abs(wide).max(initial=0))[1]))


def too_few(n: int) -> str | None:
    """Why n examples have no resamples; None if they have."""
    return f"no interval and no test by resampling with n = {n}; {LEAST} are needed" if n < LEAST else None


def resampled(
    statistic: str,
    values: Float[np.ndarray, " n"],
    gold: Float[np.ndarray, " gold"] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int | Sequence[int] = 0,
) -> Float[np.ndarray, " resamples"]:
    """The statistic on resamples drawn with replacement; NaN where a resample has no value; see `resample_counts`.

    The same `seed` and n give the same resamples, so that two systems on the same examples are compared in pairs.

    Args:
        statistic: "spearman" or "pearson" of `values` with `gold`, or "mean" of `values`.
        values: Scores; for a mean such as accuracy, 1 for right and 0 for wrong.
        gold: What the scores are correlated with.
        resamples: How many.
        seed: Of the random numbers.

    Returns:
        Correlations in [-1, 1], or means; 1,000 resamples of 5,000 pairs take about half a second. Nothing for fewer
        than `LEAST` examples.

    Raises:
        InputError: An unknown statistic, or a correlation without gold values, or with too many or few.

    Source:
        Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 13.
    """
    if statistic not in STATISTICS:
        raise InputError(f"unknown statistic {statistic!r}; known are {', '.join(STATISTICS)}")
    if statistic != "mean" and (gold is None or len(gold) != len(values)):
        n_gold = "no" if gold is None else len(gold)
        raise InputError(f"{len(values)} scores and {n_gold} gold values: {statistic} needs one for each score")
    draws = resample_counts(len(values), resamples, seed)
    if gold is None or statistic == "mean":
        x = np.asarray(values, np.float64)
        parts = [counts @ x / len(x) for counts in draws]
    elif statistic == "pearson":
        x, y = scaled(values), scaled(gold)
        parts = [_weighted_pearson(x - x.mean(), y - y.mean(), counts) for counts in draws]
    else:
        ties = _Ties(np.asarray(values, np.float64)), _Ties(np.asarray(gold, np.float64))
        parts = [_weighted_spearman(*ties, counts) for counts in draws]
    return np.concatenate(parts) if parts else np.zeros(0)


def resample_counts(n: int, resamples: int, seed: int | Sequence[int]) -> Iterator[Float[np.ndarray, "some n"]]:
    """How often each of n examples is drawn in each resample, some resamples at a time; none if n is below `LEAST`."""
    if n < LEAST:
        return
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS // n)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = rng.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.reshape(-1), minlength=rows * n).reshape(rows, n).astype(np.float64)


def interval_of(values: Float[np.ndarray, " resamples"], level: float = 0.95) -> tuple[float, float] | None:
    """Percentile interval of resampled values; None where fewer than half of the resamples have a value.

    Raises:
        InputError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise InputError(f"an interval's level is between 0 and 1, such as 0.95; got {level}")
    known = values[np.isfinite(values)]
    if not len(known) or len(known) < _ENOUGH * len(values):
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def interval_or_reason(
    values: Float[np.ndarray, " resamples"], n: int
) -> tuple[tuple[float, float] | None, str | None]:
    """The 95 % interval of values resampled from n examples, or why there is none.

    One of no width is none: where all examples are alike so are all resamples, however few the examples are.
    """
    found = interval_of(values) if len(values) else None
    if found is None:
        return None, too_few(n) or "no interval: too few resamples have a value"
    if found[1] - found[0] <= 1e-9 * max(map(abs, found)):
        return None, "no interval: all resamples give the same value, which does not make it sure"
    return found, None


def wilson(n_right: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of the part that is right, 0 to 1.

    Raises:
        InputError: There is no example, or more are right than there are.

    Source:
        Wilson 1927; Brown, Cai & DasGupta 2001.
    """
    from scipy.stats import norm

    if not 0 <= n_right <= n or not n:
        raise InputError(f"{n_right} of {n} examples cannot be right; an interval needs one example or more")
    z = float(norm.ppf((1 + level) / 2))
    part, weight = n_right / n, z * z / n
    middle = (part + weight / 2) / (1 + weight)
    half = float(np.sqrt(weight * (part * (1 - part) + weight / 4))) / (1 + weight)
    return (0.0 if not n_right else middle - half), (1.0 if n_right == n else middle + half)


def compare_resamples(
    first: Float[np.ndarray, " resamples"], second: Float[np.ndarray, " resamples"], *, n: int | None = None
) -> tuple[tuple[float, float] | None, float | None]:
    """The 95 % interval of second minus first, and the two-sided p value of the paired bootstrap.

    Args:
        first: Values of the first system on resamples.
        second: Values of the second on the same ones.
        n: Examples resampled, where they are known.

    Returns:
        The p value is twice the smaller part of resamples on either side of 0, counting the sample itself, so that
        it is never 0; 1 for systems that never differ. With `n` it is never below 2^(1 - n) either, which is the
        least that a sign test of n differences can say. None, as for intervals, where too few have a value.

    Source:
        Efron & Tibshirani 1993, chapters 15 and 16.
    """
    differences = second - first
    interval = interval_of(differences)
    if interval is None:
        return None, None
    known = differences[np.isfinite(differences)]
    smaller = min(int((known <= 0).sum()), int((known >= 0).sum()))
    least = 0.0 if n is None else 2.0 ** (1 - n)
    return interval, min(1.0, max(least, 2 * (smaller + 1) / (len(known) + 1)))


def mcnemar(first: Bool[np.ndarray, " n"], second: Bool[np.ndarray, " n"]) -> float:
    """Exact two-sided p value of McNemar's test: are two systems equally often right where only one is?

    Args:
        first: Where the first system is right.
        second: Where the second is, on the same examples.

    Returns:
        1 for systems that are right on the same examples.

    Source:
        McNemar 1947.
    """
    from scipy.stats import binomtest

    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    return float(binomtest(only_first, only_first + only_second).pvalue) if only_first + only_second else 1.0


class _Ties:
    """The groups of equal values, in rising order, from which the ranks of any resample follow."""

    def __init__(self, values: Float[np.ndarray, " n"]) -> None:
        self.order = np.argsort(values, kind="stable")
        _, self.starts, self.group = np.unique(values[self.order], return_index=True, return_inverse=True)
        self.of_example = np.empty(len(values), np.int64)
        self.of_example[self.order] = self.group

    def ranks(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centred rank of each example in each resample, ties sharing the mean, and the sum of their squares."""
        size = np.add.reduceat(counts[:, self.order], self.starts, axis=1)
        centred = np.cumsum(size, axis=1) - size / 2 - counts.shape[1] / 2
        return centred[:, self.of_example], np.einsum("rg,rg,rg->r", size, centred, centred)


def _weighted_spearman(x: _Ties, y: _Ties, counts: np.ndarray) -> np.ndarray:
    (left, left_squares), (right, right_squares) = x.ranks(counts), y.ranks(counts)
    return _ratio(np.einsum("rn,rn,rn->r", counts, left, right), left_squares, right_squares)


def _weighted_pearson(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    n = len(x)
    sums = counts @ np.stack([x, y, x * x, y * y, x * y], axis=1)
    mean_x, mean_y, squares_x, squares_y, shared = sums.T / n
    return _ratio(shared - mean_x * mean_y, squares_x - mean_x**2, squares_y - mean_y**2)


def _ratio(shared: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Correlations from sums of products and squares; NaN where one side of a resample is constant."""
    tiny = 1e-12
    defined = (left > tiny * max(left.max(initial=0), 1e-300)) & (right > tiny * max(right.max(initial=0), 1e-300))
    out = np.full(len(shared), np.nan)
    out[defined] = np.clip(shared[defined] / np.sqrt(left[defined] * right[defined]), -1, 1)
    return out
