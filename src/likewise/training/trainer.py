"""The engine: transformers' Trainer over packed batches, with checkpoints that hold no pickle.

Random numbers are a function of seed, step and process: torch is seeded before every batch. So a resumed run drops
what a straight run drops, whatever was drawn in between, by an evaluation, for one.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, distributed, nn
from torch.utils.data import DataLoader
from transformers import Trainer as Engine

from likewise.errors import InputError, TrainingError
from likewise.files import atomic_folder
from likewise.model import Model
from likewise.objectives import Objective
from likewise.training import checkpoints
from likewise.training.batches import Batch, Batches
from likewise.training.config import TrainingConfig
from likewise.training.encoder import TrainableEncoder
from likewise.training.gradcache import embed_in_chunks
from likewise.training.samplers import BatchSampler
from likewise.training.trained import Trained

__all__ = ["Evaluate", "Progress", "Step", "Trainer"]

Evaluate = Callable[[Any], float | None]
"""How good a model is; larger is better. None or NaN: it cannot be said, and the model is never the best."""


class Step(Trained):
    """Encoder and objective.

    Args:
        encoder: What is trained.
        objective: What it is trained on; its parameters are trained, too.
        chunk: Texts whose graph is kept at once; None for all.
        similarity: Name of the one that a saved model is used with.
    """

    def __init__(
        self,
        encoder: TrainableEncoder,
        objective: Objective,
        chunk: int | None = None,
        similarity: str | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.objective, self._chunk, self._similarity = encoder, objective, chunk, similarity

    def forward(
        self, ids: Int[Tensor, " total"], offsets: Int[np.ndarray, " ends"], n_sides: int, labels: Tensor | None
    ) -> Tensor:
        """The loss of a batch."""
        if self._chunk is None:
            found = self.encoder(ids, offsets)
        else:
            found = embed_in_chunks(self.encoder, ids, offsets, self._chunk)
        n = len(found) // n_sides
        loss: Tensor = self.objective([found.select(range(at * n, (at + 1) * n)) for at in range(n_sides)], labels)
        return loss

    def states(self, ids: Int[Tensor, " total"], offsets: Int[np.ndarray, " ends"]) -> Tensor:
        """Token states of the backbone."""
        found: Tensor = self.encoder.backbone(ids, offsets)
        return found

    def save(self, folder: Path) -> None:
        """A Sentence-Transformers folder."""
        self.encoder.save(folder, similarity=self._similarity)

    def read(self, folder: Path) -> None:
        """Encoder weights; the objective's stay."""
        self.encoder.read(folder)

    def open(self, folder: Path) -> Model:
        """The model."""
        return Model.load(folder)


@dataclass
class Progress:
    """What evaluation has found so far."""

    best_score: float | None = None
    """The best score."""
    best_step: int | None = None
    """Its step."""
    last_step: int | None = None
    """The step last evaluated."""
    n_worse: int = 0
    """Evaluations since the best."""


