"""What runs of training leave: a file of scores each, and the table of all of them."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from likewise.data import object_in
from likewise.errors import DataError
from likewise.evaluation.measures import Measure
from likewise.files import atomic_file
from likewise.recipes.typed import build

__all__ = ["Outcome", "Score", "read_outcome", "scores", "table", "write_outcome"]


@dataclass(frozen=True)
class Outcome:
    """What one run of training left."""

    seed: int
    """Its seed."""
    split: str | None
    """Fold or topic that it was tested on, for arguments."""
    folder: str
    """The trained model."""
    n_steps: int
    """Steps of the optimizer, of all stages."""
    train_s: float
    """Training alone, evaluations for the best model included; what went before an interruption is not in it."""
    data: tuple[str, ...]
    """What it was trained on, with counts."""
    digest: str
    """Of the texts and labels that it was trained on."""
    before: tuple[Measure, ...]
    """Of the base model; none for a cross-encoder, whose classifier is new."""
    after: tuple[Measure, ...]
    """Of the trained model."""


@dataclass(frozen=True)
class Score:
    """One number before and after training, over all seeds."""

    task: str
    """Data set."""
    metric: str
    """Such as "spearman"."""
    n: int
    """Examples of one seed."""
    before: Measure | None
    """Of the base model; over splits their mean."""
    after: tuple[Measure, ...]
    """Of each seed; over splits their mean."""

    @property
    def mean(self) -> float | None:
        """Over the seeds; None if a seed has no value."""
        values = [one.value for one in self.after if one.value is not None]
        return statistics.fmean(values) if values and len(values) == len(self.after) else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over the seeds; None for fewer than two."""
        values = [one.value for one in self.after if one.value is not None]
        return statistics.stdev(values) if len(values) > 1 and len(values) == len(self.after) else None


def scores(outcomes: Sequence[Outcome]) -> list[Score]:
    """Everything that was measured, in the order of the recipe."""
    found = []
    for key in dict.fromkeys((one.task, one.metric) for outcome in outcomes for one in outcome.after):
        before = _whole(one for outcome in outcomes for one in outcome.before if (one.task, one.metric) == key)
        by_seed: dict[int, list[Measure]] = {}
        for outcome in outcomes:
            of_seed = by_seed.setdefault(outcome.seed, [])
            of_seed += [one for one in outcome.after if (one.task, one.metric) == key]
        after = tuple(one for of_seed in by_seed.values() if (one := _whole(of_seed)) is not None)
        found.append(Score(*key, after[0].n, before, after))
    return found


def table(outcomes: Sequence[Outcome]) -> list[Measure]:
    """The same as measures: the base model, each seed, and the mean of several seeds."""
    found = scores(outcomes)
    rows = [one.before for one in found if one.before is not None]
    rows += [measure for one in found for measure in one.after]
    for one in found:
        if len(one.after) > 1:
            name = f"mean of {len(one.after)} seeds"
            rows.append(dataclasses.replace(one.after[0], model=name, value=one.mean, low=None, high=None))
    return rows


def write_outcome(outcome: Outcome, path: Path) -> None:
    """As JSON; the model's folder as seen from that file, so that all of it can be moved."""
    folder = os.path.relpath(outcome.folder, path.parent)
    with atomic_file(path, "w") as stream:
        json.dump({**asdict(outcome), "folder": Path(folder).as_posix()}, stream, indent=2, ensure_ascii=False)
        stream.write("\n")


def read_outcome(path: Path) -> Outcome:
    """What `write_outcome` wrote.

    Raises:
        DataError: It is damaged.
    """
    try:
        stored = build(Outcome, object_in(path.read_text(encoding="utf-8"), "it"), "it")
        return dataclasses.replace(stored, folder=str(path.parent / stored.folder))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the scores {path} ({error}); remove the folder to train it again") from error


def _whole(measures: Iterable[Measure]) -> Measure | None:
    """The mean over splits, each once; a measure of no split is itself."""
    by_subset = {one.subset: one for one in measures}
    found = list(by_subset.values())
    if len(found) < 2:
        return dataclasses.replace(found[0], subset="all") if found else None
    values = [one.value for one in found if one.value is not None]
    return dataclasses.replace(
        found[0],
        subset="all",
        value=statistics.fmean(values) if len(values) == len(found) else None,
        n=sum(one.n for one in found),
        low=None,
        high=None,
        reason=next((f"{one.subset}: {one.reason}" for one in found if one.value is None), None),
    )
