"""Similarity of arguments (AFS and its kin): frozen models, and scorers that are trained within or across topics.

frozen        the similarity itself against the gold, topic by topic
folds         10-fold cross-validation: each fold holds a tenth of every topic
cross-topic   trained on all topics but one and tested on that one

Folds are of pairs, as in the papers, so that an argument can occur on both sides of a fold; only cross-topic shows
what a scorer does with arguments that it has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from likewise.data import ArgumentPair, ScoredPair
from likewise.errors import InputError, MissingExtraError
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.statistics import RESAMPLES
from likewise.evaluation.sts import METRICS, SystemScores, correlate, score_sts, subset_of
from likewise.similarity import Similarity

__all__ = [
    "Fit",
    "Scorer",
    "Split",
    "cross_topic",
    "cross_validate",
    "evaluate_arguments",
    "folds",
    "ridge",
    "score_arguments",
]

Scorer: TypeAlias = Callable[[Sequence[ArgumentPair]], Float[Any, " n"]]
"""Pairs → a score for each; larger means more alike."""

Fit: TypeAlias = Callable[[Sequence[ArgumentPair]], Scorer]
"""Pairs with gold → a scorer that learned from them: what a training recipe, or `ridge`, gives."""


@dataclass(frozen=True)
class Split:
    """Which pairs to learn from and which to test on."""

    name: str
    """The topic tested on, or the number of the fold."""
    train: tuple[int, ...]
    """Places of the pairs to learn from."""
    test: tuple[int, ...]
    """Places of the pairs to test on."""


def evaluate_arguments(
    model: Embedder,
    pairs: Sequence[ArgumentPair],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "AFS",
    n_resamples: int = RESAMPLES,
    progress: bool | None = None,
) -> list[Measure]:
    """Pearson and Spearman: see `score_arguments` for the arguments, `SystemScores.measures` for the rows."""
    systems = score_arguments(model, pairs, similarities, task=task, n_resamples=n_resamples, progress=progress)
    return [measure for system in systems for measure in system.measures()]


def score_arguments(
    model: Embedder,
    pairs: Sequence[ArgumentPair],
    similarities: Sequence[str | Similarity] = ("cosine",),
    *,
    task: str = "AFS",
    n_resamples: int = RESAMPLES,
    progress: bool | None = None,
) -> list[SystemScores]:
    """Pearson and Spearman, times 100, of a frozen model: each topic, the "mean" over topics, and "all" pairs.

    Args:
        model: The model to evaluate.
        pairs: Arguments of any number of topics.
        similarities: Names or objects.
        task: Name for the table.
        n_resamples: Resamples of the intervals; 0 for none.
        progress: Show a bar on standard error while encoding.

    Raises:
        InputError: A similarity that the model cannot serve, or a model that gives NaN.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 4.3; Misra et al. 2016 (AFS).
    """
    topics: dict[str, list[ScoredPair]] = {}
    for pair in pairs:
        topics.setdefault(pair.topic, []).append(ScoredPair(pair.a, pair.b, pair.gold))
    return score_sts(model, {task: topics or {"all": []}}, similarities, n_resamples=n_resamples, progress=progress)


def folds(pairs: Sequence[ArgumentPair], n: int = 10, seed: int = 0) -> list[Split]:
    """Splits in which each pair is tested once, and each topic is spread evenly over the tests.

    Args:
        pairs: Arguments of any number of topics.
        n: How many; as many as there are pairs if those are fewer, none for fewer than two pairs.
        seed: Of the shuffle within topics.

    Raises:
        InputError: n is below 2.
    """
    if n < 2:
        raise InputError(f"{n} folds leave nothing to learn from; ask for 2 or more")
    n = min(n, len(pairs))
    rng = np.random.default_rng(seed)
    order = [place for places in _by_topic(pairs).values() for place in rng.permutation(places).tolist()]
    tests = [sorted(order[fold::n]) for fold in range(n)] if n > 1 else []
    return [Split(f"fold {number}", _others(pairs, test), tuple(test)) for number, test in enumerate(tests, start=1)]


def cross_topic(pairs: Sequence[ArgumentPair]) -> list[Split]:
    """One split a topic, in order of appearance: tested on it, learned from the others; none for a single topic."""
    topics = _by_topic(pairs)
    if len(topics) < 2:
        return []
    return [Split(topic, _others(pairs, test), tuple(test)) for topic, test in topics.items()]


def cross_validate(
    fit: Fit, pairs: Sequence[ArgumentPair], splits: Sequence[Split], *, task: str, model: str
) -> list[Measure]:
    """Pearson and Spearman, times 100, of trained scorers: of each split, and their mean as "all".

    Args:
        fit: Called once a split with the pairs to learn from.
        pairs: Those that `splits` speaks of.
        splits: From `folds` or `cross_topic`.
        task: Name for the table, such as "AFS cross-topic".
        model: Name of what is trained.

    Raises:
        InputError: A scorer does not give one score a pair.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 4.3.
    """
    found: dict[str, list[Measure]] = {metric: [] for metric in METRICS}
    for split in splits:
        scorer = fit([pairs[place] for place in split.train])
        test = [pairs[place] for place in split.test]
        result = correlate(np.asarray(scorer(test)), np.asarray([pair.gold for pair in test]))
        for metric, measures in found.items():
            value: float | None = getattr(result, metric)
            place = task, subset_of(split.name), model, ""
            measures.append(Measure(*place, metric, value, result.n, reason=result.reason))
    return [one for metric, measures in found.items() for one in (*measures, _mean(measures, task, model, metric))]


def ridge(model: Embedder, *, progress: bool | None = None) -> Fit:
    """A light scorer to train: ridge regression on `|u - v|` and `u * v` of frozen vectors.

    The strength of its penalty is chosen by leaving out one pair at a time. Every text is encoded once, however many
    splits there are. It stands where Misra et al. have a support vector regression on handmade features.

    Args:
        model: Its pooled vectors are u and v.
        progress: Show a bar on standard error while encoding.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    try:
        from sklearn.linear_model import RidgeCV
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "eval", "ridge regression") from error
    known: dict[str, Any] = {}

    def features(pairs: Sequence[ArgumentPair]) -> Float[np.ndarray, "n features"]:
        new = [text for text in dict.fromkeys(text for pair in pairs for text in (pair.a, pair.b)) if text not in known]
        known.update(zip(new, model.encode(new, progress=progress), strict=True))
        u, v = (np.stack([known[getattr(pair, side)] for pair in pairs]) for side in "ab")
        return np.concatenate([np.abs(u - v), u * v], axis=1).astype(np.float64)

    def fit(pairs: Sequence[ArgumentPair]) -> Scorer:
        regression = RidgeCV(alphas=np.logspace(-3, 3, 13))
        regression.fit(features(pairs), np.asarray([pair.gold for pair in pairs]))

        def scorer(tested: Sequence[ArgumentPair]) -> Float[Any, " n"]:
            return regression.predict(features(tested))

        return scorer

    return fit


def _by_topic(pairs: Sequence[ArgumentPair]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for place, pair in enumerate(pairs):
        topics.setdefault(pair.topic, []).append(place)
    return topics


def _others(pairs: Sequence[ArgumentPair], test: Sequence[int]) -> tuple[int, ...]:
    tested = set(test)
    return tuple(place for place in range(len(pairs)) if place not in tested)


def _mean(measures: Sequence[Measure], task: str, model: str, metric: str) -> Measure:
    n = sum(measure.n for measure in measures)
    reason = next((f"{one.subset}: {one.reason}" for one in measures if one.value is None), None)
    if not measures:
        reason = "there are too few pairs or topics to split"
    value = None if reason else float(np.mean([one.value for one in measures if one.value is not None]))
    return Measure(task, "all", model, "", metric, value, n, reason=reason)
