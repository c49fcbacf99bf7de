from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest

from likewise.errors import DataError
from likewise.evaluation.measures import Measure
from likewise.evaluation.provenance import measured
from likewise.evaluation.statistics import Comparison
from likewise.evaluation.tables import (
    Results,
    decimals,
    grids,
    number,
    p_value,
    printable,
    score_of,
    short_names,
    to_csv,
    to_json,
    to_records,
    write_csv,
)
from likewise.evaluation.worst import WorstPair

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
NONE = Measure("STS-b", "all", "z", "cosine", "spearman", None, 1, reason="there is 1")
DIFFERENCE = Comparison("STS-b", "all", "spearman", "a", "b", -2.0, 10, -3.0, -1.0, 0.004)


def test_systems_are_rows_and_tasks_are_columns():
    spearman, pearson = grids(ROWS, decimals(ROWS))
    assert (spearman.title, pearson.title) == ("spearman", "pearson")
    assert spearman.corner == ("model", "similarity")
    assert spearman.columns == ("STS12", "STS-b")
    assert spearman.labels[0] == ("org/a_1", "cosine")
    assert spearman.printed()[0] == ["70.00 ±2.00", "80.00"]
    short = grids([*ROWS], {}, names={"org/a_1": "a_1"})[0]
    assert short.labels[0] == ("a_1", "cosine")
    assert short.labels[2] == ("b & c", "cosine")


def test_a_difference_has_the_names_of_its_table():
    one = replace(DIFFERENCE, first="org/a cosine", second="org/a b rcmd")
    names = {"org/a": "a", "org/a b": "B"}
    assert grids([one], {}, names=names)[0].labels == (("B rcmd − a cosine",),)
    assert grids([one], {})[0].labels == (("org/a b rcmd − org/a cosine",),)
    alone = replace(DIFFERENCE, first="cosine", second="rcmd")
    assert grids([alone], {}, names={"rc": "x"})[0].labels == (("rcmd − cosine",),)


def test_a_single_task_has_its_metrics_as_columns():
    (grid,) = grids([one for one in ROWS if one.task == "STS-b"], {})
    assert grid.columns == ("spearman", "pearson")
    assert grid.title == "STS-b (n = 10)"


def test_every_subset_is_shown_when_asked_for():
    titles = [grid.title for grid in grids(ROWS, {}, every_subset=True)]
    assert titles == ["STS12, spearman", "STS12, pearson", "STS-b, spearman", "STS-b, pearson"]
    assert grids(ROWS, {}, every_subset=True)[0].columns == ("x (n = 10)", "all (n = 10)")
    assert grids([], {}) == []


def test_what_compares_nothing_has_no_column_for_it():
    rows = [Measure("MR", "all", name, "", "accuracy", 80.0, 5) for name in "ab"]
    assert grids(rows, {})[0].corner == ("model",)
    assert grids(rows, {})[0].labels == (("a",), ("b",))


def test_the_best_of_a_column_is_known_and_a_missing_value_is_not_it():
    assert grids([*ROWS, NONE], {})[0].best() == {(2, 0), (3, 0), (0, 1), (1, 1)}
    assert grids([NONE], {})[0].best() == set()
    tied = [one for one in ROWS if one.task == "STS-b" and one.model == "b & c"]
    assert {one.value for one in tied} == {78.0}
    assert grids(tied, {})[0].best() == set()  # all are equally good
    cut = [Measure("t", "all", name, "cosine", "f1_threshold", value, 5) for name, value in (("a", 0.1), ("b", 0.9))]
    assert grids(cut, {})[0].best() == set()


def test_a_missing_value_has_its_reason():
    grid = grids([*ROWS, NONE], {})[0]
    assert grid.printed()[-1] == ["", "–"]
    assert grid.reasons() == ["z cosine, STS-b: there is 1"]


def test_a_column_has_both_ends_where_one_interval_is_lopsided():
    rows = [
        Measure("t", "all", name, "s", metric, 77.142, 5, low, high)
        for name, metric, low, high in (
            ("a", "accuracy", 0.0, 100.0),
            ("b", "accuracy", 75.0, 79.0),
            ("a", "f1", 75.0, 79.0),
            ("b", "f1", 77.14, 77.15),  # lopsided by rounding alone
        )
    ]
    assert grids(rows, {})[0].printed() == [
        ["77.14 [0.00, 100.00]", "77.14 ±2.00"],
        ["77.14 [75.00, 79.00]", "77.14 ±0.01"],
    ]
    one = replace(DIFFERENCE, low=-9.0, high=0.5)
    assert grids([one], {})[0].printed() == [["−2.00 [−9.00, +0.50] p=0.004"]]


def test_systems_that_do_not_differ_are_identical():
    same = replace(DIFFERENCE, difference=0.0, low=0.0, high=0.0, p_value=1.0)
    assert number(same, {}) == "identical"
    assert number(replace(same, low=-1.0, high=1.0), {}) == "+0.00 ±1.00 p=1.000"
    assert number(Measure("t", "all", "m", "s", "f1", 0.0, 5, 0.0, 0.0), {}) == "0.00 ±0.00"


