"""An explanation as one self-contained piece of HTML, for notebooks and reports. No script, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from likewise.explain.render.numbers import DIGITS, cut, printed
from likewise.explain.words import Word

if TYPE_CHECKING:
    from likewise.explain.explanation import Explanation, Side

__all__ = ["to_html", "to_page"]

_STYLE = """
.likewise{font:14px/1.45 system-ui,sans-serif;color:#1b1b1b;background:#fff;padding:12px;max-width:100%}
.likewise .scroll{overflow-x:auto}
.likewise table{border-collapse:collapse;margin:10px 0;width:auto}
.likewise th,.likewise td{padding:3px 7px;text-align:right;white-space:nowrap;border:0}
.likewise thead th{font-weight:600;border-bottom:1px solid #bbb}
.likewise tbody th{text-align:left;font-weight:600}
.likewise tfoot th,.likewise tfoot td{border-top:1px solid #bbb;color:#555}
.likewise .pairs .left{text-align:left}
.likewise .special{color:#777;font-weight:400;font-style:italic}
.likewise .score{font-size:17px;margin:4px 0}
.likewise .score b{font-variant-numeric:tabular-nums}
.likewise td{font-variant-numeric:tabular-nums}
.likewise .text{margin:4px 0}
.likewise .text b{display:inline-block;min-width:1.6em;color:#666}
.likewise .only{background:#f3d9d6;border-radius:3px;padding:0 2px;text-decoration:underline wavy #b3261e 1px}
.likewise .both{background:#d6ead9;border-radius:3px;padding:0 2px}
.likewise .note{color:#666;font-size:12.5px}
.likewise .cut{color:#8a5a00;font-size:12.5px;margin:4px 0}
.likewise tr>:first-child{position:sticky;left:0;background:#fff}
.likewise tr>:last-child{position:sticky;right:0;background:#fff}
.likewise .pairs tr>*{position:static}
"""


def to_html(explanation: Explanation) -> str:
    """A fragment: both texts with matched and unmatched words marked, the word table that adds up, aligned pairs."""
    words = explanation.words
    units = printed(words.contributions)
    aligned = ({pair.a for pair in explanation.alignments}, {pair.b for pair in explanation.alignments})
    sides = zip("ab", (explanation.a, explanation.b), (words.a, words.b), aligned, strict=True)
    texts = "".join(_text(*side) for side in sides)
    details = " · ".join(f"{escape(name)} {value:.{DIGITS}f}" for name, value in explanation.details.items())
    return (
        f'<div class="likewise"><style>{_STYLE}</style>{texts}'
        f'<p class="score">{escape(explanation.similarity)} <b>{_decimal(units.sum())}</b> '
        f'<span class="note">{details}</span></p>'
        f'<div class="scroll">{_table(words.a, words.b, units)}</div>{_pairs(explanation, units)}'
        '<p class="note"><span class="both">has a partner</span> <span class="only">has none</span> · '
        "rows: a, columns: b; the cells add up to the score</p></div>"
    )


def to_page(explanations: Sequence[Explanation], title: str = "likewise") -> str:
    """A whole page of explanations, to be saved as a file."""
    body = "\n<hr>\n".join(to_html(explanation) for explanation in explanations)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{escape(title)}</title></head>\n<body>{body}</body></html>\n'
    )


def _text(name: str, side: Side, words: Sequence[Word], aligned: set[int]) -> str:
    notice = f'<p class="cut">{cut(name, side)}</p>' if side.truncated else ""
    return f'<p class="text"><b>{name}</b>{_marked(side.text, words, aligned)}</p>{notice}'


def _pairs(explanation: Explanation, units: np.ndarray) -> str:
    """The words that are each other's partner, as a table of its own."""
    words = explanation.words
    lines = "".join(
        f"<tr><td>{escape(_readable(words.a[pair.a].text))}</td><td>~</td>"
        f'<td class="left">{escape(_readable(words.b[pair.b].text))}</td>'
        f"<td>{_decimal(units[pair.a, pair.b])}</td><td>{pair.cosine:.2f}</td></tr>"
        for pair in explanation.alignments
    )
    if not lines:
        return ""
    head = '<tr><th>a</th><th></th><th class="left">b</th><th>adds</th><th>cosine</th></tr>'
    return f'<table class="pairs"><thead>{head}</thead><tbody>{lines}</tbody></table>'


def _table(rows: Sequence[Word], columns: Sequence[Word], units: np.ndarray) -> str:
    strongest = max(int(np.abs(units).max(initial=0)), 1)
    head = "".join(_name(word, "col") for word in columns)
    lines = []
    for word, line in zip(rows, units, strict=True):
        cells = "".join(_cell(int(unit), strongest) for unit in line)
        lines.append(f"<tr>{_name(word, 'row')}{cells}<td>{_decimal(line.sum())}</td></tr>")
    foot = "".join(f"<td>{_decimal(units[:, j].sum())}</td>" for j in range(len(columns)))
    return (
        f"<table><thead><tr><th></th>{head}<th>sum</th></tr></thead><tbody>{''.join(lines)}</tbody>"
        f"<tfoot><tr><th>sum</th>{foot}<td><b>{_decimal(units.sum())}</b></td></tr></tfoot></table>"
    )


def _name(word: Word, scope: str) -> str:
    return f'<th scope="{scope}"{" class=special" if word.special else ""}>{escape(_readable(word.text))}</th>'


def _cell(unit: int, strongest: int) -> str:
    if unit == 0:
        return '<td style="color:#bbb">·</td>'
    colour = "214,120,60" if unit > 0 else "70,120,200"
    return f'<td style="background:rgba({colour},{0.85 * abs(unit) / strongest:.3f})">{_decimal(unit)}</td>'


def _marked(text: str, words: Sequence[Word], aligned: set[int]) -> str:
    out, at = [], 0
    for i, word in enumerate(words):
        if word.special:
            continue
        mark = "both" if i in aligned else "only"
        out.append(escape(_readable(text[at : word.start])))
        out.append(f'<span class="{mark}">{escape(_readable(word.text))}</span>')
        at = word.end
    return "".join(out) + escape(_readable(text[at:]))


def _readable(text: str) -> str:
    """Lone surrogates cannot be written in any encoding."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _decimal(units: int | np.integer) -> str:
    return f"{int(units) / 10**DIGITS:.{DIGITS}f}"
