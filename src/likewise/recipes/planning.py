"""What a recipe comes to on this machine: base model, precision, and what a run of it would take."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.errors import InputError
from likewise.evaluation.arguments import Split, cross_topic, folds
from likewise.model import CrossEncoder, at_hand, find
from likewise.model.folder import read_folder
from likewise.recipes.data import Counted, examples_of, learned, read_argument_pairs
from likewise.recipes.recipe import Recipe, Stage, sized
from likewise.training import TrainableEncoder, TrainingConfig
from likewise.training.run import n_steps

__all__ = [
    "N_CLASSES",
    "Part",
    "Plan",
    "Preview",
    "StagePreview",
    "config_of",
    "cross_encoder_of",
    "encoder_of",
    "plan",
    "preview",
    "rows_of",
    "splits_of",
]

N_CLASSES = 3
"""Of natural language inference, the only classes that recipes know."""

_SAMPLE = 1_000
"""Rows by which the tokens of a row are estimated."""

_LIBRARIES_BYTES = 600_000_000
_COPIES = 4
_VECTORS_A_LAYER = 18
_SINGLE, _HALF = 4, 2


@dataclass(frozen=True)
class Plan:
    """A recipe with everything settled that depends on this machine."""

    recipe: Recipe
    """As it will run: its size, base and precision settled, what differs from its source among its notes."""
    size: str
    """The size asked for."""
    data: Path
    """Where the data sets are."""

    @property
    def base(self) -> str:
        """The base model that is taken."""
        return self.recipe.model.base[0]


@dataclass(frozen=True)
class Part:
    """A data set as it would be trained on."""

    name: str
    """Kind and files."""
    n_read: int
    """Rows in the files."""
    n_overlapping: int
    """Rows dropped because a sentence of theirs occurs in an evaluation set."""
    n_used: int
    """Rows that stay, after the limit."""
    tokens_a_row: float
    """Mean tokens of all texts of a row, cut as in training."""


@dataclass(frozen=True)
class StagePreview:
    """What a stage would do."""

    objective: str
    """What is made small."""
    data: tuple[Part, ...]
    """What it is trained on."""
    batch_size: int
    """Rows of a batch."""
    n_steps: int
    """Steps of the optimizer."""
    memory_bytes: int
    """Estimated peak of the process; see `preview`."""


@dataclass(frozen=True)
class Preview:
    """What a run of a plan would do."""

    name: str
    """Of the recipe."""
    size: str
    """The size asked for."""
    base: str
    """The base model."""
    n_parameters: int
    """Of the base model and its new head."""
    n_runs: int
    """Seeds times splits; each trains a model."""
    stages: tuple[StagePreview, ...]
    """Of one run."""
    notes: tuple[str, ...]
    """What differs from the recipe's source."""


def plan(
    recipe: Recipe, data: Path, *, size: str = "smoke", base: str | None = None, seeds: Sequence[int] = ()
) -> Plan:
    """Settle what depends on this machine, and note what differs from the recipe's source.

    Sizes smoke and small take the first base model of the recipe that is on this machine; full takes the first one.

    Args:
        recipe: As read.
        data: Where the data sets are.
        size: One of `SIZES`.
        base: A base model in place of the recipe's.
        seeds: In place of the recipe's.

    Raises:
        ModelNotFoundError: The base model is not at hand, and the hub does not give it.
        InputError: An unknown size, no data folder, or a setting out of range.
    """
    if not data.is_dir():
        raise InputError(f"no data folder {data}; name the one that holds the data sets with --data")
    settled = sized(recipe, size)
    notes = list(recipe.notes)
    if dataclasses.replace(settled, smoke=recipe.smoke, small=recipe.small) != recipe:
        notes.append(f"size {size}: a small-scale check, not a reproduction")
    for part in (part for stage in recipe.stages for part in stage.data if part.small_paths and size != "full"):
        notes.append(f"data {', '.join(part.small_paths)} in place of {', '.join(part.paths)}")
    names = recipe.model.base
    chosen = base or (names[0] if size == "full" else _first_at_hand(names))
    if chosen != names[0]:
        notes.append(f"base model {chosen} in place of {names[0]}")
    model, stages = dataclasses.replace(settled.model, base=(chosen,)), settled.stages
    folder = find(chosen).folder
    asks = model.pooling is not None or model.projection != "none"
    if model.kind == "sentence-encoder" and asks and read_folder(folder) is not None:
        notes.append("the base is a sentence model: it keeps its pooling and its head, and gets no new head")
        model = dataclasses.replace(model, pooling=None, projection="none")
    if not _has_gpu() and any(stage.training.precision == "float16" for stage in stages):
        notes.append("precision float32 in place of float16, which needs a GPU")
        stages = tuple(_in_float32(stage) for stage in stages)
    for stage in stages:
        config_of(stage, 0)  # refuses numbers that are out of range
    settled = dataclasses.replace(settled, model=model, stages=stages, notes=tuple(notes))
    return Plan(dataclasses.replace(settled, seeds=tuple(dict.fromkeys(seeds)) or settled.seeds), size, data)


