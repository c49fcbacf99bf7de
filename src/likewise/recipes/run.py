"""Run a recipe: read, train every seed, measure before and after, write the card."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from likewise.data import ArgumentPair, read_stsb
from likewise.errors import InputError
from likewise.evaluation import Measure, Split, correlate, cross_topic, folds
from likewise.files import atomic_file
from likewise.model import CrossEncoder, Model, at_hand
from likewise.model.folder import read_folder
from likewise.model.sources import find
from likewise.objectives import Contrastive, Matryoshka, Objective, Regression, Softmax, Triplet
from likewise.recipes.card import write_card
from likewise.recipes.data import Counted, examples_of, read_arguments_part
from likewise.recipes.measuring import measured, spearman
from likewise.recipes.recipe import ObjectivePart, Recipe, Stage
from likewise.training import Dataset, TrainableEncoder, TrainingConfig, train, train_cross_encoder

__all__ = ["Outcome", "Plan", "plan", "run"]

_N_CLASSES = 3
"""Of natural language inference."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A recipe with everything settled that depends on this machine."""

    recipe: Recipe
    """As it will run: its size, its base and its precision settled."""
    size: str
    """The size asked for."""
    base: str
    """The base model that is taken."""
    data: Path
    """Where the data sets are."""
    notes: tuple[str, ...]
    """What differs from the paper, and why."""


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
    """Steps of the optimizer."""
    seconds_s: float
    """Training alone."""
    data: tuple[str, ...]
    """What it was trained on, with counts."""
    before: tuple[Measure, ...]
    """Of the base model."""
    after: tuple[Measure, ...]
    """Of the trained one."""


def plan(recipe: Recipe, size: str, data: Path, *, model: str | None = None) -> Plan:
    """Settle what depends on this machine, and say what differs from the paper.

    Args:
        recipe: Of the size to run.
        size: Its name.
        data: Where the data sets are.
        model: A base model in place of the recipe's.

    Raises:
        ModelNotFoundError: The base model is not at hand.
        InputError: The data folder does not exist.
    """
    if not data.is_dir():
        raise InputError(f"no data folder {data}; name the one that holds the data sets with --data")
    notes = [] if size == "full" else [f"size {size}: a small-scale check, not a reproduction"]
    base = model or _first_at_hand(recipe.model.base)
    if base != recipe.model.base[0]:
        notes.append(f"base model {base} in place of {recipe.model.base[0]}")
    changed = recipe.model
    spec = None if recipe.model.kind == "cross-encoder" else read_folder(find(base).folder)
    if spec is not None and (changed.pooling is not None or changed.projection != "none"):
        notes.append("the base is a sentence model: it keeps its own pooling and head, and gets no new head")
        changed = dataclasses.replace(changed, pooling=None, projection="none")
    stages = recipe.stages
    if not torch.cuda.is_available() and any(stage.training.precision == "float16" for stage in stages):
        notes.append("precision float32 in place of float16, which needs a GPU")
        stages = tuple(_in_float32(stage) for stage in stages)
    settled = dataclasses.replace(recipe, model=dataclasses.replace(changed, base=(base,)), stages=stages)
    return Plan(settled, size, base, data, tuple(notes))


