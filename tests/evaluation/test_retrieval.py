from __future__ import annotations

import numpy as np
import pytest

from likewise.data import RetrievalSet, read_beir
from likewise.errors import InputError, TruncationWarning
from likewise.evaluation import retrieval
from likewise.evaluation.retrieval import evaluate_retrieval, score_retrieval, search_scores
from likewise.evaluation.worst import explain_worst

CORPUS = {"d1": "red", "d2": "green", "d3": "blue", "d4": "dark red"}
VECTORS = {"red": [1, 0], "green": [0, 1], "blue": [-1, 0], "dark red": [1, 0.1], "q red": [1, 0.02], "q green": [0, 1]}


def measured(embedder, relevant, queries=None, vectors=VECTORS, **options):
    queries = queries or {"q1": "q red", "q2": "q green"}
    found = evaluate_retrieval(embedder(vectors), RetrievalSet(CORPUS, queries, relevant), **options)
    return {one.metric: one for one in found}


def test_the_values_by_hand(embedder):
    found = measured(embedder, {"q1": {"d4": 1}, "q2": {"d2": 1}})
    assert found["mrr@10"].value == pytest.approx(100 * (1 / 2 + 1) / 2)
    assert found["map"].value == pytest.approx(75)
    assert found["ndcg@10"].value == pytest.approx(50 * (1 / np.log2(3) + 1))
    assert found["recall@10"].value == 100
    assert found["map"].n == 2


def test_missing_queries_documents_and_judgements(embedder):
    found = measured(embedder, {"q1": {"d1": 1, "gone": 1}, "q2": {"d2": 0}, "nowhere": {"d1": 1}})
    assert found["map"].n == 2
    assert found["map"].value == pytest.approx(100 * (1 / 2 + 0) / 2)
    assert found["recall@100"].value == pytest.approx(25)
    none = measured(embedder, {"q1": {}})
    assert none["map"].value is None
    assert none["map"].reason == "no query has a relevant document"


def test_nothing_is_won_by_a_constant_model(embedder):
    constant = {key: [1.0, 1.0] for key in VECTORS}
    found = measured(embedder, {"q1": {"d1": 1}}, vectors=constant)
    assert found["mrr@10"].value == pytest.approx(25)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "rcmd"])
def test_documents_with_the_same_text_tie_wherever_they_stand(embedder, similarity):
    rng = np.random.default_rng(0)
    others = [f"x{i}" for i in range(99)]
    vectors = {text: rng.standard_normal(384) for text in ["same", *others, *(f"q{i}" for i in range(60))]}
    queries = {f"q{i}": f"q{i}" for i in range(60)}
    corpus = {"first": "same", **{text: text for text in others}, "last": "same"}
    scores = search_scores(embedder(vectors), list(queries), list(corpus.values()), similarity)
    assert (scores[:, 0] == scores[:, -1]).all()
    once = search_scores(embedder(vectors), list(queries), ["same"], similarity)[:, 0]
    assert np.allclose(scores[:, 0], once, rtol=1e-5, atol=1e-6)
    found = [
        evaluate_retrieval(
            embedder(vectors), RetrievalSet(some, queries, {key: {"first": 1} for key in queries}), [similarity]
        )
        for some in (corpus, dict(reversed(corpus.items())))
    ]
    assert found[0] == found[1]


def test_what_is_equal_but_for_rounding_ties(tiny):
    scores = search_scores(tiny, ["a plane"], ["a plane", "A plane", "a  plane", "dogs"], "cosine")
    assert set(scores[0, :3].tolist()) == {1.0}


@pytest.mark.parametrize("depth", [1, 2])
def test_at_the_last_place_scored_once_more_no_order_of_documents_counts(embedder, depth):
    constant = {key: [1.0, 1.0] for key in VECTORS}
    for names in (["d1", "d2", "d3"], ["d2", "d3", "d1"]):
        data = RetrievalSet({name: CORPUS[name] for name in names}, {"q1": "q red"}, {"q1": {"d1": 1}})
        found = {
            one.metric: one.value for one in evaluate_retrieval(embedder(constant), data, rerank="rcmd", depth=depth)
        }
        assert found["mrr@10"] == pytest.approx(100 / 3)
        assert found["ndcg@10"] == pytest.approx(50)


def test_a_model_that_gives_nan_is_refused(embedder):
    with pytest.raises(InputError, match="NaN"):
        measured(embedder, {"q1": {"d1": 1}}, vectors={**VECTORS, "red": [np.nan, 0]})


def test_prompts_are_put_in_front(embedder):
    found = measured(
        embedder, {"q2": {"d2": 1}}, {"q2": "green"}, query_prompt="q ", vectors={**VECTORS, "green": [0, 1]}
    )
    assert found["map"].value == 100


@pytest.mark.parametrize("similarity", ["cosine", "rcmd"])
def test_blocks_do_not_matter(tiny, monkeypatch, similarity):
    queries, documents = ["a plane", "the cats"], ["A plane is taking off.", "cats", "dogs", "a man plays", "café"]
    whole = search_scores(tiny, queries, documents, similarity)
    monkeypatch.setattr(retrieval, "_DOCUMENTS", 2)
    assert search_scores(tiny, queries, documents, similarity) == pytest.approx(whole, abs=1e-5)
    assert whole == pytest.approx(_similarities(tiny, queries, documents, similarity), abs=1e-5)
    assert search_scores(tiny, queries, [], similarity).shape == (2, 0)


def _similarities(model, queries, documents, similarity):
    return np.asarray(
        [[model.explain(query, one, similarity=similarity).score for one in documents] for query in queries]
    )


