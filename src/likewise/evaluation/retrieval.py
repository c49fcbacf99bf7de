"""Retrieval: are the documents that answer a query found first? Exact search, every document scored."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from likewise.data import RetrievalSet
from likewise.encoder import told_once
from likewise.errors import InputError, TruncationWarning
from likewise.evaluation.example_scores import ExampleScores
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.pair_scores import rounded, score_pairs
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
    a relevant document that is not in the corpus. Of equal scores the less relevant come first. Texts that were cut
    are told once, whatever the number of similarities.

    Args:
        model: The model to evaluate.
        data: Documents, queries and what is relevant.
        similarities: Names or objects.
        rerank: A similarity that scores the first `depth` documents of each query once more, such as "rcmd".
        depth: How many; all that tie with the last of them are scored once more, too.
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
    queries = {query: query_prompt + data.queries[query] for query in asked if query in data.queries}
    documents = [document_prompt + text for text in data.corpus.values()]
    reason = None if asked else "no query has a relevant document"
    systems = []
    with warnings.catch_warnings():
        for similarity in map(by_name, similarities):
            scores = search_scores(model, list(queries.values()), documents, similarity, progress=progress)
            warnings.simplefilter("ignore", TruncationWarning)  # all texts have been read once, and cuts been told
            found, name = _Ranking(similarity.name, scores), similarity.name
            if rerank is not None:
                found = _reranked(model, list(queries.values()), documents, found, by_name(rerank), depth)
                name = f"{name}, {by_name(rerank).name} of the first {depth}"
            place = task, model.name, name
            ranked = _ranked(data, asked, queries, found.order)
            late = late_first(place, _late(ranked, queries, documents, found))
            systems.append(ExampleScores(*place, list(asked), _values(asked, ranked), reason, late))
    return systems


@dataclass(frozen=True, eq=False)
class _Ranking:
    """Documents in order for each query."""

    similarity: str
    """What scored every document."""
    scores: Float[np.ndarray, "queries documents"]
    """Its scores."""
    again: str | None = None
    """What scored some of them once more."""
    scores_again: Float[np.ndarray, "queries documents"] | None = None
    """Its scores; NaN for the others, all of which come after those."""

    @cached_property
    def order(self) -> Float[np.ndarray, "queries documents"]:
        """The larger, the earlier."""
        if self.scores_again is None:
            return self.scores
        chosen = ~np.isnan(self.scores_again)
        wide, again = self.scores.astype(np.float64), self.scores_again.astype(np.float64)
        lift = float(wide.max(initial=0) - again.min(where=chosen, initial=0)) + 1
        return np.where(chosen, again + lift, wide)

    def of(self, row: int, columns: Sequence[int]) -> tuple[list[float], str | None, str]:
        """The scores of documents that one similarity has for all, the one that put them in order; its name, and what
        is to be said of it."""
        if self.again is None or self.scores_again is None:
            return self.scores[row, columns].tolist(), None, ""
        again = self.scores_again[row, columns]
        if not np.isnan(again).any():
            return again.tolist(), self.again, ""
        note = f", beyond those that {self.again} scored: these are scores of {self.similarity}"
        return self.scores[row, columns].tolist(), self.similarity, note


@dataclass(frozen=True, eq=False)
class _Ranks:
    """Where the relevant documents of a query stand."""

    places: Int[np.ndarray, " r"]
    """Their places in the corpus."""
    degrees: Float[np.ndarray, " r"]
    """How relevant they are."""
    ranks: Int[np.ndarray, " r"]
    """Their ranks."""
    n_relevant: int
    """How many are relevant, those that are not in the corpus, too."""


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

    Returns:
        Scores rounded as those of `score_pairs`. Documents with the same text are scored once, and so are equal.

    Raises:
        InputError: The model cannot serve the similarity, or gives NaN.
    """
    similarity = by_name(similarity)
    if not queries or not documents:
        return np.empty((len(queries), len(documents)), np.float32)
    place = {text: at for at, text in enumerate(dict.fromkeys(documents))}
    with told_once():
        scores = rounded(_searched(model, queries, list(place), similarity, progress))
    return scores if len(place) == len(documents) else scores[:, [place[text] for text in documents]]


