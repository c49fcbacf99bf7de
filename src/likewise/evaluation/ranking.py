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

__all__ = [
    "Late",
    "average_precision",
    "first_late",
    "late_first",
    "ndcg",
    "ranks_of",
    "recall",
    "reciprocal_rank",
]


_FIRST = "first of those not called relevant"


@dataclass(frozen=True)
class Late:
    """A query, what should stand higher, and what stands above it."""

    query: str
    """What was asked."""
    relevant: str
    """The first relevant text below one that is not relevant."""
    rank: int
    """Its rank."""
    average_precision: float
    """Of the whole query, 0 to 1."""
    relevant_score: float
    """Score of that relevant text."""
    first: str
    """The text that comes first of those that are not relevant."""
    first_score: float
    """Its score, of the same similarity."""
    compared_by: str | None = None
    """Name of that similarity, where the system has several."""
    note: str = ""
    """What else is to be said of the rank."""


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


def first_late(ranks: Int[np.ndarray, " r"]) -> int | None:
    """Place of the first relevant document that stands below one that is not relevant; None if none does."""
    order = np.argsort(ranks)
    late = np.flatnonzero(ranks[order] > np.arange(1, len(ranks) + 1))
    return int(order[late[0]]) if len(late) else None


def late_first(place: tuple[str, str, str], queries: Sequence[Late]) -> list[list[WorstPair]]:
    """The queries of the lowest average precision first, as two pairs each: the text too low, and that above it.

    Args:
        place: Task, model and similarity.
        queries: Those with a relevant text that stands too low.
    """
    listed = []
    for one in sorted(queries, key=lambda one: (one.average_precision, one.relevant_score - one.first_score)):
        found = f"relevant, found at rank {one.rank:,}{one.note}"
        pairs = (one.relevant, one.relevant_score, found), (one.first, one.first_score, _FIRST)
        listed.append([WorstPair(*place, one.query, *pair, compared_by=one.compared_by) for pair in pairs])
    return listed
