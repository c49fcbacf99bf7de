"""The pairs of texts that weigh most against a system, and why it scored them so."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from likewise.errors import InputError, TruncationWarning
from likewise.evaluation.sts import UNNORMALISED, SystemScores, TaskScores
from likewise.explain import Explanation
from likewise.model import Model
from likewise.similarity import Similarity, by_name

__all__ = ["WorstPair", "explain_worst", "worst_pairs"]


@dataclass(frozen=True, eq=False)
class WorstPair:
    """A pair of texts that a system gets wrong."""

    task: str
    """Data set."""
    model: str
    """Name of the model."""
    similarity: str
    """How it compared."""
    a: str
    """First text."""
    b: str
    """Second text."""
    score: float
    """What the system said."""
    verdict: str
    """What is wrong with that, such as "+83 percentiles: found too alike" or "relevant, found at rank 57"."""
    gold: float | None = None
    """What people said, where they gave numbers."""
    explanation: Explanation | None = None
    """Why the system said so; None if its similarity is no sum over pairs of tokens, or see `unexplained`."""
    compared_by: str | None = None
    """Name of the similarity that gave this score, where a system has several; None where it has one."""
    prompt: str | None = None
    """What stood in front of both texts when they were scored; None for the model's own."""
    unexplained: str | None = None
    """Why there is no explanation, although the similarity has one."""


def worst_pairs(system: SystemScores, task: str, k: int = 10) -> list[WorstPair]:
    """The k pairs of a task whose percentile by score is farthest from that by gold, the worst first.

    Args:
        system: What a system says.
        task: Name of one of its tasks.
        k: Pairs wanted; fewer if the task has fewer, none where the system's scores are NaN.

    Raises:
        InputError: The system has no such task, or k is below 0.
    """
    if k < 0:
        raise InputError(f"{k} worst pairs cannot be listed; give 0 or more")
    chosen = next((one for one in system.tasks if one.task == task), None)
    if chosen is None:
        raise InputError(f"no task {task!r} was scored; there are {', '.join(one.task for one in system.tasks)}")
    differences = _differences(chosen)
    listed = []
    for i in np.argsort(-np.abs(differences), kind="stable")[:k]:
        pair, found = chosen.pairs[i], "too alike" if differences[i] > 0 else "too unlike"
        verdict = f"{differences[i]:+.0f} percentiles: found {found}"
        place, scaled = (task, system.model, system.similarity), None
        if system.similarity.endswith(UNNORMALISED):
            scaled = "it was scored with vectors before their final scaling to length 1, which no explanation has"
        score = float(chosen.scores[i])
        listed.append(WorstPair(*place, pair.a, pair.b, score, verdict, pair.gold, unexplained=scaled))
    return listed


def explain_worst(
    model: Model, worst: Sequence[WorstPair], similarity: str | Similarity, *, special_tokens: bool = True
) -> list[WorstPair]:
    """The same pairs with the explanations of their scores.

    Unchanged are those that a distance scored, which has none. Where the score cannot be explained as it was found,
    the pair stays without an explanation, too, and its verdict says so.

    Args:
        model: The model that scored them.
        worst: The pairs.
        similarity: What scored those that name no other in `compared_by`.
        special_tokens: Whether special tokens took part.
    """
    chosen = by_name(similarity)
    others = {name: by_name(name) for pair in worst if (name := pair.compared_by) not in (None, chosen.name)}
    return [_explained(model, pair, others.get(pair.compared_by or "", chosen), special_tokens) for pair in worst]


def _explained(model: Model, pair: WorstPair, similarity: Similarity, special_tokens: bool) -> WorstPair:
    if similarity.name in ("euclidean", "manhattan"):
        return pair
    if pair.unexplained is not None:
        return replace(pair, verdict=f"{pair.verdict} (not explained: {pair.unexplained})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)  # the explanation says it itself
        found = model.explain(pair.a, pair.b, similarity=similarity, special_tokens=special_tokens, prompt=pair.prompt)
    return replace(pair, explanation=found)


def _differences(task: TaskScores) -> Float[np.ndarray, " n"]:
    """Percentile by score minus percentile by gold."""
    from scipy.stats import rankdata

    if not len(task.pairs) or not np.isfinite(task.scores).all():
        return np.zeros(0)
    return 100 * (rankdata(task.scores) - rankdata(task.gold)) / len(task.pairs)
