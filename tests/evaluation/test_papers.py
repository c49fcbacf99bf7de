from __future__ import annotations

import re

import pytest

from likewise.evaluation.papers import TABLES


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_row_fills_its_table(table):
    assert all(len(row.values) == len(table.columns) for row in table.rows)
    assert len({(row.group, row.system) for row in table.rows}) == len(table.rows)
    assert table.setting


@pytest.mark.parametrize("name", ["sbert-table1", "sbert-table5", "clrcmd-table1"])
def test_row_averages_are_the_means_of_their_rows(name):
    for row in TABLES[name].rows:
        *values, average = row.values
        slack = 0.04 if (name, row.system) == ("sbert-table1", "SBERT-NLI-base") else 0.011
        assert average == pytest.approx(sum(values) / len(values), abs=slack)


def test_numbers_are_those_of_the_transcript(shared):
    """Every number of our tables stands in the shared transcript of the papers, as often as we have it."""
    text = (shared / "PAPERS.md").read_text(encoding="utf-8")
    printed = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
    for table in TABLES.values():
        for row in table.rows:
            for value in (*row.values, row.spread):
                assert value is None or value in printed, (table.name, row.system, value)


def test_a_row_is_found_by_its_name():
    assert TABLES["clrcmd-table2"].row("CLRCMD BERT-base").values == (87.25, 90.55)
    assert TABLES["sbert-table2"].row("SBERT-base", "NLI, then STS-b").spread == 0.17
    with pytest.raises(KeyError, match="no row 'SBERT-huge'"):
        TABLES["sbert-table1"].row("SBERT-huge")
