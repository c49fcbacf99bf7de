"""`train`: check everything, run the engine, leave a model folder."""

from __future__ import annotations

import json
import math
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed

from likewise.errors import InputError, MissingExtraError
from likewise.objectives import MANY, Contrastive, Objective
from likewise.similarity import Similarity, by_name
from likewise.training import checkpoints
from likewise.training.batches import Batches
from likewise.training.config import Dataset, TrainingConfig, TrainingResult
from likewise.training.encoder import TrainableEncoder
from likewise.training.samplers import BatchSampler
from likewise.training.trained import Trained
from likewise.training.trainer import Evaluate, Step, Trainer

__all__ = ["check_config", "fit", "n_steps", "train"]

_SCHEDULES = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


def train(
    encoder: TrainableEncoder,
    objective: Objective,
    datasets: Sequence[Dataset],
    config: TrainingConfig,
    *,
    output: str | os.PathLike[str],
    evaluate: Evaluate | None = None,
    similarity: str | Similarity | None = None,
    resume: bool = False,
    callbacks: Sequence[Any] = (),
) -> TrainingResult:
    """Train an encoder on an objective and leave a model folder that `Model.load` reads.

    Every wish that cannot be met is refused before the first step. Under `torchrun` each process trains on its part
    of every batch, and the contrastive candidates are those of all. The engine is transformers' Trainer.

    Args:
        encoder: What to train; it is changed, and holds the weights of the saved model afterwards.
        objective: What to make small; its parameters are trained, and saved with the checkpoints.
        datasets: One or more; every batch is of one of them.
        config: How to train.
        output: A folder for the run: `model` is the trained model, `checkpoints` what a resume needs.
        evaluate: How good a model is, as a number that grows, such as Spearman's on STS-b dev. It is asked every
            `eval_steps` and at the end, and the best model is kept; None or NaN is never the best. Without it the last
            model is kept.
        similarity: The one that the model is to be used with; by default that of the objective, if it has one.
        resume: Go on from the last checkpoint in `output`, if there is one. A run that was stopped, even by a kill,
            and resumed gives the weights of a straight run, bit for bit on a CPU.
        callbacks: Further callbacks of transformers.

    Raises:
        InputError: The data do not fit the objective, a data set is smaller than a batch, the model cannot be trained
            on the similarity, `output` holds another run, the run to resume was another one, or the launcher splits
            the weights (FSDP, DeepSpeed).
        TrainingError: The loss or the gradient is NaN or infinite; step and rows are named, checkpoints stay.
        MissingExtraError: TensorBoard is asked for and absent.

    Example:
        >>> encoder = TrainableEncoder.from_folder()                                              # doctest: +SKIP
        >>> triplets = Dataset("nli", (anchors, positives, negatives))                            # doctest: +SKIP
        >>> train(encoder, Contrastive(RCMD()), [triplets], TrainingConfig(), output="run")       # doctest: +SKIP
    """
    used = _check(encoder, objective, datasets, config)
    named = used if similarity is None else by_name(similarity).name
    step = Step(encoder, objective, config.gradcache_chunk, named)
    distinct = _is_contrastive(objective) if config.no_duplicates is None else config.no_duplicates
    return fit(
        step,
        lambda: Batches(datasets, encoder),
        config,
        output=Path(output),
        evaluate=evaluate,
        resume=resume,
        callbacks=callbacks,
        distinct=distinct,
        some_unused=any(True for _ in encoder.head.on_pooled.parameters()),
    )


