"""likewise score"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from likewise.cli.options import TEXT, batches, load, model_options, pairs_from, print_json, similarity_option
from likewise.errors import InputError

_EXAMPLE = """\b
Examples:
  likewise score "A plane is taking off." "An air plane is taking off."
  likewise score --input pairs.jsonl --similarity rcmd
  likewise score --input scored.jsonl --similarity rcmd --into rcmd
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
@click.option(
    "--into",
    metavar="KEY",
    type=TEXT,
    help='Write the score under KEY.  [default: "score", and "similarity" says how]',
)
@click.option("--no-special", is_flag=True, help="Leave out [CLS], [SEP] and the like.")
@similarity_option()
@model_options
def score(
    *,
    a: str | None,
    b: str | None,
    source: Iterable[bytes] | None,
    into: str | None,
    no_special: bool,
    similarity: str | None,
    **options: Any,
) -> None:
    """Score two texts A and B, or every pair of a file.

    Prints one JSON line a pair: what came in, and its score. Nothing that came in is replaced: a line that has the
    key of the score already is refused.
    """
    if (a is None or b is None) == (source is None) or (a is not None and b is None):
        raise click.UsageError("give two texts, or --input with JSON lines")
    pairs = pairs_from(source) if source else iter([{"a": a, "b": b}])
    rows = _free(pairs, [into] if into is not None else ["similarity", "score"])
    model = load(similarity=similarity, **options)
    for batch in batches(rows):
        left, right = [row["a"] for row in batch], [row["b"] for row in batch]
        values = model.score(left, right, special_tokens=not no_special)
        for row, value in zip(batch, values, strict=True):
            named = {"similarity": model.similarity.name, "score": float(value)}
            print_json({**row, **(named if into is None else {into: float(value)})})
        sys.stdout.flush()


def _free(pairs: Iterable[dict[str, Any]], keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The pairs, up to one that has something under a key of ours."""
    for number, pair in enumerate(pairs, start=1):
        taken = next((key for key in keys if key in pair), None)
        if taken is not None:
            raise InputError(
                f'pair {number} has "{taken}" already, which the result would replace; name another key: --into KEY'
            )
        yield pair
