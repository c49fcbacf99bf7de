"""Values with their intervals as one SVG picture, drawn without any library so that a page can hold it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from html import escape

from likewise.evaluation.measures import Measure
from likewise.evaluation.tables import Grid

__all__ = ["COLOURS", "interval_plot"]

COLOURS = 8
"""Colours that the page's style defines as --c0, --c1, …"""

_LEAST_SPAN = 0.02
"""Length of the axis over the largest value, at least."""

_NOTHING = 1e-9
"""What is drawn as 0."""

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 1000, 130, 24, 6, 15


def interval_plot(grid: Grid) -> str:
    """One band a column of the grid, one dot a row with its 95 % interval as a line; "" if there is nothing to draw.

    Of several metrics those with an interval are drawn, if they have one scale. The same numbers stand in the table,
    so that the picture is not the only way to read them.
    """
    grid = _drawable(grid)
    drawn = [cell for row in grid.cells for cell in row if isinstance(cell, Measure) and cell.value is not None]
    if not drawn or len({grid.digits.get(cell.metric, 2) for cell in drawn}) > 1:
        return ""
    ends = [end for cell in drawn for end in (cell.value, cell.low, cell.high) if end is not None]
    ticks = _ticks(min(ends), max(ends))
    scale = (_WIDTH - _LEFT - _RIGHT) / (ticks[-1] - ticks[0])
    band = _ROW * len(grid.labels) + 10
    height = _TOP + band * len(grid.columns) + 26

    def x(value: float) -> str:
        return f"{_LEFT + (value - ticks[0]) * scale:.1f}"

    parts = [
        f'<rect class="band" x="0" y="{_TOP + band * j}" width="{_WIDTH}" height="{band}" rx="4"/>'
        for j in range(0, len(grid.columns), 2)
    ]
    bottom = _TOP + band * len(grid.columns)
    for tick in ticks:
        parts.append(f'<line class="grid" x1="{x(tick)}" x2="{x(tick)}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x(tick)}" y="{bottom + 17}" text-anchor="middle">{tick:g}</text>')
    for j, head in enumerate(grid.columns):
        top = _TOP + band * j
        parts.append(f'<text x="{_LEFT - 14}" y="{top + band / 2 + 4:.0f}" text-anchor="end">{escape(head)}</text>')
        for i, row in enumerate(grid.cells):
            cell = row[j]
            if isinstance(cell, Measure) and cell.value is not None:
                parts.append(_mark(cell, x, top + 5 + _ROW * (i + 0.5), i, " ".join(grid.labels[i])))
    title = f"{grid.title}: values and 95 % intervals"
    return (
        f'<figure><svg class="plot" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _drawable(grid: Grid) -> Grid:
    """All columns of one metric; of several metrics those columns that have an interval."""
    cells = [cell for row in grid.cells for cell in row if cell is not None]
    if len({cell.metric for cell in cells}) < 2:
        return grid
    places = {j for row in grid.cells for j, cell in enumerate(row) if cell is not None and cell.low is not None}
    kept = sorted(places)
    rows = tuple(tuple(row[j] for j in kept) for row in grid.cells)
    return replace(grid, columns=tuple(grid.columns[j] for j in kept), cells=rows)


def _mark(cell: Measure, x: Callable[[float], str], y: float, colour: int, label: str) -> str:
    assert cell.value is not None
    low, high = (cell.value if end is None else end for end in (cell.low, cell.high))
    paint = f"var(--c{colour % COLOURS})"
    return (
        f"<g><title>{escape(label)}: {cell.value:.4g}</title>"
        f'<line class="bar" stroke="{paint}" x1="{x(low)}" x2="{x(high)}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<circle fill="{paint}" cx="{x(cell.value)}" cy="{y:.1f}" r="4.2"/></g>'
    )


def _ticks(low: float, high: float) -> list[float]:
    """Two to ten round numbers that enclose both, no two of them closer than what can be told apart.

    What lies close together gets room towards 0: an axis of values up to 100 does not go beyond it.
    """
    largest = max(abs(low), abs(high))
    room = _LEAST_SPAN * largest if largest > _NOTHING else 1.0
    if high - low < room:
        low, high = (high - room, high) if high >= room else (low, low + room)
    unit = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(factor * unit for factor in (1, 2, 5, 10) if (high - low) / (factor * unit) <= 8)
    first, last = math.floor(round(low / step, 9)), math.ceil(round(high / step, 9))
    return [round(at * step, 12) for at in range(first, max(last, first + 1) + 1)]
