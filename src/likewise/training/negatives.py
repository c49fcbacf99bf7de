"""Hard negatives: texts of a corpus that are near an anchor and do not belong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from likewise.data import TextTriplet, normalised
from likewise.encoder import progress_bar
from likewise.errors import InputError
from likewise.model import Model
from likewise.types import Embeddings

__all__ = ["Judge", "Limits", "Mined", "mine_negatives"]

_BLOCK = 2_048
"""Texts of the corpus that are embedded at once."""

_ANCHORS = 8_192
"""Anchors whose tokens are held at once, for similarities that look at tokens; the corpus is read once for each."""

_CELLS = 4_000_000
"""Scores that are held at once."""


@runtime_checkable
@runtime_checkable
class Judge(Protocol):
    """What scores pairs row by row, such as a cross-encoder."""

    def score(self, a: Sequence[str], b: Sequence[str]) -> Float[np.ndarray, " n"]:
        """Larger means more alike."""


@dataclass(frozen=True)
class Limits:
    """Which candidates are too near to be negatives. Scores are the judge's if there is one, else the model's."""

    skip: int = 0
    """Nearest candidates that are passed over, whatever their score."""
    window: int = 100
    """The last rank that is looked at; positives have no rank."""
    margin: float | None = 0.0
    """How far below the positive's score a negative's must be; None for no such limit."""
    relative_margin: float | None = None
    """The same as a part of the positive's score: 0.05 asks for at most 95 % of it."""
    max_score: float | None = None
    """The highest score of a negative."""

    def __post_init__(self) -> None:
        if not 0 <= self.skip < self.window:
            raise InputError(f"ranks {self.skip} to {self.window} hold no candidate; skip must be 0 or more, and less")
        for name in ("margin", "relative_margin"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(f"{name} is {value}; give 0 or more, or None for no such limit")


@dataclass(frozen=True)
class Mined:
    """Triplets, and what was left out on the way."""

    triplets: tuple[TextTriplet, ...]
    """Anchor, positive and a hard negative; for each pair the nearest first."""
    n_pairs: int
    """Pairs given."""
    n_without: int
    """Pairs for which no negative was found."""
    n_positives: int
    """Candidates that were a positive of the anchor, or the anchor itself, or equal to one but for case and signs."""
    n_margin: int
    """Candidates nearer to the positive's score than a margin allows."""
    n_max_score: int
    """Other candidates that score above `max_score`."""


def mine_negatives(
    model: Model,
    pairs: Sequence[tuple[str, str]],
    corpus: Sequence[str],
    *,
    n: int = 1,
    limits: Limits = Limits(),
    cross_encoder: Judge | None = None,
    progress: bool | None = None,
) -> Mined:
    """The nearest texts of a corpus that are no positive of the anchor and not too near.

    The model's similarity ranks the corpus for each anchor, exactly. A text of the corpus is never given back for an
    anchor if it equals the anchor or any positive that the anchor has in `pairs`, letters and digits alone compared
    (`likewise.data.normalised`); anchors that are equal in this way share their positives. Of texts of the corpus
    that are equal in this way the first stands for all. The same call gives the same triplets.

    Memory holds the pooled vectors of the anchors (or the tokens of some thousand, if the similarity looks at tokens),
    one block of the corpus, and the nearest candidates of each anchor; the corpus is never held as vectors.

    Args:
        model: Ranks the corpus, with its own similarity.
        pairs: Anchor and positive; an anchor may come with several positives, one a pair.
        corpus: Where negatives come from; it may hold anchors and positives.
        n: Negatives a pair, at most; each makes a triplet.
        limits: Which candidates are too near.
        cross_encoder: Scores the candidates and the positive of each pair in place of the model, for the limits.
        progress: Show a bar on standard error.

    Raises:
        InputError: n is below 1, there is no pair, or the corpus is empty.

    Source:
        Margins and ranks as in Moreira et al. 2024 (NV-Retriever); a cross-encoder against false negatives as in Qu
        et al. 2021 (RocketQA).
    """
    if n < 1:
        raise InputError(f"n is {n}; ask for 1 negative a pair or more")
    if not len(pairs) or not len(corpus):
        raise InputError(f"{len(pairs)} pairs and {len(corpus)} texts of the corpus; give some of both")
    by_key: dict[str, str] = {}
    for text in corpus:
        by_key.setdefault(normalised(text), text)
    keys, texts = list(by_key), list(by_key.values())
    forbidden: dict[str, set[str]] = {}
    for anchor, positive in pairs:
        key = normalised(anchor)
        forbidden.setdefault(key, {key}).add(normalised(positive))
    anchors = list(dict.fromkeys(anchor for anchor, _ in pairs))
    k = min(limits.window + max(map(len, forbidden.values())), len(texts))
    ranked = dict(zip(anchors, _ranked(model, anchors, texts, k, progress), strict=True))
    triplets: list[TextTriplet] = []
    counts = dict.fromkeys(("n_without", "n_positives", "n_margin", "n_max_score"), 0)
    for (anchor, positive), score in zip(pairs, _own_scores(model, pairs), strict=True):
        scores, places = ranked[anchor]
        free = [at for at, place in enumerate(places.tolist()) if keys[place] not in forbidden[normalised(anchor)]]
        counts["n_positives"] += len(places) - len(free)
        window = free[limits.skip : limits.window]
        candidates = [texts[places[at]] for at in window]
        found = scores[window].astype(np.float64)
        if cross_encoder is not None and candidates:
            judged = cross_encoder.score([anchor] * (1 + len(candidates)), [positive, *candidates])
            score, found = float(judged[0]), np.asarray(judged[1:], np.float64)
        near, high = _too_near(found, score, limits)
        counts["n_margin"] += int(near.sum())
        counts["n_max_score"] += int((high & ~near).sum())
        kept = [candidates[at] for at in np.flatnonzero(~(near | high))[:n]]
        counts["n_without"] += not kept
        triplets += [TextTriplet(anchor, positive, negative) for negative in kept]
    return Mined(tuple(triplets), len(pairs), **counts)


def _own_scores(model: Model, pairs: Sequence[tuple[str, str]]) -> Iterator[float]:
    """The score of each pair."""
    for start in range(0, len(pairs), _BLOCK):
        some = pairs[start : start + _BLOCK]
        yield from np.asarray(model.score([pair[0] for pair in some], [pair[1] for pair in some]), np.float64).tolist()


def _too_near(found: Float[np.ndarray, " n"], positive: float, limits: Limits) -> tuple[np.ndarray, np.ndarray]:
    """Which scores a margin forbids, and which are above the highest allowed."""
    allowed = np.inf
    if limits.margin is not None:
        allowed = positive - limits.margin
    if limits.relative_margin is not None:
        allowed = min(allowed, positive - limits.relative_margin * abs(positive))
    return found > allowed, found > (np.inf if limits.max_score is None else limits.max_score)


_Ranking = tuple[Float[np.ndarray, " k"], Int[np.ndarray, " k"]]
"""Scores of the nearest texts, nearest first, and their places in the corpus."""


def _ranked(
    model: Model, anchors: Sequence[str], texts: Sequence[str], k: int, progress: bool | None
) -> Iterator[_Ranking]:
    """For each anchor the k nearest texts; among equals the first of the corpus comes first."""
    step = _ANCHORS if model.similarity.needs_tokens else len(anchors)
    n_blocks = -(-len(anchors) // step) * -(-len(texts) // _BLOCK)
    with progress_bar(n_blocks, progress) as advance:
        for first in range(0, len(anchors), step):
            left = _embedded(model, anchors[first : first + step])
            values = np.empty((len(left), 0), np.float32)
            places = np.empty((len(left), 0), np.int64)
            for start in range(0, len(texts), _BLOCK):
                right = _embedded(model, texts[start : start + _BLOCK])
                values, places = _merged(model, left, right, start, known=(values, places), k=k)
                advance(1)
            yield from zip(values, places, strict=True)


def _merged(
    model: Model,
    left: Embeddings,
    right: Embeddings,
    start: int,
    *,
    known: tuple[np.ndarray, np.ndarray],
    k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The best k of those known and those of a block that starts at `start`."""
    new_values, new_places = [], []
    rows = max(1, _CELLS // len(right))
    numbers = np.arange(start, start + len(right))
    for first in range(0, len(left), rows):
        some = range(first, min(first + rows, len(left)))
        scores = np.asarray(model.similarity.matrix(left.select(some), right), np.float32)
        joint = np.concatenate([known[0][some], scores], axis=1)
        numbered = np.concatenate([known[1][some], np.broadcast_to(numbers, scores.shape)], axis=1)
        order = np.argsort(-joint, axis=1, kind="stable")[:, :k]  # those known come from before the block
        new_values.append(np.take_along_axis(joint, order, axis=1))
        new_places.append(np.take_along_axis(numbered, order, axis=1))
    return np.concatenate(new_values), np.concatenate(new_places)


def _embedded(model: Model, texts: Sequence[str]) -> Embeddings:
    if model.similarity.needs_tokens:
        return model.embed(texts, progress=False)
    return Embeddings.from_pooled(model.encode(texts, progress=False))