def run(
    plan: Plan,
    output: Path,
    *,
    resume: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> list[Outcome]:
    """Train every seed (and every split) of a recipe, one after another.

    Each run has a folder of its own below `output` with the model, its card and `scores.json`. Under `torchrun` all
    processes train, and the first one measures and writes.

    Args:
        plan: What to run.
        output: Folder for the runs.
        resume: Go on where an earlier call stopped; finished runs are not repeated.
        say: Told in one line what happens.

    Raises:
        InputError: `output` holds runs and `resume` is False, or the recipe cannot be run.
        TrainingError: The loss became NaN.
    """
    splits = _splits(plan)
    outcomes = []
    for seed in plan.recipe.seeds:
        for split in splits:
            name = f"seed-{seed}" + (f"-{split.name.replace(' ', '-')}" if split else "")
            folder = output / name
            done = folder / "scores.json"
            if resume and done.exists():
                outcomes.append(_read_outcome(done))
                say(f"{name}: finished before")
                continue
            say(f"{name}: training {plan.base}")
            outcomes.append(_one(plan, folder, seed, split, resume))
    if _is_first():
        for outcome in outcomes:
            write_card(Path(outcome.folder), plan.recipe, plan.size, plan.notes, outcome, outcomes)
    return outcomes


def datasets_of(stage: Stage, plan: Plan, seed: int) -> list[Counted]:
    """What a stage is trained on."""
    return [examples_of(part, plan.data, seed=seed) for part in stage.data]


def settings_of(stage: Stage, seed: int) -> TrainingConfig:
    """How a stage is trained."""
    return TrainingConfig(seed=seed, **asdict(stage.training))


def encoder_of(plan: Plan, seed: int) -> TrainableEncoder:
    """The base model, ready to be trained."""
    part = plan.recipe.model
    return TrainableEncoder.from_folder(
        plan.base,
        pooling=part.pooling,
        projection=part.projection,
        keep_projection=part.keep_projection,
        max_length=part.max_length,
        seed=seed,
    )


# ------------------------------------------------------------------------------------------ one run


def _one(plan: Plan, folder: Path, seed: int, split: Split | None, resume: bool) -> Outcome:
    start = time.perf_counter()
    if plan.recipe.model.kind == "cross-encoder":
        trained, n_steps, counts = _train_cross_encoder(plan, folder, seed, resume)
    else:
        trained, n_steps, counts = _train_stages(plan, folder, seed, split, resume)
    seconds_s = time.perf_counter() - start
    before, after = (_measures(plan, where, split) if _is_first() else () for where in (plan.base, str(trained)))
    outcome = Outcome(seed, split.name if split else None, str(trained), n_steps, seconds_s, counts, before, after)
    if _is_first():
        with atomic_file(folder / "scores.json", "w") as stream:
            json.dump(asdict(outcome), stream, indent=2, ensure_ascii=False)
    return outcome


def _train_stages(
    plan: Plan, folder: Path, seed: int, split: Split | None, resume: bool
) -> tuple[Path, int, tuple[str, ...]]:
    encoder = encoder_of(plan, seed)
    n_steps, counts, last = 0, [], len(plan.recipe.stages) - 1
    for number, stage in enumerate(plan.recipe.stages):
        read = datasets_of(stage, plan, seed) if split is None else [_learned(plan, stage, split)]
        result = train(
            encoder,
            _objective(stage.objective, encoder),
            [Dataset(one.name, one.columns, one.labels, part.weight) for one, part in zip(read, stage.data, strict=True)],
            settings_of(stage, seed),
            output=folder if number == last else folder / f"stage-{number + 1}",
            evaluate=_judge(plan),
            similarity=plan.recipe.model.similarity,
            resume=resume,
        )
        n_steps += result.n_steps
        counts += [f"{len(one)} rows: {one.name}" for one in read]
    return result.folder, n_steps, tuple(counts)


def _train_cross_encoder(plan: Plan, folder: Path, seed: int, resume: bool) -> tuple[Path, int, tuple[str, ...]]:
    stage = plan.recipe.stages[0]
    if len(plan.recipe.stages) > 1 or stage.objective.kind not in ("regression", "softmax"):
        raise InputError("a cross-encoder is trained in one stage, by 'regression' or 'softmax'; change the recipe")
    read = datasets_of(stage, plan, seed)
    regression = stage.objective.kind == "regression"
    result = train_cross_encoder(
        CrossEncoder.load(plan.base, n_labels=1 if regression else _N_CLASSES, seed=seed),
        [Dataset(one.name, one.columns, one.labels, part.weight) for one, part in zip(read, stage.data, strict=True)],
        settings_of(stage, seed),
        output=folder,
        evaluate=_judge(plan),
        resume=resume,
    )
    return result.folder, result.n_steps, tuple(f"{len(one)} rows: {one.name}" for one in read)


def _objective(part: ObjectivePart, encoder: TrainableEncoder) -> Objective:
    made: Objective
    if part.kind == "softmax":
        made = Softmax(encoder.dim, _N_CLASSES, part.concatenation)
    elif part.kind == "regression":
        made = Regression(part.similarity, low=0.0, high=1.0)
    elif part.kind == "triplet":
        made = Triplet(part.margin, part.metric)
    elif part.kind == "contrastive":
        made = Contrastive(part.similarity, part.temperature)
    else:
        raise InputError(
            f"unknown objective {part.kind!r}; known are softmax, regression, triplet, contrastive"
        )
    return Matryoshka(made, part.dims) if part.dims else made


def _judge(plan: Plan) -> Callable[[Any], float | None] | None:
    """How good a model is, for choosing the best one of a run."""
    dev = plan.recipe.evaluation.dev
    if dev is None:
        return None
    if dev != "stsb-dev":
        raise InputError(f"unknown dev set {dev!r}; known is stsb-dev")
    pairs = read_stsb(plan.data, "dev")[: plan.recipe.evaluation.limit]
    return lambda model: spearman(model, pairs)


# ------------------------------------------------------------------------------------------ arguments


def _splits(plan: Plan) -> Sequence[Split | None]:
    kind = plan.recipe.evaluation.splits
    if kind is None:
        return [None]
    if kind not in ("folds", "cross-topic"):
        raise InputError(f"unknown splits {kind!r}; known are folds and cross-topic")
    pairs = _arguments(plan)
    found = folds(pairs) if kind == "folds" else cross_topic(pairs)
    return found[: plan.recipe.evaluation.n_splits]


def _arguments(plan: Plan) -> list[ArgumentPair]:
    return read_arguments_part(plan.recipe.stages[0].data[0], plan.data)


def _learned(plan: Plan, stage: Stage, split: Split) -> Counted:
    pairs = _arguments(plan)
    kept = [pairs[place] for place in split.train][: stage.data[0].limit]
    columns = ([pair.a for pair in kept], [pair.b for pair in kept])
    name = f"arguments of {', '.join(stage.data[0].paths)} without {split.name}"
    return Counted(name, columns, [pair.gold for pair in kept], len(pairs), 0)


def _measures(plan: Plan, base: str, split: Split | None) -> tuple[Measure, ...]:
    evaluation = plan.recipe.evaluation
    if plan.recipe.model.kind == "cross-encoder":
        if base == plan.base:
            return ()  # a head that nobody trained says nothing
        return tuple(measured(CrossEncoder.load(base), evaluation.report, plan.data, limit=evaluation.limit))
    own = read_folder(find(base).folder)
    model = Model.load(
        base,
        similarity=plan.recipe.model.similarity,
        pooling=None if own is not None else plan.recipe.model.pooling,
    )
    if split is None:
        return tuple(measured(model, evaluation.report, plan.data, limit=evaluation.limit))
    pairs = _arguments(plan)
    test = [pairs[place] for place in split.test]
    scores = model.score([pair.a for pair in test], [pair.b for pair in test])
    found = correlate(np.asarray(scores), np.asarray([pair.gold for pair in test]))
    name, similarity = f"arguments, {evaluation.splits}", plan.recipe.model.similarity
    return tuple(
        Measure(name, split.name, model.name, similarity, metric, getattr(found, metric), found.n, reason=found.reason)
        for metric in ("pearson", "spearman")
    )


# ------------------------------------------------------------------------------------------ this machine


def _first_at_hand(names: Sequence[str]) -> str:
    stored = {one.name for one in at_hand()}
    return next((name for name in names if name in stored or Path(name).is_dir()), names[0])


def _in_float32(stage: Stage) -> Stage:
    return dataclasses.replace(stage, training=dataclasses.replace(stage.training, precision="float32"))


def _is_first() -> bool:
    return os.environ.get("RANK", "0") == "0"


def _read_outcome(path: Path) -> Outcome:
    stored = json.loads(path.read_text(encoding="utf-8"))
    for part in ("before", "after"):
        stored[part] = tuple(Measure(**one) for one in stored[part])
    return Outcome(**{**stored, "data": tuple(stored["data"])})
