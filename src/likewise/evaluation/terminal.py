"""Tables of measures on a terminal, and as plain text where there is none."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from likewise.evaluation.statistics import Comparison
from likewise.evaluation.tables import Grid, Results, decimals, grids, printable, score_of, short_names
from likewise.evaluation.worst import WorstPair

__all__ = ["print_results", "to_text"]

_EXCERPT = 300
"""Characters of a text that are printed; files have the whole."""

_COLUMNS, _CHARACTERS = 12, 120
"""Columns of numbers, and characters of their width, beyond which a table with fewer rows than those is turned."""

_PLAIN_WIDTH = 10_000
"""Wide enough that no plain table is ever folded."""


def print_results(results: Results, console: Console, *, details: bool = False) -> None:
    """Print the tables; a narrow console folds the cells.

    Args:
        results: What was found.
        console: Where.
        details: Also every subset, the slices and the worst errors.
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
    yield _text(results.title, "bold")
    found = _grids(results, details)
    if not found:
        yield _text("nothing was measured")
    for grid in found:
        yield _text("")
        yield _text(grid.title, "bold")
        yield _table(grid, colour)
        for reason in grid.reasons():
            yield _text(f"  – {reason}", "yellow")
    notes = [*results.notes, *_legend(found)]
    if notes:
        yield _text("")
    for note in notes:
        yield _text(note, "dim")
    if details and results.worst is not None:
        yield from _worst_errors(results)


def _grids(results: Results, details: bool) -> list[Grid]:
    digits, names = decimals(results.measures), short_names(results.models)
    found = grids(results.measures, digits, names=names)
    found += grids(results.comparisons, digits, names=names)[: None if details else 1]
    if details and any(one.subset != "all" for one in results.measures):
        found += grids(results.measures, digits, every_subset=True, names=names)
    if details:
        found += grids(results.slices, digits, every_subset=True, names=names)
    return found


def _legend(found: list[Grid]) -> Iterator[str]:
    """What signs in the cells mean, of those that are there."""
    cells = [cell for grid in found for row in grid.cells for cell in row if cell is not None]
    printed = "".join(text for grid in found for row in grid.printed() for text in row)
    signs = {"±": "± half of it", "[": "[ , ] both of its ends, where it is lopsided"}
    meant = [meaning for sign, meaning in signs.items() if sign in printed]
    if meant:
        yield f"95 % interval: {'; '.join(meant)}"
    if sum(isinstance(cell, Comparison) and cell.p_value is not None for cell in cells) > 1:
        yield "p values are not corrected for the number of tests"


def _worst_errors(results: Results) -> Iterator[RenderableType]:
    names = short_names(results.models)
    yield _text("")
    yield _text("Worst errors", "bold")
    for pair in results.worst or ():
        yield _worst(pair, names)
    if not results.worst:
        yield _text("none: no example counts as wrong")
    for task, model, similarity in results.faultless():
        yield _text("")
        yield _text(f"{_system(task, names.get(model, model), similarity)}: none")


def _table(grid: Grid, colour: bool) -> Table:
    best, printed = grid.best(), grid.printed()
    columns = zip(grid.columns, *printed, strict=True)
    width = sum(2 + max(map(len, column)) for column in columns)
    turned = len(grid.columns) > len(grid.labels) and (len(grid.columns) > _COLUMNS or width > _CHARACTERS)
    table = Table(box=box.SIMPLE_HEAD if colour else None, pad_edge=False, header_style="bold" if colour else "")

    def cell(i: int, j: int) -> Text:
        return _text(printed[i][j], "bold green" if colour and (i, j) in best else "")

    rows, places = range(len(grid.labels)), range(len(grid.columns))
    if turned:
        table.add_column("", no_wrap=True)
        for labels in grid.labels:
            table.add_column(_text("\n".join(filter(None, labels)) if colour else " ".join(labels)), justify="right")
        for j in places:
            table.add_row(_text(grid.columns[j]), *(cell(i, j) for i in rows))
        return table
    for name in grid.corner:
        table.add_column(name, overflow="fold")
    for head in grid.columns:
        table.add_column(_text(head), justify="right")
    for i in rows:
        table.add_row(*map(_text, grid.labels[i]), *(cell(i, j) for j in places))
    return table


def _worst(pair: WorstPair, names: Mapping[str, str]) -> RenderableType:
    system = _system(pair.task, names.get(pair.model, pair.model), pair.similarity)
    gold = "" if pair.gold is None else f", gold {pair.gold:g}"
    lines = [_text(""), _text(f"{system}: {pair.verdict}{gold}, {score_of(pair)}")]
    lines += [_text(f"  a  {_excerpt(pair.a)}"), _text(f"  b  {_excerpt(pair.b)}")]
    if pair.explanation is not None:
        a, b = pair.explanation.words.a, pair.explanation.words.b
        links = [f"{a[one.a].text}~{b[one.b].text} {one.contribution:.2g}" for one in pair.explanation.alignments]
        lines.append(_text(f"  {'  '.join(links)}", "dim"))
    return Group(*lines)


def _system(*names: str) -> str:
    return ", ".join(filter(None, names))


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else line[:_EXCERPT].rsplit(" ", 1)[0] + " …"


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style)
