"""likewise reproduce"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import load, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from likewise.evaluation.reproduce import Reproduction
    from likewise.model import CrossEncoder, Model

__all__ = ["reproduce"]

_EXAMPLE = """\b
Examples:
  likewise reproduce clrcmd-table1 --data DATA
  likewise reproduce sbert-table1 --data DATA -m MODEL_A -m MODEL_B --word-vectors glove.6B.300d.txt
  likewise reproduce sbert-table1 --data DATA -m bert-base-uncased --pooling mean --pooling cls
  likewise reproduce clrcmd-figure3 --size smoke
"""

_PLAIN_WIDTH = 10_000


@dataclass(frozen=True)
class _Models:
    """The models named, loaded one after another, each once a pooling."""

    names: tuple[str, ...]
    poolings: tuple[str, ...]
    options: dict[str, Any]

    def __iter__(self) -> Iterator[Model]:
        for name in self.names or (None,):
            for pooling in self.poolings or (None,):
                yield load(name, pooling=pooling, **self.options)


@click.command(short_help="The papers' tables, ours beside theirs.", epilog=_EXAMPLE)
@click.argument("name", metavar="TABLE")
@click.option(
    "--size",
    type=click.Choice(["smoke", "small", "full"]),
    default="small",
    show_default=True,
    help="Does it run at all; whole sets and small baselines; baselines as large as the papers'.",
)
@click.option("--data", "folder", type=click.Path(path_type=Path), help="Folder of all data sets.")
@click.option("-m", "--model", "names", multiple=True, help="Folder or hub name.  [default: all-MiniLM-L6-v2]")
@click.option("--pooling", "poolings", multiple=True, help="For plain checkpoints: mean, cls …; each gives a row.")
@click.option("--cross-encoder", "cross_encoders", multiple=True, help="Folder of one, for sbert-table2.")
@click.option("--device", help="Such as cpu or cuda:0; by default the first GPU, if there is one.")
@click.option("--word-vectors", type=click.Path(path_type=Path), help="word2vec or GloVe text file, for its baselines.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
def reproduce(
    *,
    name: str,
    size: str,
    folder: Path | None,
    names: tuple[str, ...],
    poolings: tuple[str, ...],
    cross_encoders: tuple[str, ...],
    device: str | None,
    word_vectors: Path | None,
    as_json: bool,
) -> None:
    """Measure a table of Sentence-BERT or CLRCMD again and print it beside the published numbers.

    TABLE is sbert-table1 (STS), sbert-table2 (STS benchmark), sbert-table3 (arguments), sbert-table4 (Wikipedia
    sections), sbert-table5 (SentEval), sbert-table6 (ablation), sbert-table7 (sentences a second), clrcmd-table1
    (STS), clrcmd-table2 (interpretable STS), clrcmd-table3 (memory) or clrcmd-figure3 (time by length).
    """
    from likewise.evaluation import reproduce as room

    request = room.Request(
        _Models(names, poolings, {"device": device}),
        data=folder,
        size=size,
        cross_encoders=_cross_encoders(cross_encoders, device),
        word_vectors=word_vectors,
    )
    found = room.reproduce(name, request)
    if as_json:
        print_json(asdict(found))
        return
    from rich.console import Console

    if sys.stdout.isatty():
        _show(found, Console())
        return
    console = Console(file=io.StringIO(), width=_PLAIN_WIDTH, color_system=None, force_terminal=False)
    _show(found, console)
    stream = console.file
    assert isinstance(stream, io.StringIO)
    sys.stdout.write("\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n")


def _cross_encoders(names: Sequence[str], device: str | None) -> Iterator[CrossEncoder]:
    for name in names:
        from likewise.model import CrossEncoder

        yield CrossEncoder.load(name, device=device)


def _show(found: Reproduction, console: Console) -> None:
    from rich.text import Text

    paper = found.table
    console.print(Text(f"{paper.title} ({paper.unit})", "bold"))
    console.print(Text(f"{paper.name}: {paper.source}", "dim"))
    console.print(_table(found, console.is_terminal))
    for heading, lines in (("As published", paper.setting), ("What explains differences", found.notes)):
        console.print(Text(heading, "bold"))
        for line in lines:
            console.print(Text(f"  · {line}"), soft_wrap=not console.is_terminal)


def _table(found: Reproduction, colour: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    paper = found.table
    table = Table(box=box.SIMPLE_HEAD if colour else None, pad_edge=False, header_style="bold" if colour else "")
    table.add_column("", overflow="fold")
    for column in found.columns:
        table.add_column(Text(column), justify="right")

    def add(system: str, values: Sequence[float | None], style: str = "", *, sign: str = "", after: str = "") -> None:
        cells = [_number(value, paper.digits, sign) + (after if value is not None else "") for value in values]
        table.add_row(*(Text(cell, style if colour else "") for cell in (system, *cells)))

    group = ""
    for row in paper.rows:
        if row.group != group:
            group = row.group
            table.add_row(Text(group, "italic" if colour else ""))
        add(f"  {row.system}" if group else row.system, row.values, after=f" ± {row.spread:g}" if row.spread else "")
    table.add_section()
    table.add_row(Text("measured here", "italic" if colour else ""))
    for own in found.rows:
        add(own.system, own.values, "bold")
        if any(value is not None for value in own.differences):
            group = f", {own.beside.group}" if own.beside and own.beside.group else ""
            add(f"  − {own.beside.system if own.beside else ''}{group}", own.differences, "dim", sign="+")
        for reason in own.reasons:
            table.add_row(Text(f"  – {reason}", "yellow" if colour else ""))
    return table


def _number(value: float | None, digits: int, sign: str) -> str:
    if value is None:
        return "–"
    small = digits if abs(value) >= 0.1 or sign else max(digits, 3)
    return f"{value:{sign},.{small}f}"
