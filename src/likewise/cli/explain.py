"""likewise explain"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli.options import TEXT, load, model_options, pairs_from, print_table, similarity_option

_EXAMPLE = """\b
Examples:
  likewise explain "A plane is taking off." "An air plane is taking off." --similarity rcmd
  likewise explain --input pairs.jsonl --html why.html
"""


@click.command(short_help="Show why two texts score as they do.", epilog=_EXAMPLE)
@click.argument("a", type=TEXT, required=False)
@click.argument("b", type=TEXT, required=False)
@click.option(
    "-i",
    "--input",
    "source",
    type=click.File("rb"),
    help='JSON lines {"a": …, "b": …}; - for standard input.',
)
@click.option("--json", "as_json", is_flag=True, help="One JSON line a pair: every token, cosine, plan, contribution.")
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write one self-contained page instead.")
@click.option("--level", type=click.Choice(["word", "token"]), default="word", help="What a row of the table is.")
@click.option("--no-special", is_flag=True, help="Leave out [CLS], [SEP] and the like.")
@similarity_option(explainable=True)
@model_options
def explain(
    *,
    a: str | None,
    b: str | None,
    source: Iterable[bytes] | None,
    as_json: bool,
    page: Path | None,
    level: str,
    no_special: bool,
    similarity: str | None,
    **options: Any,
) -> None:
    """Show why A and B score as they do: a table whose cells add up to the score.

    Rows are the words of A, columns those of B. Below it the pairs of words that are each other's
    strongest partner, and the words that have none.
    """
    if (a is None or b is None) == (source is None) or (a is not None and b is None):
        raise click.UsageError("give two texts, or --input with JSON lines")
    if as_json and page:
        raise click.UsageError("--json and --html exclude each other")
    pairs: Iterator[dict[str, Any]] = pairs_from(source) if source else iter([{"a": a, "b": b}])
    model = load(**options)
    explanations = (
        model.explain(row["a"], row["b"], similarity=similarity, special_tokens=not no_special) for row in pairs
    )
    if page:
        _write_page(page, list(explanations))
    elif as_json:
        for explanation in explanations:
            sys.stdout.write(explanation.to_json() + "\n")
            sys.stdout.flush()
    else:
        _print_tables(explanations, level)


def _write_page(path: Path, explanations: list[Any]) -> None:
    from likewise.explain.render.html import to_page
    from likewise.files import atomic_file

    with atomic_file(path, "w") as stream:
        stream.write(to_page(explanations))
    click.echo(f"wrote {path}", err=True)


def _print_tables(explanations: Any, level: str) -> None:
    for i, explanation in enumerate(explanations):
        if i:
            click.echo()
        print_table(explanation, level)
        sys.stdout.flush()
