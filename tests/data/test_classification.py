from __future__ import annotations

from collections import Counter

import pytest

from likewise.data import CLASSIFICATION_TASKS, LabelledText, read_classification
from likewise.errors import DataError, DataNotFoundError

PUBLISHED = {
    "MR": {"all": (10662, 0)},
    "CR": {"all": (3771, 4)},
    "SUBJ": {"all": (10000, 0)},
    "MPQA": {"all": (10603, 3)},
    "SST2": {"train": (67349, 0), "dev": (872, 0), "test": (1821, 0)},
    "TREC": {"train": (5452, 0), "test": (500, 0)},
}


@pytest.mark.parametrize("task", CLASSIFICATION_TASKS)
def test_the_published_counts(shared, task):
    splits = read_classification(shared / "data", task)
    assert {name: (len(rows), rows.n_skipped) for name, rows in splits.items()} == PUBLISHED[task]
    assert all(row.text and row.text[-1] != " " for rows in splits.values() for row in rows)


def test_classes(shared):
    home = shared / "data" / "senteval_transfer"
    assert Counter(row.label for row in read_classification(home, "MR")["all"]) == {"pos": 5331, "neg": 5331}
    trec = read_classification(home / "tokenized", "TREC")
    assert {row.label for row in trec["train"]} == {"ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"}
    assert trec["test"][0] == LabelledText("How far is it from Denver to Aspen ?", "NUM")


def test_the_original_of_trec_is_latin_1(shared, tmp_path):
    home = shared / "data" / "senteval_transfer" / "tokenized" / "TREC"
    for name in ("train_5500.label", "TREC_10.label"):
        (tmp_path / name).write_bytes((home / name).read_bytes())
    assert read_classification(tmp_path, "TREC") == read_classification(home, "TREC")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["NUM:dist How far ?"] * 499, r"TREC_10\.label: 499 rows, 500 expected"),
        (["NUM:dist How far ?"] * 1000, r"TREC_10\.label: 1000 rows, 500 expected"),
        (["NUM:dist How far ?", "How far ?"], r"TREC_10\.label, line 2: 'How far \?' does not begin with a class"),
        (["NUM:dist How far ?", "NUM:dist "], r"TREC_10\.label, line 2"),
        (["NUM:dist How far ?", "", "x"], r"TREC_10\.label, line 2"),
    ],
)
def test_what_is_broken(shared, tmp_path, lines, message):
    home = shared / "data" / "senteval_transfer" / "tokenized" / "TREC"
    (tmp_path / "train_5500.label").write_bytes((home / "train_5500.label").read_bytes())
    (tmp_path / "TREC_10.label").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_classification(tmp_path, "TREC")


@pytest.mark.parametrize(
    ("line", "message"), [("bad film\t", "the class '' is neither 0 nor 1"), ("bad\tfilm\t0", "3 columns")]
)
def test_a_class_of_its_own_in_each_row(tmp_path, line, message):
    (tmp_path / "sentiment-train").write_text(f"good film\t1\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"sentiment-train, line 2: {message}"):
        read_classification(tmp_path, "SST2")


def test_quotes_crlf_and_separators_are_literal(tmp_path):
    (tmp_path / "subj.objective").write_bytes('a "lone\u2028quote \r\n'.encode() * 5000)
    (tmp_path / "subj.subjective").write_bytes(b"b\n" * 5000)
    assert read_classification(tmp_path, "SUBJ")["all"][0] == LabelledText('a "lone\u2028quote', "objective")


def test_what_is_not_there_or_not_known(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"no rt-polarity\.pos of MR"):
        read_classification(tmp_path, "MR")
    with pytest.raises(DataError, match="unknown transfer task 'IMDB'"):
        read_classification(tmp_path, "IMDB")
