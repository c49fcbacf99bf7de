"""Triplets: is a text nearer to the one that belongs with it than to the other?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from likewise.data import TextTriplet
from likewise.evaluation.example_scores import ExampleScores
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.pair_scores import score_pairs
from likewise.evaluation.statistics import RESAMPLES
from likewise.evaluation.worst import WorstPair
from likewise.similarity import Similarity, by_name

__all__ = ["evaluate_triplets", "score_triplets"]


def score_triplets(
    model: Embedder,
    triplets: Sequence[TextTriplet],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "triplets",
    n_resamples: int = RESAMPLES,
    seed: int = 0,
    progress: bool | None = None,
) -> list[ExampleScores]:
    """Score both pairs of every triplet under each similarity; each distinct text is encoded once.

    The accuracy is 0 to 1, as Reimers & Gurevych print it. A triplet is right where the positive is strictly nearer
    than the negative: a tie is wrong, so that a constant model gets 0.

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
    systems = []
    for similarity, scores in zip(map(by_name, similarities), found, strict=True):
        place, positive, negative = (task, model.name, similarity.name), scores[0::2], scores[1::2]
        right = {"accuracy": (positive > negative).astype(np.float64)}
        reason, wrong = _no_value(positive, negative), _wrong(place, triplets, positive, negative)
        systems.append(
            ExampleScores(*place, triplets, right, reason, wrong, n_resamples=n_resamples, seed=seed, top=1.0)
        )
    return systems


def evaluate_triplets(
    model: Embedder,
    triplets: Sequence[TextTriplet],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "triplets",
    n_resamples: int = RESAMPLES,
    progress: bool | None = None,
) -> list[Measure]:
    """Accuracy under each similarity: see `score_triplets` for the arguments, `ExampleScores.measures` for the rows."""
    systems = score_triplets(model, triplets, similarities, task=task, n_resamples=n_resamples, progress=progress)
    return [measure for system in systems for measure in system.measures()]


def _no_value(positive: Float[np.ndarray, " n"], negative: Float[np.ndarray, " n"]) -> str | None:
    if not len(positive):
        return "there is no triplet"
    n_bad = int((~(np.isfinite(positive) & np.isfinite(negative))).sum())
    return f"{n_bad} of the triplets have scores that are NaN or infinite" if n_bad else None


def _wrong(
    place: tuple[str, str, str],
    triplets: Sequence[TextTriplet],
    positive: Float[np.ndarray, " n"],
    negative: Float[np.ndarray, " n"],
) -> list[list[WorstPair]]:
    """The triplets whose negative is nearest in comparison with the positive, as two pairs each."""
    margins = negative - positive
    listed = []
    for i in np.argsort(-margins, kind="stable"):
        if margins[i] >= 0:  # NaN is not
            one = triplets[i]
            negatives = WorstPair(
                *place, one.anchor, one.negative, float(negative[i]), f"negative, nearer by {margins[i]:.4f}"
            )
            listed.append([negatives, WorstPair(*place, one.anchor, one.positive, float(positive[i]), "positive")])
    return listed
