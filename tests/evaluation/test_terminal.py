from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from likewise.evaluation.measures import Measure
from likewise.evaluation.statistics import Comparison
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


def test_what_the_signs_mean_is_said_once_and_only_of_those_that_are_there():
    half = replace(ROWS[0], low=48.0, high=52.0)
    assert "95 % interval: ± half of it\n" in to_text(Results("Title", [half]))
    both = to_text(Results("Title", [half, replace(ROWS[1], low=0.0, high=52.0)]))
    assert "95 % interval: ± half of it; [ , ] both of its ends, where it is lopsided\n" in both
    assert "interval" not in to_text(Results("Title", [NONE]))
    tests = [Comparison("T0", "all", "spearman", "a", name, 1.0, 10, p_value=0.04) for name in "bc"]
    assert "not corrected for the number of tests" in to_text(Results("Title", [half], tests))
    assert "not corrected" not in to_text(Results("Title", [half], tests[:1]))
    assert "a note" in to_text(Results("Title", [half], notes=["a note"])).splitlines()


def test_models_have_one_short_name_everywhere():
    rows = [Measure("T", "all", f"org/{name}", "rcmd", "spearman", 50.0, 10) for name in "ab"]
    worst = [WorstPair("T", "org/a", "rcmd", "x", "y", 0.1, "wrong")]
    tests = [Comparison("T", "all", "spearman", "org/a rcmd", "org/b rcmd", 1.0, 10)]
    text = to_text(Results("Title", rows, tests, worst=worst), details=True)
    assert "org/" not in text
    assert "b rcmd − a rcmd" in text
    assert "T, a, rcmd: wrong" in text
    assert "T, b, rcmd: none" in text


def test_details_say_how_many_pairs_a_slice_has():
    slices = [Measure("T0", "negation: in one", "a", "cosine", "spearman", 55.0, 1234)]
    assert "negation: in one (n = 1,234)" in to_text(Results("Title", ROWS[:1], slices=slices), details=True)


def test_a_table_with_long_heads_is_turned():
    names = [f"length: below {n} words, or more" for n in range(8)]
    slices = [Measure("T0", name, "a", "cosine", "spearman", 55.0, 9) for name in names]
    text = to_text(Results("Title", ROWS[:1], slices=slices), details=True)
    assert max(map(len, text.splitlines())) < 80


def test_a_table_of_wide_cells_is_turned():
    metrics = ("accuracy", "best_accuracy", "f1", "best_f1", "ap", "precision", "recall")
    rows = [Measure("T0", "all", "a", "cosine", metric, 95.0, 9, 50.0, 100.0) for metric in metrics]
    lines = to_text(Results("Title", rows)).splitlines()
    assert lines[4] == "accuracy       95.00 [50.00, 100.00]"
    assert max(map(len, lines)) < 80


def test_nothing_wrong_is_said_where_it_was_asked_for():
    assert "none: no example counts as wrong" in to_text(Results("Title", ROWS[:1], worst=[]), details=True)
    assert "Worst" not in to_text(Results("Title", ROWS[:1]), details=True)


def test_no_text_of_a_file_can_steer_the_terminal_or_stop_the_printing():
    worst = [WorstPair("T\udcff", "a", "cosine", "evil \x1b[2J text", "half \ud800", 0.1, "wrong")]
    text = to_text(Results("Title \udcff", ROWS[:1], worst=worst), details=True)
    assert text.encode("utf-8")
    assert "\x1b" not in text


@pytest.mark.parametrize("details", [True, False])
def test_worst_pairs_are_listed_with_their_words(tiny, details):
    pair = WorstPair("t", "m", "rcmd", "A plane.", "An air plane.", 0.1, "-70 percentiles", 5.0)
    (worst,) = explain_worst(tiny, [pair], "rcmd")
    text = to_text(Results("Title", ROWS[:1], worst=[worst]), details=details)
    assert ("t, m, rcmd: -70 percentiles, gold 5, score 0.1000" in text) == details
    assert bool(re.search(r"plane~\w+ 0\.\d{3}", text)) == details
