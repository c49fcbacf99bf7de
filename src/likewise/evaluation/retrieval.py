"""Retrieval: are the documents that answer a query found first? Exact search, every document scored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from likewise.data import RetrievalSet
from likewise.encoder import told_once
from likewise.errors import InputError
from likewise.evaluation.example_scores import ExampleScores
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.pair_scores import score_pairs
from likewise.evaluation.ranking import Late, average_precision, late_first, ndcg, ranks_of, recall, reciprocal_rank
from likewise.similarity import Similarity, by_name
from likewise.types import Embeddings

__all__ = ["evaluate_retrieval", "score_retrieval", "search_scores"]

_DOCUMENTS = 1_024
"""Documents whose token vectors are held at a time; half a gigabyte for long ones."""


def evaluate_retrieval(
    model: Embedder,
    data: RetrievalSet,
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    rerank: str | Similarity | None = None,
    depth: int = 100,
    task: str = "SciFact",
    query_prompt: str = "",
    document_prompt: str = "",
    progress: bool | None = None,
) -> list[Measure]:
    """nDCG, MRR, recall and MAP: see `score_retrieval` for the arguments, `ExampleScores.measures` for the rows."""
    systems = score_retrieval(
        model,
        data,
        similarities,
        rerank=rerank,
        depth=depth,
        task=task,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        progress=progress,
    )
    return [measure for system in systems for measure in system.measures()]


def score_retrieval(
    model: Embedder,
    data: RetrievalSet,
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    rerank: str | Similarity | None = None,
    depth: int = 100,
    task: str = "SciFact",
    query_prompt: str = "",
    document_prompt: str = "",
    progress: bool | None = None,
) -> list[ExampleScores]:
    """nDCG@10, MRR@10, recall@10, recall@100 and MAP over the whole list, times 100, of each query.

    Only queries for which something is relevant count. One that has no text finds nothing and counts 0, and so does
    a relevant document that is not in the corpus. Of equal scores the less relevant come first.

    Args:
        model: The model to evaluate.
        data: Documents, queries and what is relevant.
        similarities: Names or objects.
        rerank: A similarity that scores the first `depth` documents of each query once more, such as "rcmd".
        depth: How many.
        task: Name for the table.
        query_prompt: Put in front of each query.
        document_prompt: Put in front of each document.
        progress: Show a bar on standard error while encoding.

    Raises:
        InputError: `depth` is below 1, a similarity that the model cannot serve, or a model that gives NaN.

    Source:
        Thakur et al. 2021 (BEIR).
    """
    if depth < 1:
        raise InputError(f"depth is {depth}; score 1 document or more once more")
    asked = _asked(data)
    queries = [query_prompt + data.queries[query] for query in asked if query in data.queries]
    documents = [document_prompt + text for text in data.corpus.values()]
    reason = None if asked else "no query has a relevant document"
    systems = []
    for similarity in map(by_name, similarities):
        scores = search_scores(model, queries, documents, similarity, progress=progress)
        order, name = scores, similarity.name
        if rerank is not None:
            order, scores = _reranked(model, queries, documents, scores, by_name(rerank), depth)
            name = f"{name}, {by_name(rerank).name} of the first {depth}"
        place = task, model.name, name
        late = late_first(place, _late(data, asked, order, scores))
        systems.append(ExampleScores(*place, list(asked), _values(data, asked, order), reason, late))
    return systems


def _asked(data: RetrievalSet) -> dict[str, dict[str, int]]:
    """Query → its relevant documents and how relevant they are; only queries that have some."""
    gold = {
        query: {one: degree for one, degree in found.items() if degree > 0} for query, found in data.relevant.items()
    }
    return {query: found for query, found in gold.items() if found}


def search_scores(
    model: Embedder,
    queries: Sequence[str],
    documents: Sequence[str],
    similarity: str | Similarity,
    *,
    progress: bool | None = None,
) -> Float[np.ndarray, "queries documents"]:
    """Every query against every document, float32; token vectors are held for a block of documents at a time.

    Args:
        model: What turns texts into vectors.
        queries: Texts.
        documents: Texts.
        similarity: Name or object.
        progress: Show a bar on standard error while encoding.

    Raises:
        InputError: The model cannot serve the similarity, or gives NaN.
    """
    similarity = by_name(similarity)
    if not queries or not documents:
        return np.empty((len(queries), len(documents)), np.float32)
    if not similarity.needs_tokens:
        sides = (np.asarray(model.encode(texts, progress=progress)) for texts in (queries, documents))
        left, right = map(Embeddings.from_pooled, sides)
        return np.asarray(similarity.matrix(left, right), np.float32)
    scores = np.empty((len(queries), len(documents)), np.float32)
    left = model.embed(queries, progress=progress)
    with told_once():
        for start in range(0, len(documents), _DOCUMENTS):
            block = documents[start : start + _DOCUMENTS]
            scores[:, start : start + len(block)] = similarity.matrix(left, model.embed(block, progress=progress))
    return scores


def _reranked(
    model: Embedder,
    queries: Sequence[str],
    documents: Sequence[str],
    scores: Float[np.ndarray, "queries documents"],
    similarity: Similarity,
    depth: int,
) -> tuple[Float[np.ndarray, "queries documents"], Float[np.ndarray, "queries documents"]]:
    """Values by which the first `depth` documents of each query stand as `similarity` has them, above all others; and
    the scores that each document got last."""
    first = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    rows = np.repeat(np.arange(len(queries)), first.shape[1])
    by_document = np.argsort(first, axis=None, kind="stable")  # so that a document's vectors are soon let go
    rows, columns = rows[by_document], first.reshape(-1)[by_document]
    pairs = [(queries[row], documents[column]) for row, column in zip(rows.tolist(), columns.tolist(), strict=True)]
    (again,) = score_pairs(model, pairs, [similarity])
    wide, scores = scores.astype(np.float64), scores.copy()
    lift = float(wide.max(initial=0) - again.min(initial=0)) + 1
    wide[rows, columns], scores[rows, columns] = again.astype(np.float64) + lift, again
    return wide, scores


def _late(
    data: RetrievalSet,
    asked: dict[str, dict[str, int]],
    order: Float[np.ndarray, "queries documents"],
    scores: Float[np.ndarray, "queries documents"],
) -> list[Late]:
    """Each query that has a text, its first relevant document and the first other one."""
    place = {document: at for at, document in enumerate(data.corpus)}
    texts = list(data.corpus.values())
    found = []
    for row, query in enumerate(query for query in asked if query in data.queries):
        relevant = np.asarray([place[one] for one in asked[query] if one in place], np.int64)
        if not len(relevant) or len(relevant) == len(texts):
            continue
        others = order[row].astype(np.float64)
        others[relevant] = -np.inf
        best, first = int(relevant[order[row][relevant].argmax()]), int(others.argmax())
        rank = int((others >= order[row][best]).sum()) + 1
        values = float(scores[row, best]), float(scores[row, first])
        found.append(Late(data.queries[query], texts[best], rank, values[0], texts[first], values[1]))
    return found


def _values(
    data: RetrievalSet, asked: dict[str, dict[str, int]], scores: Float[np.ndarray, "queries documents"]
) -> dict[str, Float[np.ndarray, " asked"]]:
    """Metric → its value, times 100, for each query that counts."""
    place = {document: at for at, document in enumerate(data.corpus)}
    rows = iter(scores)
    values: dict[str, list[float]] = {name: [] for name in ("ndcg@10", "mrr@10", "recall@10", "recall@100", "map")}
    for query, found in asked.items():
        there = {place[one]: float(degree) for one, degree in found.items() if one in place}
        degrees, ideal = np.asarray(list(there.values())), np.asarray(list(found.values()), np.float64)
        ranks = np.zeros(0, np.int64)
        if query in data.queries:
            ranks = ranks_of(next(rows), np.asarray(list(there), np.int64), degrees)
        values["ndcg@10"].append(ndcg(ranks, degrees[: len(ranks)], 10, ideal))
        values["mrr@10"].append(reciprocal_rank(ranks, 10))
        for k in (10, 100):
            values[f"recall@{k}"].append(recall(ranks, k, len(found)))
        values["map"].append(average_precision(ranks, len(found)))
    return {metric: 100 * np.asarray(each, np.float64) for metric, each in values.items()}
