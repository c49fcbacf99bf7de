"""likewise evaluate binary"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.evaluate.common import (
    Models,
    Outputs,
    data_option,
    default_similarities,
    evaluation_options,
    finish,
    resamples_option,
    rivals,
    worst_option,
)

if TYPE_CHECKING:
    from likewise.evaluation.binary import BinaryScores
    from likewise.evaluation.slices import WorstPair

__all__ = ["binary"]

_SETS = {"mrpc": "train", "qqp": "dev"}
"""Set → the split on which thresholds are chosen by default."""

_EXAMPLE = """\b
Examples:
  likewise evaluate binary --data mrpc --set mrpc
  likewise evaluate binary --data qqp --set qqp --split dev --similarity cosine --similarity rcmd
"""


@click.command(short_help="Duplicates: accuracy, F1 and average precision (MRPC, QQP).", epilog=_EXAMPLE)
@data_option("Folder with the files of the set.")
@click.option("--set", "data_set", type=click.Choice(list(_SETS)), required=True, help="Which set it is.")
@click.option("--split", type=click.Choice(["train", "dev", "test"]), default="test", show_default=True)
@click.option(
    "--choose-on",
    type=click.Choice(["train", "dev", "test"]),
    help="Split on which thresholds are chosen.  [default: train of MRPC, dev of QQP]",
)
@resamples_option
@worst_option
@evaluation_options()
def binary(
    *,
    folder: Path,
    data_set: str,
    split: str,
    choose_on: str | None,
    resamples: int,
    worst: int,
    models: Models,
    similarity: tuple[str, ...],
    outputs: Outputs,
) -> None:
    """Do scores tell pairs that mean the same from others? Accuracy, F1 and average precision, times 100.

    accuracy and f1 use thresholds chosen on another split; best_accuracy and best_f1 use the best ones on the very
    pairs measured, and so are optimistic.
    """
    from likewise.data import read_mrpc, read_qqp
    from likewise.evaluation.binary import score_binary
    from likewise.evaluation.slices import explain_worst, worst_pairs

    read = read_mrpc if data_set == "mrpc" else read_qqp
    other = choose_on or _SETS[data_set]
    pairs = read(folder, split)
    chosen = () if other == split else read(folder, other)
    systems: list[BinaryScores] = []
    listed: list[WorstPair] = []
    for model in models:
        names = similarity or default_similarities(model)
        task = f"{data_set}-{split}"
        found = score_binary(model, pairs, names, task=task, choose_on=chosen, n_resamples=resamples)
        systems += found
        for one, system in zip(names, found, strict=True):
            listed += explain_worst(model, worst_pairs(system.as_scored(), task, worst), one)
    finish(
        [measure for system in systems for measure in system.measures()],
        listed,
        outputs,
        title=f"Duplicates, {data_set.upper()} {split}",
        comparisons=[one for first, second in rivals(systems) for one in second.compare(first)],
    )