def _searched(
    model: Embedder, queries: Sequence[str], documents: Sequence[str], similarity: Similarity, progress: bool | None
) -> Float[np.ndarray, "queries documents"]:
    if not similarity.needs_tokens:
        sides = (np.asarray(model.encode(texts, progress=progress)) for texts in (queries, documents))
        left, right = map(Embeddings.from_pooled, sides)
        return np.asarray(similarity.matrix(left, right), np.float32)
    scores = np.empty((len(queries), len(documents)), np.float32)
    left = model.embed(queries, progress=progress)
    for start in range(0, len(documents), _DOCUMENTS):
        block = documents[start : start + _DOCUMENTS]
        scores[:, start : start + len(block)] = similarity.matrix(left, model.embed(block, progress=progress))
    return scores


def _reranked(
    model: Embedder,
    queries: Sequence[str],
    documents: Sequence[str],
    first: _Ranking,
    similarity: Similarity,
    depth: int,
) -> _Ranking:
    """The same with the first `depth` documents of each query, and all that tie with the last of them, scored again."""
    scores = first.scores
    n = min(depth, len(documents))
    last = -np.partition(-scores, n - 1, axis=1)[:, n - 1 : n] if n else scores
    columns, rows = np.nonzero((scores >= last).T)  # by document, so that its vectors are soon let go
    pairs = [(queries[row], documents[column]) for row, column in zip(rows.tolist(), columns.tolist(), strict=True)]
    (found,) = score_pairs(model, pairs, [similarity])
    again = np.full(scores.shape, np.nan, np.float32)
    again[rows, columns] = found
    return _Ranking(first.similarity, scores, similarity.name, again)


def _ranked(
    data: RetrievalSet,
    asked: Mapping[str, Mapping[str, int]],
    queries: Mapping[str, str],
    order: Float[np.ndarray, "queries documents"],
) -> dict[str, _Ranks]:
    """Query that has a text → where its relevant documents stand."""
    place = {document: at for at, document in enumerate(data.corpus)}
    found = {}
    for query, own in zip(queries, order, strict=True):
        there = {place[one]: float(degree) for one, degree in asked[query].items() if one in place}
        places, degrees = np.asarray(list(there), np.int64), np.asarray(list(there.values()), np.float64)
        found[query] = _Ranks(places, degrees, ranks_of(own, places, degrees), len(asked[query]))
    return found


def _late(
    ranked: Mapping[str, _Ranks], queries: Mapping[str, str], documents: Sequence[str], found: _Ranking
) -> list[Late]:
    """The queries with a relevant document too low: that, and the first one that is not relevant."""
    late, order = [], found.order
    for row, (query, own) in enumerate(ranked.items()):
        at = first_late(own.ranks)
        if at is None:
            continue
        others = order[row].astype(np.float64)
        others[own.places] = -np.inf
        pair = int(own.places[at]), int(others.argmax())
        (relevant, first), name, note = found.of(row, pair)
        precision = average_precision(own.ranks, own.n_relevant)
        texts = documents[pair[0]], documents[pair[1]]
        late.append(
            Late(queries[query], texts[0], int(own.ranks[at]), precision, relevant, texts[1], first, name, note)
        )
    return late


def _values(
    asked: Mapping[str, Mapping[str, int]], ranked: Mapping[str, _Ranks]
) -> dict[str, Float[np.ndarray, " asked"]]:
    """Metric → its value, times 100, for each query that counts."""
    nothing = _Ranks(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), 1)
    values: dict[str, list[float]] = {name: [] for name in ("ndcg@10", "mrr@10", "recall@10", "recall@100", "map")}
    for query, found in asked.items():
        own, ideal = ranked.get(query, nothing), np.asarray(list(found.values()), np.float64)
        values["ndcg@10"].append(ndcg(own.ranks, own.degrees, 10, ideal))
        values["mrr@10"].append(reciprocal_rank(own.ranks, 10))
        for k in (10, 100):
            values[f"recall@{k}"].append(recall(own.ranks, k, len(found)))
        values["map"].append(average_precision(own.ranks, len(found)))
    return {metric: 100 * np.asarray(each, np.float64) for metric, each in values.items()}
