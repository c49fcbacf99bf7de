from __future__ import annotations

import re

from likewise.evaluation.latex import to_latex
from likewise.evaluation.measures import Measure
from likewise.evaluation.statistics import Comparison
from likewise.evaluation.tables import Results

ROWS = [
    Measure(task, subset, model, similarity, metric, value, 10, *ends)
    for model, shift in (("org/a_1", 0.0), ("b & c", 2.0))
    for similarity in ("cosine", "rcmd")
    for task, subset, value, ends in (
        ("STS12", "x", 50.0, ()),
        ("STS12", "all", 70.0 + shift, (68.0 + shift, 72.0 + shift)),
        ("STS-b", "all", 80.0 - shift, ()),
    )
    for metric in ("spearman", "pearson")
]
DIFFERENCE = Comparison("STS-b", "all", "spearman", "a", "b", -2.0, 10, -3.0, -1.0, 0.004)


def test_latex_is_escaped_and_marks_the_best():
    text = to_latex(Results("100 % of\nit", ROWS, [DIFFERENCE]))
    assert text.startswith("% 100 % of it; needs")
    assert r"org/a\_1 & cosine & 70.00 $\pm$2.00 & \textbf{80.00} \\" in text
    assert r"b \& c & rcmd & \textbf{72.00 $\pm$2.00} & 78.00 \\" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 3
    for table in re.findall(r"tabular\}\{(\w+)\}(.*?)\\end", text, re.DOTALL):
        rows = [line for line in table[1].splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(table[0])}
    assert "b $-$ a & $-$2.00 $\\pm$1.00 p=0.004" in text


def test_a_row_does_not_begin_with_what_the_line_end_before_it_takes():
    rows = [Measure("t", "all", name, "", "f1", value, 5) for name, value in (("[b]", 1.0), ("*", 2.0), ("c", 2.0))]
    text = to_latex(Results("t", rows))
    assert "\n{}[b] & 1.00" in text
    assert "\n{}* & " in text
    assert "\nc & " in text


def test_nothing_is_bold_where_all_are_equally_good():
    rows = [Measure("t", "all", name, "", "f1", 50.0, 5) for name in "ab"]
    assert "textbf" not in to_latex(Results("t", rows))
