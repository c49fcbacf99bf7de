"""likewise evaluate retrieval"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.evaluate.common import (
    Models,
    Outputs,
    compared,
    data_option,
    evaluation_options,
    finish,
    partial_option,
    worst_of,
    worst_option,
)

if TYPE_CHECKING:
    from likewise.evaluation.example_scores import ExampleScores
    from likewise.evaluation.worst import WorstPair

__all__ = ["retrieval"]

_EXAMPLE = """\b
Examples:
  likewise evaluate retrieval --data scifact
  likewise evaluate retrieval --data scifact --similarity cosine --rerank rcmd --depth 50
"""


@click.command(short_help="Retrieval (BEIR format, such as SciFact).", epilog=_EXAMPLE)
@data_option("Folder with corpus.jsonl, queries.jsonl and qrels/, or one that holds it as beir/.")
@click.option("--split", default="test", show_default=True, help="Name of the file of judgements.")
@click.option("--rerank", type=click.Choice(["rcmd", "transport"]), help="Score the first documents once more.")
@click.option("--depth", type=click.IntRange(min=1), default=100, show_default=True, help="How many of them.")
@click.option("--query-prompt", default="", help="Put in front of each query.")
@click.option("--document-prompt", default="", help="Put in front of each document.")
@partial_option
@worst_option
@evaluation_options(default_is="cosine; of a token-level model rcmd")
def retrieval(
    *,
    folder: Path,
    split: str,
    rerank: str | None,
    depth: int,
    query_prompt: str,
    document_prompt: str,
    partial: bool,
    worst: int,
    models: Models,
    similarity: tuple[str, ...],
    outputs: Outputs,
) -> None:
    """Are the documents that answer a query found first? nDCG, MRR, recall and MAP, times 100; exact search."""
    from likewise.data import read_beir
    from likewise.evaluation.retrieval import score_retrieval

    data = read_beir(folder, split, missing="drop" if partial else "raise")
    systems: list[ExampleScores] = []
    listed: list[WorstPair] = []
    for model in models:
        names = similarity or (("cosine",) if model.pooled else ("rcmd",))
        found = score_retrieval(
            model,
            data,
            names,
            rerank=rerank,
            depth=depth,
            task=folder.absolute().name,
            query_prompt=query_prompt,
            document_prompt=document_prompt,
        )
        systems += found
        listed += worst_of(model, names, found, worst)
    finish(
        [measure for system in systems for measure in system.measures()],
        listed,
        outputs,
        title=f"Retrieval, {folder.absolute().name}, {split} (× 100)",
        comparisons=compared(systems),
    )
