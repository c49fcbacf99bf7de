"""Semantic textual similarity: rank correlation of scores and gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.data import ScoredPair
from likewise.errors import InputError
from likewise.model import Model
from likewise.similarity import Similarity, by_name

__all__ = ["Correlation", "correlate", "evaluate_pairs"]


@dataclass(frozen=True)
class Correlation:
    """How well scores follow the gold, times 100."""

    n: int
    """Pairs."""
    spearman: float | None
    """Rank correlation, -100 to 100; None if it does not exist."""
    pearson: float | None
    """Linear correlation, -100 to 100; None if it does not exist."""
    reason: str | None = None
    """Why there is no correlation."""


def correlate(scores: Float[Any, " n"], gold: Float[Any, " gold"]) -> Correlation:
    """Spearman and Pearson, both times 100; None with a reason instead of NaN.

    Raises:
        InputError: Unequal lengths.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 4.1.
    """
    from scipy import stats

    scores, gold = np.asarray(scores, dtype=np.float64), np.asarray(gold, dtype=np.float64)
    if scores.shape != gold.shape:
        raise InputError(f"{len(scores)} scores do not fit {len(gold)} gold values")
    reason = None
    if len(scores) < 2:
        reason = f"a correlation needs two pairs or more, and there are {len(scores)}"
    elif not np.isfinite(scores).all():
        reason = f"{int((~np.isfinite(scores)).sum())} of the scores are NaN or infinite"
    elif np.ptp(scores) == 0 or np.ptp(gold) == 0:
        reason = f"all {'scores' if np.ptp(scores) == 0 else 'gold values'} are equal"
    if reason:
        return Correlation(len(scores), None, None, reason)
    spearman, pearson = stats.spearmanr(scores, gold).statistic, stats.pearsonr(scores, gold).statistic
    return Correlation(len(scores), float(100 * spearman), float(100 * pearson))


def evaluate_pairs(
    model: Model,
    pairs: Sequence[ScoredPair],
    similarities: Sequence[str | Similarity],
    *,
    special_tokens: bool = True,
    progress: bool | None = None,
) -> dict[str, Correlation]:
    """Correlation of each similarity with the gold; every distinct sentence is encoded once.

    Args:
        model: The model to evaluate.
        pairs: Sentences and their gold scores.
        similarities: Names or objects.
        special_tokens: Let special tokens take part.
        progress: Show a bar on standard error while encoding.

    Returns:
        By the name of the similarity, in the order given.
    """
    rows: dict[str, int] = {}
    for text in (text for pair in pairs for text in (pair.a, pair.b)):
        rows.setdefault(text, len(rows))
    embeddings = model.embed(list(rows), special_tokens=special_tokens, progress=progress)
    a = embeddings.select([rows[pair.a] for pair in pairs])
    b = embeddings.select([rows[pair.b] for pair in pairs])
    gold = np.asarray([pair.gold for pair in pairs])
    chosen = [by_name(similarity) for similarity in similarities]
    return {similarity.name: correlate(similarity.score(a, b), gold) for similarity in chosen}
