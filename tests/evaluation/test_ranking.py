from __future__ import annotations

import numpy as np
import pytest

from likewise.evaluation.ranking import (
    Late,
    average_precision,
    first_late,
    late_first,
    ndcg,
    ranks_of,
    recall,
    reciprocal_rank,
)


def ranks(scores, relevant, degrees=None):
    degrees = np.ones(len(relevant)) if degrees is None else np.asarray(degrees, float)
    return ranks_of(np.asarray(scores, float), np.asarray(relevant, int), degrees).tolist()


def test_ranks_without_ties_are_those_of_sorting():
    scores = np.random.default_rng(0).standard_normal(50)
    place = np.empty(50, int)
    place[np.argsort(-scores)] = np.arange(1, 51)
    relevant = [3, 17, 40]
    assert ranks(scores, relevant) == place[relevant].tolist()


def test_a_tie_puts_the_less_relevant_first():
    assert ranks([1, 1, 1, 0], [1]) == [3]
    assert ranks([1, 1, 1, 1], [0, 2], [2, 1]) == [4, 3]
    assert ranks([2, 1, 1], [0, 1]) == [1, 3]
    assert ranks([1, 2], []) == []


def test_metrics_by_hand():
    found, degrees = np.array([1, 4]), np.array([1.0, 2.0])
    ideal = np.array([2.0, 1.0, 1.0])
    best = 2 + 1 / np.log2(3) + 1 / np.log2(4)
    assert ndcg(found, degrees, 10, ideal) == pytest.approx((1 + 2 / np.log2(5)) / best)
    assert ndcg(found, degrees, 3, ideal) == pytest.approx(1 / best)
    assert reciprocal_rank(np.array([4, 2]), 10) == 0.5
    assert reciprocal_rank(np.array([11]), 10) == 0
    assert reciprocal_rank(np.zeros(0, int), 10) == 0
    assert recall(found, 3, 3) == pytest.approx(1 / 3)
    assert average_precision(found, 3) == pytest.approx((1 / 1 + 2 / 4) / 3)
    assert average_precision(np.array([3, 1]), 2) == pytest.approx((1 + 2 / 3) / 2)


def test_average_precision_and_ndcg_are_those_of_scikit_learn():
    from sklearn.metrics import average_precision_score, ndcg_score

    rng = np.random.default_rng(1)
    for _ in range(20):
        scores, gold = rng.standard_normal(30), rng.integers(0, 3, 30) * (rng.random(30) < 0.3)
        gold[0] = 1
        relevant = np.flatnonzero(gold)
        found, degrees = ranks_of(scores, relevant, gold[relevant].astype(float)), gold[relevant].astype(float)
        assert average_precision(found, len(relevant)) == pytest.approx(average_precision_score(gold > 0, scores))
        assert ndcg(found, degrees, 10, degrees) == pytest.approx(ndcg_score(gold[None], scores[None], k=10))


def test_the_first_late_document_is_the_first_below_one_that_is_not_relevant():
    assert first_late(np.array([1, 2, 3])) is None
    assert first_late(np.array([5, 1, 3])) == 2
    assert first_late(np.array([2])) == 0
    assert first_late(np.zeros(0, int)) is None


def test_the_lowest_precision_comes_first():
    queries = [
        Late("high", "x", 4, 0.9, 0.5, "y", 0.6),
        Late("low", "x", 9, 0.1, 0.2, "y", 0.9, "dot", ", too far down"),
        Late("as high, and surer", "x", 3, 0.9, 0.5, "y", 0.8),
    ]
    found = late_first(("t", "m", "cosine"), queries)
    assert [pair[0].a for pair in found] == ["low", "as high, and surer", "high"]
    assert [(one.b, one.score, one.compared_by) for one in found[0]] == [("x", 0.2, "dot"), ("y", 0.9, "dot")]
    assert found[0][0].verdict == "relevant, found at rank 9, too far down"
    assert len(late_first(("t", "m", "cosine"), queries * 50)) == 150
