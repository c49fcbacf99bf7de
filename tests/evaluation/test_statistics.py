from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats

from likewise.errors import InputError
from likewise.evaluation.measures import Measure
from likewise.evaluation.statistics import (
    LEAST,
    best,
    compare_resamples,
    interval_of,
    mcnemar,
    no_correlation,
    resample_counts,
    resampled,
    scaled,
    too_few,
    wilson,
)


def measure(value):
    return Measure("t", "all", "m", "cosine", "spearman", value, 3, reason=None if value is not None else "constant")


@pytest.fixture
def tied():
    """Scores and gold with many ties."""
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 6, 60).astype(float)
    return (gold + rng.normal(0, 1, 60)).round(1), gold


@pytest.mark.parametrize(("name", "slow"), [("spearman", stats.spearmanr), ("pearson", stats.pearsonr)])
def test_a_resample_has_the_correlation_of_its_pairs(name, slow, tied):
    scores, gold = tied
    counts = np.concatenate(list(resample_counts(60, 40, 3))).astype(int)
    drawn = [np.repeat(np.arange(60), row) for row in counts]
    expected = [slow(scores[rows], gold[rows]).statistic for rows in drawn]
    assert np.allclose(resampled(name, scores, gold, resamples=40, seed=3), expected, atol=1e-12)


def test_a_resampled_mean_is_that_of_its_examples():
    ones = np.array([1.0, 0.0, 0.0, 1.0, 1.0] * 3)
    counts = np.concatenate(list(resample_counts(15, 30, 9)))
    assert (counts.sum(1) == 15).all()
    assert np.allclose(resampled("mean", ones, resamples=30, seed=9), counts @ ones / 15)


def test_equal_seeds_give_equal_resamples(tied):
    first, second = (resampled("spearman", *tied, resamples=20, seed=4) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, resampled("spearman", *tied, resamples=20, seed=5))


def test_an_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(200):
        x = rng.normal(size=80)
        y = 0.6 * x + 0.8 * rng.normal(size=80)
        low, high = interval_of(resampled("pearson", x, y, resamples=200, seed=seed))
        covered += low <= 0.6 <= high
    assert 170 <= covered <= 199


def test_a_thousand_resamples_of_five_thousand_pairs_take_seconds():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 26, 5_000) / 5
    start = time.perf_counter()
    resampled("spearman", gold + rng.normal(size=5_000), gold)
    assert time.perf_counter() - start < 10


def test_where_a_resample_has_no_value_it_is_left_out():
    almost = np.array([0.0] * 9 + [1.0])
    values = resampled("spearman", almost, np.arange(10.0), resamples=200)
    assert np.isnan(values).any()
    assert interval_of(values) is not None
    assert interval_of(np.full(10, np.nan)) is None
    assert interval_of(np.zeros(0)) is None


@pytest.mark.parametrize("n", [0, 1, LEAST - 1])
def test_few_examples_are_not_resampled(n):
    assert list(resample_counts(n, 20, 0)) == []
    for statistic in ("spearman", "pearson", "mean"):
        assert len(resampled(statistic, np.arange(float(n)), np.arange(float(n)), resamples=20)) == 0
    assert f"n = {n}; {LEAST} are needed" in too_few(n)
    assert len(resampled("mean", np.arange(float(LEAST)), resamples=20)) == 20
    assert too_few(LEAST) is None


def test_a_p_value_is_never_below_what_so_many_examples_allow():
    lower, higher = np.zeros(100_000), np.ones(100_000)
    sign = stats.binomtest(0, LEAST).pvalue
    assert compare_resamples(lower, higher, n=LEAST)[1] == pytest.approx(sign)
    assert compare_resamples(lower, higher, n=100)[1] == compare_resamples(lower, higher)[1] < sign
    assert compare_resamples(lower[:1_000], higher[:1_000])[1] >= sign  # so that the usual 1,000 are never too sure


@pytest.mark.parametrize(("n_right", "n"), [(0, 1), (1, 1), (3, 7), (40, 40), (0, 40), (17, 40)])
def test_wilsons_interval_is_that_of_scipy(n_right, n):
    expected = stats.binomtest(n_right, n).proportion_ci(method="wilson")
    assert wilson(n_right, n) == pytest.approx((expected.low, expected.high))
    with pytest.raises(InputError, match="cannot be right"):
        wilson(n + 1, n)


@pytest.mark.parametrize("factor", [1e300, 1e-300, 2.0**-1040])
@pytest.mark.filterwarnings("error")
def test_no_size_of_values_is_too_large_or_too_small(tied, factor):
    scores, gold = tied
    usual = resampled("pearson", scores, gold, resamples=20)
    assert np.allclose(resampled("pearson", scores * 1e5, gold * factor, resamples=20), usual)
    assert no_correlation(scores * factor, gold * factor) is None
    assert no_correlation(np.array([-1.7e308, 1.7e308]), np.array([1.7e308, -1.7e308])) is None
    assert np.abs(scaled(gold * factor)).max() <= 1
    assert (scaled(np.zeros(2)) == 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("median", np.zeros(2)), "unknown statistic 'median'"),
        (("spearman", np.zeros(2)), "2 scores and no gold values"),
        (("pearson", np.zeros(2), np.zeros(3)), "2 scores and 3 gold values"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        resampled(*arguments)


def test_a_level_is_a_probability():
    with pytest.raises(InputError, match="between 0 and 1"):
        interval_of(np.zeros(3), 95.0)


def test_a_clear_difference_is_sure_and_none_is_not(tied):
    scores, gold = tied
    noise = np.random.default_rng(2).normal(size=60)
    good, bad, same = (resampled("spearman", x, gold, resamples=300) for x in (scores, noise, scores))
    interval, p_value = compare_resamples(bad, good)
    assert interval[0] > 0
    assert p_value == pytest.approx(2 / 301)
    assert compare_resamples(good, same) == ((0, 0), 1)
    assert compare_resamples(np.full(9, np.nan), np.zeros(9)) == (None, None)


def test_mcnemar_is_the_binomial_test_of_the_pairs_that_differ():
    first = np.array([True] * 10 + [False] * 10)
    second = np.array([True] * 9 + [False] + [True] * 9 + [False])
    assert mcnemar(first, second) == pytest.approx(stats.binomtest(1, 10).pvalue)
    assert mcnemar(first, first) == 1


def test_a_missing_value_is_never_the_best():
    assert best([]) is None
    assert best([measure(None), measure(float("nan"))]) is None
    ordered = [measure(None), measure(1.0), measure(float("nan")), measure(2.0), measure(2.0), measure(None)]
    assert best(ordered) is ordered[3]