class Trainer(Engine):
    """A training run. Used by `train`, which checks what it is given first.

    Args:
        step: What is trained.
        args: The engine's own arguments, made from `config`.
        config: How to train.
        batches: The data.
        sampler: The order.
        folder: Where the best model goes.
        evaluate: How good a model is.
        callbacks: Further callbacks of transformers.
    """

    def __init__(
        self,
        step: Trained,
        args: Any,
        *,
        config: TrainingConfig,
        batches: Batches,
        sampler: BatchSampler,
        folder: Path,
        evaluate: Evaluate | None,
        callbacks: list[Any],
    ) -> None:
        self.config, self.batches, self.folder, self.progress = config, batches, folder, Progress()
        self.step, self.checkpoints = step, Path(str(args.output_dir))
        self._sampler, self._judge = sampler, evaluate
        self._at = (-1, 0)
        self._batch: Batch = {}
        # The engine insists on an evaluation set where an evaluation is asked for; `evaluate` looks at none.
        super().__init__(step, args, train_dataset=batches, eval_dataset=batches, callbacks=callbacks)

    # ------------------------------------------------------------------------------------------- batches

    def get_train_dataloader(self) -> DataLoader[Batch]:
        """The batches of this process, in the order of the sampler."""
        return _Loader(self.batches, batch_sampler=_Alone(self._sampler), collate_fn=_only)

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """Forward and backward of one batch, with the random numbers that belong to it."""
        step, place = self.state.global_step, self.args.process_index
        self._at = (step, self._at[1] + 1 if self._at[0] == step else 0)
        seed = np.random.SeedSequence([self.config.seed, *self._at, place]).generate_state(1, np.uint64)
        torch.manual_seed(int(seed[0] >> 1))
        self._batch = inputs
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        return loss

    def compute_loss(
        self, model: nn.Module, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Tensor:
        """The objective of a batch.

        Raises:
            TrainingError: It is NaN or infinite.
        """
        given = {name: inputs[name] for name in ("ids", "offsets", "n_sides", "labels")}
        try:
            loss: Tensor = model(**given)
        except InputError as error:
            bad = self._bad_rows(inputs)
            if not bad and checkpoints.finite(self.step):
                raise
            raise self._diverged("a token vector") from error
        if not bool(torch.isfinite(loss)):
            raise self._diverged(f"the loss is {float(loss.detach())}: it")
        return loss

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        norm = super()._clip_grad_norm(model)
        if self.config.precision != "float16" and not bool(torch.isfinite(torch.as_tensor(norm))):
            raise self._diverged("the gradient")  # with float16 the scaler skips such a step
        return norm

    def _diverged(self, what: str) -> TrainingError:
        places = self._bad_rows(self._batch) if checkpoints.finite(self.step) else []
        kept = checkpoints.last_checkpoint(self.checkpoints)
        dataset = self._batch["place"].dataset
        rows = [(dataset, int(row)) for row in self._batch["place"].rows]
        if not checkpoints.finite(self.step):
            cause = "weights are NaN or infinite, so that the step before has spoilt them"
        else:
            cause = self.batches.describe(places or rows) + (" alone does that" if len(places) == 1 else "")
        return TrainingError(
            f"step {self.state.global_step + 1}: {what} is not finite ({cause}; in the batch: "
            f"{self.batches.describe(rows)}); lower the learning rate, warm up, or use bfloat16 or float32; "
            f"the last good checkpoint is {kept or 'none'}"
        )

    def _bad_rows(self, inputs: Any) -> list[tuple[int, int]]:
        """Rows of the batch whose own texts or label are not finite."""
        place, ends, n = inputs["place"], inputs["offsets"], len(inputs["place"].rows)
        labels, bad = inputs["labels"], []
        for at, row in enumerate(place.rows.tolist()):
            fine = labels is None or bool(torch.isfinite(labels[at].double()).all())
            for text in range(at, n * inputs["n_sides"], n):
                ids = inputs["ids"][ends[text] : ends[text + 1]].to(self.args.device)
                with torch.no_grad():
                    states = self.step.states(ids, np.asarray([0, len(ids)]))
                fine = fine and bool(torch.isfinite(states).all())
            bad += [] if fine else [(place.dataset, row)]
        return bad

    # ---------------------------------------------------------------------------------------- evaluation

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Save the model as it is, let `evaluate` judge what was saved, and keep it if it is the best so far."""
        score, step, progress = self._score(), self.state.global_step, self.progress
        metrics = {} if score is None else {"score": score}
        self.log(dict(metrics))
        progress.last_step = step
        if score is not None and (progress.best_score is None or score > progress.best_score):
            progress.best_score, progress.best_step, progress.n_worse = score, step, 0
        else:
            progress.n_worse += 1
        if self.config.patience is not None and progress.n_worse >= self.config.patience:
            self.control.should_training_stop = True
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    @property
    def judges(self) -> bool:
        """There is an evaluation."""
        return self._judge is not None

    def _score(self) -> float | None:
        """The same number in every process; the first one computes it."""
        score = torch.full((), math.nan, dtype=torch.float64, device=self.args.device)
        if self.args.process_index == 0 and self._judge is not None:
            best = self.progress.best_score
            with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix=f".{self.folder.name}.") as fresh:
                self.step.save(Path(fresh, "model"))
                found = self._judge(self.step.open(Path(fresh, "model")))
                score.fill_(math.nan if found is None else float(found))
                if bool(torch.isfinite(score)) and (best is None or float(score) > best):
                    self.step.save(self.folder)
        if self.args.world_size > 1:
            distributed.broadcast(score, 0)
        return float(score) if bool(torch.isfinite(score)) else None

    # --------------------------------------------------------------------------------------- checkpoints

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        if not checkpoints.finite(self.step):
            raise self._diverged("a weight")
        if not self.args.should_save:
            return
        assert self.optimizer is not None
        assert self.lr_scheduler is not None
        name = f"checkpoint-{self.state.global_step}"
        with atomic_folder(self.checkpoints / name, checkpoints.MARKER, ours=".*") as target:
            checkpoints.write_tensors(target / "model.safetensors", self.step.state_dict())
            checkpoints.write_optimizer(target, self.optimizer.state_dict())
            checkpoints.write_json(target / "scheduler.json", self.lr_scheduler.state_dict())
            if (scaler := getattr(self.accelerator, "scaler", None)) is not None:
                checkpoints.write_json(target / "scaler.json", scaler.state_dict())
            checkpoints.write_json(target / "run.json", {**self.described(), "progress": asdict(self.progress)})
            self.state.save_to_json(str(target / checkpoints.MARKER))
        checkpoints.forget_old(self.checkpoints, self.config.keep_checkpoints)

    def restore(self, folder: Path) -> None:
        """Weights and progress of a checkpoint."""
        self.step.load_state_dict(checkpoints.read_tensors(folder / "model.safetensors"))
        self.progress = Progress(**checkpoints.read_json(folder / "run.json")["progress"])

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        self.restore(Path(resume_from_checkpoint))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            assert self.optimizer is not None
            assert self.lr_scheduler is not None
            self.optimizer.load_state_dict(checkpoints.read_optimizer(Path(checkpoint)))
            self.lr_scheduler.load_state_dict(checkpoints.read_json(Path(checkpoint, "scheduler.json")))

    def _load_scaler(self, checkpoint: str | None) -> None:
        if checkpoint is not None and os.path.exists(os.path.join(checkpoint, "scaler.json")):
            self.accelerator.scaler.load_state_dict(checkpoints.read_json(Path(checkpoint, "scaler.json")))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        """Nothing: every step seeds its own random numbers."""

    def described(self) -> dict[str, Any]:
        """What a resumed run must have in common with the one that it goes on with."""
        free = ("keep_checkpoints", "log_steps", "patience", "tensorboard", "save_steps", "eval_steps", "device")
        config = {field.name: getattr(self.config, field.name) for field in fields(self.config)}
        return {
            "config": {name: value for name, value in config.items() if name not in free},
            "data": self.batches.fingerprint,
            "objective": _settings(self.step.objective),
            "processes": self.args.world_size,
        }


def _settings(objective: nn.Module) -> str:
    """Everything that was chosen about an objective, those inside it included."""
    lines = []
    for name, module in objective.named_modules():
        chosen = {key: getattr(value, "name", value) for key, value in vars(module).items() if key[0] != "_"}
        plain = {key: value for key, value in chosen.items() if isinstance(value, (str, int, float, tuple))}
        plain.pop("training")  # a mode, not a setting
        lines.append(f"{name}:{type(module).__name__}{plain}")
    return "; ".join(lines)


class _Loader(DataLoader[Batch]):
    """A loader whose epoch can be set."""

    def set_epoch(self, epoch: int) -> None:
        """Another order."""
        self.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]


class _Alone:
    """A sampler of places as one of batches with one item each: an item is a batch already."""

    def __init__(self, places: BatchSampler) -> None:
        self._places = places

    def set_epoch(self, epoch: int) -> None:
        self._places.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Any:
        return ([place] for place in self._places)


def _only(items: list[Batch]) -> Batch:
    return items[0]
