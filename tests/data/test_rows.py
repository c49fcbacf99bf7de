from __future__ import annotations

import pytest

from likewise.data import Rows
from likewise.data.rows import columns_named, csv_rows, decimal, expect, find
from likewise.errors import DataError, DataNotFoundError


def test_rows_are_a_list_that_counts_what_is_not_in_it():
    rows = Rows(["a"], n_skipped=2)
    assert rows == ["a"]
    assert rows.n_skipped == 2
    with pytest.raises(DataError, match="x: 1 rows and 2 without a label, 3 expected"):
        expect(rows, 3, "x")
    assert expect(rows, None, "x") is rows


def test_csv_is_read_as_rfc_4180_says(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes('\ufeffa,b\r\n"1, ""one""","two\r\nlines"\r\n\r\nform\x0cfeed,\u2028\r\n'.encode())
    assert list(csv_rows(path)) == [(1, ["a", "b"]), (2, ['1, "one"', "two\nlines"]), (5, ["form\x0cfeed", "\u2028"])]


@pytest.mark.parametrize("bad", ['"open,y\nz,z\n', '"closed"early,y\n', "bare\rreturn,y\n"])
def test_a_broken_csv_row_is_named_by_its_first_line(tmp_path, bad):
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n" + bad.encode())
    with pytest.raises(DataError, match=r"x\.csv, line 2: the row that starts here is not CSV"):
        list(csv_rows(path))


def test_columns_are_found_by_name_the_preferred_one_first(tmp_path):
    assert columns_named(["Label", "x", "GOLD_label"], {"y": ("gold_label", "label")}, tmp_path) == {"y": 2}
    with pytest.raises(DataError, match="line 1: no column 'z' among 'Label'"):
        columns_named(["Label"], {"z": ("z",)}, tmp_path)


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3.0), (" -0.25\t", -0.25), ("+1e-3", 0.001), (".5", 0.5), ("5.", 5.0), ("1E2", 100.0)]
)
def test_numbers_in_plain_digits(text, value):
    assert decimal(text) == value


@pytest.mark.parametrize("text", ["", ".", "0_4", "٣", "nan", "inf", "1e999", "0x1p3", "1,5", "1 2", "1\n"])
def test_what_only_python_calls_a_number_is_none(text):
    assert decimal(text) is None


def test_a_file_in_place_of_a_folder_is_said_to_be_one(tmp_path):
    (tmp_path / "x.csv").write_text("")
    with pytest.raises(DataNotFoundError, match=r"x\.csv is a file; name the folder of X that holds it"):
        find(tmp_path / "x.csv", ["x.csv"], "X")
