"""Which kinds of pairs a system is good at, and the pairs that it gets most wrong."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from likewise.data import ScoredPair
from likewise.errors import InputError, TruncationWarning
from likewise.evaluation.measures import Measure
from likewise.evaluation.sts import METRICS, SystemScores, TaskScores, correlate
from likewise.explain import Explanation
from likewise.model import Model
from likewise.similarity import Similarity, by_name

__all__ = ["WorstPair", "explain_worst", "measure_slices", "slices_of", "worst_pairs"]

_WORD = re.compile(r"\d+(?:[.,:]\d+)+|\w+(?:['’]\w+)*|n't")
_NEGATION = frozenset("no not nor none nobody nothing neither never nowhere cannot without n't".split())
_NUMBER_WORDS = frozenset(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion".split()
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")

_SHORT, _LONG = 8, 16
_LITTLE, _MUCH = 1 / 3, 2 / 3


@dataclass(frozen=True, eq=False)
class WorstPair:
    """A pair whose place among all pairs by score is far from its place by gold."""

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
    gold: float
    """What people said."""
    score: float
    """What the system said."""
    difference: float
    """Percentile by score minus percentile by gold, -100 to 100: above 0 the system finds them too alike."""
    explanation: Explanation | None = None
    """Why the system said so; None if its similarity is no sum over pairs of tokens."""


def slices_of(pairs: Sequence[ScoredPair]) -> dict[str, Bool[np.ndarray, " n"]]:
    """Slice → which pairs are in it. The slices of one kind, such as length, hold each pair once.

    - length: mean number of words of the two texts, below 8, 8 to 15, or 16 and more;
    - overlap: words in both over words in either (Jaccard, lower-cased), below 1/3, below 2/3, or more;
    - negation: an English negation in neither text, in one of them, in both;
    - numbers: digits or English number words: none, the same in both, others.
    """
    words = [([_words(pair.a), _words(pair.b)]) for pair in pairs]
    kinds: dict[str, Callable[[list[list[str]]], str]] = {
        "length": _length,
        "overlap": _overlap,
        "negation": _negation,
        "numbers": _numbers,
    }
    found: dict[str, Bool[np.ndarray, " n"]] = {}
    for kind, name in kinds.items():
        names = np.asarray([name(pair) for pair in words], dtype=str)
        for value in _ORDER[kind]:
            found[f"{kind}: {value}"] = names == value
    return found


def measure_slices(system: SystemScores) -> list[Measure]:
    """Correlations, times 100, within each slice that has a pair, over all pairs of each task; n stands with each.

    A correlation within a slice is lower than over all pairs where its gold values lie closer together: compare
    systems on one slice, not one system on two slices.
    """
    measures = []
    for task in system.tasks:
        for name, members in slices_of(task.pairs).items():
            if not members.any():
                continue
            found = correlate(task.scores[members], task.gold[members])
            for metric in METRICS:
                value = getattr(found, metric)
                row = Measure(task.task, name, system.model, system.similarity, metric, value, found.n)
                measures.append(replace(row, reason=found.reason))
    return measures


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
    order = np.argsort(-np.abs(differences), kind="stable")[:k]
    return [
        WorstPair(
            task,
            system.model,
            system.similarity,
            chosen.pairs[i].a,
            chosen.pairs[i].b,
            chosen.pairs[i].gold,
            float(chosen.scores[i]),
            float(differences[i]),
        )
        for i in order
    ]


def explain_worst(
    model: Model, worst: Sequence[WorstPair], similarity: str | Similarity, *, special_tokens: bool = True
) -> list[WorstPair]:
    """The same pairs with their explanations; unchanged for a distance, which has none."""
    if by_name(similarity).name in ("euclidean", "manhattan"):
        return list(worst)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)  # the explanation says it itself
        found = [model.explain(pair.a, pair.b, similarity=similarity, special_tokens=special_tokens) for pair in worst]
    return [replace(pair, explanation=one) for pair, one in zip(worst, found, strict=True)]


def _differences(task: TaskScores) -> Float[np.ndarray, " n"]:
    from scipy.stats import rankdata

    if not len(task.pairs) or not np.isfinite(task.scores).all():
        return np.zeros(0)
    return 100 * (rankdata(task.scores) - rankdata(task.gold)) / len(task.pairs)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


_ORDER: Mapping[str, tuple[str, ...]] = {
    "length": (f"below {_SHORT} words", f"{_SHORT} to {_LONG - 1} words", f"{_LONG} words and more"),
    "overlap": ("below 1/3", "1/3 to 2/3", "2/3 and more"),
    "negation": ("in neither", "in one", "in both"),
    "numbers": ("none", "the same", "others"),
}


def _length(pair: list[list[str]]) -> str:
    mean = (len(pair[0]) + len(pair[1])) / 2
    return _ORDER["length"][0 if mean < _SHORT else 1 if mean < _LONG else 2]


def _overlap(pair: list[list[str]]) -> str:
    a, b = map(set, pair)
    shared = len(a & b) / max(len(a | b), 1)
    return _ORDER["overlap"][0 if shared < _LITTLE else 1 if shared < _MUCH else 2]


def _negation(pair: list[list[str]]) -> str:
    negated = [any(word in _NEGATION or word.endswith(("n't", "n’t")) for word in side) for side in pair]
    return _ORDER["negation"][sum(negated)]


def _numbers(pair: list[list[str]]) -> str:
    a, b = ({word for word in side if word in _NUMBER_WORDS or _NUMBER.fullmatch(word)} for side in pair)
    return _ORDER["numbers"][0 if not a | b else 1 if a == b else 2]
