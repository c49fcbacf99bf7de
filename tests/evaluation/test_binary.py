from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from likewise.data import BinaryPair, read_mrpc
from likewise.errors import InputError, InputTypeError
from likewise.evaluation import evaluate_binary, score_binary
from likewise.evaluation.binary import BinaryScores, _check_types, operate
from likewise.evaluation.statistics import too_few

VECTORS = {
    text: (math.cos(math.radians(angle)), math.sin(math.radians(angle)))
    for text, angle in {"a": 0, "b": 10, "c": 40, "d": 95, "e": 170}.items()
}


def pairs(*rows):
    return [BinaryPair(a, b, same) for (a, b), same in rows]


SOME = pairs(("ab", True), ("ac", True), ("bd", False), ("ae", False), ("ad", True), ("ce", False))


def system(scores, same, **more):
    some = [BinaryPair("x", "y", bool(label)) for label in same]
    return BinaryScores("t", "m", "cosine", some, np.asarray(scores, np.float32), **more)


def values(measures):
    return {one.metric: one.value for one in measures}


def test_the_best_cut_of_four_pairs_is_known():
    found = operate(np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, True, False, False]))
    assert found.accuracy == found.f1 == found.ap == 1
    assert found.accuracy_threshold == pytest.approx(0.55)
    assert found.f1_threshold == pytest.approx(0.55)


def test_distances_have_their_cut_below_zero():
    found = operate(-np.array([0.2, 0.4, 1.5, 2.0]), np.array([True, True, False, False]))
    assert found.accuracy == 1
    assert found.accuracy_threshold == pytest.approx(-0.95)


def test_equal_scores_are_not_told_apart():
    scores, same = np.array([0.5, 0.5, 0.5, 0.5]), np.array([True, False, False, False])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        found = operate(scores, same[order])
        assert found.accuracy == 0.75  # call all of them different
        assert found.accuracy_threshold > 0.5
        assert found.f1 == pytest.approx(0.4)  # call all of them the same
        assert found.f1_threshold == 0.5
        assert found.ap == pytest.approx(0.25)


def test_it_agrees_with_scikit_learn_on_ties():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    same = rng.random(200) < 0.4
    scores = (same + rng.normal(0, 1, 200)).round(1)
    found = operate(scores, same)
    assert found.ap == pytest.approx(metrics.average_precision_score(same, scores))
    cuts = [*np.unique(scores), scores.max() + 1]
    assert found.accuracy == pytest.approx(max(metrics.accuracy_score(same, scores >= cut) for cut in cuts))
    assert found.f1 == pytest.approx(max(metrics.f1_score(same, scores >= cut, zero_division=0) for cut in cuts))
    assert metrics.f1_score(same, scores >= found.f1_threshold) == pytest.approx(found.f1)
    assert metrics.accuracy_score(same, scores >= found.accuracy_threshold) == pytest.approx(found.accuracy)


@pytest.mark.parametrize(
    ("scores", "same", "message"),
    [([], [], "there is no pair"), ([np.nan], [True], "1 of the scores are NaN"), ([1.0], [True, False], "do not fit")],
)
def test_bad_input_is_named(scores, same, message):
    with pytest.raises(InputError, match=message):
        operate(np.asarray(scores, float), np.asarray(same, bool))


def test_thresholds_from_elsewhere_are_used_as_they_are(embedder):
    chosen = pairs(("ab", True), ("ac", True), ("bd", False))
    found = score_binary(embedder(VECTORS), SOME, ["cosine"], choose_on=chosen, n_resamples=100)[0]
    measured = values(found.measures())
    assert measured["accuracy"] == pytest.approx(100 * 5 / 6)  # "ad" is missed
    assert measured["best_accuracy"] >= measured["accuracy"]
    assert measured["f1"] == pytest.approx(80)
    cut = (math.cos(math.radians(40)) + math.cos(math.radians(85))) / 2
    assert measured["accuracy_threshold"] == pytest.approx(cut, abs=1e-5)


def test_intervals_enclose_their_values(embedder):
    for one in evaluate_binary(embedder(VECTORS), 2 * SOME, ["cosine", "euclidean"], n_resamples=200):
        if not one.metric.endswith("threshold"):
            assert one.low <= one.value <= one.high


def test_intervals_do_not_call_few_pairs_or_perfect_ones_sure():
    few = {one.metric: one for one in system([0.9, 0.1, 0.2], [True, False, False]).measures()}
    assert few["best_accuracy"].value == few["ap"].value == 100
    assert few["best_accuracy"].low == pytest.approx(43.85, abs=0.01)  # Wilson: 3 of 3
    assert few["best_accuracy"].high == 100
    assert few["ap"].low is None
    assert few["ap"].reason == too_few(3)
    right = {one.metric: one for one in system(np.linspace(1, 0, 40), [True] * 20 + [False] * 20).measures()}
    assert right["best_f1"].value == 100
    assert right["best_f1"].low is None
    assert "all resamples give the same value" in right["best_f1"].reason
    none = system(np.linspace(1, 0, 40), [True] * 20 + [False] * 20, n_resamples=0).measures()
    assert {one.low for one in none} == {one.reason for one in none} == {None}


