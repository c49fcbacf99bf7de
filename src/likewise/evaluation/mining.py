"""Mining: which pairs of a large set of texts mean the same? All pairs scored, the best kept, held against the gold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from likewise.data import DuplicateSet
from likewise.errors import InputError
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.pair_scores import rounded
from likewise.evaluation.worst import WorstPair
from likewise.kernels import top_pairs
from likewise.similarity import Similarity, by_name
from likewise.types import Embeddings

__all__ = [
    "MinedPairs",
    "closed",
    "evaluate_mining",
    "first_texts",
    "mine_pairs",
    "score_mining",
]

_CELLS = 8_000_000
"""Scores held at a time."""


@dataclass(frozen=True, eq=False)
class MinedPairs:
    """The pairs that one model finds most alike under one similarity, held against the gold."""

    task: str
    """Name of the task."""
    model: str
    """Name of the model."""
    similarity: str
    """How it compared."""
    texts: Sequence[str]
    """All texts."""
    n_gold: int
    """Pairs of the gold."""
    scores: Float[np.ndarray, " k"]
    """Of the pairs mined, best first."""
    pairs: Int[np.ndarray, "k 2"]
    """Their places."""
    right: Bool[np.ndarray, " k"]
    """Which of them the gold has."""

    def measures(self) -> list[Measure]:
        """Average precision, and F1, precision and recall at the best threshold, times 100; and that threshold."""
        values: dict[str, float | None] = dict.fromkeys(("average_precision", "f1", "precision", "recall", "threshold"))
        reason = "the gold has no pair that means the same"
        if self.n_gold:
            values |= _against_gold(self.scores, self.right, self.n_gold)
            reason = "the best scores are all equal, and more pairs have them than are kept"
        place = self.task, "all", self.model, self.similarity
        return [
            Measure(*place, metric, value, len(self.texts), reason=reason if value is None else None)
            for metric, value in values.items()
        ]

    def worst(self, k: int = 3) -> list[WorstPair]:
        """The k most alike of the pairs mined that the gold does not have: errors of the model, or of the gold."""
        listed = []
        for place in np.flatnonzero(~self.right)[:k].tolist():
            a, b = (self.texts[text] for text in self.pairs[place].tolist())
            verdict = f"mined at rank {place + 1:,}, not called the same"
            listed.append(WorstPair(self.task, self.model, self.similarity, a, b, float(self.scores[place]), verdict))
        return listed


def evaluate_mining(
    model: Embedder,
    data: DuplicateSet,
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    max_pairs: int = 200_000,
    closure: bool = True,
    task: str = "QQP mining",
    progress: bool | None = None,
) -> list[Measure]:
    """How good the mined pairs are: see `score_mining` for the arguments, `MinedPairs.measures` for the rows."""
    found = score_mining(model, data, similarities, max_pairs=max_pairs, closure=closure, task=task, progress=progress)
    return [measure for one in found for measure in one.measures()]


def score_mining(
    model: Embedder,
    data: DuplicateSet,
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    max_pairs: int = 200_000,
    closure: bool = True,
    task: str = "QQP mining",
    progress: bool | None = None,
) -> list[MinedPairs]:
    """Score all pairs of texts under each similarity, and keep the best.

    Scores are rounded as those of `score_pairs`. Pairs of equal score stand or fall together: those that share the
    score of the first pair cut off are left out, too. Recall is of all gold pairs. Precision is a lower bound where
    the gold is incomplete.

    Args:
        model: The model to evaluate.
        data: Texts and the pairs that mean the same; n counts the texts.
        similarities: Names or objects. RCMD takes minutes for thousands of texts, and the vectors of all tokens.
        max_pairs: Most pairs kept.
        closure: Count what follows from the gold, too: if a = b and b = c, then a = c.
        task: Name for the table.
        progress: Show a bar on standard error while encoding.

    Raises:
        InputError: `max_pairs` is below 1, a similarity that the model cannot serve, or a model that gives NaN.
    """
    if max_pairs < 1:
        raise InputError(f"max_pairs is {max_pairs}; ask for 1 or more")
    texts = list(data.texts)
    gold = closed(data.pairs, len(texts)) if closure else {(min(pair), max(pair)) for pair in data.pairs}
    mined = []
    for similarity in map(by_name, similarities):
        scores, pairs = np.zeros(0, np.float32), np.zeros((0, 2), np.int64)
        if gold:
            scores, pairs = mine_pairs(_vectors(model, texts, similarity, progress), similarity, max_pairs + 1)
            scores = rounded(scores)
            if len(scores) > max_pairs:
                kept = scores > scores[-1]
                scores, pairs = scores[kept], pairs[kept]
        right = np.asarray([pair in gold for pair in map(tuple, pairs.tolist())], bool)
        mined.append(MinedPairs(task, model.name, similarity.name, texts, len(gold), scores, pairs, right))
    return mined


def mine_pairs(
    embeddings: Embeddings, similarity: str | Similarity, k: int
) -> tuple[Float[np.ndarray, " k"], Int[np.ndarray, "k 2"]]:
    """The k most similar pairs of one set of texts, each once and no text with itself; memory does not grow with pairs.

    Args:
        embeddings: Of the texts; pooled ones (one token a text) are enough where the similarity looks at no tokens.
        similarity: Name or object.
        k: How many pairs; all if there are fewer.

    Returns:
        Scores, best first, and the places of both texts, the lower first; of equal scores the first places come first.

    Raises:
        InputError: k is below 1, or the similarity does not fit the embeddings.
    """
    similarity = by_name(similarity)
    if k < 1:
        raise InputError(f"k is {k}; ask for 1 or more")
    if similarity.name == "rcmd":
        return top_pairs(embeddings.tokens, embeddings.offsets, k)
    n = len(embeddings)
    scores, places = np.zeros(0, np.float32), np.zeros((0, 2), np.int64)
    step = max(1, _CELLS // max(n, 1))
    for start in range(0, n - 1, step):
        stop = min(start + step, n)
        block = np.asarray(similarity.matrix(embeddings.select(range(start, stop)), embeddings.select(range(start, n))))
        least = scores.min() if len(scores) == k else -np.inf
        row, column = np.nonzero(np.triu(block >= least, k=1))
        scores = np.concatenate([scores, block[row, column].astype(np.float32)])
        places = np.concatenate([places, np.stack([row + start, column + start], axis=1)])
        if len(scores) > k:
            kept = _best(scores, k)
            scores, places = scores[kept], places[kept]
    order = np.lexsort((places[:, 1], places[:, 0], -scores))
    return scores[order], places[order]


def closed(pairs: Iterable[tuple[int, int]], n: int) -> set[tuple[int, int]]:
    """The pairs and all that follow from them: every two texts of a chain of pairs, the lower place first."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.asarray(list(pairs), np.int64).reshape(-1, 2)
    _, cluster = connected_components(coo_array((np.ones(len(ends), bool), (ends[:, 0], ends[:, 1])), shape=(n, n)))
    members: dict[int, list[int]] = {}
    for text in np.unique(ends).tolist():
        members.setdefault(int(cluster[text]), []).append(text)
    return {(a, b) for texts in members.values() for at, a in enumerate(texts) for b in texts[at + 1 :]}


