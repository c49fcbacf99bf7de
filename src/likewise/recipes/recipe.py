"""A recipe: a model, stages of training and what is measured, read from a TOML file. Nothing is loaded here."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.errors import InputError
from likewise.recipes.toml import read_toml
from likewise.recipes.typed import build

__all__ = [
    "DEV_SETS",
    "EVALUATION_SETS",
    "KINDS",
    "MODELS",
    "OBJECTIVES",
    "REPORTS",
    "SIZES",
    "SPLITS",
    "DataPart",
    "EvaluationPart",
    "ModelPart",
    "ObjectivePart",
    "Recipe",
    "Size",
    "Stage",
    "TrainingPart",
    "read_recipe",
    "sized",
]

SIZES = ("smoke", "small", "full")
"""Does it run (minutes on a CPU) · does it learn (a small-scale check) · as the paper did it."""

MODELS = ("sentence-encoder", "cross-encoder")
"""What is trained; the second is SBERT's BERT baseline."""

OBJECTIVES = ("softmax", "regression", "triplet", "contrastive")
"""What training makes small."""

KINDS = ("nli", "nli-triplets", "sentences", "stsb", "arguments", "sections", "triplets", "scored-pairs")
"""Kinds of data: labelled pairs of inference · triplets of them · the same sentence twice · STS-b train · pairs of
arguments · sentences of one section against another · one's own, as JSON lines."""

EVALUATION_SETS = ("sts", "stsb", "sick", "ists")
"""Sets whose sentences can be dropped from training data."""

REPORTS = ("stsb-dev", "stsb-test", "sick", "sts", "ists-images", "ists-headlines", "sections")
"""What can be measured before and after."""

DEV_SETS = ("stsb-dev",)
"""What can decide which model of a run is the best."""

SPLITS = ("folds", "cross-topic")
"""10-fold cross-validation · trained on all topics but one and tested on that one."""


def _at_least_one(part: Any, place: str, *names: str) -> None:
    for name in names:
        value = getattr(part, name)
        if value is not None and value < 1:
            raise InputError(f"{place} {name} is {value}; give 1 or more, or leave it out")


def _one_of(name: str, value: str | None, known: Sequence[str | None]) -> None:
    if value not in known:
        near = difflib.get_close_matches(str(value), [one for one in known if one], 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(one for one in known if one)}"
        raise InputError(f"unknown {name} {value!r}; {hint}")


@dataclass(frozen=True)
class ModelPart:
    """What is trained."""

    base: tuple[str, ...]
    """Folders or hub names; the first that is at hand is taken, and said."""
    kind: str = "sentence-encoder"
    """One of `MODELS`."""
    pooling: str | None = None
    """"mean", "cls", "max"; for a sentence model, which says itself how it is pooled, only where it is the same."""
    projection: str = "none"
    """A new head: "none", "linear" (on tokens) or "mlp" (on the pooled vector)."""
    keep_projection: bool = True
    """Save the new head with the model."""
    max_length: int | None = None
    """Tokens at which training texts are cut."""
    similarity: str = "cosine"
    """The one that the trained model is used and measured with."""

    def __post_init__(self) -> None:
        _one_of("model.kind", self.kind, MODELS)
        if not self.base:
            raise InputError("model.base names no base model; give one or more")


@dataclass(frozen=True)
class ObjectivePart:
    """What training makes small; each kind reads the settings that it has."""

    kind: str
    """One of `OBJECTIVES`."""
    similarity: str = "cosine"
    """Of regression and contrastive."""
    temperature: float = 0.05
    """Of contrastive."""
    concatenation: str = "u,v,|u-v|"
    """Of softmax."""
    margin: float = 1.0
    """Of triplet."""
    metric: str = "euclidean"
    """Of triplet."""
    dims: tuple[int, ...] = ()
    """Lengths of vectors for a Matryoshka objective around this one; none by default."""

    def __post_init__(self) -> None:
        _one_of("objective.kind", self.kind, OBJECTIVES)


@dataclass(frozen=True)
class DataPart:
    """One data set of a stage."""

    kind: str
    """One of `KINDS`."""
    paths: tuple[str, ...]
    """Files or folders below the data folder; all of them are read."""
    small_paths: tuple[str, ...] = ()
    """What is read instead at sizes smoke and small; the same if empty."""
    weight: float = 1.0
    """How often its rows are seen in an epoch."""
    limit: int | None = None
    """Rows at most, drawn by the seed."""
    without: tuple[str, ...] = ()
    """Of `EVALUATION_SETS`; rows with a sentence of theirs are dropped."""

    def __post_init__(self) -> None:
        _one_of("data.kind", self.kind, KINDS)
        _at_least_one(self, "data", "limit")
        for name in self.without:
            _one_of("data.without", name, EVALUATION_SETS)


