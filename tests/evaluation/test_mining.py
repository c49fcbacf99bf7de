from __future__ import annotations

import numpy as np
import pytest

from likewise.data import BinaryPair, DuplicateSet, duplicates_among, read_qqp
from likewise.errors import InputError
from likewise.evaluation import mining
from likewise.evaluation.mining import (
    closed,
    evaluate_mining,
    first_texts,
    mine_pairs,
    score_mining,
)
from likewise.similarity import by_name
from likewise.types import Embeddings

ANGLES = {"a": 0, "a too": 2, "b": 50, "b too": 53, "c": 120, "d": 125}
VECTORS = {text: [np.cos(np.radians(angle)), np.sin(np.radians(angle))] for text, angle in ANGLES.items()}


def measured(embedder, pairs, vectors=VECTORS, **options):
    data = DuplicateSet(tuple(vectors), frozenset(pairs))
    return {one.metric: one for one in evaluate_mining(embedder(vectors), data, **options)}


def test_the_values_by_hand(embedder):
    found = measured(embedder, {(0, 1), (2, 3), (0, 5)}, closure=False)
    assert found["precision"].value == 100
    assert found["recall"].value == pytest.approx(200 / 3)
    assert found["f1"].value == pytest.approx(80)
    between = (np.cos(np.radians(3)) + np.cos(np.radians(5))) / 2
    assert found["threshold"].value == pytest.approx(between, abs=1e-6)
    # The third gold pair, 125 degrees apart, is the last of the 15.
    assert found["average_precision"].value == pytest.approx(100 * (1 + 1 + 3 / 15) / 3)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "rcmd"])
@pytest.mark.parametrize("k", [1, 7, 60, 10_000])
def test_mined_pairs_are_those_of_brute_force(monkeypatch, similarity, k):
    monkeypatch.setattr(mining, "_CELLS", 200)
    vectors = np.random.default_rng(0).standard_normal((30, 8)).astype(np.float32)
    embeddings = Embeddings.from_pooled(vectors)
    table = np.asarray(by_name(similarity).matrix(embeddings, embeddings))
    rows, columns = np.triu_indices(30, 1)
    best = np.argsort(-table[rows, columns], kind="stable")[:k]
    scores, pairs = mine_pairs(embeddings, similarity, k)
    assert scores == pytest.approx(table[rows, columns][best], abs=1e-5)
    assert set(map(tuple, pairs.tolist())) == set(zip(rows[best].tolist(), columns[best].tolist(), strict=True))


def test_of_equal_scores_the_first_places_are_kept(monkeypatch):
    monkeypatch.setattr(mining, "_CELLS", 8)
    embeddings = Embeddings.from_pooled(np.ones((6, 2), np.float32))
    _, pairs = mine_pairs(embeddings, "dot", 7)
    assert pairs.tolist() == [[0, 1], [0, 2], [0, 3], [0, 4], [0, 5], [1, 2], [1, 3]]
    with pytest.raises(InputError, match="k is 0"):
        mine_pairs(embeddings, "dot", 0)


def test_nothing_is_won_by_a_constant_model(embedder):
    constant = {key: [1.0, 0.0] for key in VECTORS}
    cut = measured(embedder, {(0, 1)}, constant, max_pairs=3)
    assert (cut["f1"].value, cut["average_precision"].value) == (0, 0)
    assert cut["threshold"].reason == "the best scores are all equal, and more pairs have them than are kept"
    whole = measured(embedder, {(0, 1)}, constant)
    assert whole["precision"].value == pytest.approx(100 / 15)


@pytest.mark.parametrize("k", [1, 2, 14, 15, 16])
def test_no_more_pairs_are_kept_than_asked_for_and_none_is_lost_without_a_tie(embedder, k):
    data = DuplicateSet(tuple(VECTORS), frozenset({(0, 1)}))
    (found,) = score_mining(embedder(VECTORS), data, max_pairs=k)
    assert len(found.scores) == min(k, 15)
    assert found.measures()[1].value > 0
    twins = {**VECTORS, "c too": VECTORS["c"], "d too": VECTORS["d"]}  # two pairs of score 1, and two by two of others
    (found,) = score_mining(embedder(twins), DuplicateSet(tuple(twins), data.pairs), max_pairs=k)
    assert len(found.scores) == {1: 0, 2: 2, 14: 14, 15: 14, 16: 16}[k]
    with pytest.raises(InputError, match="max_pairs is 0"):
        score_mining(embedder(VECTORS), data, max_pairs=0)


def test_empty_sets_and_nan(embedder):
    none = measured(embedder, set())
    assert none["f1"].value is None
    assert "no pair" in none["f1"].reason
    assert measured(embedder, set(), {"a": [1, 0]})["f1"].value is None
    with pytest.raises(InputError, match="NaN"):
        measured(embedder, {(0, 1)}, {**VECTORS, "a": [np.nan, 0]})


def test_what_follows_from_the_gold_counts(embedder):
    assert closed({(0, 1), (1, 4), (2, 3)}, 6) == {(0, 1), (0, 4), (1, 4), (2, 3)}
    assert closed(set(), 3) == set()
    pairs = {(0, 1), (1, 2)}
    assert measured(embedder, pairs)["recall"].value != measured(embedder, pairs, closure=False)["recall"].value


def test_what_follows_by_a_text_left_out_still_counts():
    data = DuplicateSet(tuple("abcd"), frozenset({(0, 3), (1, 3)}))
    assert first_texts(data, 3) == DuplicateSet(tuple("abc"), frozenset({(0, 1)}))
    assert first_texts(data, 3, closure=False).pairs == frozenset()


def test_ones_own_pairs_are_all_texts_and_what_is_the_same():
    pairs = [BinaryPair("b", "a", False), BinaryPair("c", "b", True), BinaryPair("c", "c", True)]
    assert duplicates_among(pairs) == DuplicateSet(("b", "a", "c"), frozenset({(0, 2)}))
    assert duplicates_among([]) == DuplicateSet((), frozenset())


def test_the_worst_pairs_are_the_most_alike_that_the_gold_does_not_have(embedder):
    data = DuplicateSet(tuple(VECTORS), frozenset({(0, 1)}))
    (found,) = score_mining(embedder(VECTORS), data)
    first, second = found.worst(2)
    assert (first.a, first.b, first.verdict) == ("b", "b too", "mined at rank 2, not called the same")
    assert (second.a, second.b) == ("c", "d")
    assert first.score == pytest.approx(np.cos(np.radians(3)), abs=1e-6)


@pytest.mark.model
def test_quora_in_part(minilm, shared):
    some = read_qqp(shared / "data" / "qqp", "dev")[:300]
    place = {text: at for at, text in enumerate(dict.fromkeys(text for pair in some for text in (pair.a, pair.b)))}
    gold = {(place[pair.a], place[pair.b]) for pair in some if pair.same}
    found = {one.metric: one for one in evaluate_mining(minilm, DuplicateSet(tuple(place), frozenset(gold)))}
    assert found["f1"].value > 60
    assert 0.5 < found["threshold"].value < 1
