from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from likewise.evaluation.measures import Measure
from likewise.evaluation.plot import interval_plot
from likewise.evaluation.tables import decimals, grids


def drawn(rows):
    return interval_plot(grids(rows, decimals(rows))[0])


def row(model="m", task="T", metric="spearman", value=50.0, low=None, high=None):
    return Measure(task, "all", model, "cosine", metric, value, 10, low, high)


def test_each_value_is_a_dot_between_the_ends_of_its_interval():
    svg = ElementTree.fromstring(
        drawn([row(task="T<"), row("n", "T<", value=70.0, low=60.0, high=75.0), row(task="U")])
    )[0]
    dots, bars = svg.findall(".//circle"), svg.findall(".//line[@class='bar']")
    assert len(dots) == len(bars) == 3
    for dot, bar in zip(dots, bars, strict=True):
        assert float(bar.get("x1")) <= float(dot.get("cx")) <= float(bar.get("x2"))
    assert float(dots[0].get("cx")) < float(dots[2].get("cx")) or float(dots[0].get("cx")) < float(dots[1].get("cx"))
    assert svg.get("aria-label")


@pytest.mark.parametrize("value", [0.0, 1e-9, -3.5, 100.0])
def test_equal_values_can_be_drawn(value):
    assert ElementTree.fromstring(drawn([row(value=value), row("n", value=value)])) is not None


@pytest.mark.parametrize(("value", "scale"), [(100.0, 100.0), (99.99, 100.0), (0.0, 1.0), (1.0, 1.0)])
def test_an_axis_ends_where_its_values_can_end(value, scale):
    marks = [float(found) for found in re.findall(r'text-anchor="middle">([^<]+)<', drawn([row(value=value)]))]
    assert len(marks) > 2
    assert len(set(marks)) == len(marks)
    assert 0 <= min(marks) <= value <= max(marks) <= scale


def test_of_several_metrics_those_with_intervals_are_drawn():
    rows = [row(metric="f1", low=49.0, high=51.0), row(metric="f1_threshold", value=0.5)]
    assert drawn(rows).count("<circle") == 1


def test_nothing_to_draw_is_nothing():
    assert drawn([row(value=None)]) == ""
    assert drawn([row(metric="f1"), row(metric="ap")]) == ""
    mixed = [row(metric="f1", low=49.0, high=51.0), row(metric="part", value=0.5, low=0.4, high=0.6)]
    assert drawn(mixed) == ""
