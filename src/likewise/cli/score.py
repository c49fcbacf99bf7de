"""likewise score"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click

from likewise.cli.options import TEXT, batches, load, model_options, pairs_from, print_json, similarity_option

_EXAMPLE = """\b
Examples:
  likewise score "A plane is taking off." "An air plane is taking off."
  likewise score --input pairs.jsonl --similarity rcmd
"""


@click.command(short_help="Score pairs of texts.", epilog=_EXAMPLE)
@click.argument("a", type=TEXT, required=False)
@click.argument("b", type=TEXT, required=False)
@click.option(
    "-i",
    "--input",
    "source",
    type=click.File("rb"),
    help='JSON lines {"a": …, "b": …}; - for standard input.',
)
@click.option("--no-special", is_flag=True, help="Leave out [CLS], [SEP] and the like.")
@similarity_option()
@model_options
def score(
    *,
    a: str | None,
    b: str | None,
    source: Iterable[bytes] | None,
    no_special: bool,
    similarity: str | None,
    **options: Any,
) -> None:
    """Score two texts A and B, or every pair of a file.

    Prints one JSON line a pair: what came in, and its score.
    """
    if (a is None or b is None) == (source is None) or (a is not None and b is None):
        raise click.UsageError("give two texts, or --input with JSON lines")
    rows = pairs_from(source) if source else iter([{"a": a, "b": b}])
    model = load(similarity=similarity, **options)
    for batch in batches(rows):
        left, right = [row["a"] for row in batch], [row["b"] for row in batch]
        values = model.score(left, right, special_tokens=not no_special)
        for row, value in zip(batch, values, strict=True):
            print_json({**row, "similarity": model.similarity.name, "score": float(value)})
        sys.stdout.flush()
