"""`train_cross_encoder`: pairs of texts to a score or a class, on the engine that trains encoders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.errors import InputError
from likewise.model.cross_encoder import CrossEncoder
from likewise.objectives.base import check_classes, check_scores
from likewise.training.batches import Batches
from likewise.training.config import Dataset, TrainingConfig, TrainingResult
from likewise.training.run import check_config, fit
from likewise.training.trained import Trained

__all__ = ["train_cross_encoder"]


def train_cross_encoder(
    model: CrossEncoder,
    datasets: Sequence[Dataset],
    config: TrainingConfig,
    *,
    output: Path,
    evaluate: Callable[[CrossEncoder], float | None] | None = None,
    resume: bool = False,
    callbacks: Sequence[Any] = (),
) -> TrainingResult:
    """Train a cross-encoder on labelled pairs and leave a folder that `CrossEncoder.load` reads.

    What is made small follows from the model: for a score with a sigmoid its cross-entropy with gold scores from
    0 to 1, for one without the mean squared error, for classes the cross-entropy.

    Args:
        model: What to train; it is changed, and holds the weights of the saved model afterwards.
        datasets: Of two columns, with a gold score or a class a row.
        config: How to train; `gradcache_chunk` has no use here.
        output: A folder for the run, as in `train`.
        evaluate: How good a model is, as a number that grows; see `train`.
        resume: Go on from the last checkpoint in `output`, if there is one.
        callbacks: Further callbacks of transformers.

    Raises:
        InputError: A data set has not two columns, its labels are missing or do not fit, or it is smaller than a
            batch; the model has classes that do not exclude one another; or as in `train`.
        TrainingError: The loss or the gradient is NaN or infinite; step and rows are named, checkpoints stay.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 4.2, where it is the BERT baseline.
    """
    check_config(config)
    objective = _PairObjective(model.n_labels, model.activation)
    for data in datasets:
        if len(data.columns) != 2:
            raise InputError(f"a cross-encoder reads pairs, and data set {data.name!r} has {len(data.columns)} columns")
        try:
            objective.check(data.labels)
        except InputError as error:
            raise InputError(f"data set {data.name!r}: {error}") from error
    if config.gradcache_chunk is not None:
        raise InputError(
            "gradcache_chunk is for contrastive batches; each pair is a batch of its own here: leave it out"
        )
    step = _PairStep(model, objective)
    result = fit(
        step,
        lambda: Batches(datasets, step, joint=True),
        config,
        output=Path(output),
        evaluate=evaluate,
        resume=resume,
        callbacks=callbacks,
        distinct=bool(config.no_duplicates),
    )
    model.module.untrained = False
    return result


class _PairObjective(nn.Module):
    def __init__(self, n_labels: int, activation: str) -> None:
        super().__init__()
        if n_labels > 1 and activation != "softmax":
            raise InputError(f"classes with activation {activation!r} are not trained here; load with 'softmax'")
        self._n_labels, self._activation = n_labels, activation

    def check(self, labels: Any) -> None:
        if labels is None:
            raise InputError("a cross-encoder needs a label for each pair and the data set has none; give labels")
        if self._n_labels > 1:
            check_classes(labels, self._n_labels)
        else:
            check_scores(labels, *((0.0, 1.0) if self._activation == "sigmoid" else (-np.inf, np.inf)))

    def forward(self, logits: Float[Tensor, "n labels"], labels: Tensor) -> Tensor:
        logits = logits.float()
        if self._n_labels > 1:
            return F.cross_entropy(logits, labels.long())
        loss = F.binary_cross_entropy_with_logits if self._activation == "sigmoid" else F.mse_loss
        return loss(logits[:, 0], labels.to(logits))

    def extra_repr(self) -> str:
        return f"{self._n_labels}, {self._activation}"


class _PairStep(Trained):
    """The classifier and its loss. A pair is read as ids with their token types, [total, 2]."""

    def __init__(self, model: CrossEncoder, objective: _PairObjective) -> None:
        super().__init__()
        self.module, self.objective, self._model = model.module, objective, model

    def tokenize(self, texts: Iterable[Any]) -> tuple[Int[np.ndarray, "total both"], Int[np.ndarray, " ends"]]:
        """Ids and types of pairs."""
        left, right = zip(*texts, strict=True)
        pairs = self._model.tokenize(left, right)
        return np.stack([pairs.ids, pairs.types], axis=1), pairs.offsets

    def forward(
        self, ids: Int[Tensor, "total both"], offsets: Int[np.ndarray, " ends"], n_sides: int, labels: Tensor | None
    ) -> Tensor:
        loss: Tensor = self.objective(self.states(ids, offsets), labels)
        return loss

    def states(self, ids: Int[Tensor, "total both"], offsets: Int[np.ndarray, " ends"]) -> Float[Tensor, "n labels"]:
        logits: Tensor = self.module(ids[:, 0], ids[:, 1], offsets)
        return logits

    def save(self, folder: Path) -> None:
        self._model.save(folder)

    def read(self, folder: Path) -> None:
        self.module.load_state_dict(self.open(folder).module.state_dict())

    def open(self, folder: Path) -> CrossEncoder:
        return CrossEncoder.load(folder, device=str(self.module.out.weight.device))
