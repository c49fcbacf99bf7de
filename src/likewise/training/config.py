"""What a training run is told, and what it gives back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.errors import InputError, InputTypeError

__all__ = ["PRECISIONS", "SCHEDULES", "Dataset", "TrainingConfig", "TrainingResult"]

PRECISIONS = ("float32", "bfloat16", "float16")
"""Of the products in the encoder; weights, sums and the loss are float32."""

SCHEDULES = ("linear", "cosine", "constant")
"""What the learning rate does after the warm-up: falls in a line or a half cosine to 0, or stays."""


@dataclass(frozen=True)
class TrainingConfig:
    """How to train. Two runs of one configuration, on the same data and machine, give the same weights."""

    epochs: float = 1.0
    """Passes over the data; a part of a pass is allowed."""
    max_steps: int | None = None
    """Steps of the optimizer, in place of `epochs`."""
    batch_size: int = 16
    """Rows of a batch, of all processes together."""
    accumulation: int = 1
    """Batches whose gradients are averaged before the optimizer steps."""
    gradcache_chunk: int | None = None
    """Texts whose graph is kept at once; None for the whole batch. Less memory, for one forward pass more."""
    learning_rate: float = 2e-5
    """At the end of the warm-up."""
    schedule: str = "linear"
    """One of `SCHEDULES`."""
    warmup_ratio: float = 0.0
    """Part of all steps in which the learning rate rises from 0."""
    weight_decay: float = 0.0
    """Of AdamW; biases and normalisations have none."""
    max_grad_norm: float = 1.0
    """Longer gradients are scaled to this length; 0 for no limit."""
    precision: str = "float32"
    """One of `PRECISIONS`."""
    seed: int = 0
    """Decides the order of the rows and what dropout drops."""
    no_duplicates: bool | None = None
    """Keep equal texts out of a batch, where they would be false negatives; None: for contrastive objectives."""
    group_by_length: bool = False
    """Batches of texts of like length ("smart batching"). Little is won, since nothing is padded here."""
    eval_steps: int | None = None
    """Steps between two evaluations; None for the end of each epoch."""
    save_steps: int | None = None
    """Steps between two checkpoints; None for the end of each epoch."""
    keep_checkpoints: int = 2
    """Newest checkpoints that are kept."""
    patience: int | None = None
    """Evaluations in a row without a new best score after which training stops; None for never."""
    log_steps: int = 50
    """Steps between two entries of the history."""
    device: str | None = None
    """"cpu", or None for the GPU if there is one. Several GPUs: `torchrun`."""
    tensorboard: bool = False
    """Write the history for TensorBoard, too."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "accumulation", "keep_checkpoints", "log_steps"):
            _at_least(name, getattr(self, name), 1)
        for name in ("max_steps", "gradcache_chunk", "eval_steps", "save_steps", "patience"):
            if getattr(self, name) is not None:
                _at_least(name, getattr(self, name), 1)
        for name in ("weight_decay", "max_grad_norm", "learning_rate", "seed"):
            _at_least(name, getattr(self, name), 0)
        if not 0 < self.epochs < math.inf:
            raise InputError(f"epochs is {self.epochs}; give a number above 0")
        if not 0 <= self.warmup_ratio < 1:
            raise InputError(f"warmup_ratio is {self.warmup_ratio}; it is a part of all steps, 0 up to 1")
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("precision", self.precision, PRECISIONS)
        _one_of("device", self.device, ("cpu", None))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of texts, column by column, with labels where an objective needs them.

    Args:
        name: For messages and the model card.
        columns: One sequence of texts for each role: premise and hypothesis; anchor, positive, hard negatives; …
        labels: A number (or, for distillation, a vector) for each row; None for objectives without labels.
        weight: How often its rows are seen in an epoch: 0.5 takes half of them, 2 takes each twice.

    Raises:
        InputError: No column, no row, unequal lengths, a weight that is not above 0.
        InputTypeError: A text is not a string; row and column are named.
    """

    name: str
    """For messages and the model card."""
    columns: tuple[Sequence[Any], ...]
    """Texts by role, all of one length."""
    labels: Any = None
    """A sequence or an array: one number, or one vector, a row."""
    weight: float = 1.0
    """How often a row is seen in an epoch."""

    def __post_init__(self) -> None:
        if not self.columns:
            raise InputError(f"data set {self.name!r} has no column of texts; give one for each role")
        counts = [len(column) for column in self.columns]
        if not max(counts):
            raise InputError(f"data set {self.name!r} is empty; was the right file, split or label read?")
        if len(set(counts)) > 1:
            raise InputError(f"the columns of data set {self.name!r} have {counts} texts; give one a row in each")
        if self.labels is not None and len(self.labels) != counts[0]:
            raise InputError(f"data set {self.name!r} has {len(self.labels)} labels for {counts[0]} rows")
        if not 0 < self.weight < math.inf:
            raise InputError(f"data set {self.name!r} has weight {self.weight}; leave it out, or give more than 0")
        self._refuse_other_types()

    def _refuse_other_types(self) -> None:
        for place, column in enumerate(self.columns):
            for row, text in enumerate(column):
                if not isinstance(text, str):
                    raise InputTypeError(
                        f"row {row} of column {place} of data set {self.name!r} is {type(text).__name__}, not str; "
                        "drop the row or fill it in"
                    )

    def __len__(self) -> int:
        return len(self.columns[0])


@dataclass(frozen=True)
class TrainingResult:
    """What a run leaves."""

    folder: Path
    """The model: the best one if there was an evaluation, else the last; `Model.load` reads it."""
    n_steps: int
    """Steps of the optimizer, those before a resume included."""
    loss: float
    """Mean training loss of the last logged steps."""
    best_score: float | None
    """The best score that `evaluate` gave; None without evaluation, or if no score was a number."""
    best_step: int | None
    """The step of the best score."""
    stopped_early: bool
    """`patience` ran out."""
    history: Sequence[Mapping[str, Any]]
    """Entries with "step" and "loss", "learning_rate" and "grad_norm", or "score"."""


def _at_least(name: str, value: float | int, limit: int) -> None:
    if not value >= limit:
        raise InputError(f"{name} is {value}; give {limit} or more")


def _one_of(name: str, value: str | None, known: Sequence[str | None]) -> None:
    if value not in known:
        raise InputError(f"unknown {name} {value!r}; known are {', '.join(map(str, known))}")
