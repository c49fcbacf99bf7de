"""Reranking: short lists of candidates for a query, in which what belongs to it should come first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.data import RetrievalSet
from likewise.errors import DataWarning, InputError, MissingExtraError, warn
from likewise.evaluation.example_scores import ExampleScores
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.pair_scores import score_pairs
from likewise.evaluation.ranking import Late, average_precision, first_late, late_first, ranks_of, reciprocal_rank
from likewise.similarity import Similarity, by_name

__all__ = ["Shortlist", "evaluate_reranking", "hard_shortlists", "lists_that_order", "score_reranking"]


@dataclass(frozen=True)
class Shortlist:
    """A query and the texts to be ordered for it.

    Raises:
        InputError: A text is both positive and negative.
    """

    query: str
    """What is asked."""
    positives: tuple[str, ...]
    """Texts that belong to it."""
    negatives: tuple[str, ...]
    """Texts that do not."""

    def __post_init__(self) -> None:
        both = next((text for text in self.positives if text in set(self.negatives)), None)
        if both is not None:
            raise InputError(f"{both!r} is both positive and negative for {self.query!r}; keep it on one side")


def evaluate_reranking(
    model: Embedder,
    lists: Sequence[Shortlist],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "reranking",
    progress: bool | None = None,
) -> list[Measure]:
    """MAP and MRR@10: see `score_reranking` for the arguments, `ExampleScores.measures` for the rows."""
    systems = score_reranking(model, lists, similarities, task=task, progress=progress)
    return [measure for system in systems for measure in system.measures()]


def score_reranking(
    model: Embedder,
    lists: Sequence[Shortlist],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "reranking",
    progress: bool | None = None,
) -> list[ExampleScores]:
    """MAP and MRR@10, times 100, of each list under each similarity; each distinct text is encoded once.

    A list without positives or without negatives says nothing about order and is left out with one `DataWarning` for
    all; n counts the others. Of equal scores the negatives come first.

    Args:
        model: The model to evaluate.
        lists: Queries with their candidates.
        similarities: Names or objects.
        task: Name for the table.
        progress: Show a bar on standard error while encoding.

    Raises:
        InputError: A similarity that the model cannot serve, or a model that gives NaN.
    """
    lists = lists_that_order(lists)
    pairs = [(one.query, text) for one in lists for text in (*one.positives, *one.negatives)]
    found = score_pairs(model, pairs, similarities, progress=progress)
    ends = np.cumsum([len(one.positives) + len(one.negatives) for one in lists])[:-1]
    reason = None if lists else "no list has both positives and negatives"
    systems = []
    for similarity, scores in zip(map(by_name, similarities), found, strict=True):
        values: dict[str, list[float]] = {"map": [], "mrr@10": []}
        late = []
        for one, own in zip(lists, np.split(scores, ends), strict=False):
            n = len(one.positives)
            ranks = ranks_of(own, np.arange(n), np.ones(n))
            precision = average_precision(ranks, n)
            values["map"].append(100 * precision)
            values["mrr@10"].append(100 * reciprocal_rank(ranks, 10))
            at = first_late(ranks)
            if at is not None:
                other = int(own[n:].argmax())
                place = one.query, one.positives[at], int(ranks[at]), precision, float(own[at])
                late.append(Late(*place, one.negatives[other], float(own[n + other])))
        name = task, model.name, similarity.name
        each = {metric: np.asarray(found, np.float64) for metric, found in values.items()}
        systems.append(ExampleScores(*name, lists, each, reason, late_first(name, late)))
    return systems


def lists_that_order(lists: Sequence[Shortlist]) -> list[Shortlist]:
    """The lists with both positives and negatives; one `DataWarning` says how many were left out."""
    kept = [one for one in lists if one.positives and one.negatives]
    if len(kept) < len(lists):
        warn(
            f"{len(lists) - len(kept):,} of {len(lists):,} lists were left out: without a positive or without a "
            "negative there is nothing to order",
            DataWarning,
        )
    return kept


def hard_shortlists(data: RetrievalSet, n_negatives: int = 50) -> list[Shortlist]:
    """A list for each query with a relevant document: those, and the best others by tf-idf.

    Args:
        data: Documents, queries and what is relevant.
        n_negatives: Most documents that are not relevant; only such as share a word with the query, and have another
            text than the relevant ones.

    Raises:
        InputError: `n_negatives` is below 1.
        MissingExtraError: scikit-learn is not installed.
    """
    if n_negatives < 1:
        raise InputError(f"{n_negatives} negatives leave nothing to order; ask for 1 or more")
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "eval", "shortlists by tf-idf") from error
    asked = {
        query: {one for one, degree in found.items() if degree > 0 and one in data.corpus}
        for query, found in data.relevant.items()
        if query in data.queries
    }
    asked = {query: found for query, found in asked.items() if found}
    if not asked:
        return []
    names, texts = list(data.corpus), list(data.corpus.values())
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    documents = vectorizer.fit_transform(texts).T.tocsc()
    lists = []
    for query, found in asked.items():
        shared = (vectorizer.transform([data.queries[query]]) @ documents).toarray()[0]
        order = [int(place) for place in np.argsort(-shared, kind="stable") if shared[place] > 0]
        positives = tuple(data.corpus[one] for one in sorted(found))
        others = [place for place in order if names[place] not in found and texts[place] not in positives]
        lists.append(Shortlist(data.queries[query], positives, tuple(texts[place] for place in others[:n_negatives])))
    return lists
