"""The official F1 of interpretable STS: how far two chunk alignments of the same sentence pairs agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from likewise.data import ChunkAlignment, ChunkedPair
from likewise.errors import InputError
from likewise.evaluation.statistics import LEAST, RESAMPLES

__all__ = ["AlignmentF1", "alignment_f1", "alignment_sums", "f1_values", "resampled_f1", "strong_alignments"]

_PUNCTUATION = frozenset(".,:'`?;\"-")
"""A word made only of these is left out, as the official scorer does."""

_N_CREDITS = 4

_WordPairs = dict[tuple[int, int], ChunkAlignment]


@dataclass(frozen=True)
class AlignmentF1:
    """The four official numbers, 0 to 1; None where the gold aligns nothing."""

    alignment: float | None
    """Are the same words aligned?"""
    kind: float | None
    """And do the tags of the type agree? A word pair counts by the Jaccard index of its tags."""
    score: float | None
    """And do the scores agree? A word pair counts by 1 - |difference| / 5."""
    joint: float | None
    """Both: a word pair counts by the product of the two."""


def strong_alignments(pairs: Sequence[ChunkedPair], least: float = 3.0) -> list[ChunkedPair]:
    """The pairs with what the CLRCMD protocol keeps of the gold: no NOALI, no score below `least`, none without one.

    Source:
        Lee et al. 2022 (CLRCMD), section 4.3.
    """
    return [replace(pair, alignments=tuple(one for one in pair.alignments if _is_strong(one, least))) for pair in pairs]


def alignment_f1(gold: Sequence[ChunkedPair], system: Sequence[ChunkedPair]) -> AlignmentF1:
    """The official F1 values over all sentence pairs at once.

    An alignment of chunks becomes one of all their words. Words of punctuation alone are left out. A pair of words
    weighs 1 / the larger fan-out of the two; precision is the shared weight by the system's fan-outs over all that
    the system aligned, recall the shared weight by the gold's fan-outs over all that the gold aligned. A pair that
    is listed twice keeps its last type and score. An alignment without a score counts as one with score 0.

    Args:
        gold: What people aligned.
        system: What was aligned by what is measured; a sentence pair that is missing here aligns nothing.

    Raises:
        InputError: A sentence pair stands twice, is unknown to the gold or has other words there.

    Source:
        Agirre et al. 2016, SemEval-2016 task 2; Melamed 1998 for the weights.
    """
    return f1_values(alignment_sums(gold, system))


def alignment_sums(gold: Sequence[ChunkedPair], system: Sequence[ChunkedPair]) -> Float[np.ndarray, "pairs sums"]:
    """What the four values are made of, for each sentence pair of the gold, so that they can be resampled.

    Returns:
        What the gold and the system weigh; then the shared weights of the four credits, by the system's fan-outs for
        the precision and by the gold's for the recall.

    Raises:
        InputError: As `alignment_f1`.
    """
    own, others = _by_id(gold, "gold"), _by_id(system, "system")
    unknown = sorted(set(others) - set(own))
    if unknown:
        raise InputError(
            f"the system aligns sentence pair {unknown[0]}, which the gold does not have; are the files of one set?"
        )
    sums = np.zeros((len(own), 2 + 2 * _N_CREDITS))
    for row, (number, pair) in zip(sums, own.items(), strict=True):
        other = others.get(number)
        if other is not None and (pair.left.words, pair.right.words) != (other.left.words, other.right.words):
            raise InputError(
                f"sentence pair {number} has other words in the system than in the gold, so that word numbers cannot "
                "be compared; are the files of one set?"
            )
        row[:] = _sums_of(_word_pairs(pair), {} if other is None else _word_pairs(other))
    return sums


def f1_values(sums: Float[np.ndarray, "pairs sums"]) -> AlignmentF1:
    """The four values over all sentence pairs, from `alignment_sums`."""
    values = [float(_f1(sums.sum(axis=0), credit)) for credit in range(_N_CREDITS)]
    return AlignmentF1(*(None if np.isnan(value) else value for value in values))


def resampled_f1(
    sums: Float[np.ndarray, "pairs sums"], *, resamples: int = RESAMPLES, seed: int = 0
) -> Float[np.ndarray, " resamples"]:
    """The alignment F1 on resamples of the sentence pairs; NaN where a resample's gold aligns nothing.

    Equal seeds give equal resamples, so that systems can be compared in pairs. Fewer pairs than
    `likewise.evaluation.statistics.LEAST` are not resampled, and nothing is returned.

    Args:
        sums: From `alignment_sums`.
        resamples: How many.
        seed: Of the random numbers.
    """
    n = len(sums)
    if n < LEAST:
        return np.zeros(0)
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), resamples)
    return _f1(counts @ sums, 0)


def _is_strong(one: ChunkAlignment, least: float) -> bool:
    return one.kind != "NOALI" and one.score is not None and one.score >= least


def _by_id(pairs: Sequence[ChunkedPair], whose: str) -> dict[int, ChunkedPair]:
    found: dict[int, ChunkedPair] = {}
    for pair in pairs:
        if pair.id in found:
            raise InputError(f"sentence pair {pair.id} stands twice in the {whose}; give each once")
        found[pair.id] = pair
    return found


def _word_pairs(pair: ChunkedPair) -> _WordPairs:
    """Aligned words with the alignment that says so last."""
    found: _WordPairs = {}
    for one in pair.alignments:
        if one.kind == "NOALI":
            continue
        left, right = _spoken(one.left, pair.left.words), _spoken(one.right, pair.right.words)
        found.update({(i, j): one for i in left for j in right})
    return found


def _spoken(numbers: Sequence[int], words: Sequence[str]) -> list[int]:
    """The word numbers that are not punctuation."""
    return [number for number in numbers if not set(words[number - 1]) <= _PUNCTUATION]


def _weights(pairs: _WordPairs) -> dict[tuple[int, int], float]:
    left, right = Counter(i for i, _ in pairs), Counter(j for _, j in pairs)
    return {(i, j): 1 / max(left[i], right[j]) for i, j in pairs}


def _sums_of(gold: _WordPairs, system: _WordPairs) -> list[float]:
    in_gold, in_system = _weights(gold), _weights(system)
    by_system, by_gold = [0.0] * _N_CREDITS, [0.0] * _N_CREDITS
    for words in gold.keys() & system.keys():
        for at, worth in enumerate(_credits(gold[words], system[words])):
            by_system[at] += worth * in_system[words]
            by_gold[at] += worth * in_gold[words]
    return [sum(in_gold.values(), 0.0), sum(in_system.values(), 0.0), *by_system, *by_gold]


def _credits(gold: ChunkAlignment, system: ChunkAlignment) -> tuple[float, float, float, float]:
    """What an aligned pair of words is worth in each of the four values."""
    tags, others = set(gold.kind.split("_")), set(system.kind.split("_"))
    kind = len(tags & others) / len(tags | others)
    score = 1 - abs((gold.score or 0) - (system.score or 0)) / 5
    return 1.0, kind, score, kind * score


def _f1(totals: Float[np.ndarray, "*some sums"], credit: int) -> Float[np.ndarray, "*some"]:
    """NaN where the gold aligns nothing."""
    in_gold, in_system = totals[..., 0], totals[..., 1]
    by_system, by_gold = totals[..., 2 + credit], totals[..., 2 + _N_CREDITS + credit]
    with np.errstate(invalid="ignore"):
        precision, recall = np.where(in_system > 0, by_system / in_system, 0), by_gold / in_gold
        f1 = np.where(precision + recall > 0, 2 * precision * recall / (precision + recall), 0)
    return np.where(in_gold > 0, f1, np.nan)
