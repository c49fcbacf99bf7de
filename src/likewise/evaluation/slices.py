"""Which kinds of pairs a system is good at."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from likewise.data import ScoredPair
from likewise.evaluation.measures import Measure
from likewise.evaluation.sts import METRICS, SystemScores, correlate

__all__ = ["measure_slices", "slices_of"]

_WORD = re.compile(r"\d+(?:[.,:]\d+)+|\w+(?:['’]\w+)*|n't")
_NEGATION = frozenset("no not nor none nobody nothing neither never nowhere cannot without n't".split())
_NUMBER_WORDS = frozenset(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion".split()
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")

_SHORT, _LONG = 8, 16
_LITTLE, _MUCH = 1 / 3, 2 / 3


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
