"""One self-contained page of results: tables that can be sorted, intervals, differences, slices and worst pairs.

Nothing is fetched: style, script and pictures stand in the page, and its policy forbids any request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from likewise.evaluation.measures import Measure
from likewise.evaluation.plot import COLOURS, interval_plot
from likewise.evaluation.provenance import Provenance
from likewise.evaluation.statistics import Comparison
from likewise.evaluation.tables import Grid, Results, decimals, grids, number, p_value, printable, score_of, with_minus

__all__ = ["to_page"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

_NO_SUM = "<p>This similarity is no sum over pairs of words.</p>"

_SURE = 0.05
"""p value below which a difference is set in bold."""


def to_page(results: Results) -> str:
    """The results as one HTML page, light or dark as the reader's system is, usable by keyboard and on paper.

    Args:
        results: What was found. Parts that are empty are left out.
    """
    digits = decimals(results.measures)
    sections = [
        ("overview", "Overview", _overview(results, digits)),
        ("differences", "Differences", _differences(results.comparisons, digits)),
        ("slices", "Kinds of pairs", _slices(results.slices, digits)),
        ("worst", "Worst errors", _worst(results)),
        ("all", "Every number", _every(results.measures, digits)),
        ("how", "How this was measured", _how(results.how)),
    ]
    kept = [(anchor, head, body) for anchor, head, body in sections if body]
    links = "".join(f'<a href="#{anchor}">{escape(head)}</a>' for anchor, head, _ in kept)
    body = "".join(f'<section><h2 id="{anchor}">{escape(head)}</h2>{body}</section>' for anchor, head, body in kept)
    here = Path(__file__)
    style, script = (here.with_suffix(suffix).read_text(encoding="utf-8") for suffix in (".css", ".js"))
    title = _text(results.title)
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head>\n<body><header><h1>{title}</h1>"
        f'<p class="soft">{_summary(results)}</p><nav aria-label="Parts of this page">{links}</nav></header>'
        f"<main>{body}</main><footer><p>Made by likewise evaluate.</p></footer><script>{script}</script>"
        "</body></html>\n"
    )
    return printable(page)


def _summary(results: Results) -> str:
    systems = dict.fromkeys((one.model, one.similarity) for one in results.measures)
    tasks = {one.task for one in results.measures}
    models = {model for model, _ in systems}
    counts = ((len(models), "model"), (len(systems), "system"), (len(tasks), "task"), (len(results.measures), "number"))
    return " · ".join(f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts)


def _overview(results: Results, digits: Mapping[str, int]) -> str:
    if not results.measures:
        return "<p>Nothing was measured.</p>"
    parts = []
    for grid in grids(results.measures, digits):
        plot = interval_plot(grid)
        legend = _legend(grid) if plot else ""
        reasons = "".join(f'<p class="soft">– {_text(reason)}</p>' for reason in grid.reasons())
        parts.append(f"<h3>{_text(grid.title)}</h3>{_grid(grid)}{reasons}{legend}{plot}")
    parts += [f'<p class="soft">{_text(note)}</p>' for note in results.notes]
    notes = []
    if any(one.low is not None for one in results.measures):
        notes.append("Small: the 95 % interval.")
    if any(grid.best() for grid in grids(results.measures, digits)):
        notes.append("Bold green: the best of a column, which may not differ from the next beyond chance.")
    return "".join(parts) + (f'<p class="soft">{" ".join(notes)}</p>' if notes else "")


def _legend(grid: Grid) -> str:
    items = (
        f'<li><span style="background:var(--c{i % COLOURS})"></span>{_text(", ".join(filter(None, labels)))}</li>'
        for i, labels in enumerate(grid.labels)
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _grid(grid: Grid) -> str:
    best = grid.best()
    heads = [(name, True) for name in grid.corner] + [(name, False) for name in grid.columns]
    rows = []
    for i, (labels, row) in enumerate(zip(grid.labels, grid.cells, strict=True)):
        names = "".join(f'<th scope="row" class="text">{_text(label)}</th>' for label in labels)
        cells = "".join(
            _cell(cell if isinstance(cell, Measure) else None, grid.digits, (i, j) in best)
            for j, cell in enumerate(row)
        )
        rows.append(f"<tr>{names}{cells}</tr>")
    return _table(grid.title, heads, rows)


def _cell(cell: Measure | None, digits: Mapping[str, int], best: bool) -> str:
    if cell is None:
        return '<td data-value=""></td>'
    if cell.value is None:
        return f'<td data-value="" class="none" title="{_text(cell.reason or "")}">–</td>'
    value, interval = number(cell, digits).partition(" ")[0], ""
    if cell.low is not None and cell.high is not None:
        places = digits.get(cell.metric, 2)
        interval = f"<small>{with_minus(f'{cell.low:.{places}f} to {cell.high:.{places}f}')}</small>"
    kind = ' class="best"' if best else ""
    return f'<td data-value="{cell.value!r}"{kind} title="n = {cell.n:,}">{value}{interval}</td>'


def _differences(comparisons: Sequence[Comparison], digits: Mapping[str, int]) -> str:
    if not comparisons:
        return ""
    heads = [("task", True), ("subset", True), ("metric", True), ("second", True), ("first", True)]
    heads += [("second − first", False), ("95 % interval", False), ("p", False), ("n", False)]
    rows = []
    for one in comparisons:
        names = "".join(f'<td class="text">{_text(name)}</td>' for name in (one.task, one.subset, one.metric))
        names += "".join(f'<td class="text name">{_text(name)}</td>' for name in (one.second, one.first))
        sure = one.p_value is not None and one.p_value < _SURE
        numbers = _difference(one, digits.get(one.metric, 2))
        rows.append(f"<tr{' class=sure' if sure else ''}>{names}{numbers}<td>{one.n}</td></tr>")
    tests = ", ".join(dict.fromkeys(one.test for one in comparisons))
    note = f"Bold: p below {_SURE} ({tests}), not corrected for the number of tests."
    table = _table("Differences", heads, rows, "differences-table")
    return f'{_filter("differences-table")}{table}<p class="soft">{note}</p>'


def _difference(one: Comparison, places: int) -> str:
    empty = '<td data-value=""></td>'
    if one.difference is None:
        return f'<td data-value="" class="none" title="{_text(one.reason or "")}">–</td>{empty}{empty}'
    if one.difference == 0 == one.low == one.high:
        return f'<td data-value="0" class="none">identical</td>{empty}{empty}'
    interval = empty if one.reason is None else f'<td data-value="" class="none" title="{_text(one.reason)}">–</td>'
    if one.low is not None and one.high is not None:
        ends = with_minus(f"{one.low:+.{places}f} to {one.high:+.{places}f}")
        interval = f'<td data-value="{one.low!r}">{ends}</td>'
    chance = empty
    if one.p_value is not None:
        chance = f'<td data-value="{one.p_value!r}">{p_value(one.p_value)}</td>'
    difference = with_minus(f"{one.difference:+.{places}f}")
    return f'<td data-value="{one.difference!r}">{difference}</td>{interval}{chance}'


def _slices(slices: Sequence[Measure], digits: Mapping[str, int]) -> str:
    if not slices:
        return ""
    metric = slices[0].metric
    shown = [one for one in slices if one.metric == metric]
    several = len({one.task for one in shown}) > 1
    systems = list(dict.fromkeys((one.model, one.similarity) for one in shown))
    found = {(one.task, one.subset, one.model, one.similarity): one for one in shown}
    heads = [*([("task", True)] if several else []), ("kind", True), ("n", False)]
    heads += [(f"{model} {similarity}".strip(), False) for model, similarity in systems]
    rows = []
    for task, subset in dict.fromkeys((one.task, one.subset) for one in shown):
        cells = [found.get((task, subset, *system)) for system in systems]
        n = next(cell.n for cell in cells if cell is not None)
        names = (f'<th scope="row" class="text">{_text(name)}</th>' for name in ([task] if several else []) + [subset])
        rows.append(f"<tr>{''.join(names)}<td>{n}</td>{''.join(_cell(cell, digits, False) for cell in cells)}</tr>")
    note = (
        f"{escape(metric)} within each kind. Compare systems on one kind, not one system on two: a kind whose gold "
        "values lie closer together gives lower correlations."
    )
    table = _table("Kinds of pairs", heads, rows, "slices-table")
    return f'{_filter("slices-table")}{table}<p class="soft">{note}</p>'


def _worst(results: Results) -> str:
    from likewise.explain.render.html import to_html

    if results.worst is None:
        return ""
    parts = []
    for system, pairs in groupby(results.worst, lambda pair: (pair.task, pair.model, pair.similarity)):
        parts.append(f"<h3>{_text(', '.join(filter(None, system)))}</h3>")
        for pair in pairs:
            why = "<p>This score is not explained.</p>" if pair.unexplained else _NO_SUM
            why = why if pair.explanation is None else to_html(pair.explanation)
            gold = "" if pair.gold is None else f'<span class="tag">gold {pair.gold:g}</span>'
            parts.append(
                f'<details><summary><span class="tag off">{_text(pair.verdict)}</span>{gold}'
                f'<span class="tag">{_text(score_of(pair))}</span>'
                f'<span class="texts"><b>a</b><span>{_text(pair.a)}</span><b>b</b><span>{_text(pair.b)}</span></span>'
                f"</summary><div>{why}</div></details>"
            )
    if not parts:
        return "<p>None: no example counts as wrong.</p>"
    parts += [f"<h3>{_text(', '.join(filter(None, system)))}</h3><p>None.</p>" for system in results.faultless()]
    note = "Open a pair to see which words made its score."
    if any("percentiles" in pair.verdict for pair in results.worst):
        note += " Percentiles: its place among all pairs of the task by score, minus that by gold."
    return f'<p class="soft">{note}</p>{"".join(parts)}'


def _how(how: Provenance | None) -> str:
    if how is None:
        return ""
    rows = "".join(f"<dt>{_text(what)}</dt><dd>{_text(value)}</dd>" for what, value in how.rows())
    return f'<dl class="how">{rows}</dl>'


def _every(measures: Sequence[Measure], digits: Mapping[str, int]) -> str:
    if len({(one.task, one.subset) for one in measures}) < 2:
        return ""  # the overview has them all
    names = ("task", "subset", "model", "similarity", "metric")
    why = any(one.reason for one in measures)
    heads = [*((name, True) for name in names), ("value", False), ("n", False), *([("why none", True)] if why else [])]
    rows = []
    for one in measures:
        texts = "".join(f'<td class="text">{_text(str(getattr(one, name)))}</td>' for name in names)
        reason = f'<td class="text long">{_text(one.reason or "")}</td>' if why else ""
        rows.append(f"<tr>{texts}{_cell(one, digits, False)}<td>{one.n}</td>{reason}</tr>")
    return _filter("all-table") + _table("Every number", heads, rows, "all-table")


def _table(name: str, heads: Sequence[tuple[str, bool]], rows: Sequence[str], anchor: str = "") -> str:
    head = "".join(
        f'<th scope="col"{" class=text" if text else ""}><button type="button">{_breakable(label)}</button></th>'
        for label, text in heads
    )
    mark = f' id="{anchor}"' if anchor else ""
    return (
        f'<div class="scroll" role="region" aria-label="{_text(name)}" tabindex="0"><table class="data"{mark}>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _filter(table: str) -> str:
    return (
        f'<label class="filter">Show rows with <input type="search" data-table="{table}" '
        'placeholder="such as STS-b rcmd"></label>'
    )


def _breakable(text: str) -> str:
    return _text(text).replace("_", "_<wbr>").replace("/", "/<wbr>")


def _text(text: str) -> str:
    return escape(text)