def test_few_pairs_have_no_test_by_resampling():
    same = [True, False, False]
    found = system([0.1, 0.9, 0.2], same).compare(system([0.9, 0.1, 0.2], same))
    ap = next(one for one in found if one.metric == "ap")
    assert (ap.low, ap.p_value) == (None, None)
    assert ap.reason == too_few(3)


def test_pairs_without_a_same_one_give_no_threshold_for_f1(embedder):
    chosen = pairs(("ad", False), ("ae", False))
    first, second = score_binary(embedder(VECTORS), 2 * SOME, ["cosine", "euclidean"], choose_on=chosen)
    found = {one.metric: one for one in first.measures()}
    assert found["f1"].value is None
    assert "no pair on which thresholds were chosen is the same" in found["f1"].reason
    assert found["accuracy"].value is not None
    assert found["best_f1"].value > 50
    assert list(found)[:4] == ["accuracy", "best_accuracy", "f1", "best_f1"]
    difference = next(one for one in second.compare(first) if one.metric == "f1")
    assert difference.difference is None
    assert "thresholds were chosen" in difference.reason


def test_the_worst_are_farthest_on_the_wrong_side_of_the_threshold(embedder):
    one = system([0.9, 0.2, 0.8, 0.6, 0.1, 0.45], [True, True, False, False, False, True])
    cut = values(one.measures())["accuracy_threshold"]
    chosen = operate(np.array([0.7, 0.3]), np.array([True, False]))  # cut at 0.5
    one = replace(one, chosen=chosen)
    assert cut != 0.5
    found = one.worst(9)
    assert [pair.score for pair in found] == pytest.approx([0.2, 0.8, 0.6, 0.45][:2] + [0.6, 0.45], abs=1e-6)
    assert found[0].verdict == "called different, is the same: 0.3000 below the threshold"
    assert found[1].verdict == "called the same, is different: 0.3000 above the threshold"
    assert (found[0].task, found[0].model, found[0].similarity) == ("t", "m", "cosine")
    assert len(one.worst(1)) == 1
    assert system([0.9, 0.1], [True, False]).worst() == []  # nothing is wrong
    assert system([np.nan, 0.1], [True, False]).worst() == []
    with pytest.raises(InputError, match="-1 worst pairs"):
        one.worst(-1)


def test_what_is_no_pair_is_named():
    with pytest.raises(InputTypeError, match="pair 1 is of type dict, not a BinaryPair"):
        _check_types([SOME[0], {"a": "a", "b": "b", "same": True}])


def test_a_resampled_ap_is_that_of_the_resample():
    metrics = pytest.importorskip("sklearn.metrics")
    from likewise.evaluation.statistics import resample_counts

    rng = np.random.default_rng(3)
    same = rng.random(40) < 0.5
    scores = (same + rng.normal(0, 1, 40)).round(1).astype(np.float32)
    draws = system(scores, same, n_resamples=10)._cells["ap"][1]
    for counts, value in zip(np.concatenate(list(resample_counts(40, 10, 0))).astype(int), draws, strict=True):
        rows = np.repeat(np.arange(40), counts)
        assert value == pytest.approx(100 * metrics.average_precision_score(same[rows], scores[rows]))


def test_nothing_is_nan():
    assert {one.value for one in system([np.nan, 1.0], [True, False]).measures()} == {None}
    assert system([], []).measures()[0].reason == "there is no pair"
    none_same = {one.metric: one for one in system([0.1, 0.2], [False, False]).measures()}
    assert none_same["ap"].value is None
    assert none_same["ap"].reason == "no pair is the same"
    assert none_same["best_accuracy"].value == 100
    single = values(system([0.3], [True]).measures())
    assert single["best_accuracy"] == single["ap"] == 100


def test_two_systems_differ_by_mcnemar_and_bootstrap():
    same = [True] * 20 + [False] * 20
    good = system(np.linspace(1, 0, 40), same, n_resamples=200)
    bad = system(np.tile([1.0, 0.0], 20), same, n_resamples=200)
    found = {one.metric: one for one in good.compare(bad)}
    assert found["best_accuracy"].test == "McNemar"
    assert found["ap"].test == "paired bootstrap"
    assert all(one.difference > 0 and one.low > 0 and one.p_value < 0.05 for one in found.values())
    assert good.compare(system([np.nan] * 40, same, n_resamples=200))[0].difference is None
    with pytest.raises(InputError, match="same pairs"):
        good.compare(system([1.0], [True]))


@pytest.mark.model
def test_the_default_model_tells_duplicates(minilm, shared):
    some = read_mrpc(shared / "data", "test")[:300]
    measured = values(evaluate_binary(minilm, some, ["cosine", "rcmd"], n_resamples=0))
    n_same = sum(pair.same for pair in some)
    assert measured["best_accuracy"] > 100 * n_same / 300 + 2
    assert measured["ap"] > 75
