"""likewise evaluate triplets"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.evaluate.common import (
    Models,
    Outputs,
    compared,
    default_similarities,
    evaluation_options,
    finish,
    resamples_option,
    worst_option,
)

if TYPE_CHECKING:
    from likewise.evaluation.example_scores import ExampleScores
    from likewise.evaluation.worst import WorstPair

__all__ = ["triplets"]

_EXAMPLE = """\b
Examples:
  likewise evaluate triplets --data wikitext2/test.txt --similarity cosine --similarity rcmd
  likewise evaluate triplets --data wikipedia-sections-triplets/test.csv
  likewise evaluate triplets --data my-triplets.jsonl
"""


@click.command(short_help="Triplets, such as of Wikipedia sections: is the right one nearer?", epilog=_EXAMPLE)
@click.option(
    "--data",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Articles with headings (WikiText) to make triplets from, the triplets of Dor et al. (.csv), or your own "
    'triplets (.jsonl): {"anchor": "…", "positive": "…", "negative": "…"} a line.',
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the triplets made from articles.")
@resamples_option
@worst_option
@evaluation_options()
def triplets(
    *,
    path: Path,
    seed: int,
    resamples: int,
    worst: int,
    models: Models,
    similarity: tuple[str, ...],
    outputs: Outputs,
) -> None:
    """Triplets of sentences: accuracy, 0 to 1, of finding the positive strictly nearer than the negative."""
    from likewise.data import read_articles, read_section_triplets, read_triplets, section_triplets
    from likewise.evaluation.triplets import score_triplets
    from likewise.evaluation.worst import explain_worst

    made = path.suffix not in (".csv", ".jsonl")
    if made:
        found = section_triplets(read_articles(path), seed=seed)
    else:
        found = read_triplets(path) if path.suffix == ".jsonl" else read_section_triplets(path)
    task = path.stem if path.suffix == ".jsonl" else "sections"
    systems: list[ExampleScores] = []
    listed: list[WorstPair] = []
    for model in models:
        names = similarity or default_similarities(model)
        own = score_triplets(model, found, names, task=task, n_resamples=resamples)
        systems += own
        for one, system in zip(names, own, strict=True):
            listed += explain_worst(model, system.worst(worst), one)
    finish(
        [measure for system in systems for measure in system.measures()],
        listed,
        outputs,
        title=f"Triplets, {path.name}{f', made with seed {seed}' if made else ''}",
        comparisons=compared(systems),
    )
