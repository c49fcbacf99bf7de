"""likewise evaluate binary"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.evaluate.common import (
    Models,
    Outputs,
    compared,
    data_option,
    default_similarities,
    evaluation_options,
    finish,
    resamples_option,
    worst_of,
    worst_option,
)

if TYPE_CHECKING:
    from likewise.data import BinaryPair
    from likewise.evaluation.binary import BinaryScores
    from likewise.evaluation.worst import WorstPair

__all__ = ["binary"]

_SETS = {"mrpc": "train", "qqp": "dev"}
"""Set → the split on which thresholds are chosen by default."""

_SPLITS = ("train", "dev", "test")

_OPTIMISTIC = "thresholds chosen there are best_accuracy and best_f1 without the option; name other pairs"

_CHOSEN = (
    "accuracy and f1: at thresholds chosen on other pairs; best_accuracy and best_f1: at the best ones on these very "
    "pairs, and so optimistic"
)

_OWN = (
    "best_accuracy and best_f1: at the best thresholds on these very pairs, and so optimistic; --choose-on with other "
    "pairs gives accuracy and f1, too"
)

_EXAMPLE = """\b
Examples:
  likewise evaluate binary --data mrpc --set mrpc
  likewise evaluate binary --data qqp --set qqp --split dev --similarity cosine --similarity rcmd
  likewise evaluate binary --data my-pairs.jsonl --choose-on other-pairs.jsonl
"""


@click.command(short_help="Duplicates: accuracy, F1 and average precision (MRPC, QQP, your own).", epilog=_EXAMPLE)
@data_option(
    'Folder with the files of a set, or your own pairs: JSON lines {"a": "…", "b": "…", "same": true}, or .csv or .tsv '
    "with such columns (sentence1, sentence2 and label do as well)."
)
@click.option("--set", "data_set", type=click.Choice(list(_SETS)), help="Of a folder: which set it is.")
@click.option("--split", type=click.Choice(_SPLITS), default="test", show_default=True, help="Of a folder.")
@click.option(
    "--choose-on",
    metavar="SPLIT|FILE",
    help="Where thresholds are chosen: a split of the set, or a file like that of --data.  [default: train of MRPC, "
    "dev of QQP, nowhere for a file]",
)
@resamples_option
@worst_option
@evaluation_options()
def binary(
    *,
    folder: Path,
    data_set: str | None,
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
    pairs measured, and so are optimistic. Worst errors are the pairs farthest on the wrong side of the threshold for
    accuracy.
    """
    from likewise.evaluation.binary import score_binary

    if data_set is None:
        task, pairs, chosen = _own(folder, choose_on)
    else:
        task, pairs, chosen = _known(folder, data_set, split, choose_on)
    systems: list[BinaryScores] = []
    listed: list[WorstPair] = []
    for model in models:
        names = similarity or default_similarities(model)
        found = score_binary(model, pairs, names, task=task, choose_on=chosen, n_resamples=resamples)
        systems += found
        listed += worst_of(model, names, found, worst)
    finish(
        [measure for system in systems for measure in system.measures()],
        listed,
        outputs,
        title=f"Duplicates, {task} (× 100, but for thresholds)",
        comparisons=compared(systems),
        notes=[_CHOSEN if chosen else _OWN],
    )


def _known(
    folder: Path, data_set: str, split: str, choose_on: str | None
) -> tuple[str, Sequence[BinaryPair], Sequence[BinaryPair]]:
    from likewise.data import read_mrpc, read_qqp

    if choose_on == split:
        raise click.UsageError(f"--choose-on is {split}, the split that is measured; {_OPTIMISTIC}")
    other = _SETS[data_set] if choose_on is None else choose_on
    if other not in _SPLITS:
        raise click.UsageError(f"--choose-on is {other!r}, and a set has the splits {', '.join(_SPLITS)}")
    read = read_mrpc if data_set == "mrpc" else read_qqp
    return f"{data_set}-{split}", read(folder, split), () if other == split else read(folder, other)


def _own(path: Path, choose_on: str | None) -> tuple[str, Sequence[BinaryPair], Sequence[BinaryPair]]:
    from likewise.data import read_binary_pairs

    if path.is_dir():
        raise click.UsageError(f"{path} is a folder; say which set it holds: --set {' or --set '.join(_SETS)}")
    pairs = read_binary_pairs(path)
    if choose_on is None:
        return path.stem, pairs, ()
    chosen = read_binary_pairs(choose_on)
    if chosen == pairs:
        raise click.UsageError(f"--choose-on has the very pairs that are measured; {_OPTIMISTIC}")
    return path.stem, pairs, chosen