def fit(
    step: Trained,
    read: Callable[[], Batches],
    config: TrainingConfig,
    *,
    output: Path,
    evaluate: Evaluate | None,
    resume: bool,
    callbacks: Sequence[Any],
    distinct: bool,
    some_unused: bool = False,
) -> TrainingResult:
    """Run the engine on what has been checked. The arguments that `train` has are as there.

    Args:
        step: What is trained.
        read: Reads the data, once it is known that the run can be.
        config: How to train.
        output: A folder for the run.
        evaluate: How good a model is.
        resume: Go on from the last checkpoint.
        callbacks: Further callbacks of transformers.
        distinct: Keep equal texts out of a batch.
        some_unused: A parameter may be without gradient, which several processes must know.
    """
    folder = output / "checkpoints"
    last = _last(output, folder, resume)
    with _own_randomness():
        args = _arguments(folder, config, evaluate is not None)
        batches = read()
        sampler = BatchSampler(
            batches.sets,
            config.batch_size,
            config.seed,
            distinct=distinct,
            grouped=config.group_by_length,
            part=(args.process_index, args.world_size),
        )
        args.max_steps = n_steps(len(sampler), config)
        args.warmup_steps = math.ceil(config.warmup_ratio * args.max_steps)
        args.per_device_train_batch_size = config.batch_size // args.world_size
        args.ddp_find_unused_parameters = some_unused
        trainer = Trainer(
            step,
            args,
            config=config,
            batches=batches,
            sampler=sampler,
            folder=output / "model",
            evaluate=evaluate,
            callbacks=list(callbacks),
        )
        if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
            raise InputError(
                "this run was launched with FSDP or DeepSpeed, which split the weights, and checkpoints here hold "
                "whole ones; start it with torchrun, where every process has the whole model"
            )
        return _run(trainer, last)


def n_steps(n_batches: int, config: TrainingConfig) -> int:
    """Steps of the optimizer that a run takes, for so many batches an epoch."""
    a_pass = math.ceil(n_batches / config.accumulation)
    return config.max_steps if config.max_steps is not None else max(1, math.ceil(config.epochs * a_pass))


def check_config(config: TrainingConfig) -> None:
    """Refuse what this machine cannot do.

    Raises:
        InputError: float16 without a GPU.
        MissingExtraError: TensorBoard is asked for and absent.
    """
    if config.tensorboard and find_spec("tensorboard") is None and find_spec("tensorboardX") is None:
        raise MissingExtraError("tensorboard", "train", "writing the history for TensorBoard")
    if config.precision == "float16" and (config.device == "cpu" or not torch.cuda.is_available()):
        raise InputError("precision 'float16' needs a GPU, for its products and its scaler; take 'bfloat16'")


def _check(
    encoder: TrainableEncoder, objective: Objective, datasets: Sequence[Dataset], config: TrainingConfig
) -> str | None:
    """Refuse what cannot be trained; the name of the objective's similarity, if it has one."""
    check_config(config)
    for data in datasets:
        _check_columns(objective, data)
        try:
            objective.check(data.labels)
        except InputError as error:
            raise InputError(f"data set {data.name!r}: {error}") from error
    found = None
    for similarity in (getattr(module, "similarity", None) for module in objective.modules()):
        if isinstance(similarity, Similarity):
            encoder.check(similarity)
            found = similarity.name
    return found


def _check_columns(objective: Objective, data: Dataset) -> None:
    (fewest, most), n = objective.n_sides, len(data.columns)
    if not fewest <= n <= most:
        wanted = f"{fewest}" if fewest == most else f"{fewest} or more" if most == MANY else f"{fewest} to {most}"
        raise InputError(
            f"{type(objective).__name__} takes {wanted} columns of texts and data set {data.name!r} has {n}; choose "
            "its columns, or another objective"
        )


def _is_contrastive(objective: Objective) -> bool:
    return any(isinstance(module, Contrastive) for module in objective.modules())


def _last(output: Path, folder: Path, resume: bool) -> Path | None:
    last = checkpoints.last_checkpoint(folder)
    if not resume and (last is not None or (output / "model").exists()):
        raise InputError(
            f"{output} holds an earlier run; choose another folder, remove it, or go on with it: resume=True (--resume)"
        )
    return last


