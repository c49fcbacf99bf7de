"""likewise evaluate mining"""

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
    worst_of,
    worst_option,
)

if TYPE_CHECKING:
    from likewise.evaluation.measures import Measure
    from likewise.evaluation.worst import WorstPair

__all__ = ["mining"]

_EXAMPLE = """\b
Examples:
  likewise evaluate mining --data qqp
  likewise evaluate mining --data qqp --texts 5000 --similarity rcmd
  likewise evaluate mining --data my-pairs.jsonl
"""


@click.command(short_help="Mining of duplicates among Quora questions, or your own texts.", epilog=_EXAMPLE)
@data_option(
    'Folder with the Quora question pairs, or your own pairs as JSON lines {"a": "…", "b": "…", "same": true}: all '
    "distinct texts in them are held against one another."
)
@click.option("--max-pairs", type=click.IntRange(min=1), default=200_000, show_default=True, help="Most pairs kept.")
@click.option("--texts", type=click.IntRange(min=2), help="Only the first so many texts.")
@click.option("--no-closure", is_flag=True, help="Do not count what follows from the gold: a = b, b = c, so a = c.")
@worst_option
@evaluation_options(default_is="cosine; of a token-level model rcmd")
def mining(
    *,
    folder: Path,
    max_pairs: int,
    texts: int | None,
    no_closure: bool,
    worst: int,
    models: Models,
    similarity: tuple[str, ...],
    outputs: Outputs,
) -> None:
    """All pairs of texts scored, the best kept, and held against the pairs that people called duplicates."""
    from likewise.data import duplicates_among, read_binary_pairs, read_qqp_duplicates
    from likewise.evaluation.mining import first_texts, score_mining

    if folder.is_file() or folder.suffix == ".jsonl":
        task, data = f"{folder.stem} mining", duplicates_among(read_binary_pairs(folder))
    else:
        task, data = "QQP mining", read_qqp_duplicates(folder)
    if texts is not None:
        data = first_texts(data, texts, closure=not no_closure)
    measures: list[Measure] = []
    listed: list[WorstPair] = []
    for model in models:
        names = similarity or (("cosine",) if model.pooled else ("rcmd",))
        found = score_mining(model, data, names, max_pairs=max_pairs, closure=not no_closure, task=task)
        measures += [measure for system in found for measure in system.measures()]
        listed += worst_of(model, names, found, worst)
    finish(
        measures, listed, outputs, title=f"Mining of duplicates, {len(data.texts):,} texts (× 100, but for thresholds)"
    )
