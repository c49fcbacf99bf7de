"""An explanation in the terminal: a heat-coloured table that adds up, and the aligned words."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from likewise.errors import InputError
from likewise.explain.render.numbers import DIGITS, cut, printed

if TYPE_CHECKING:
    from likewise.explain.explanation import Explanation

__all__ = ["to_console", "to_text"]

_WIDEST_LABEL = 14
_WIDEST_TEXT = 200
_JOINER = "\u200d"


def to_console(explanation: Explanation, console: Console, *, level: str = "word") -> None:
    """Print the explanation.

    Args:
        explanation: What to print.
        console: Where; a narrow one gets a list of the words of `a` instead of the full table.
        level: "word" or "token".

    Raises:
        InputError: There is no such level.
    """
    if level not in ("word", "token"):
        raise InputError(f"unknown level {level!r}; known are word, token")
    if level == "word":
        words = explanation.words
        rows, columns = ([w.text for w in words.a], [w.text for w in words.b])
        units = printed(words.contributions)
    else:
        rows, columns = ([t.text for t in explanation.a.tokens], [t.text for t in explanation.b.tokens])
        units = printed(explanation.contributions)
    console.print(Text.assemble(("a  ", "dim"), _clean(explanation.a.text)), soft_wrap=True)
    console.print(Text.assemble(("b  ", "dim"), _clean(explanation.b.text)), soft_wrap=True)
    for name, side in (("a", explanation.a), ("b", explanation.b)):
        if side.truncated:
            console.print(Text(f"   {cut(name, side)}", "yellow"))
    details = "".join(f"   {name} {value:.{DIGITS}f}" for name, value in explanation.details.items())
    score = Text.assemble((f"{explanation.similarity} ", "bold"), (_decimal(units.sum()), "bold"), (details, "dim"))
    console.print(score)
    console.print()
    if _table_width(rows, columns, units) <= console.width:
        console.print(_full_table(rows, columns, units))
    else:
        console.print(_narrow_table(explanation, rows, columns, units))
    _print_alignments(explanation, console)


def to_text(explanation: Explanation, width: int | None = None, *, level: str = "word") -> str:
    """The same as plain text, without colour, and at most 200 columns wide unless `width` is given."""
    console = Console(file=io.StringIO(), width=width or _WIDEST_TEXT, color_system=None)
    to_console(explanation, console, level=level)
    stream = console.file
    assert isinstance(stream, io.StringIO)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _table_width(rows: Sequence[str], columns: Sequence[str], units: np.ndarray) -> int:
    numbers = np.concatenate([units.reshape(-1), units.sum(0), units.sum(1), [units.sum()]])
    cell = max(len(_decimal(extreme)) for extreme in (numbers.min(), numbers.max()))
    labels = [max(cell_len(_label(name)), cell) + 1 for name in columns]
    return max(cell_len(_label(name)) for name in (*rows, "sum")) + 1 + sum(labels) + cell + 1


def _full_table(rows: Sequence[str], columns: Sequence[str], units: np.ndarray) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_footer=True, header_style="bold", footer_style="dim")
    table.add_column("", footer="sum", style="bold", no_wrap=True)
    for j, name in enumerate(columns):
        table.add_column(Text(_label(name)), footer=_decimal(units[:, j].sum()), justify="right", no_wrap=True)
    table.add_column("sum", footer=Text(_decimal(units.sum()), "bold"), justify="right", style="dim", no_wrap=True)
    strongest = max(int(np.abs(units).max(initial=0)), 1)
    for i, name in enumerate(rows):
        cells = [_heat(int(unit), strongest) for unit in units[i]]
        table.add_row(Text(_label(name)), *cells, _decimal(units[i].sum()))
    return table


def _narrow_table(explanation: Explanation, rows: Sequence[str], columns: Sequence[str], units: np.ndarray) -> Table:
    """One line for each row: its sum, and the column that gave most of it."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_footer=True, header_style="bold", footer_style="dim")
    table.add_column("a", footer="sum", style="bold")
    table.add_column("adds", footer=Text(_decimal(units.sum()), "bold"), justify="right")
    table.add_column("most of it with")
    strongest = max(int(np.abs(units.sum(1)).max(initial=0)), 1)
    for i, name in enumerate(rows):
        best = int(units[i].argmax()) if units.shape[1] else None
        partner = "" if best is None else f"{_label(columns[best])} ({_decimal(units[i, best])})"
        table.add_row(Text(_label(name)), _heat(int(units[i].sum()), strongest), Text(partner))
    return table


def _print_alignments(explanation: Explanation, console: Console) -> None:
    words = explanation.words
    units = printed(words.contributions)
    if explanation.alignments:
        console.print()
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("a", justify="right", no_wrap=True)
        for name in ("", "b"):
            table.add_column(name, no_wrap=True)
        for name in ("adds", "cosine"):
            table.add_column(name, justify="right", no_wrap=True)
        for pair in explanation.alignments:
            left, right = words.a[pair.a].text, words.b[pair.b].text
            table.add_row(
                Text(_label(left)),
                "~",
                Text(_label(right)),
                _decimal(units[pair.a, pair.b]),
                f"{pair.cosine:.2f}",
            )
        console.print(table)
    for other, side, positions in zip("ba", (words.a, words.b), explanation.unmatched, strict=True):
        if positions:
            lonely = " · ".join(_clean(side[i].text) for i in positions)
            console.print(Text.assemble((f"no partner in {other}: ", "dim"), lonely))


def _heat(unit: int, strongest: int) -> Text:
    if unit == 0:
        return Text("·", "dim")
    share = abs(unit) / strongest
    shade = int(round(255 * (1 - 0.75 * share)))
    colour = f"black on rgb({shade},{shade if unit < 0 else 255},{255 if unit < 0 else shade})" if share > 0.05 else ""
    return Text(_decimal(unit), colour)


def _decimal(units: int | np.integer) -> str:
    return f"{int(units) / 10**DIGITS:.{DIGITS}f}"


def _label(text: str) -> str:
    text = _clean(text)
    return text if len(text) <= _WIDEST_LABEL else text[: _WIDEST_LABEL - 1] + "…"


def _clean(text: str) -> str:
    """Keep control characters and lone surrogates off the terminal."""
    return "".join(
        sign if sign.isprintable() or _joins(text, i) else " " if sign.isspace() else "\ufffd"
        for i, sign in enumerate(text)
    )


def _joins(text: str, i: int) -> bool:
    """A joiner that makes one emoji of its two neighbours."""
    if text[i] != _JOINER or not 0 < i < len(text) - 1:
        return False
    return unicodedata.category(text[i - 1]) in ("So", "Sk", "Mn") and unicodedata.category(text[i + 1]) == "So"
