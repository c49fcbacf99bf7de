"""likewise score"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from likewise.cli.options import TEXT, batches, load, model_options, similarity_option
from likewise.errors import InputError

_EXAMPLE = """\b
Examples:
  likewise score "A plane is taking off." "An air plane is taking off."
  likewise score --input pairs.jsonl --similarity rcmd
  likewise score --input scored.jsonl --similarity rcmd --into rcmd
"""

_ADVICE = 'give {"a": "…", "b": "…"} a line'

_Pair = tuple[str, str, str]
"""The texts `a` and `b`, and the JSON object that holds them as it came."""


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

    Prints one JSON line a pair: what came in, letter for letter, and its score. Nothing that came in is replaced: a
    line that has the key of the score already is refused.
    """
    if (a is None or b is None) == (source is None) or (a is not None and b is None):
        raise click.UsageError("give two texts, or --input with JSON lines")
    if into in ("", "a", "b"):
        what = f'the texts have the key "{into}"' if into else "the key is empty"
        raise click.UsageError(f"--into: {what}; name another one")
    if source:
        pairs = _pairs(source, [into] if into is not None else ["similarity", "score"])
    else:
        pairs = iter([(str(a), str(b), json.dumps({"a": a, "b": b}, ensure_ascii=False))])
    model = load(similarity=similarity, **options)
    for batch in batches(pairs):
        left, right = [pair[0] for pair in batch], [pair[1] for pair in batch]
        values = model.score(left, right, special_tokens=not no_special)
        for (_, _, came), value in zip(batch, values, strict=True):
            named = {"similarity": model.similarity.name, "score": float(value)}
            ours = json.dumps(named if into is None else {into: float(value)}, ensure_ascii=False, allow_nan=False)
            # Spliced, since numbers would not survive being read and written: 0.10 would come out as 0.1.
            sys.stdout.write(f"{came[:-1].rstrip()}, {ours[1:]}\n")
        sys.stdout.flush()


def _pairs(source: Iterable[bytes], keys: Sequence[str]) -> Iterator[_Pair]:
    """The pairs of JSON lines, up to one that has something under a key of ours."""
    from likewise.data import object_in, read_lines, text_at

    for number, line in read_lines(source):
        if not line.strip():
            continue
        where = f"line {number}"
        row = object_in(line, where)
        a, b = (text_at(row, side, where, _ADVICE) for side in "ab")
        taken = next((key for key in keys if key in row), None)
        if taken is not None:
            raise InputError(
                f'{where} has "{taken}" already, which the result would replace; name another key: --into KEY'
            )
        yield a, b, line.strip()
