"""Tables of measures for LaTeX."""

from __future__ import annotations

from likewise.evaluation.tables import Grid, Results, decimals, grids, printable

__all__ = ["to_latex"]

_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "–": "--",
    "±": r"$\pm$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\n": " ",
}


def to_latex(results: Results) -> str:
    """The grids as `tabular`s for the package booktabs, the best of each column bold; every text is escaped."""
    digits = decimals(results.measures)
    tables = [_latex(grid) for grid in (*grids(results.measures, digits), *grids(results.comparisons, digits))]
    return printable(f"% {_one_line(results.title)}; needs \\usepackage{{booktabs}}\n" + "\n".join(tables))


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _latex(grid: Grid) -> str:
    best = grid.best()
    lines = [" & ".join(_escaped(head) for head in (*grid.corner, *grid.columns))]
    body = []
    for i, (labels, row) in enumerate(zip(grid.labels, grid.printed(), strict=True)):
        cells = [rf"\textbf{{{_escaped(text)}}}" if (i, j) in best else _escaped(text) for j, text in enumerate(row)]
        line = " & ".join([*map(_escaped, labels), *cells])
        body.append(f"{{}}{line}" if line.startswith(("[", "*")) else line)  # which the line end before it would take
    columns = "l" * len(grid.corner) + "r" * len(grid.columns)
    return "\n".join(
        [
            f"% {_one_line(grid.title)}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            *(f"{line} \\\\" for line in lines),
            r"\midrule",
            *(f"{line} \\\\" for line in body),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
