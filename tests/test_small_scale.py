"""The page of small-scale results says what the recorded results say."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def small_scale() -> Iterator[ModuleType]:
    """`benchmarks/small_scale.py`, which finds its neighbours beside it."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location("small_scale", ROOT / "benchmarks" / "small_scale.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["small_scale"] = module
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
        for name in ("small_scale", "harness"):
            sys.modules.pop(name, None)


def _recorded(claim: str) -> list[dict[str, Any]]:
    path = ROOT / "benchmarks" / "results" / f"{claim}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return rows


def test_page_and_results_agree(small_scale):
    page = small_scale.PAGE.read_text(encoding="utf-8")
    assert small_scale.with_tables(page) == page, "run python benchmarks/small_scale.py"


def test_a_changed_number_is_seen(small_scale):
    page = small_scale.PAGE.read_text(encoding="utf-8")
    number = f"{_recorded('training_truth')[1]['baseline']:.2f}"
    assert number in page
    assert small_scale.with_tables(page.replace(number, "99.99")) == page


def test_the_page_is_short_and_says_what_it_is(small_scale):
    page = small_scale.PAGE.read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 80
    assert "small-scale" in page.splitlines()[0].lower()


@pytest.mark.parametrize("claim", ["training_truth", "training_raw"])
def test_every_difference_is_of_its_numbers(claim):
    rows = _recorded(claim)
    assert rows
    for one in rows:
        assert one["ours"] == pytest.approx(np.mean(one["seeds"]))
        assert one["difference"] == pytest.approx(one["ours"] - one["baseline"])
        assert one["unit"] == "loss" or one["low"] <= one["high"]


def test_what_the_issue_guards_has_a_bar():
    barred = {(one["column"].split(",")[0], one["line"]) for one in _recorded("training_truth") if one["bar"]}
    assert {("CLRCMD", what) for what in ("STS-b dev", "iSTS images", "iSTS headlines")} <= barred
    assert any(one["bar"] for one in _recorded("training_raw") if one["column"] == "STS-b dev")


def test_a_row_compares_on_the_same_resamples(small_scale):
    before = small_scale.Values("STS", 50.0, np.array([49.0, 50.0, 51.0]))
    after = [small_scale.Values("STS", value, before.draws + value - 50) for value in (51.0, 53.0)]
    line = small_scale.paired(small_scale.Place("t", "l", "c"), "F1", after, before, bar="ours > 50")
    assert (line["ours"], line["difference"], line["low"], line["high"]) == (52.0, 2.0, 2.0, 2.0)
    assert line["holds"]
    assert line["deviation"] == pytest.approx(np.sqrt(2))


def test_the_loss_is_compared_by_thirds(small_scale):
    place = small_scale.Place("t", "l", "c")
    assert small_scale.losses(place, [[4, 2, 2, 2, 1, 1]])["holds"]
    assert small_scale.losses(place, [[1, 1, 9, 9, 1, 1]])["holds"] is False