def test_a_table_has_one_sign_for_minus():
    assert number(Measure("t", "all", "m", "s", "pearson", -3.0, 5), {}) == "−3.00"
    assert number(replace(DIFFERENCE, p_value=1e-5), {}) == "−2.00 ±1.00 p=1e−05"
    assert p_value(1e-5) == "1e−05"


def test_what_cannot_be_shown_is_replaced():
    assert printable("a\x00b\x1b[31m\ud800\n\tc") == "a�b�[31m�\n\tc"
    assert "�" in to_csv([replace(NONE, task="t\udcff")])


def test_a_score_says_what_it_is_a_score_of():
    one = WorstPair("t", "m", "cosine, rcmd of the first 2", "a", "b", 0.5, "late")
    assert score_of(one) == "score 0.5000"
    assert score_of(replace(one, compared_by="rcmd", prompt="query: ")) == "score 0.5000 by rcmd behind 'query: '"
    assert score_of(replace(one, prompt="")) == "score 0.5000"


def test_a_threshold_above_the_cosine_of_equal_texts_has_its_digits():
    cut = Measure("t", "all", "m", "cosine", "f1_threshold", 1.0000001, 5)
    assert number(cut, decimals([cut])) == "1.0000"


def test_systems_without_an_error_are_known():
    right = Results("t", ROWS, worst=[])
    assert right.faultless() == []  # nobody has one
    one = WorstPair("STS12", "org/a_1", "rcmd", "a", "b", 0.1, "wrong")
    found = Results("t", [*ROWS, NONE], worst=[one]).faultless()
    assert found == [("STS12", "org/a_1", "cosine"), ("STS12", "b & c", "cosine"), ("STS12", "b & c", "rcmd")]


def test_numbers_between_0_and_1_have_four_decimals():
    small = Measure("t", "all", "m", "s", "f1", 0.86531, 5, 0.8, 0.9)
    assert number(small, decimals([small])) == "0.8653 ±0.0500"
    weak = Measure("t", "all", "m", "s", "spearman", 0.86531, 5, 0.8, 0.9)
    assert number(weak, decimals([weak])) == "0.87 ±0.05"  # times 100, and next to nothing
    assert number(DIFFERENCE, {}) == "−2.00 ±1.00 p=0.004"
    assert number(None, {}) == ""


def test_names_are_short_where_that_is_unique():
    assert short_names(["x/a", "b"]) == {"x/a": "a", "b": "b"}
    assert short_names(["x/a", "y/a"]) == {"x/a": "x/a", "y/a": "y/a"}
    assert short_names(["x/a/", "b"]) == {"x/a/": "a", "b": "b"}


def test_csv_has_every_measure_by_name():
    rows = list(csv.DictReader(to_csv([*ROWS, NONE]).splitlines()))
    assert list(rows[0]) == ["task", "subset", "model", "similarity", "metric", "value", "n", "low", "high", "reason"]
    assert len(rows) == len(ROWS) + 1
    assert (rows[0]["model"], float(rows[0]["value"])) == ("org/a_1", 50.0)
    assert (rows[-1]["value"], rows[-1]["reason"]) == ("", "there is 1")


def test_csv_is_appended_to_under_the_same_header_only(tmp_path):
    path = tmp_path / "results.csv"
    write_csv(ROWS[:2], path, append=True)
    write_csv(ROWS[2:5], path, append=True)
    assert len(list(csv.DictReader(path.read_text().splitlines()))) == 5
    write_csv(ROWS[:1], path)
    assert len(list(csv.DictReader(path.read_text().splitlines()))) == 1
    path.write_text("epoch,steps,value\n1,2,3\n")
    with pytest.raises(DataError, match="the columns are epoch, steps, value"):
        write_csv(ROWS[:1], path, append=True)
    assert path.read_text() == "epoch,steps,value\n1,2,3\n"


def test_json_has_null_and_a_reason_in_place_of_nan():
    told = json.loads(to_json(Results("t\ud800", [*ROWS, NONE], [DIFFERENCE])), parse_constant=pytest.fail)
    assert told["measures"][-1]["value"] is None
    assert told["measures"][-1]["reason"] == "there is 1"
    assert told["comparisons"][0]["p_value"] == 0.004
    assert (told["notes"], told["how"], told["worst"]) == ([], None, [])
    how = measured("likewise evaluate sts", [], ["rcmd"], 100)
    told = json.loads(to_json(Results("t", ROWS, notes=["a note"], how=how)))
    assert told["notes"] == ["a note"]
    assert told["how"]["command"] == "likewise evaluate sts"


def test_a_record_has_its_metrics_by_name():
    first = to_records([*ROWS, NONE])[1]
    assert first == {
        "task": "STS12",
        "subset": "all",
        "model": "org/a_1",
        "similarity": "cosine",
        "n": 10,
        "spearman": 70.0,
        "pearson": 70.0,
        "intervals": {"spearman": [68.0, 72.0], "pearson": [68.0, 72.0]},
    }
