"""likewise evaluate retrieval"""

from __future__ import annotations

from pathlib import Path

import click

from likewise.cli.evaluate.common import Models, Outputs, data_option, evaluation_options, finish

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
@evaluation_options()
def retrieval(
    *,
    folder: Path,
    split: str,
    rerank: str | None,
    depth: int,
    query_prompt: str,
    document_prompt: str,
    models: Models,
    similarity: tuple[str, ...],
    outputs: Outputs,
) -> None:
    """Are the documents that answer a query found first? nDCG, MRR, recall and MAP, times 100; exact search."""
    from likewise.data import read_beir
    from likewise.evaluation.retrieval import evaluate_retrieval

    data = read_beir(folder, split)
    measures = []
    for model in models:
        measures += evaluate_retrieval(
            model,
            data,
            similarity or (("cosine",) if model.pooled else ("rcmd",)),
            rerank=rerank,
            depth=depth,
            task=folder.absolute().name,
            query_prompt=query_prompt,
            document_prompt=document_prompt,
        )
    finish(measures, [], outputs, title=f"Retrieval, {folder.absolute().name}, {split}")
