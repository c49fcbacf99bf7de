from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from likewise.data import ArgumentPair, read_arguments
from likewise.errors import InputError
from likewise.evaluation.arguments import cross_topic, cross_validate, evaluate_arguments, folds, ridge

PAIRS = [
    ArgumentPair(topic, f"{topic} {i}", f"{topic} {(i * i + 1) % 23}", float(i % 6))
    for topic in "xyz"
    for i in range(23)
]


def test_folds_test_every_pair_once_and_spread_topics():
    splits = folds(PAIRS, 10)
    assert sorted(place for split in splits for place in split.test) == list(range(len(PAIRS)))
    for split in splits:
        assert sorted((*split.train, *split.test)) == list(range(len(PAIRS)))
        topics = [PAIRS[place].topic for place in split.test]
        assert all(2 <= topics.count(topic) <= 3 for topic in "xyz")
    assert folds(PAIRS, 10) == splits
    assert folds(PAIRS, 10, seed=1) != splits
    assert len(folds(PAIRS[:3], 10)) == 3
    assert folds(PAIRS[:1]) == folds([]) == []
    with pytest.raises(InputError, match="ask for 2 or more"):
        folds(PAIRS, 1)


def test_cross_topic_never_learns_from_the_topic_tested():
    splits = cross_topic(PAIRS)
    assert [split.name for split in splits] == ["x", "y", "z"]
    for split in splits:
        assert {PAIRS[place].topic for place in split.test} == {split.name}
        assert split.name not in {PAIRS[place].topic for place in split.train}
    assert cross_topic(PAIRS[:5]) == []


def test_a_scorer_that_knows_the_gold_is_perfect_and_a_constant_one_has_no_value():
    gold = {(pair.a, pair.b): pair.gold for pair in PAIRS}

    def knows(train):
        return lambda test: np.asarray([gold[pair.a, pair.b] for pair in test], float)

    measures = cross_validate(knows, PAIRS, cross_topic(PAIRS), task="AFS", model="oracle")
    assert [one.subset for one in measures] == ["x", "y", "z", "all"] * 2
    assert all(one.value == pytest.approx(100) for one in measures)
    assert measures[-1].n == len(PAIRS)

    renamed = [replace(pair, topic="all") if pair.topic == "x" else pair for pair in PAIRS]
    measures = cross_validate(knows, renamed, cross_topic(renamed), task="AFS", model="oracle")
    assert [one.subset for one in measures] == ["all (source)", "y", "z", "all"] * 2

    constant = cross_validate(lambda train: lambda test: np.ones(len(test)), PAIRS, folds(PAIRS), task="A", model="m")
    assert constant[-1].value is None
    assert constant[-1].reason == "fold 1: all scores are equal"
    nothing = cross_validate(knows, [], [], task="AFS", model="oracle")
    assert {one.reason for one in nothing} == {"there are too few pairs or topics to split"}


def test_ridge_learns_and_encodes_each_text_once(embedder):
    rng = np.random.default_rng(0)
    vectors = {f"{i}": rng.standard_normal(4) for i in range(150)}
    pairs = [ArgumentPair("t", f"{i}", f"{i + 1}", float(vectors[f"{i}"] @ vectors[f"{i + 1}"])) for i in range(149)]
    model = embedder(vectors)
    measures = cross_validate(ridge(model), pairs, folds(pairs, 3), task="t", model="ridge")
    assert measures[-1].value > 99
    assert sorted(model.encoded) == sorted(vectors)


def test_frozen_models_by_topic(embedder):
    vectors = {f"{topic} {i}": [1, i / 9] for topic in "xyz" for i in range(23)}
    measures = evaluate_arguments(embedder(vectors), PAIRS, n_resamples=0)
    assert [one.subset for one in measures if one.metric == "pearson"] == ["x", "y", "z", "all", "mean"]
    by_subset = {one.subset: one.value for one in measures if one.metric == "spearman"}
    assert by_subset["mean"] == pytest.approx(np.mean([by_subset[topic] for topic in "xyz"]))
    named = {"x": "all", "y": "mean", "z": "z"}
    renamed = [replace(pair, topic=named[pair.topic]) for pair in PAIRS]
    measures = evaluate_arguments(embedder(vectors), renamed, n_resamples=0)
    again = {one.subset: one.value for one in measures if one.metric == "spearman"}
    assert list(again) == ["all (source)", "mean (source)", "z", "all", "mean"]
    assert list(again.values()) == list(by_subset.values())
    empty = evaluate_arguments(embedder({}), [], n_resamples=0)
    assert all(one.value is None and one.reason for one in empty)


@pytest.mark.model
def test_a_topic_of_a_real_corpus(minilm, shared):
    pairs = read_arguments(shared / "data" / "bws_argument_similarity" / "BWS_corpus.csv")
    assert len(cross_topic(pairs)) == 8
    some = [pair for pair in pairs if pair.topic == pairs[0].topic][:200]
    measures = evaluate_arguments(minilm, some, ["cosine", "rcmd"], n_resamples=0)
    assert all(25 < one.value < 80 for one in measures)