def splits_of(plan: Plan) -> Sequence[Split | None]:
    """The splits that a model is trained for, each; one None where the recipe has no splits.

    Raises:
        InputError: Data that cannot be split.
    """
    kind = plan.recipe.evaluation.splits
    if kind is None:
        return [None]
    if len(plan.recipe.stages) > 1 or [part.kind for part in plan.recipe.stages[0].data] != ["arguments"]:
        raise InputError("splits are for one stage on one data set of kind 'arguments'; change the recipe")
    pairs = read_argument_pairs(plan.recipe.stages[0].data[0], plan.data)
    found = (folds if kind == "folds" else cross_topic)(pairs)[: plan.recipe.evaluation.n_splits]
    if not found:
        raise InputError(f"{len(pairs)} pairs of arguments cannot be split by {kind}; give more pairs or topics")
    return found


def rows_of(stage: Stage, plan: Plan, seed: int, split: Split | None) -> list[Counted]:
    """What a stage is trained on."""
    if split is not None:
        return [learned(stage.data[0], plan.data, split, seed=seed)]
    return [examples_of(part, plan.data, seed=seed) for part in stage.data]


def config_of(stage: Stage, seed: int) -> TrainingConfig:
    """How a stage is trained."""
    return TrainingConfig(seed=seed, **dataclasses.asdict(stage.training))


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


def cross_encoder_of(plan: Plan, seed: int) -> CrossEncoder:
    """The base model with a classifier on top, for pairs.

    Raises:
        InputError: Several stages, or an objective that does not read pairs.
    """
    stage = plan.recipe.stages[0]
    if len(plan.recipe.stages) > 1 or stage.objective.kind not in ("regression", "softmax"):
        raise InputError("a cross-encoder is trained in one stage, by 'regression' or 'softmax'; change the recipe")
    n_labels = 1 if stage.objective.kind == "regression" else N_CLASSES
    return CrossEncoder.load(plan.base, n_labels=n_labels, max_length=plan.recipe.model.max_length, seed=seed)


def preview(plan: Plan) -> Preview:
    """Data counts, steps and memory of a run, without training.

    Memory in bytes, of one process on a CPU, with P parameters, T tokens in a batch (of the texts whose graph is
    kept at once), N layers and h numbers a token state:

        6e8 (the libraries) + 16 P (weights, gradients and two moments, float32) + 4 · 18 N h T

    18 vectors of h numbers a layer are what the backward pass needs of a token: inputs of the products, the wide
    layer of four times h, normalisations and dropout. Products in half precision halve the last part. On a GPU the
    libraries take less.

    Raises:
        DataError: A file is missing or broken.
        InputError: The recipe cannot be run.
    """
    split = splits_of(plan)
    seed = plan.recipe.seeds[0]
    if plan.recipe.model.kind == "cross-encoder":
        model = cross_encoder_of(plan, seed)
        parameters = list(model.module.parameters())
        definition = model.module.encoder.definition

        def lengths(columns: Sequence[Sequence[str]]) -> np.ndarray:
            return np.diff(model.tokenize(*columns).offsets)
    else:
        encoder = encoder_of(plan, seed)
        parameters = list(encoder.parameters())
        definition = encoder.backbone.definition

        def lengths(columns: Sequence[Sequence[str]]) -> np.ndarray:
            return sum((np.diff(encoder.tokenize(column)[1]) for column in columns), np.zeros(len(columns[0])))

    n_parameters = sum(one.numel() for one in parameters)
    stages = []
    for stage in plan.recipe.stages:
        parts = []
        for one in rows_of(stage, plan, seed, split[0]):
            some = lengths([column[:_SAMPLE] for column in one.columns])
            parts.append(
                Part(
                    one.name,
                    one.n_read,
                    one.n_overlapping,
                    len(one),
                    round(float(some.mean()), 1) if len(some) else 0.0,
                )
            )
        stages.append(
            _stage(stage, config_of(stage, seed), parts, n_parameters, definition.n_layers * definition.hidden)
        )
    return Preview(
        plan.recipe.name,
        plan.size,
        plan.base,
        n_parameters,
        len(plan.recipe.seeds) * len(split),
        tuple(stages),
        plan.recipe.notes,
    )


def _stage(
    stage: Stage, config: TrainingConfig, parts: Sequence[Part], n_parameters: int, numbers: int
) -> StagePreview:
    batches = [int(one.n_used * data.weight // config.batch_size) for one, data in zip(parts, stage.data, strict=True)]
    tokens = config.batch_size * max(one.tokens_a_row for one in parts)
    if config.gradcache_chunk is not None:
        tokens = min(tokens, config.gradcache_chunk * max(one.tokens_a_row for one in parts))
    width = _SINGLE if config.precision == "float32" else _HALF
    memory = _LIBRARIES_BYTES + _COPIES * _SINGLE * n_parameters + int(width * _VECTORS_A_LAYER * numbers * tokens)
    steps = n_steps(sum(batches), config) if all(batches) else 0
    return StagePreview(stage.objective.kind, tuple(parts), config.batch_size, steps, memory)


def _first_at_hand(names: Sequence[str]) -> str:
    stored = {one.name for one in at_hand()}
    return next((name for name in names if name in stored or Path(name).is_dir()), names[0])


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _in_float32(stage: Stage) -> Stage:
    return dataclasses.replace(stage, training=dataclasses.replace(stage.training, precision="float32"))
