"""Run a recipe: read, train every seed, measure before and after, write the cards."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.backbone.tensors import Tensors
from likewise.data import read_stsb
from likewise.errors import InputError, ModelError
from likewise.evaluation.arguments import Split
from likewise.evaluation.measures import Measure
from likewise.evaluation.sts import METRICS, correlate
from likewise.files import atomic_file
from likewise.model import CrossEncoder, Model, find
from likewise.model.folder import read_folder
from likewise.objectives import Contrastive, Matryoshka, Objective, Regression, Softmax, Triplet
from likewise.recipes.card import recipe_text, write_card
from likewise.recipes.data import Counted, digest_of, read_argument_pairs
from likewise.recipes.measuring import measured, spearman
from likewise.recipes.outcomes import Outcome, read_outcome, write_outcome
from likewise.recipes.planning import (
    N_CLASSES,
    Plan,
    config_of,
    cross_encoder_of,
    encoder_of,
    rows_of,
    splits_of,
)
from likewise.recipes.recipe import ObjectivePart, read_recipe
from likewise.training import Dataset, TrainableEncoder, train, train_cross_encoder

__all__ = ["is_first_process", "run"]

_RECIPE, _SCORES = "recipe.toml", "scores.json"


def run(
    plan: Plan, output: Path, *, resume: bool = False, say: Callable[[str], None] = lambda line: None
) -> list[Outcome]:
    """Train every seed (and every split) of a recipe, one after another.

    Each run has a folder of its own below `output`: `model` is the trained model with its card and the recipe as it
    ran, `scores.json` what was measured. Checkpoints go when a run is finished. Under `torchrun` all processes train,
    and the first one measures and writes.

    Args:
        plan: What to run.
        output: Folder for the runs.
        resume: Go on where another call stopped; finished runs are not repeated.
        say: Told in one line what happens.

    Returns:
        One entry a run; processes other than the first have no measures.

    Raises:
        InputError: `output` holds runs and `resume` is False, or runs of another recipe; or the recipe cannot be run.
        DataError: A data file is missing or broken.
        TrainingError: The loss became NaN.
    """
    splits = splits_of(plan)
    made = _claim(output, plan, resume) if is_first_process() else []
    try:
        return _all(plan, output, splits, resume, say)
    except BaseException:
        _unclaim(output, made)
        raise


def _all(
    plan: Plan, output: Path, splits: Sequence[Split | None], resume: bool, say: Callable[[str], None]
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for seed in plan.recipe.seeds:
        for split in splits:
            name = f"seed-{seed}" + (f"-{split.name.replace(' ', '-')}" if split else "")
            folder = output / name
            if resume and (folder / _SCORES).exists():
                outcomes.append(_finished(plan, folder, seed, split))
                say(f"{name}: finished before")
                continue
            say(f"{name}: training {plan.base}")
            outcomes.append(_one(plan, folder, seed, split, outcomes, resume))
            if is_first_process():
                _finish(folder, plan, outcomes)
    return outcomes


def is_first_process() -> bool:
    """This process is alone, or the first of those that `torchrun` started."""
    return os.environ.get("RANK", "0") == "0"


# ------------------------------------------------------------------------------------------ one run


def _claim(output: Path, plan: Plan, resume: bool) -> list[Path]:
    """Refuse a folder of other runs; leave the recipe in it, by which it is known again.

    Returns:
        What was not there before: folders, the outer ones first, and the recipe.
    """
    path = output / _RECIPE
    if path.exists():
        if not resume:
            raise InputError(f"{output} holds runs already; choose another folder, or go on with them: --resume")
        if dataclasses.replace(read_recipe(path), seeds=plan.recipe.seeds) != plan.recipe:
            raise InputError(
                f"{output} holds runs of another recipe, size or base model (compare {path}); choose another folder"
            )
        return []
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} holds other things than runs; choose a new or an empty folder: --output")
    made = [folder for folder in (*reversed(output.parents), output) if not folder.exists()]
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {output}: {error.strerror or error}; choose another --output") from error
    with atomic_file(path, "w") as stream:
        stream.write(recipe_text(plan.recipe))
    return [*made, path]


def _unclaim(output: Path, made: Sequence[Path]) -> None:
    """Leave nothing of a run that ended before it began, such as for a misspelt path, and all that was there before."""
    if not made or [path.name for path in output.iterdir()] != [_RECIPE]:
        return
    *folders, recipe = made
    recipe.unlink()
    with contextlib.suppress(OSError):  # somebody else put something there meanwhile
        for folder in reversed(folders):
            folder.rmdir()


def _finished(plan: Plan, folder: Path, seed: int, split: Split | None) -> Outcome:
    """What an earlier call left, unless its model is gone or damaged, or it learned from other data than now."""
    earlier = read_outcome(folder / _SCORES)
    if not (Path(earlier.folder) / "model.safetensors").is_file():
        raise InputError(f"{folder} has scores, but its model is gone; remove {folder} to train it again")
    for path in Path(earlier.folder).rglob("*.safetensors"):
        try:
            Tensors(path.parent)
        except ModelError as error:
            raise InputError(
                f"{folder} has scores, but {path} is damaged or cut short; remove {folder} to train it again"
            ) from error
    read = [one for stage in plan.recipe.stages for one in rows_of(stage, plan, seed, split)]
    if digest_of(read) != earlier.digest:
        raise InputError(
            f"the data below {plan.data} has changed since {earlier.folder} was trained; train with another --output"
        )
    return earlier


def _one(plan: Plan, folder: Path, seed: int, split: Split | None, others: Sequence[Outcome], resume: bool) -> Outcome:
    name = split.name if split else None
    before: tuple[Measure, ...] = ()
    after: tuple[Measure, ...] = ()
    if is_first_process():  # first, so that a set that is missing is known before anything is trained
        known = next((one.before for one in others if one.split == name), None)  # the base is the same for all seeds
        before = _measures(plan, plan.base, plan.base, split) if known is None else known
    start = time.perf_counter()
    if plan.recipe.model.kind == "cross-encoder":
        trained, n_steps, read = _train_cross_encoder(plan, folder, seed, resume)
    else:
        trained, n_steps, read = _train_stages(plan, folder, seed, split, resume)
    train_s = time.perf_counter() - start
    if is_first_process():
        after = _measures(plan, str(trained), f"seed {seed}", split)
    data = tuple(one.describe() for one in read)
    return Outcome(seed, name, str(trained), n_steps, train_s, data, digest_of(read), before, after)


def _finish(folder: Path, plan: Plan, outcomes: Sequence[Outcome]) -> None:
    """Cards first, so that a run with scores has one; what only a resume needs goes."""
    for outcome in outcomes:
        write_card(outcome, outcomes, plan)
    write_outcome(outcomes[-1], folder / _SCORES)
    for remains in (folder / "checkpoints", *folder.glob("stage-*")):
        shutil.rmtree(remains, ignore_errors=True)


def _train_stages(
    plan: Plan, folder: Path, seed: int, split: Split | None, resume: bool
) -> tuple[Path, int, list[Counted]]:
    encoder = encoder_of(plan, seed)
    n_steps, every, trained = 0, list[Counted](), folder
    for number, stage in enumerate(plan.recipe.stages, start=1):
        read = rows_of(stage, plan, seed, split)
        result = train(
            encoder,
            _objective(stage.objective, encoder),
            [
                Dataset(one.name, one.columns, one.labels, data.weight)
                for one, data in zip(read, stage.data, strict=True)
            ],
            config_of(stage, seed),
            output=folder if number == len(plan.recipe.stages) else folder / f"stage-{number}",
            evaluate=_judge(plan),
            similarity=plan.recipe.model.similarity,
            resume=resume,
        )
        n_steps, trained = n_steps + result.n_steps, result.folder
        every += read
    return trained, n_steps, every


def _train_cross_encoder(plan: Plan, folder: Path, seed: int, resume: bool) -> tuple[Path, int, list[Counted]]:
    model, stage = cross_encoder_of(plan, seed), plan.recipe.stages[0]
    read = rows_of(stage, plan, seed, None)
    result = train_cross_encoder(
        model,
        [Dataset(one.name, one.columns, one.labels, data.weight) for one, data in zip(read, stage.data, strict=True)],
        config_of(stage, seed),
        output=folder,
        evaluate=_judge(plan),
        resume=resume,
    )
    return result.folder, result.n_steps, list(read)


def _objective(part: ObjectivePart, encoder: TrainableEncoder) -> Objective:
    made = {
        "softmax": lambda: Softmax(encoder.dim, N_CLASSES, part.concatenation),
        "regression": lambda: Regression(part.similarity, low=0.0, high=1.0),
        "triplet": lambda: Triplet(part.margin, part.metric),
        "contrastive": lambda: Contrastive(part.similarity, part.temperature),
    }[part.kind]()
    return Matryoshka(made, part.dims) if part.dims else made


def _judge(plan: Plan) -> Callable[[Any], float | None] | None:
    """How good a model is, for choosing the best one of a run."""
    if plan.recipe.evaluation.dev is None:
        return None
    pairs = read_stsb(plan.data, "dev")[: plan.recipe.evaluation.limit]
    return lambda model: spearman(model, pairs)


def _measures(plan: Plan, folder: str, name: str, split: Split | None) -> tuple[Measure, ...]:
    part, evaluation = plan.recipe.model, plan.recipe.evaluation
    model: Model | CrossEncoder
    if part.kind == "cross-encoder":
        if folder == plan.base:
            return ()  # a classifier that nobody trained says nothing
        model = CrossEncoder.load(folder)
    else:
        own = read_folder(find(folder).folder)
        model = Model.load(folder, similarity=part.similarity, pooling=None if own else part.pooling)
    if split is None:
        found = measured(model, evaluation.report, plan.data, limit=evaluation.limit)
    else:
        found = _tested(model, plan, split)
    return tuple(dataclasses.replace(one, model=name) for one in found)


def _tested(model: Model | CrossEncoder, plan: Plan, split: Split) -> list[Measure]:
    pairs = read_argument_pairs(plan.recipe.stages[0].data[0], plan.data)
    test = [pairs[place] for place in split.test[: plan.recipe.evaluation.limit]]
    scores = model.score([pair.a for pair in test], [pair.b for pair in test])
    found = correlate(np.asarray(scores, np.float64), np.asarray([pair.gold for pair in test]))
    task, similarity = f"arguments, {plan.recipe.evaluation.splits}", plan.recipe.model.similarity
    return [
        Measure(task, split.name, "", similarity, metric, getattr(found, metric), found.n, reason=found.reason)
        for metric in METRICS
    ]
