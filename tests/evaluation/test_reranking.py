from __future__ import annotations

import pytest

from likewise.data import RetrievalSet, read_beir
from likewise.errors import DataWarning, InputError
from likewise.evaluation.reranking import Shortlist, evaluate_reranking, hard_shortlists, score_reranking

VECTORS = {"q": [1, 0], "near": [1, 0.1], "far": [0, 1], "farther": [-1, 0]}


def measured(embedder, *lists, vectors=VECTORS):
    return {one.metric: one for one in evaluate_reranking(embedder(vectors), lists)}


def test_the_values_by_hand(embedder):
    lists = [Shortlist("q", ("near", "farther"), ("far",)), Shortlist("q", ("far",), ("near",))]
    found = measured(embedder, *lists)
    assert found["map"].value == pytest.approx(100 * ((1 + 2 / 3) / 2 + 1 / 2) / 2)
    assert found["mrr@10"].value == pytest.approx(75)
    assert found["map"].n == 2


def test_lists_that_say_nothing_are_left_out_with_a_warning(embedder):
    lists = [Shortlist("q", ("near",), ()), Shortlist("q", (), ("far",)), Shortlist("q", ("near",), ("far",))]
    with pytest.warns(DataWarning, match="2 of 3 lists were left out: without a positive or without a negative"):
        found = measured(embedder, *lists)
    assert (found["map"].value, found["map"].n) == (100, 1)
    none = measured(embedder)
    assert none["map"].value is None
    assert none["map"].reason == "no list has both positives and negatives"


def test_a_text_on_both_sides_is_refused_and_never_made():
    with pytest.raises(InputError, match="'near' is both positive and negative for 'q'"):
        Shortlist("q", ("far", "near"), ("near",))
    corpus = {"a": "red car", "copy": "red car", "b": "car"}
    assert hard_shortlists(RetrievalSet(corpus, {"q": "car"}, {"q": {"a": 1}}), 2) == [
        Shortlist("car", ("red car",), ("car",))
    ]


def test_nothing_is_won_by_a_tie(embedder):
    found = measured(embedder, Shortlist("q", ("near",), ("far", "farther")), vectors={key: [1, 1] for key in VECTORS})
    assert found["mrr@10"].value == pytest.approx(100 / 3)


def test_hard_negatives_share_words_with_the_query():
    corpus = {"a": "the red car stopped", "b": "a red car", "c": "green trees", "d": "cars and a red bus"}
    lists = hard_shortlists(RetrievalSet(corpus, {"q": "red car", "r": "trees"}, {"q": {"a": 1, "x": 1}, "r": {}}), 2)
    assert lists == [Shortlist("red car", ("the red car stopped",), ("a red car", "cars and a red bus"))]
    assert hard_shortlists(RetrievalSet(corpus, {}, {})) == []
    with pytest.raises(InputError, match="1 or more"):
        hard_shortlists(RetrievalSet(corpus, {}, {}), 0)


def test_the_worst_lists_come_with_what_stands_first(embedder):
    lists = [Shortlist("q", ("near",), ("far",)), Shortlist("q", ("farther", "far"), ("near",))]
    (found,) = score_reranking(embedder(VECTORS), lists)
    relevant, first = found.worst()
    assert (relevant.a, relevant.b, relevant.verdict) == ("q", "far", "relevant, found at rank 2")
    assert first.b == "near"


def test_a_list_whose_first_answer_is_right_is_listed_if_another_is_late(embedder):
    lists = [Shortlist("q", ("near", "farther"), ("far",)), Shortlist("q", ("near", "far"), ("farther",))]
    (found,) = score_reranking(embedder(VECTORS), lists)
    relevant, first = found.worst()
    assert (relevant.b, relevant.verdict, first.b) == ("farther", "relevant, found at rank 3", "far")


def test_one_list_has_no_interval_and_no_p_value(embedder):
    cosine, dot = score_reranking(
        embedder({**VECTORS, "far": [0.9, 3.0]}), [Shortlist("q", ("near", "farther"), ("far",))], ["cosine", "dot"]
    )
    named = {one.metric: one for one in cosine.measures()}
    assert (named["map"].low, named["map"].reason) == (
        None,
        "no interval and no test by resampling with n = 1; 10 are needed",
    )
    assert [(one.low, one.p_value) for one in dot.compare(cosine)] == [(None, None)] * 2


@pytest.mark.model
def test_scifact_in_part(minilm, shared):
    whole = read_beir(shared / "data" / "scifact")
    asked = dict(list(whole.relevant.items())[:15])
    names = {name for found in asked.values() for name in found} | set(list(whole.corpus)[:300])
    corpus = {name: whole.corpus[name][:300] for name in sorted(names)}
    lists = hard_shortlists(RetrievalSet(corpus, whole.queries, asked), 5)
    assert len(lists) == 15
    found = evaluate_reranking(minilm, lists, ["cosine", "rcmd"])
    assert [one.similarity for one in found] == ["cosine", "cosine", "rcmd", "rcmd"]
    assert all(70 < one.value <= 100 for one in found)
