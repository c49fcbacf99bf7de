from __future__ import annotations

import numpy as np
import pytest

from likewise.data import RetrievalSet, read_beir
from likewise.errors import InputError
from likewise.evaluation import retrieval
from likewise.evaluation.retrieval import evaluate_retrieval, score_retrieval, search_scores

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


def test_the_worst_queries_come_with_what_stands_in_the_place_of_the_answer(embedder, tiny):
    queries = {"q1": "q red", "q2": "q green"}
    data = RetrievalSet(CORPUS, queries, {"q1": {"d3": 1, "d2": 1}, "q2": {"d2": 1}, "q3": {"d1": 1}})
    (found,) = score_retrieval(embedder(VECTORS), data)
    relevant, first = found.worst(5)  # q2 is right, q3 has no text
    assert (relevant.a, relevant.b, relevant.verdict) == ("q red", "green", "relevant, found at rank 3")
    assert (first.b, first.verdict) == ("red", "first of those not called relevant")
    assert first.score > relevant.score
    (found,) = score_retrieval(tiny, data, rerank="rcmd", depth=2)
    for pair in found.worst(9):
        scores = [_similarities(tiny, [pair.a], [pair.b], name)[0, 0] for name in ("cosine", "rcmd")]
        assert min(abs(pair.score - one) for one in scores) < 1e-5


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
