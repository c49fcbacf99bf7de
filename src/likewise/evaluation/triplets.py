"""Triplets: is a text nearer to the one that belongs with it than to the other?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from likewise.data import TextTriplet
from likewise.errors import InputError
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.pair_scores import score_pairs
from likewise.evaluation.statistics import RESAMPLES, Comparison, compare_resamples, interval_of, mcnemar, resampled
from likewise.similarity import Similarity, by_name

__all__ = ["TripletScores", "evaluate_triplets", "score_triplets"]


@dataclass(frozen=True, eq=False)
class TripletScores:
    """What one model says under one similarity about triplets."""

    task: str
    """Name of the task."""
    model: str
    """Name of the model."""
    similarity: str
    """How it compared."""
    triplets: Sequence[TextTriplet]
    """The triplets."""
    positive: Float[np.ndarray, " n"]
    """Score of each anchor with its positive; larger means more alike."""
    negative: Float[np.ndarray, " n"]
    """Score of each anchor with its negative."""
    n_resamples: int = RESAMPLES
    """Resamples of the intervals; 0 for none."""
    seed: int = 0
    """Of the resamples."""

    @property
    def right(self) -> Bool[np.ndarray, " n"]:
        """Where the positive is strictly nearer than the negative. A tie is wrong: a constant model gets 0."""
        return self.positive > self.negative

    def measures(self) -> list[Measure]:
        """Accuracy, 0 to 1 as Reimers & Gurevych print it, with its interval."""
        n, place = len(self.triplets), (self.task, "all", self.model, self.similarity, "accuracy")
        if self._reason:
            return [Measure(*place, None, n, reason=self._reason)]
        low, high = (interval_of(self._draws) if self.n_resamples else None) or (None, None)
        return [Measure(*place, float(self.right.mean()), n, low, high)]

    def compare(self, first: TripletScores) -> list[Comparison]:
        """This system minus `first`: interval by a paired bootstrap, p value by McNemar's test.

        Raises:
            InputError: The two were not measured on the same triplets with the same resamples.
        """
        if (self.seed, self.n_resamples, list(self.triplets)) != (first.seed, first.n_resamples, list(first.triplets)):
            raise InputError(
                "the two systems were not scored on the same triplets with the same seed; score both on them"
            )
        names = (f"{first.model} {first.similarity}", f"{self.model} {self.similarity}")
        if self.model == first.model:
            names = (first.similarity, self.similarity)
        place, n = (self.task, "all", "accuracy", *names), len(self.triplets)
        if self._reason or first._reason:
            return [Comparison(*place, None, n, reason=self._reason or first._reason)]
        interval = compare_resamples(first._draws, self._draws)[0] if self.n_resamples else None
        low, high = interval or (None, None)
        difference = float(self.right.mean() - first.right.mean())
        return [Comparison(*place, difference, n, low, high, mcnemar(first.right, self.right), "McNemar")]

    @property
    def _reason(self) -> str | None:
        if not len(self.triplets):
            return "there is no triplet"
        n_bad = int((~(np.isfinite(self.positive) & np.isfinite(self.negative))).sum())
        return f"{n_bad} of the triplets have scores that are NaN or infinite" if n_bad else None

    @cached_property
    def _draws(self) -> Float[np.ndarray, " resamples"]:
        return resampled("mean", self.right.astype(np.float64), resamples=self.n_resamples, seed=self.seed)


def score_triplets(
    model: Embedder,
    triplets: Sequence[TextTriplet],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "triplets",
    n_resamples: int = RESAMPLES,
    seed: int = 0,
    progress: bool | None = None,
) -> list[TripletScores]:
    """Score both pairs of every triplet under each similarity; each distinct text is encoded once.

    Args:
        model: The model to evaluate.
        triplets: Anchor, positive and negative.
        similarities: Names or objects. Distances take part as minus the distance, so that larger always means nearer.
        task: Name for the table.
        n_resamples: Resamples of the intervals; 0 for none.
        seed: Of the resamples.
        progress: Show a bar on standard error while encoding.

    Raises:
        InputError: See `score_pairs`.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 4.4; Dor et al. 2018.
    """
    texts = [(one.anchor, other) for one in triplets for other in (one.positive, one.negative)]
    found = score_pairs(model, texts, similarities, progress=progress)
    return [
        TripletScores(
            task, model.name, by_name(similarity).name, triplets, scores[0::2], scores[1::2], n_resamples, seed
        )
        for similarity, scores in zip(similarities, found, strict=True)
    ]


def evaluate_triplets(
    model: Embedder,
    triplets: Sequence[TextTriplet],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "triplets",
    n_resamples: int = RESAMPLES,
    progress: bool | None = None,
) -> list[Measure]:
    """Accuracy under each similarity: see `score_triplets` for the arguments, `TripletScores.measures` for the rows."""
    systems = score_triplets(model, triplets, similarities, task=task, n_resamples=n_resamples, progress=progress)
    return [measure for system in systems for measure in system.measures()]
