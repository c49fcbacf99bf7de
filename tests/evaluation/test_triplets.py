from __future__ import annotations

import numpy as np
import pytest

from likewise.data import TextTriplet
from likewise.errors import InputError
from likewise.evaluation import evaluate_triplets, score_triplets

VECTORS = {"a": (1.0, 0.0), "near": (0.9, 0.1), "far": (-1.0, 0.2), "long": (9.0, 0.0), "mirror": (0.9, -0.1)}
NAMES = ["cosine", "euclidean", "manhattan", "rcmd"]


def triplets(*rows):
    return [TextTriplet(*row) for row in rows]


def test_the_nearer_one_must_be_the_positive(embedder):
    some = triplets(("a", "near", "far"), ("a", "far", "near"), ("near", "a", "far"))
    for one in evaluate_triplets(embedder(VECTORS), some, NAMES):
        assert one.value == pytest.approx(2 / 3)
        assert one.low <= one.value <= one.high
        assert one.n == 3


def test_a_tie_is_wrong(embedder):
    some = triplets(("a", "near", "mirror"), ("a", "mirror", "near"), ("a", "near", "near"))
    assert {one.value for one in evaluate_triplets(embedder(VECTORS), some, NAMES)} == {0.0}
    constant = embedder(dict.fromkeys(VECTORS, (1.0, 1.0)))
    assert {one.value for one in evaluate_triplets(constant, triplets(("a", "near", "far")), NAMES)} == {0.0}


def test_similarities_may_disagree(embedder):
    some = triplets(("a", "long", "near"))
    found = {one.similarity: one.value for one in evaluate_triplets(embedder(VECTORS), some, NAMES)}
    assert found == {"cosine": 1.0, "euclidean": 0.0, "manhattan": 0.0, "rcmd": 1.0}


def test_no_triplet_has_no_accuracy(embedder):
    (one,) = evaluate_triplets(embedder(VECTORS), [])
    assert (one.value, one.n, one.reason) == (None, 0, "there is no triplet")


def test_scores_that_are_nan_have_no_accuracy(embedder):
    model = embedder({**VECTORS, "far": (3e38, 3e38)})
    with np.errstate(over="ignore"):
        (found,) = score_triplets(model, triplets(("long", "near", "far"), ("a", "near", "long")), ["dot"])
    assert [(one.value, one.reason) for one in found.measures()] == [
        (None, "1 of the triplets have scores that are NaN or infinite")
    ]


def test_each_distinct_text_is_encoded_once(embedder):
    model = embedder(VECTORS)
    evaluate_triplets(model, triplets(("a", "near", "far"), ("near", "a", "far")), NAMES)
    assert sorted(model.encoded) == ["a", "far", "near"]


def test_two_systems_are_compared_by_mcnemar(embedder):
    some = triplets(*[("a", "long", "near")] * 12, ("a", "near", "far"))
    cosine, euclidean = score_triplets(embedder(VECTORS), some, ["cosine", "euclidean"], n_resamples=200)
    (one,) = euclidean.compare(cosine)
    assert (one.first, one.second, one.test) == ("cosine", "euclidean", "McNemar")
    assert one.difference == pytest.approx(-12 / 13)
    assert one.low <= one.difference <= one.high
    assert one.p_value == pytest.approx(2 * 0.5**12)
    with pytest.raises(InputError, match="same examples"):
        score_triplets(embedder(VECTORS), some[:1])[0].compare(cosine)


def test_all_that_are_wrong_can_be_listed(embedder):
    (found,) = score_triplets(embedder(VECTORS), triplets(*[("a", "far", "near")] * 150, ("a", "near", "far")))
    assert len(found.worst(1_000)) == 300


def test_a_perfect_accuracy_has_an_interval_below_1(embedder):
    (one,) = evaluate_triplets(embedder(VECTORS), triplets(*[("a", "near", "far")] * 30))
    assert (one.value, one.high) == (1, 1)
    assert 0.85 < one.low < 0.95


def test_the_worst_triplets_come_with_both_pairs(embedder):
    some = triplets(("a", "near", "far"), ("a", "far", "near"), ("a", "mirror", "a"))
    (found,) = score_triplets(embedder(VECTORS), some)
    first, beside, second, _ = found.worst(5)
    assert (first.b, beside.b, second.b) == ("near", "far", "a")
    assert first.verdict.startswith("negative, nearer by 1.9")
    assert beside.verdict == "positive"
    assert first.score > beside.score
