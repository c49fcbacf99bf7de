"""likewise evaluate arguments"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.evaluate.common import (
    BOTH,
    Models,
    Outputs,
    compared,
    data_option,
    default_similarities,
    evaluation_options,
    finish,
    worst_option,
)

if TYPE_CHECKING:
    from likewise.evaluation.measures import Measure
    from likewise.evaluation.sts import SystemScores
    from likewise.evaluation.worst import WorstPair

__all__ = ["arguments"]

_SETTINGS = ("frozen", "folds", "cross-topic")

_EXAMPLE = """\b
Examples:
  likewise evaluate arguments --data BWS_corpus.csv
  likewise evaluate arguments --data UKP_ASPECT.tsv --setting folds --setting cross-topic
"""


@click.command(short_help="AFS and its kin: how alike are two arguments?", epilog=_EXAMPLE)
@data_option("File of the AFS, BWS or UKP aspect corpus, or a folder with the files of AFS.")
@click.option(
    "--setting",
    "settings",
    type=click.Choice(_SETTINGS),
    multiple=True,
    default=("frozen",),
    show_default=True,
    help="The similarity itself, or ridge regression on frozen vectors within or across topics. May be repeated.",
)
@click.option("--folds", "n_folds", type=click.IntRange(min=2), default=10, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the folds.")
@worst_option
@evaluation_options(default_is=BOTH)
def arguments(
    *,
    folder: Path,
    settings: tuple[str, ...],
    n_folds: int,
    seed: int,
    worst: int,
    models: Models,
    similarity: tuple[str, ...],
    outputs: Outputs,
) -> None:
    """Argument similarity: Pearson and Spearman correlation, times 100, by topic."""
    from likewise.data import read_arguments
    from likewise.evaluation.arguments import cross_topic, cross_validate, folds, ridge, score_arguments
    from likewise.evaluation.worst import explain_worst, worst_pairs

    pairs = read_arguments(folder)
    task = folder.stem
    trained = {"folds": folds(pairs, n_folds, seed), "cross-topic": cross_topic(pairs)}
    systems: list[SystemScores] = []
    listed: list[WorstPair] = []
    measures: list[Measure] = []
    for model in models:
        if "frozen" in settings:
            names = similarity or default_similarities(model)
            found = score_arguments(model, pairs, names, task=task)
            systems += found
            for one, system in zip(names, found, strict=True):
                measures += system.measures()
                listed += explain_worst(model, worst_pairs(system, task, worst), one)
        fit = ridge(model) if set(settings) & set(trained) else None
        for setting, splits in trained.items():
            if fit is not None and setting in settings:
                name = f"{model.name} + ridge"
                measures += cross_validate(fit, pairs, splits, task=f"{task} {setting}", model=name)
    title = f"Argument similarity, {task} (correlations × 100)"
    finish(measures, listed, outputs, title=title, comparisons=compared(systems) if systems else ())