@dataclass(frozen=True)
class TrainingPart:
    """How a stage is trained: `TrainingConfig` says what each means."""

    batch_size: int = 16
    learning_rate: float = 2e-5
    epochs: float = 1.0
    max_steps: int | None = None
    warmup_ratio: float = 0.0
    schedule: str = "linear"
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    precision: str = "float32"
    accumulation: int = 1
    gradcache_chunk: int | None = None
    group_by_length: bool = False
    eval_steps: int | None = None
    save_steps: int | None = None
    patience: int | None = None


@dataclass(frozen=True)
class Stage:
    """One run of training; the next stage starts from the model that it leaves."""

    objective: ObjectivePart
    """What is made small."""
    data: tuple[DataPart, ...]
    """What it is trained on."""
    training: TrainingPart = TrainingPart()
    """How."""


@dataclass(frozen=True)
class EvaluationPart:
    """What is measured."""

    dev: str | None = None
    """One of `DEV_SETS`: decides which model of a run is the best; None keeps the last."""
    report: tuple[str, ...] = ()
    """Of `REPORTS`, measured before and after."""
    limit: int | None = None
    """Pairs of each set at most, the first ones."""
    splits: str | None = None
    """For arguments, one of `SPLITS`; a model is trained for each split and measured on its rest."""
    n_splits: int | None = None
    """Splits at most; all of them by default."""

    def __post_init__(self) -> None:
        _at_least_one(self, "evaluation", "limit", "n_splits")
        for name in self.report:
            _one_of("evaluation.report", name, REPORTS)
        _one_of("evaluation.dev", self.dev, (*DEV_SETS, None))
        _one_of("evaluation.splits", self.splits, (*SPLITS, None))


@dataclass(frozen=True)
class Size:
    """What a size changes: data and steps, nothing else."""

    limit: int | None = None
    """Rows of each data set at most."""
    max_steps: int | None = None
    """Steps of each stage at most."""
    eval_steps: int | None = None
    """Steps between two evaluations."""
    eval_limit: int | None = None
    """Pairs of each evaluation set at most."""
    n_seeds: int | None = None
    """Seeds at most."""
    n_splits: int | None = None
    """Splits at most."""

    def __post_init__(self) -> None:
        _at_least_one(self, "a size's", *(field.name for field in dataclasses.fields(self)))


@dataclass(frozen=True)
class Recipe:
    """A row of a paper's table, as a thing to run."""

    name: str
    """Name of the trained model."""
    source: str
    """Paper, section and table row."""
    model: ModelPart
    """What is trained."""
    stages: tuple[Stage, ...]
    """How, one after another."""
    evaluation: EvaluationPart = EvaluationPart()
    """What is measured."""
    seeds: tuple[int, ...] = (1,)
    """One run each."""
    licence: str = "unknown"
    """Of the trained model, as base model and data allow."""
    notes: tuple[str, ...] = ()
    """What differs from the source; a recipe as it ran says so here."""
    smoke: Size = Size()
    """What size "smoke" changes."""
    small: Size = Size()
    """What size "small" changes."""

    def __post_init__(self) -> None:
        if not self.stages or not self.seeds or not all(stage.data for stage in self.stages):
            raise InputError(f"recipe {self.name!r} has no stage, no seed, or a stage without data; give one or more")
        if len(set(self.seeds)) < len(self.seeds) or not all(0 <= seed < 2**32 for seed in self.seeds):
            raise InputError(f"seeds {list(self.seeds)} of recipe {self.name!r}: give different ones, 0 to 4294967295")


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """A recipe from its TOML file.

    Raises:
        InputError: The file is missing or not TOML, a key is unknown (the nearest known one is named), missing, or
            has a value of another type.
    """
    return build(Recipe, read_toml(Path(path)), str(path))


def sized(recipe: Recipe, size: str) -> Recipe:
    """The recipe with the data and the steps of a size, and nothing else changed; it has no sizes any more.

    Raises:
        InputError: The size is none of `SIZES`.
    """
    if size not in SIZES:
        raise InputError(f"unknown size {size!r}; known are {', '.join(SIZES)}")
    change = {"smoke": recipe.smoke, "small": recipe.small, "full": Size()}[size]
    smaller = size != "full"
    return dataclasses.replace(
        recipe,
        stages=tuple(_smaller(stage, change) if smaller else stage for stage in recipe.stages),
        evaluation=dataclasses.replace(
            recipe.evaluation,
            limit=_least(recipe.evaluation.limit, change.eval_limit),
            n_splits=_least(recipe.evaluation.n_splits, change.n_splits),
        ),
        seeds=recipe.seeds[: change.n_seeds],
        smoke=Size(),
        small=Size(),
    )


def _smaller(stage: Stage, change: Size) -> Stage:
    return dataclasses.replace(
        stage,
        data=tuple(
            dataclasses.replace(data, paths=data.small_paths or data.paths, limit=_least(data.limit, change.limit))
            for data in stage.data
        ),
        training=dataclasses.replace(
            stage.training,
            max_steps=_least(stage.training.max_steps, change.max_steps),
            eval_steps=_least(stage.training.eval_steps, change.eval_steps),
        ),
    )


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
