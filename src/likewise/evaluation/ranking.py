"""Ranked lists against what is relevant: nDCG, MRR, recall and MAP from the ranks of the relevant documents alone.

Nothing is won by a tie: among equal scores the documents that are not relevant come first, then those that are less.
So the numbers do not depend on the order of the documents, and a model that gives all the same score gets the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from likewise.evaluation.worst import WorstPair

__all__ = ["Late", "average_precision", "late_first", "ndcg", "ranks_of", "recall", "reciprocal_rank"]

_LISTED = 100
"""Most queries that are kept as the worst."""


@dataclass(frozen=True)
class Late:
    """A query, what should come first, and what does."""

    query: str
    """What was asked."""
    relevant: str
    """The relevant text that comes first of all relevant ones."""
    rank: int
    """Its rank."""
    relevant_score: float
    """Its score."""
    first: str
    """The text that comes first of those that are not relevant."""
    first_score: float
    """Its score."""


def ranks_of(
    scores: Float[np.ndarray, " documents"], relevant: Int[np.ndarray, " r"], degrees: Float[np.ndarray, " r"]
) -> Int[np.ndarray, " r"]:
    """The rank of each relevant document, 1 for the first.

    Args:
        scores: Of every document for one query.
        relevant: Places of the relevant documents.
        degrees: How relevant each of them is.
    """
    own = scores[relevant]
    others = np.sort(np.delete(scores, relevant))
    above = len(others) - np.searchsorted(others, own, side="left")  # those with the same score, too
    best_first = np.lexsort((degrees, -own))
    places = np.empty(len(relevant), np.int64)
    places[best_first] = np.arange(len(relevant))
    return above + places + 1


def ndcg(
    ranks: Int[np.ndarray, " r"], degrees: Float[np.ndarray, " r"], k: int, ideal: Float[np.ndarray, " all"]
) -> float:
    """Normalised discounted cumulative gain of the first k: gain = degree, discount = log2(rank + 1).

    Args:
        ranks: Of the relevant documents that there are.
        degrees: How relevant each of them is.
        k: How far down the list counts.
        ideal: Degrees of all relevant documents, those that are nowhere in the list too.

    Source:
        Järvelin & Kekäläinen 2002, with the linear gain of trec_eval.
    """
    seen = ranks <= k
    best = np.sort(ideal)[::-1][:k]
    gain = float(np.sum(degrees[seen] / np.log2(ranks[seen] + 1)))
    return gain / float(np.sum(best / np.log2(np.arange(len(best)) + 2)))


def reciprocal_rank(ranks: Int[np.ndarray, " r"], k: int) -> float:
    """1 / the rank of the first relevant document; 0 if it is not among the first k."""
    first = int(ranks.min(initial=np.iinfo(np.int64).max))
    return 1 / first if first <= k else 0.0


def recall(ranks: Int[np.ndarray, " r"], k: int, n_relevant: int) -> float:
    """The part of the relevant documents that is among the first k."""
    return float(np.count_nonzero(ranks <= k)) / n_relevant


def average_precision(ranks: Int[np.ndarray, " r"], n_relevant: int) -> float:
    """Mean precision at the ranks of the relevant documents; 0 for those that are nowhere in the list."""
    return float(np.sum(np.arange(1, len(ranks) + 1) / np.sort(ranks))) / n_relevant


def late_first(place: tuple[str, str, str], queries: Sequence[Late]) -> list[list[WorstPair]]:
    """The queries whose first relevant text comes latest, as two pairs each: that text, and the one in its place.

    Args:
        place: Task, model and similarity.
        queries: Those that have relevant texts.
    """
    late = [one for one in queries if one.rank > 1]
    late.sort(key=lambda one: (-one.rank, one.relevant_score - one.first_score))
    return [
        [
            WorstPair(*place, one.query, one.relevant, one.relevant_score, f"relevant, found at rank {one.rank:,}"),
            WorstPair(*place, one.query, one.first, one.first_score, "first of those not called relevant"),
        ]
        for one in late[:_LISTED]
    ]
