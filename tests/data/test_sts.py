from __future__ import annotations

import pytest

from likewise.data import STS_SOURCES, ScoredPair, read_sts, read_stsb
from likewise.errors import DataError, DataNotFoundError, DataWarning

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
    pairs = read_stsb(write(tmp_path, [*rows, ""]))
    assert {pair.a for pair in pairs} == {'a "lone quote'}
    assert {pair.b for pair in pairs} == {"form\x0cfeed\u2028here"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tb", "line 2: 2 columns"),
        (ROW.format(score="1", a="x\tx", b="y"), "line 2: 8 columns, 7 "),
        (ROW.format(score="1", a="x\tx", b="y") + "\tfrom\tfrom", "line 2: 10 columns, 7 "),
        (ROW.format(score="", a="x", b="y"), "line 2: the score '' is not a number"),
        (ROW.format(score="7", a="x", b="y"), r"line 2: the score 7.0 is outside"),
        (ROW.format(score="nan", a="x", b="y"), r"line 2: the score 'nan' is not a number"),
        (ROW.format(score="0_4", a="x", b="y"), r"line 2: the score '0_4' is not a number in plain digits"),
        (ROW.format(score="٣", a="x", b="y"), r"line 2: the score '٣' is not a number"),
        (ROW.format(score="1", a="x", b=""), "line 2: a text is empty"),
        (ROW.format(score="1", a="\tx", b="y"), "line 2: 8 columns, 7 "),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, line, message):
    with pytest.raises(DataError, match=f"sts-test.csv, {message}"):
        read_stsb(write(tmp_path, [ROW.format(score="1", a="x", b="y"), line]))


def test_a_file_that_ends_inside_a_line_is_told(tmp_path, recwarn):
    rows = [ROW.format(score="1", a="x", b="y")] * 1379
    assert len(read_stsb(write(tmp_path, [*rows, ""]))) == 1379
    assert not recwarn
    with pytest.warns(DataWarning, match=r"sts-test\.csv ends without a newline"):
        read_stsb(write(tmp_path, rows))


def test_a_copy_that_is_not_whole_and_one_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="1 pairs, 1379 expected"):
        read_stsb(write(tmp_path, [ROW.format(score="1", a="x", b="y")]))
    with pytest.raises(DataNotFoundError, match=r"no sts-dev\.csv"):
        read_stsb(tmp_path, "dev")
    with pytest.raises(DataError, match="unknown split"):
        read_stsb(tmp_path, "validation")


# ------------------------------------------------------------------------------------ STS12 to STS16

UNSCORED = {
    "STS15": [1625, 750, 1625, 750, 750],
    "STS16": [1318, 1249, 1041, 3043, 1346],
}


@pytest.mark.parametrize("text", ["raw", "moses"])
@pytest.mark.parametrize("year", STS_SOURCES)
def test_each_year_by_source(shared, year, text):
    sources = read_sts(shared / "data", year, text=text)
    assert [(name, len(pairs)) for name, pairs in sources.items()] == list(STS_SOURCES[year].items())
    assert [pairs.n_skipped for pairs in sources.values()] == UNSCORED.get(year, [0] * len(sources))
    assert sources == read_sts(shared / "data" / year.lower(), year, text=text)


def test_raw_and_moses_differ_in_form_only(shared):
    raw, moses = (read_sts(shared / "data", "STS12", text=text)["MSRvid"] for text in ("raw", "moses"))
    assert raw[0] == ScoredPair("A man with a hard hat is dancing.", "A man wearing a hard hat is dancing.", 5.0)
    assert moses[0].a == "a man with a hard hat is dancing ."
    assert [pair.gold for pair in raw] == [pair.gold for pair in moses]


def test_the_text_asked_for_is_not_another_one(shared):
    with pytest.raises(DataNotFoundError):
        read_sts(shared / "data" / "sts12" / "raw", "STS12", text="moses")


def year13(folder, source="FNWN", pairs=None, golds=None):
    for name, n in STS_SOURCES["STS13"].items():
        mine = name == source
        rows = pairs if mine and pairs is not None else ["One.\tTwo."] * n
        scores = golds if mine and golds is not None else ["2.5"] * n
        (folder / f"STS.input.{name}.txt").write_bytes(b"".join(row.encode() + b"\n" for row in rows))
        (folder / f"STS.gs.{name}.txt").write_bytes(b"".join(score.encode() + b"\n" for score in scores))
    return folder


def test_signs_that_mean_nothing_stay_in_the_text(tmp_path):
    rows = ['say "\tone\u2028line\x85 \r', "\ufeffa\tb"] + ["c\td"] * 187
    rows[0] = "\ufeff" + rows[0]
    pairs = read_sts(year13(tmp_path, pairs=rows), "STS13")["FNWN"]
    assert pairs[:2] == [ScoredPair('say "', "one\u2028line\x85 ", 2.5), ScoredPair("\ufeffa", "b", 2.5)]


@pytest.mark.parametrize(
    ("pairs", "golds", "message"),
    [
        (["a\tb"] * 188, None, "has 188 lines and .*STS.gs.FNWN.txt 189"),
        (["a\tb"] * 190, None, "has 190 lines"),
        (["a\tb"] * 378, ["1"] * 378, "378 scored pairs, 189 expected"),
        (["a\tb"] * 100, ["1"] * 100, "100 scored pairs, 189 expected"),
        (None, ["", *["1"] * 188], "188 scored pairs and 1 without a label, 189 expected"),
        (["a\tb", "a\tb\tc", *["a\tb"] * 187], None, "STS.input.FNWN.txt, line 2: 3 columns"),
        (["a\tb", "a b", *["a\tb"] * 187], None, "line 2: 1 columns"),
        (["a\t", *["a\tb"] * 188], None, "STS.input.FNWN.txt, line 1: a text is empty"),
        (None, [*["1"] * 188, "5.1"], "STS.gs.FNWN.txt, line 189: the score 5.1 is outside"),
        (None, [*["1"] * 188, "-1"], "line 189: the score -1.0 is outside"),
        (None, [*["1"] * 188, "good"], "line 189: the score 'good' is not a number"),
        ([*["a\tb"] * 188, ""], None, "line 189: 1 columns"),
    ],
)
def test_files_that_are_broken_or_do_not_fit(tmp_path, pairs, golds, message):
    with pytest.raises(DataError, match=message):
        read_sts(year13(tmp_path, pairs=pairs, golds=golds), "STS13")


def test_what_is_not_there_or_not_known(tmp_path):
    (year13(tmp_path) / "STS.gs.OnWN.txt").unlink()
    with pytest.raises(DataNotFoundError, match=r"no STS\.gs\.OnWN\.txt of STS13"):
        read_sts(tmp_path, "STS13")
    with pytest.raises(DataError, match="unknown year of STS '2013'"):
        read_sts(tmp_path, "2013")
    with pytest.raises(DataError, match="unknown kind of text 'lower'"):
        read_sts(tmp_path, "STS13", text="lower")


def test_the_folder_of_the_released_archive(tmp_path):
    inner = tmp_path / "sts13" / "test-gs"
    inner.mkdir(parents=True)
    year13(inner)
    assert read_sts(tmp_path, "STS13") == read_sts(inner, "STS13")
