"""Tables of measures on a terminal, and as plain text where there is none."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from likewise.evaluation.tables import Grid, Results, decimals, grids
from likewise.evaluation.worst import WorstPair

__all__ = ["print_results", "to_text"]

_EXCERPT = 300
"""Characters of a text that are printed; files have the whole."""

_PLAIN_WIDTH = 10_000
"""Wide enough that no plain table is ever folded."""


def print_results(results: Results, console: Console, *, details: bool = False) -> None:
    """Print the tables; a narrow console folds the cells.

    Args:
        results: What was found.
        console: Where.
        details: Also every subset, the slices and the worst pairs.
    """
    for part in _parts(results, console.is_terminal, details):
        console.print(part, soft_wrap=isinstance(part, Text))


def to_text(results: Results, *, details: bool = False) -> str:
    """The same without colour, each table as wide as it needs to be: equal results give equal text anywhere."""
    console = Console(file=io.StringIO(), width=_PLAIN_WIDTH, color_system=None, force_terminal=False)
    print_results(results, console, details=details)
    stream = console.file
    assert isinstance(stream, io.StringIO)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).rstrip() + "\n"


def _parts(results: Results, colour: bool, details: bool) -> Iterator[RenderableType]:
    yield Text(results.title, "bold")
    digits = decimals(results.measures)
    found = [*grids(results.measures, digits), *grids(results.comparisons, digits)[: None if details else 1]]
    if details and any(one.subset != "all" for one in results.measures):
        found += grids(results.measures, digits, every_subset=True)
    if details:
        found += grids(results.slices, digits, every_subset=True)
    if not found:
        yield Text("nothing was measured")
    for grid in found:
        yield Text("")
        yield Text(grid.title, "bold")
        yield _table(grid, colour)
        for reason in grid.reasons():
            yield Text(f"  – {reason}", "yellow")
    if any(cell is not None and cell.low is not None for grid in found for row in grid.cells for cell in row):
        yield Text("")
        yield Text("± half of the 95 % bootstrap interval, whose ends the files have", "dim")
    if details and results.worst:
        yield Text("")
        yield Text("What weighs most against each system", "bold")
        yield from map(_worst, results.worst)


def _table(grid: Grid, colour: bool) -> Table:
    turned = len(grid.columns) > len(grid.labels) and len(grid.columns) > 12
    table = Table(box=box.SIMPLE_HEAD if colour else None, pad_edge=False, header_style="bold" if colour else "")
    best, printed = grid.best(), grid.printed()

    def cell(i: int, j: int) -> Text:
        return Text(printed[i][j], "bold green" if colour and (i, j) in best else "")

    rows, columns = range(len(grid.labels)), range(len(grid.columns))
    if turned:
        table.add_column("", no_wrap=True)
        for labels in grid.labels:
            table.add_column(Text("\n".join(filter(None, labels)) if colour else " ".join(labels)), justify="right")
        for j in columns:
            table.add_row(Text(grid.columns[j]), *(cell(i, j) for i in rows))
        return table
    for name in grid.corner:
        table.add_column(name, overflow="fold")
    for head in grid.columns:
        table.add_column(Text(head), justify="right")
    for i in rows:
        table.add_row(*map(Text, grid.labels[i]), *(cell(i, j) for j in columns))
    return table


def _worst(pair: WorstPair) -> RenderableType:
    system = f"{pair.task}, {pair.model}, {pair.similarity}"
    gold = "" if pair.gold is None else f", gold {pair.gold:g}"
    lines = [Text(""), Text(f"{system}: {pair.verdict}{gold}, score {pair.score:.4f}")]
    lines += [Text(f"  a  {_excerpt(pair.a)}"), Text(f"  b  {_excerpt(pair.b)}")]
    if pair.explanation is not None:
        a, b = pair.explanation.words.a, pair.explanation.words.b
        links = [f"{a[one.a].text}~{b[one.b].text} {one.contribution:.2g}" for one in pair.explanation.alignments]
        lines.append(Text(f"  {'  '.join(links)}", "dim"))
    return Group(*lines)


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else line[:_EXCERPT].rsplit(" ", 1)[0] + " …"
