from __future__ import annotations

import io

import pytest

from likewise.data import read_lines, read_stsb
from likewise.errors import DataError

ROW = "main-captions\tMSRvid\t2012test\t0001\t{score}\t{a}\t{b}"


def write(folder, lines):
    (folder / "sts-test.csv").write_bytes("\n".join(lines).encode())
    return folder


@pytest.mark.parametrize(("split", "n"), [("train", 5749), ("dev", 1500), ("test", 1379)])
def test_the_published_counts(shared, split, n):
    assert len(read_stsb(shared / "data" / "stsbenchmark", split)) == n


def test_quotes_extra_columns_crlf_and_bom_are_taken_literally(tmp_path):
    rows = [ROW.format(score="2.5", a='a "lone quote', b="form\x0cfeed\u2028here") + "\textra\tcolumns\r"] * 1379
    rows[0] = "\ufeff" + rows[0]
    pairs = read_stsb(write(tmp_path, rows))
    assert {pair.a for pair in pairs} == {'a "lone quote'}
    assert {pair.b for pair in pairs} == {"form\x0cfeed\u2028here"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tb", "line 2: 2 columns"),
        (ROW.format(score="", a="x", b="y"), "line 2: the score '' is not a number"),
        (ROW.format(score="7", a="x", b="y"), r"line 2: the score 7.0 is outside"),
        (ROW.format(score="nan", a="x", b="y"), r"line 2: the score nan is outside"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, line, message):
    with pytest.raises(DataError, match=f"sts-test.csv, {message}"):
        read_stsb(write(tmp_path, [ROW.format(score="1", a="x", b="y"), line]))


def test_a_copy_that_is_not_whole_and_one_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="1 pairs, 1379 expected"):
        read_stsb(write(tmp_path, [ROW.format(score="1", a="x", b="y")]))
    with pytest.raises(DataError, match=r"no sts-dev\.csv"):
        read_stsb(tmp_path, "dev")
    with pytest.raises(DataError, match="unknown split"):
        read_stsb(tmp_path, "validation")


def test_invalid_utf8_is_named():
    with pytest.raises(DataError, match="line 2: byte 1 is not UTF-8"):
        list(read_lines(io.BytesIO(b"good\nb\xffd\n")))
