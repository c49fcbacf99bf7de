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
    worst_of,
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
    help="Articles with headings (WikiText) to make triplets from, the triplets of Dor et al. (.csv), or your own: "
    'JSON lines {"anchor": "…", "positive": "…", "negative": "…"} (.jsonl), or columns so named (.csv, .tsv).',
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

    task, made, found = "sections", False, []
    if _is_own(path):
        task, found = path.stem, read_triplets(path)
    elif path.suffix == ".csv":
        found = read_section_triplets(path)
    else:
        made, found = True, section_triplets(read_articles(path), seed=seed)
    systems: list[ExampleScores] = []
    listed: list[WorstPair] = []
    for model in models:
        names = similarity or default_similarities(model)
        own = score_triplets(model, found, names, task=task, n_resamples=resamples)
        systems += own
        listed += worst_of(model, names, own, worst)
    finish(
        [measure for system in systems for measure in system.measures()],
        listed,
        outputs,
        title=f"Triplets, {path.name}{f', made with seed {seed}' if made else ''} (accuracy from 0 to 1)",
        comparisons=compared(systems),
    )


def _is_own(path: Path) -> bool:
    """JSON lines, or columns of which one is called anchor."""
    from likewise.data import read_lines

    if path.suffix in (".jsonl", ".tsv"):
        return True
    return path.suffix == ".csv" and "anchor" in next((line for _, line in read_lines(path)), "").lower()
