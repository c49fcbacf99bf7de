"""likewise negatives"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from likewise.cli.options import load, model_options, similarity_option

__all__ = ["negatives"]

_EXAMPLE = """\b
Examples:
  likewise negatives pairs.jsonl --corpus corpus.txt -o triplets.jsonl
  likewise negatives pairs.jsonl --corpus corpus.txt --relative-margin 0.05 --cross-encoder FOLDER -o triplets.jsonl
"""

_ADVICE = 'give {"anchor": "…", "positive": "…"} a line'


@click.command(short_help="Mine hard negatives for training from a corpus.", epilog=_EXAMPLE)
@click.argument("pairs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--corpus",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A text a line.  [default: the positives of PAIRS]",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The triplets.")
@click.option("-n", "n", type=click.IntRange(min=1), default=1, show_default=True, help="Negatives a pair, at most.")
@click.option("--skip", type=click.IntRange(min=0), default=0, show_default=True, help="Nearest texts to pass over.")
@click.option(
    "--window", type=click.IntRange(min=1), default=100, show_default=True, help="The last rank to be looked at."
)
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="How far below the positive's score a negative's must be.",
)
@click.option(
    "--relative-margin", type=click.FloatRange(min=0), help="The same as a part of the positive's score, such as 0.05."
)
@click.option("--max-score", type=float, help="The highest score of a negative.")
@click.option("--cross-encoder", "judge", help="Folder or hub name; its scores are then those of the limits.")
@similarity_option()
@model_options
def negatives(
    *,
    pairs: Path,
    corpus: Path | None,
    output: Path,
    n: int,
    skip: int,
    window: int,
    margin: float,
    relative_margin: float | None,
    max_score: float | None,
    judge: str | None,
    similarity: str | None,
    name: str | None,
    **options: Any,
) -> None:
    """For each line {"anchor", "positive"} of PAIRS the nearest texts of the corpus that do not belong with it.

    A text that equals the anchor or one of its positives, but for case and punctuation, is never taken. Writes JSON
    lines with anchor, positive and negative, which the data of a recipe of kind "triplets" reads.
    """
    from likewise.data import read_lines, read_objects, text_at
    from likewise.files import atomic_file
    from likewise.training import Limits, mine_negatives

    limits = Limits(skip, window, margin, relative_margin, max_score)
    read = [
        (text_at(row, "anchor", where, _ADVICE), text_at(row, "positive", where, _ADVICE))
        for where, row in read_objects(pairs)
    ]
    texts = [positive for _, positive in read]
    if corpus is not None:
        texts = [line for _, line in read_lines(corpus) if line.strip()]
    cross_encoder = None
    if judge is not None:
        from likewise.model import CrossEncoder

        cross_encoder = CrossEncoder.load(judge)
    found = mine_negatives(
        load(name, similarity, **options), read, texts, n=n, limits=limits, cross_encoder=cross_encoder
    )
    with atomic_file(output, "w") as stream:
        for triplet in found.triplets:
            stream.write(json.dumps(asdict(triplet), ensure_ascii=False) + "\n")
    click.echo(
        f"wrote {len(found.triplets):,} triplets of {found.n_pairs:,} pairs to {output}; {found.n_without:,} pairs "
        f"have none; of the nearest texts {found.n_positives:,} were positives, {found.n_margin:,} within the margin, "
        f"{found.n_max_score:,} above the highest score",
        err=True,
    )
