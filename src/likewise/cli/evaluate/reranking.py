"""likewise evaluate reranking"""

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
    partial_option,
    worst_of,
    worst_option,
)

if TYPE_CHECKING:
    from likewise.evaluation.example_scores import ExampleScores
    from likewise.evaluation.reranking import Shortlist
    from likewise.evaluation.worst import WorstPair

__all__ = ["reranking"]

_EXAMPLE = """\b
Examples:
  likewise evaluate reranking --data scifact --similarity cosine --similarity rcmd
  likewise evaluate reranking --data lists.jsonl
"""


@click.command(short_help="Reranking of short lists of candidates.", epilog=_EXAMPLE)
@data_option(
    'JSON lines {"query": "…", "positive": ["…"], "negative": ["…"]}, or a folder in BEIR format: then what is '
    "relevant stands against the best others by tf-idf."
)
@click.option("--split", default="test", show_default=True, help="Of a folder: name of the file of judgements.")
@click.option(
    "--negatives", type=click.IntRange(min=1), default=50, show_default=True, help="Of a folder: others a query."
)
@partial_option
@worst_option
@evaluation_options(default_is=BOTH)
def reranking(
    *,
    folder: Path,
    split: str,
    negatives: int,
    partial: bool,
    worst: int,
    models: Models,
    similarity: tuple[str, ...],
    outputs: Outputs,
) -> None:
    """Do the texts that belong to a query come first among its candidates? MAP and MRR@10, times 100."""
    from likewise.data import read_beir
    from likewise.evaluation.reranking import hard_shortlists, lists_that_order, score_reranking

    read = (
        hard_shortlists(read_beir(folder, split, missing="drop" if partial else "raise"), negatives)
        if folder.is_dir()
        else _read(folder)
    )
    lists = lists_that_order(read)
    systems: list[ExampleScores] = []
    listed: list[WorstPair] = []
    for model in models:
        names = similarity or default_similarities(model)
        found = score_reranking(model, lists, names, task=folder.absolute().stem)
        systems += found
        listed += worst_of(model, names, found, worst)
    finish(
        [measure for system in systems for measure in system.measures()],
        listed,
        outputs,
        title=f"Reranking, {len(lists):,} list{'' if len(lists) == 1 else 's'} (× 100)",
        comparisons=compared(systems),
    )


def _read(path: Path) -> list[Shortlist]:
    from likewise.data import read_objects, text_at, texts_at
    from likewise.errors import DataError, InputError
    from likewise.evaluation.reranking import Shortlist

    advice = 'give {"query": "…", "positive": ["…"], "negative": ["…"]} a line'
    lists = []
    for where, row in read_objects(path):
        query = text_at(row, "query", where, advice)
        positives, negatives = (tuple(texts_at(row, key, where, advice)) for key in ("positive", "negative"))
        try:
            lists.append(Shortlist(query, positives, negatives))
        except InputError as error:
            raise DataError(f"{where}: {error}") from error
    return lists
