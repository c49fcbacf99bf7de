from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from likewise.evaluation.measures import Measure
from likewise.evaluation.tables import Results
from likewise.evaluation.terminal import print_results, to_text
from likewise.evaluation.worst import WorstPair, explain_worst

ROWS = [
    Measure(f"T{i}", "all", model, "cosine", "spearman", 50.0 + i, 10, 49.0, 51.5)
    for model in ("a", "[b]")
    for i in range(14)
]
NONE = Measure("T0", "all", "c", "cosine", "spearman", None, 1, reason="a correlation needs two pairs or more")


def test_plain_text_is_plain_and_never_folded():
    text = to_text(Results("Title", [*ROWS, NONE]))
    assert "\x1b" not in text
    assert text == to_text(Results("Title", [*ROWS, NONE]))
    lines = text.splitlines()
    assert lines[:3] == ["Title", "", "spearman"]
    assert lines[3].split() == ["a", "cosine", "[b]", "cosine", "c", "cosine"]  # turned: more tasks than systems
    assert lines[4].split() == ["T0", "50.00", "±1.25", "50.00", "±1.25", "–"]
    assert "  – c cosine, T0: a correlation needs two pairs or more" in lines
    assert all(line == line.rstrip() for line in lines)


def test_a_terminal_gets_colour_and_its_width():
    console = Console(file=io.StringIO(), width=60, force_terminal=True, color_system="standard")
    print_results(Results("Title", ROWS[:5] + ROWS[14:19]), console)
    text = console.file.getvalue()
    assert "\x1b[1m" in text


def test_nothing_measured_is_said():
    assert "nothing was measured" in to_text(Results("Title", []))


@pytest.mark.parametrize("details", [True, False])
def test_worst_pairs_are_listed_with_their_words(tiny, details):
    pair = WorstPair("t", "m", "rcmd", "A plane.", "An air plane.", 0.1, "-70 percentiles", 5.0)
    (worst,) = explain_worst(tiny, [pair], "rcmd")
    text = to_text(Results("Title", ROWS[:1], worst=[worst]), details=details)
    assert ("t, m, rcmd: -70 percentiles, gold 5, score 0.1000" in text) == details
    assert bool(re.search(r"plane~\w+ 0\.\d{3}", text)) == details
