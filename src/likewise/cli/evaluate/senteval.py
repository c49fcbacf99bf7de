"""likewise evaluate senteval"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.evaluate.common import (
    Models,
    Outputs,
    data_option,
    evaluation_options,
    finish,
)

if TYPE_CHECKING:
    from likewise.evaluation.example_scores import ExampleScores
    from likewise.evaluation.measures import Measure

__all__ = ["senteval"]

_TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")

_EXAMPLE = """\b
Examples:
  likewise evaluate senteval --data senteval_transfer
  likewise evaluate senteval --data senteval_transfer --task MR --task CR --model MODEL_A --model MODEL_B
"""


@click.command(short_help="SentEval: a linear classifier on frozen vectors.", epilog=_EXAMPLE)
@data_option("Folder with the transfer tasks, such as tokenized/MR, or the one above it.")
@click.option(
    "--task",
    "tasks",
    type=click.Choice(_TASKS, case_sensitive=False),
    multiple=True,
    default=_TASKS,
    show_default=True,
    help="May be repeated.",
)
@click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True)
@click.option("--seed", type=int, default=1111, show_default=True, help="Of the folds.")
@evaluation_options(similarity=False)
def senteval(*, folder: Path, tasks: tuple[str, ...], folds: int, seed: int, models: Models, outputs: Outputs) -> None:
    """Accuracy, times 100, of a logistic regression on frozen sentence vectors (and F1 of MRPC)."""
    from likewise.data import read_classification, read_mrpc
    from likewise.evaluation.senteval import Folds, average_accuracy, score_classification, score_paraphrases

    names = list(dict.fromkeys(tasks))
    data = {task: read_classification(folder, task) for task in names if task != "MRPC"}
    pairs = [read_mrpc(folder, split) for split in ("train", "test")] if "MRPC" in names else []
    strategy = Folds(n=folds, seed=seed)
    systems: list[list[ExampleScores]] = []
    measures: list[Measure] = []
    for model in models:
        own = [
            score_paraphrases(model, *pairs, folds=strategy)
            if task == "MRPC"
            else score_classification(model, data[task], task=task, folds=strategy)
            for task in names
        ]
        systems.append(own)
        found = [measure for one in own for measure in one.measures()]
        measures += [*found, average_accuracy(found)] if len(names) > 1 else found
    comparisons = [
        one
        for others in systems[1:]
        for first, second in zip(systems[0], others, strict=True)
        for one in second.compare(first)
    ]
    finish(
        measures, [], outputs, title=f"SentEval, logistic regression, {folds} folds (× 100)", comparisons=comparisons
    )
