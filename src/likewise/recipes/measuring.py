"""What a recipe measures before and after training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from likewise.data import (
    STS_SOURCES,
    ScoredPair,
    TextTriplet,
    read_articles,
    read_ists,
    read_section_triplets,
    read_sick,
    read_sts,
    read_stsb,
    section_triplets,
)
from likewise.errors import InputError
from likewise.evaluation import Measure, correlate, evaluate_ists, evaluate_sts, evaluate_triplets
from likewise.evaluation.statistics import interval_of, resampled, too_few
from likewise.model import CrossEncoder, Model

__all__ = ["measured", "spearman"]

_RESAMPLES = 1_000


@runtime_checkable
class Scores(Protocol):
    """Anything that scores pairs row by row: a model, or a cross-encoder."""

    def score(self, a: Sequence[str], b: Sequence[str]) -> Float[np.ndarray, " n"]:
        """Larger means more alike."""


def measured(
    model: Model | CrossEncoder, names: Sequence[str], folder: Path, *, limit: int | None = None
) -> list[Measure]:
    """Everything that a recipe reports, under the model's own similarity.

    Args:
        model: A model or a cross-encoder.
        names: Of `REPORTS`.
        folder: Where the data sets are.
        limit: Pairs of each set at most, the first ones.

    Raises:
        InputError: A set that a cross-encoder cannot be measured on.
        DataError: A set is missing or broken.
    """
    found: list[Measure] = []
    for name in names:
        if name in ("stsb-dev", "stsb-test", "sick", "sts"):
            found += _sts(model, name, folder, limit)
            continue
        if not isinstance(model, Model):
            raise InputError(f"a cross-encoder has no {name}, which needs a vector a text; leave it out")
        if name == "sections":
            task, triplets = _sections(folder)
            found += evaluate_triplets(model, triplets[:limit], [model.similarity], task=task, n_resamples=_RESAMPLES)
        else:
            subset = name.removeprefix("ists-")
            pairs = read_ists(folder, subset, "test")[:limit]
            rows = evaluate_ists(model, pairs, [model.similarity], subset=subset)
            found += [replace(one, task=f"iSTS {subset}", subset="all") for one in rows if one.metric == "alignment_f1"]
    return found


def spearman(model: Scores, pairs: Sequence[ScoredPair]) -> float | None:
    """Spearman's correlation, times 100, of scores and gold; None if it does not exist."""
    scores = np.asarray(model.score([pair.a for pair in pairs], [pair.b for pair in pairs]), np.float64)
    return correlate(scores, np.asarray([pair.gold for pair in pairs])).spearman


def _sts(model: Model | CrossEncoder, name: str, folder: Path, limit: int | None) -> list[Measure]:
    tasks = {
        task: {source: pairs[:limit] for source, pairs in sources.items()} for task, sources in _tasks(name, folder)
    }
    if isinstance(model, Model):
        rows = evaluate_sts(model, tasks, [model.similarity], n_resamples=_RESAMPLES)
        return [one for one in rows if one.metric == "spearman" and one.subset == "all"]
    rows = []
    for task, sources in tasks.items():
        pairs = [pair for some in sources.values() for pair in some]
        rows.append(_spearman_of(model, task, pairs))
    return rows


def _spearman_of(model: CrossEncoder, task: str, pairs: Sequence[ScoredPair]) -> Measure:
    scores = np.asarray(model.score([pair.a for pair in pairs], [pair.b for pair in pairs]), np.float64)
    gold = np.asarray([pair.gold for pair in pairs])
    found, interval = correlate(scores, gold), None
    if found.spearman is not None:
        interval = interval_of(100 * resampled("spearman", scores, gold, resamples=_RESAMPLES))
    low, high = interval or (None, None)
    reason = found.reason or too_few(len(pairs))
    return Measure(task, "all", model.name, "", "spearman", found.spearman, len(pairs), low, high, reason)


def _sections(folder: Path) -> tuple[str, list[TextTriplet]]:
    """The triplets of Dor et al. where they are at hand, else those of articles that no recipe trains on."""
    published = folder / "wikipedia-sections-triplets" / "test.csv"
    if published.is_file():
        return "sections", read_section_triplets(published)
    return "sections of WikiText-2 test", section_triplets(read_articles(folder / "wikitext2" / "test.txt"))


def _tasks(name: str, folder: Path) -> list[tuple[str, dict[str, Sequence[ScoredPair]]]]:
    if name == "sts":
        return [(year, dict(read_sts(folder, year))) for year in STS_SOURCES]
    if name == "sick":
        return [("SICK-R", {"test": read_sick(folder, "test")})]
    split = name.removeprefix("stsb-")
    return [(f"STS-b {split}", {split: read_stsb(folder, split)})]