def first_texts(data: DuplicateSet, n: int, *, closure: bool = True) -> DuplicateSet:
    """The first n texts, and which of them mean the same.

    With `closure` that is also what follows from pairs with the texts left out: if a = b and b = c, then a = c.
    """
    pairs = closed(data.pairs, len(data.texts)) if closure else data.pairs
    return DuplicateSet(data.texts[:n], frozenset(pair for pair in pairs if max(pair) < n))


def _vectors(model: Embedder, texts: list[str], similarity: Similarity, progress: bool | None) -> Embeddings:
    if similarity.needs_tokens:
        return model.embed(texts, progress=progress)
    return Embeddings.from_pooled(np.asarray(model.encode(texts, progress=progress)))


def _best(scores: Float[np.ndarray, " n"], k: int) -> Int[np.ndarray, " k"]:
    """Places of the k largest; of those equal to the last of them, the first ones."""
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    kept = scores > least
    equal = np.flatnonzero(scores == least)[: k - int(kept.sum())]
    kept[equal] = True
    return np.flatnonzero(kept)


def _against_gold(
    scores: Float[np.ndarray, " n"], right: Bool[np.ndarray, " n"], n_gold: int
) -> dict[str, float | None]:
    """Mined pairs, best first, as the rows of a table; equal scores count at the last of them."""
    if not len(scores):
        return {"average_precision": 0.0, "f1": 0.0, "precision": None, "recall": 0.0, "threshold": None}
    last = np.append(np.flatnonzero(np.diff(scores) < 0), len(scores) - 1)
    found = np.cumsum(right)[last]
    precision, recall = found / (last + 1), found / n_gold
    f1 = 2 * found / (last + 1 + n_gold)
    at = int(np.argmax(f1))
    below = scores[last[at] + 1] if last[at] + 1 < len(scores) else scores[last[at]]
    return {
        "average_precision": 100 * float(np.sum(np.diff(recall, prepend=0) * precision)),
        "f1": 100 * float(f1[at]),
        "precision": 100 * float(precision[at]),
        "recall": 100 * float(recall[at]),
        "threshold": float((float(scores[last[at]]) + float(below)) / 2),
    }
