"""likewise evaluate reranking"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.evaluate.common import Models, Outputs, data_option, evaluation_options, finish

if TYPE_CHECKING:
    from likewise.evaluation.reranking import Shortlist

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
@evaluation_options()
def reranking(
    *, folder: Path, split: str, negatives: int, models: Models, similarity: tuple[str, ...], outputs: Outputs
) -> None:
    """Do the texts that belong to a query come first among its candidates? MAP and MRR@10, times 100."""
    from likewise.data import read_beir
    from likewise.evaluation.reranking import evaluate_reranking, hard_shortlists

    lists = hard_shortlists(read_beir(folder, split), negatives) if folder.is_dir() else _read(folder)
    measures = []
    for model in models:
        names = similarity or (("cosine", "rcmd") if model.pooled else ("rcmd",))
        measures += evaluate_reranking(model, lists, names, task=folder.absolute().stem)
    finish(measures, [], outputs, title=f"Reranking, {len(lists):,} lists")


def _read(path: Path) -> list[Shortlist]:
    from likewise.data import read_objects, text_at, texts_at
    from likewise.evaluation.reranking import Shortlist

    advice = 'give {"query": "…", "positive": ["…"], "negative": ["…"]} a line'
    return [
        Shortlist(
            text_at(row, "query", where, advice),
            *(tuple(texts_at(row, key, where, advice)) for key in ("positive", "negative")),
        )
        for where, row in read_objects(path)
    ]
