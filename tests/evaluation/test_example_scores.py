"""Means over examples: intervals, and systems compared on the same examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.evaluation.example_scores import ExampleScores
from likewise.evaluation.worst import WorstPair

N = 40
RNG = np.random.default_rng(0)
WRONG = [[WorstPair("t", "m", "s", "a", "b", 0.5, f"wrong {i}"), WorstPair("t", "m", "s", "a", "c", 0.1, "right")]
         for i in range(3)]  # fmt: skip


def system(model="m", similarity="cosine", **values):
    return ExampleScores("t", model, similarity, [f"q{i}" for i in range(N)], values, wrong=WRONG, n_resamples=500)


def test_means_have_intervals_around_them():
    values = RNG.random(N)
    (one,) = system(map=values).measures()
    assert one.value == pytest.approx(values.mean())
    error = values.std() / np.sqrt(N)
    assert one.high - one.low == pytest.approx(2 * 1.96 * error, rel=0.2)
    assert one.n == N
    (none,) = replace(system(map=values), n_resamples=0).measures()
    assert (none.low, none.high) == (None, None)


@pytest.mark.parametrize("top", [1.0, 100.0])
def test_where_all_is_right_the_interval_has_a_width(top):
    right = np.full(N, top)
    (one,) = replace(system(accuracy=right), top=top).measures()
    assert (one.value, one.low, one.high) == (top, pytest.approx(top * 0.912, abs=1e-3 * top), top)
    (none,) = replace(system(accuracy=0 * right), top=top).measures()
    assert (none.value, none.low, none.high) == (0, 0, pytest.approx(top * 0.088, abs=1e-3 * top))


def test_equal_values_have_no_interval_without_width():
    (one,) = system(map=np.full(N, 50.1)).measures()
    assert (one.value, one.low) == (pytest.approx(50.1), None)
    assert "all resamples give the same value" in one.reason


@pytest.mark.parametrize("n", [1, 6, 9, 10])
def test_few_examples_have_no_interval_and_no_p_value_and_say_why(n):
    names, values = [f"q{i}" for i in range(n)], np.full(n, 50.0)
    first = ExampleScores("t", "m", "cosine", names, {"map": 0 * values, "accuracy": 0 * values})
    second = ExampleScores("t", "m", "rcmd", names, {"map": values + np.arange(n), "accuracy": 2 * values})
    by_metric = {one.metric: one for one in second.measures()}
    differences = {one.metric: one for one in second.compare(first)}
    few = n < 10
    for one in (by_metric["map"], differences["map"]):
        assert (one.low is None, one.high is None, one.reason is not None) == (few, few, few)
        assert not few or f"n = {n}" in one.reason
    assert (differences["map"].p_value is None) == few
    assert few or differences["map"].p_value >= 2 * 0.5**n
    assert by_metric["accuracy"].high == 100  # Wilson's interval and McNemar's test are exact enough for any number
    assert 20 < by_metric["accuracy"].low < 75
    assert differences["accuracy"].p_value == pytest.approx(min(1, 2 * 0.5**n))


def test_a_difference_that_is_everywhere_is_sure_and_none_is_not():
    low = RNG.random(N)
    (sure,) = system("b", map=low + 0.1).compare(system("a", map=low))
    assert sure.difference == pytest.approx(0.1)
    assert (sure.low, sure.high) == (pytest.approx(0.1), pytest.approx(0.1))
    assert sure.p_value < 0.01
    assert (sure.first, sure.second) == ("a cosine", "b cosine")
    (same,) = system(similarity="rcmd", map=low).compare(system(map=low))
    assert (same.difference, same.p_value) == (0, 1)
    assert (same.first, same.second) == ("cosine", "rcmd")


def test_accuracies_are_compared_by_mcnemar():
    right = np.zeros(N)
    (one,) = system("b", "", accuracy=right + 100.0 * (np.arange(N) < 6)).compare(system("a", "", accuracy=right))
    assert (one.test, one.p_value) == ("McNemar", pytest.approx(2 * 0.5**6))
    assert (one.first, one.second) == ("a", "b")


def test_only_the_same_examples_are_compared():
    other = replace(system(map=np.ones(N)), examples=["q"] * N)
    with pytest.raises(InputError, match="same examples"):
        other.compare(system(map=np.ones(N)))
    with pytest.raises(InputError, match="same examples"):
        replace(system(map=np.ones(N)), seed=1).compare(system(map=np.ones(N)))


def test_no_values_have_a_reason_and_what_is_wrong_comes_in_groups():
    none = replace(system(map=np.zeros(0)), reason="nothing was asked")
    assert [(one.value, one.reason) for one in none.measures()] == [(None, "nothing was asked")]
    (one,) = none.compare(system(map=np.ones(N)))
    assert (one.difference, one.reason) == (None, "nothing was asked")
    assert [pair.verdict for pair in system().worst(2)] == ["wrong 0", "right", "wrong 1", "right"]
    assert system().worst(0) == []