def test_reranking_orders_the_first_ones_by_the_other_similarity(tiny):
    texts = ["A plane is taking off.", "cats and dogs", "a man plays a flute", "it is raining", "an air plane"]
    corpus = {f"d{i}": text for i, text in enumerate(texts)}
    query = "the plane is taking off"
    by_rcmd = _similarities(tiny, [query], texts, "rcmd")[0].tolist()
    for target in corpus:
        data = RetrievalSet(corpus, {"q": query}, {"q": {target: 1}})
        found = {one.metric: one for one in evaluate_retrieval(tiny, data, rerank="rcmd", depth=5)}
        rank = sorted(by_rcmd, reverse=True).index(by_rcmd[int(target[1])]) + 1
        assert found["mrr@10"].value == pytest.approx(100 / rank)
        assert found["mrr@10"].similarity == "cosine, rcmd of the first 5"
        one = {one.metric: one for one in evaluate_retrieval(tiny, data, rerank="rcmd", depth=1)}
        plain = {one.metric: one for one in evaluate_retrieval(tiny, data)}
        assert one["mrr@10"].value == plain["mrr@10"].value
    with pytest.raises(InputError, match="depth is 0"):
        evaluate_retrieval(tiny, data, rerank="rcmd", depth=0)


def test_the_worst_queries_come_with_what_stands_in_the_place_of_the_answer(embedder):
    queries = {"q1": "q red", "q2": "q green"}
    data = RetrievalSet(CORPUS, queries, {"q1": {"d3": 1, "d2": 1}, "q2": {"d2": 1}, "q3": {"d1": 1}})
    (found,) = score_retrieval(embedder(VECTORS), data)
    relevant, first = found.worst(5)  # q2 is right, q3 has no text
    assert (relevant.a, relevant.b, relevant.verdict) == ("q red", "green", "relevant, found at rank 3")
    assert (first.b, first.verdict) == ("red", "first of those not called relevant")
    assert first.score > relevant.score
    data = RetrievalSet(CORPUS, queries, {"q1": {"d1": 1, "d2": 1}})  # the first answer is right, another one late
    (found,) = score_retrieval(embedder(VECTORS), data)
    late, other = found.worst(5)
    assert (late.b, late.verdict, other.b) == ("green", "relevant, found at rank 3", "dark red")


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_both_numbers_of_a_query_are_of_one_similarity_which_explains_them_with_the_prompts(tiny, depth):
    texts = ["A plane is taking off.", "cats and dogs", "a man plays a flute", "it is raining", "an air plane"]
    queries = {f"q{i}": text for i, text in enumerate(texts)}
    relevant = {f"q{i}": {f"d{(i + 2) % 5}": 1, "d4": 1} for i in range(5)}
    data = RetrievalSet({f"d{i}": text for i, text in enumerate(texts)}, queries, relevant)
    prompts = {"query_prompt": "query: ", "document_prompt": "passage: "}
    (found,) = score_retrieval(tiny, data, rerank="rcmd", depth=depth, **prompts)
    listed = explain_worst(tiny, found.worst(9), "cosine")
    assert len(listed) == 2 * len(queries)
    for late, first in zip(listed[::2], listed[1::2], strict=True):
        assert late.compared_by == first.compared_by
        beyond = "beyond those that rcmd scored: these are scores of cosine" in late.verdict
        assert late.compared_by == ("cosine" if beyond else "rcmd")
        for pair in (late, first):
            assert (pair.a[:7], pair.b[:9]) == ("query: ", "passage: ")
            assert pair.explanation.similarity == pair.compared_by
            assert pair.explanation.score == pytest.approx(pair.score, abs=1e-5)
        assert first.score >= late.score
    compared = {pair.compared_by for pair in listed}
    assert compared == {1: {"cosine"}, 2: {"cosine", "rcmd"}, 5: {"rcmd"}}[depth]


def test_cut_texts_are_told_once_whatever_is_done_with_them(tiny):
    long = " ".join(["word"] * 100)
    data = RetrievalSet({"d1": long, "d2": "dogs", "d3": long + " too"}, {"q": long + " yes"}, {"q": {"d1": 1}})
    with pytest.warns(TruncationWarning) as told:
        score_retrieval(tiny, data, ["cosine", "rcmd"], rerank="rcmd")
    (one,) = told
    assert "3 of 4 texts are longer" in str(one.message)
    with pytest.warns(TruncationWarning):  # and the next model tells again
        score_retrieval(tiny, data)


def test_two_similarities_are_compared_query_by_query(embedder):
    data = RetrievalSet(CORPUS, {"q1": "q red", "q2": "q green"}, {"q1": {"d1": 1}, "q2": {"d2": 1}})
    cosine, dot = score_retrieval(embedder({**VECTORS, "red": [2, 0]}), data, ["cosine", "dot"])
    found = {one.metric: one for one in dot.compare(cosine)}
    assert found["mrr@10"].difference == pytest.approx(0)
    assert found["mrr@10"].test == "paired bootstrap"


@pytest.mark.model
def test_scifact_in_part(minilm, shared):
    whole = read_beir(shared / "data" / "scifact")
    asked = dict(list(whole.relevant.items())[:20])
    names = {name for found in asked.values() for name in found} | set(list(whole.corpus)[:100])
    data = RetrievalSet({name: whole.corpus[name][:300] for name in sorted(names)}, whole.queries, asked)
    found = {one.metric: one for one in evaluate_retrieval(minilm, data)}
    assert found["ndcg@10"].n == 20
    assert found["ndcg@10"].value > 75
