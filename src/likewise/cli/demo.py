"""likewise demo"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import TEXT, load, model_options, print_table
from likewise.errors import DataError

if TYPE_CHECKING:
    from likewise.model import Model

_QUESTIONS = Path(__file__).with_name("questions.txt")
_QUERY = "I want my money back, the parcel never arrived."
_OPPOSITES = ("The medicine is safe for children.", "The medicine is not safe for children.")


_EXAMPLE = """\b
Examples:
  likewise demo
  likewise demo --questions texts.txt --query "Where is my parcel?" --top 3
"""


@click.command(short_help="See the main job on real sentences.", epilog=_EXAMPLE)
@click.option("--query", type=TEXT, default=_QUERY, show_default=True, help="What to look for.")
@click.option(
    "--questions",
    type=click.Path(path_type=Path),
    default=_QUESTIONS,
    help="One text a line.  [default: a help desk's]",
)
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Hits to show.")
@model_options
def demo(query: str, questions: Path, top: int, **options: Any) -> None:
    """The main job on real sentences: rank, explain the best hit, and look at two opposites."""
    from likewise.data import read_lines

    corpus = [line for _, line in read_lines(questions) if line.strip()]
    if not corpus:
        raise DataError(f"{questions} is empty; give one text a line")
    start = time.perf_counter()
    model = load(**options)
    loaded = time.perf_counter()
    click.echo(f"{model}\n")
    best = _rank(model, query, corpus, top)
    ranked = time.perf_counter()
    click.secho("\nWhy the best hit matches: the cells of the table add up to the score.\n", bold=True)
    _show(model, query, best)
    click.secho(
        "\nTwo opposites. The score is high, since a score says how alike two texts are, not whether",
        bold=True,
    )
    click.secho("both can be true. The table shows which word has no partner.\n", bold=True)
    _show(model, *_OPPOSITES)
    done = time.perf_counter()
    click.echo(
        f"\nload {loaded - start:.2f} s · encode and rank {len(corpus)} texts {ranked - loaded:.2f} s · "
        f"two explanations {done - ranked:.2f} s"
    )


def _rank(model: Model, query: str, corpus: list[str], top: int) -> str:
    """Print both rankings side by side; the best text under RCMD (under cosine, if that is all there is)."""
    from likewise.similarity import by_name

    embeddings = model.embed([query, *corpus])
    asked, texts = embeddings.select([0]), embeddings.select(range(1, len(embeddings)))
    click.secho(f"Query: {query}", bold=True)
    best = 0
    for name in ("cosine", "rcmd"):
        if name == "cosine" and not model.pooled:
            continue
        scores = by_name(name).matrix(asked, texts)[0]
        order = sorted(range(len(corpus)), key=lambda i: (-float(scores[i]), i))[:top]
        best = order[0]
        click.echo(f"\n  by {name}")
        for i in order:
            click.echo(f"    {float(scores[i]):.4f}  {corpus[i]}")
    return corpus[best]


def _show(model: Model, a: str, b: str) -> None:
    print_table(model.explain(a, b, similarity="rcmd"))