def _arguments(folder: Path, config: TrainingConfig, evaluates: bool) -> Any:
    """The engine's own arguments."""
    from transformers import TrainingArguments

    cpu = config.device == "cpu" or not torch.cuda.is_available()
    args = TrainingArguments(
        output_dir=str(folder),
        gradient_accumulation_steps=config.accumulation,
        learning_rate=config.learning_rate,
        lr_scheduler_type=_SCHEDULES[config.schedule],
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        bf16=config.precision == "bfloat16",
        fp16=config.precision == "float16",
        seed=config.seed,
        use_cpu=cpu,
        ddp_backend="gloo" if cpu and int(os.environ.get("WORLD_SIZE", "1")) > 1 else None,
        eval_strategy=("epoch" if config.eval_steps is None else "steps") if evaluates else "no",
        eval_steps=config.eval_steps,
        save_strategy="epoch" if config.save_steps is None else "steps",
        save_steps=config.save_steps or 1,
        logging_steps=config.log_steps,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        report_to=["tensorboard"] if config.tensorboard else "none",
        disable_tqdm=not sys.stderr.isatty(),
        log_level="error",
        dataloader_pin_memory=not cpu,
        remove_unused_columns=False,
    )
    args._n_gpu = min(args.n_gpu, 1)  # several GPUs are for several processes
    return args


def _run(trainer: Trainer, last: Path | None) -> TrainingResult:
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    folder, step, first = trainer.folder, trainer.step, trainer.args.process_index == 0
    if first:
        checkpoints.clear_remains(trainer.checkpoints)
    if last is None or not _finished(trainer, last):
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    progress, state = trainer.progress, trainer.state
    if trainer.judges and progress.last_step != state.global_step:
        trainer.evaluate()
    if progress.best_score is not None:
        step.read(folder)
    elif first:
        step.save(folder)
    if trainer.args.world_size > 1:
        distributed.barrier()  # the folder is there when any process returns
    step.eval()
    history = [entry for entry in state.log_history if "loss" in entry or "score" in entry]
    return TrainingResult(
        folder=folder,
        n_steps=state.global_step,
        loss=next((entry["loss"] for entry in reversed(history) if "loss" in entry), math.nan),
        best_score=progress.best_score,
        best_step=progress.best_step,
        stopped_early=state.global_step < trainer.args.max_steps,
        history=history,
    )


def _finished(trainer: Trainer, last: Path) -> bool:
    """The checkpoint fits this run, and whether nothing is left to do; then its state is taken over.

    Raises:
        InputError: It is another run's, or damaged.
    """
    try:
        return _compared(trainer, last)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise InputError(
            f"the checkpoint {last} is damaged ({error!r}); remove its folder to go on from the one before"
        ) from error


def _compared(trainer: Trainer, last: Path) -> bool:
    from transformers import TrainerState

    stored, wanted = checkpoints.read_json(last / "run.json"), trainer.described()
    for part, here, there in (
        *((f"config.{name}", value, stored["config"].get(name)) for name, value in wanted["config"].items()),
        *((name, wanted[name], stored[name]) for name in ("data", "objective", "processes")),
    ):
        if here != there:
            raise InputError(
                f"{last} belongs to another run: {part} was {there!r} and is {here!r}; resume with what the run was "
                "started with, or choose another folder"
            )
    state = TrainerState.load_from_json(str(last / checkpoints.MARKER))
    patience = trainer.config.patience
    ended = patience is not None and stored["progress"]["n_worse"] >= patience
    if state.global_step < trainer.args.max_steps and not ended:
        return False
    trainer.state = state
    trainer.restore(last)
    return True


@contextmanager
def _own_randomness() -> Iterator[None]:
    """The caller's random states and transformers' verbosity are as before afterwards."""
    from transformers.utils import logging

    states, verbosity = (random.getstate(), np.random.get_state(), torch.get_rng_state()), logging.get_verbosity()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        logging.set_verbosity(verbosity)
