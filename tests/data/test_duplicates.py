from __future__ import annotations

import pytest

from likewise.data import BinaryPair, DuplicateSet, read_mrpc, read_qqp, read_qqp_duplicates
from likewise.errors import DataError, DataNotFoundError

HEADER = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"


@pytest.mark.parametrize(("split", "n", "same"), [("train", 4076, 2753), ("test", 1725, 1147)])
def test_mrpc_raw_and_tokenised(shared, split, n, same):
    raw, tokenised = read_mrpc(shared / "data", split), read_mrpc(shared / "data" / "senteval_transfer", split)
    assert len(raw) == len(tokenised) == n
    assert sum(pair.same for pair in raw) == same
    assert [pair.same for pair in raw] == [pair.same for pair in tokenised]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1\t1\t2\ta\tb"], "1 pairs, 1725 expected"),
        (["1\t1\t2\ta\tb", "1\t1\t2\ta\tb\tc"], r"msr_paraphrase_test\.txt, line 3: 6 columns"),
        (["\t1\t2\ta\tb"], "line 2: the label '' is neither 0 nor 1"),
        (["1\t1\t2\t\tb"], "line 2: a text is empty"),
        (["1\t1\t2\ta\tb"] * 1726, "1726 pairs, 1725 expected"),
    ],
)
def test_mrpc_that_is_broken(tmp_path, rows, message):
    (tmp_path / "msr_paraphrase_test.txt").write_text(HEADER + "\r\n".join(rows), encoding="utf-8", newline="")
    with pytest.raises(DataError, match=message):
        read_mrpc(tmp_path)


def test_mrpc_takes_quotes_crlf_and_bom_as_they_are(tmp_path):
    text = HEADER + '0\t1\t2\ta "lone quote\tb\r\n' * 1725
    (tmp_path / "msr_paraphrase_test.txt").write_text(text, encoding="utf-8", newline="")
    assert set(read_mrpc(tmp_path)) == {BinaryPair('a "lone quote', "b", False)}


@pytest.mark.parametrize("split", ["dev", "test"])
def test_qqp_takes_the_readable_copy(shared, split):
    pairs = read_qqp(shared / "data", split)
    assert (len(pairs), sum(pair.same for pair in pairs)) == (10000, 5000)
    doubled = [text for pair in pairs for text in (pair.a, pair.b) if '""' in text]
    assert doubled == [text for text in doubled if text.startswith('How can I download the following book""')]


def test_qqp_as_released_says_which_line_is_not_utf8(shared, tmp_path):
    (tmp_path / "dev.tsv").write_bytes((shared / "data" / "qqp" / "dev.tsv").read_bytes())
    with pytest.raises(DataError, match=r"dev\.tsv, line \d+: byte \d+ is not UTF-8"):
        read_qqp(tmp_path, "dev")


def test_qqp_questions_that_the_export_quoted(tmp_path):
    rows = ['1\t"Is ""x"" y?"\t"x" is "y"\t5', '0\t"all of it"\t" lone\t6'] + ["0\ta\tb\t7"] * 9998
    (tmp_path / "dev.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    pairs = read_qqp(tmp_path, "dev")
    assert pairs[:2] == [BinaryPair('Is "x" y?', '"x" is "y"', True), BinaryPair('"all of it"', '" lone', False)]


def test_qqp_that_is_broken_or_not_there(tmp_path):
    (tmp_path / "dev.tsv").write_text("1\ta\tb\t1\n1\ta\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dev\.tsv, line 2: 3 columns"):
        read_qqp(tmp_path, "dev")
    with pytest.raises(DataNotFoundError, match="of QQP"):
        read_qqp(tmp_path, "test")


def test_all_questions_for_mining(shared):
    found = read_qqp_duplicates(shared / "data")
    assert 53_000 < len(found.texts) == len(set(found.texts)) < 54_000
    assert all(i < j < len(found.texts) for i, j in found.pairs)
    labelled = [pair for split in ("dev", "test") for pair in read_qqp(shared / "data", split)]
    places = {text: place for place, text in enumerate(found.texts)}
    for pair in labelled[:500]:
        two = sorted((places[pair.a], places[pair.b]))
        assert not pair.same or two[0] == two[1] or tuple(two) in found.pairs


def test_mining_without_the_extra_file(tmp_path):
    for split, row in (("dev", "1\ta\tb\t1\n"), ("test", "0\tb\tc\t1\n")):
        (tmp_path / f"{split}.tsv").write_text(row * 9999 + "1\tc\tc\t2\n", encoding="utf-8")
    assert read_qqp_duplicates(tmp_path) == DuplicateSet(("a", "b", "c"), frozenset({(0, 1)}))
    (tmp_path / "train_head_preprocess2500.csv").write_text("id,question1\n1,a\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column 'question2'"):
        read_qqp_duplicates(tmp_path)
