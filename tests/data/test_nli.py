from __future__ import annotations

import json

import pytest

from likewise.data import LabelledPair, TextTriplet, nli_triplets, read_nli, read_nli_triplets
from likewise.errors import DataError, DataNotFoundError

PUBLISHED = {
    "snli/snli_1.0_dev.csv": (9842, 158),
    "snli/snli_1.0_test.csv": (9824, 176),
    "snli/senteval_tokenized/s1.dev": (9842, 0),
    "snli/senteval_tokenized/labels.test": (9824, 0),
    "snli/cat_20k/train.tsv": (18000, 0),
    "snli/cat_20k/test.tsv": (2000, 0),
    "multinli/multinli_1.0_dev_matched.csv": (9815, 185),
    "multinli/multinli_1.0_dev_mismatched.csv": (9832, 168),
    "xnli_en/xnli_validation_en.tsv": (2490, 0),
    "xnli_en/xnli_test_en.tsv": (5010, 0),
    "cad_nli/all_combined/train.tsv": (8330, 0),
    "cad_nli/all_combined/dev.tsv": (1000, 0),
    "cad_nli/all_combined/test.tsv": (2000, 0),
    "taxinli/taxinli10k.tsv": (10071, 0),
    "conjnli/conj_dev.tsv": (623, 0),
    "conjnli/adversarial_train_15k.tsv": (15000, 0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_counts(shared, name):
    pairs = read_nli(shared / "data" / name)
    assert (len(pairs), pairs.n_skipped) == PUBLISHED[name]
    assert {pair.label for pair in pairs} == {"entailment", "neutral", "contradiction"}


def test_numbers_mean_what_each_set_says(shared):
    xnli = read_nli(shared / "data" / "xnli_en" / "xnli_validation_en.tsv")
    assert [pair.label for pair in xnli[:2]] == ["neutral", "contradiction"]
    cat = read_nli(shared / "data" / "snli" / "cat_20k" / "test.tsv")
    assert cat[0] == LabelledPair(
        "A traditional ethnic wedding is taking place.", "People are getting married", "entailment"
    )
    assert [pair.label for pair in cat[:3]] == ["entailment", "entailment", "neutral"]


A = LabelledPair("A cat sat.", "It sat.", "entailment")
B = LabelledPair('He said "no', "He said yes", "contradiction")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", 'pairID,sentence1,sentence2,label\n1,A cat sat.,It sat.,entailment\n2,"He said ""no",He said yes,'
         'contradiction\n3,a,b,-\n4,a,b,\n'),
        ("x.txt", "gold_label\tsentence1\tsentence2\tlabel1\nentailment\tA cat sat.\tIt sat.\tneutral\n"
         'contradiction\tHe said "no\tHe said yes\t\n-\ta\tb\t\n\ta\tb\t\n'),
        ("x.tsv", 'Premise\tHypothesis\tLabel\nA cat sat.\tIt sat.\t0\nHe said "no\tHe said yes\t2\na\tb\t-\na\tb\t\n'),
        ("x.jsonl", "".join(
            json.dumps({"gold_label": label, "sentence1": a, "sentence2": b, "more": 1}) + "\n"
            for label, a, b in (("entailment", "A cat sat.", "It sat."),
                                ("contradiction", 'He said "no', "He said yes"), ("-", "a", "b"), ("", "a", "b"))
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dressed", [False, True])
def test_every_form_of_the_same_pairs(tmp_path, name, text, dressed):
    path = tmp_path / name
    path.write_bytes(("\ufeff" + text.replace("\n", "\r\n") if dressed else text).encode())
    pairs = read_nli(path)
    assert pairs == [A, B]
    assert pairs.n_skipped == 2


def test_three_files_of_equal_length(tmp_path):
    for stem, lines in (("s1", "A cat sat. \nx\n"), ("s2", "It sat.\ny\n"), ("labels", "entailment\n-\n")):
        (tmp_path / f"{stem}.dev").write_text(lines, encoding="utf-8")
    assert read_nli(tmp_path / "s2.dev") == [A]
    (tmp_path / "s2.dev").write_text("It sat.\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"s1\.dev 2, s2\.dev 1, labels\.dev 2"):
        read_nli(tmp_path / "s1.dev")
    (tmp_path / "labels.dev").unlink()
    with pytest.raises(DataNotFoundError, match=r"labels\.dev"):
        read_nli(tmp_path / "s1.dev")


HEADER = "premise\thypothesis\tlabel\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.tsv", HEADER + "a\tb\tentails\n", "line 2: the label 'entails' is none of"),
        ("x.tsv", HEADER + "a\tb\t3\n", "line 2: the label '3'"),
        ("x.tsv", HEADER + "a\t\tneutral\n", "line 2: a text is empty"),
        ("x.tsv", HEADER + "a\tb\tc\tneutral\n", "line 2: 4 columns, 3 expected"),
        ("x.tsv", HEADER + "a b neutral\n", "line 2: 1 columns"),
        ("x.tsv", "premise\thypothesis\na\tb\n", "line 1: no column 'gold_label' or 'label'"),
        ("x.tsv", "1\t2\ta\tb\n", "line 1: the label stands twice, and '1' is not '2'"),
        ("x.tsv", "1\t1\ta\tb\n4\t4\ta\tb\n", "line 2: the label '4'"),
        ("x.tsv", "1\t1\ta\tb\n1\t1\ta\n", "line 2: 3 columns, 4 expected"),
        ("x.csv", 'sentence1,sentence2,label\n"a,b,neutral\nc,d,neutral\n', "line 2: the row .* is not CSV"),
        ("x.csv", "sentence1,sentence2,label\na, b,c,neutral\n", "line 2: 4 columns, 3 expected"),
        ("x.csv", "", "line 1: no column"),
        ("x.jsonl", '{"gold_label": "neutral", "sentence1": "a"}\n', "line 1: \"sentence2\" is missing"),
        ("x.jsonl", '{"gold_label": "neu', "line 1 is not JSON"),
        ("x.jsonl", "[1]\n", "line 1 is a JSON list"),
        ("snli_1.0_dev.csv", "sentence1,sentence2,label\na,b,neutral\nc,d,-\n", "2 rows, 10000 expected"),
    ],
)  # fmt: skip
def test_what_is_broken_is_named_by_file_and_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"{name}.*{message}"):
        read_nli(tmp_path / name)


def test_invalid_utf8_is_named(tmp_path):
    (tmp_path / "x.tsv").write_bytes(HEADER.encode() + b"caf\xe9\tb\tneutral\n")
    with pytest.raises(DataError, match=r"x\.tsv, line 2: byte 3 is not UTF-8"):
        read_nli(tmp_path / "x.tsv")


# ------------------------------------------------------------------------------------------ triplets


def test_triplets_of_simcse(tmp_path):
    path = tmp_path / "triplets.csv"
    path.write_bytes(b'\xef\xbb\xbfsent0,sent1,hard_neg\r\n"a, ""b""",c,d\r\n')
    assert read_nli_triplets(path) == [TextTriplet('a, "b"', "c", "d")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", "sent0,sent1\na,b\n", "no column 'hard_neg' among 'sent0', 'sent1'"),
        ("x.csv", "sent0,sent1,hard_neg\na,b\n", "line 2: 2 columns, 3 expected"),
        ("x.csv", "sent0,sent1,hard_neg\na,b,\n", "line 2: a text is empty"),
        ("x.csv", 'sent0,sent1,hard_neg\na,b,"c\n', "line 2: the row that starts here is not CSV"),
        ("nli_for_simcse.csv", "sent0,sent1,hard_neg\na,b,c\n", "1 triplets, 275601 expected"),
    ],
)
def test_triplets_that_are_broken(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_nli_triplets(tmp_path / name)


def test_triplets_are_built_without_chance_and_use_no_hypothesis_twice():
    rows = [("p", "c1", "contradiction"), ("q", "e", "entailment"), ("p", "n", "neutral"), ("p", "e1", "entailment"),
            ("p", "e1", "entailment"), ("p", "e2", "entailment"), ("p", "c2", "contradiction"),
            ("p", "e3", "entailment"), ("r", "c", "contradiction")]  # fmt: skip
    triplets = nli_triplets(LabelledPair(*row) for row in rows)
    assert triplets == [TextTriplet("p", "e1", "c1"), TextTriplet("p", "e2", "c2")]
    assert nli_triplets([]) == []


def test_triplets_of_snli_dev(shared):
    triplets = nli_triplets(read_nli(shared / "data" / "snli" / "snli_1.0_dev.csv"))
    assert len(triplets) == 2953
    assert triplets[0].anchor == "Two women are embracing while holding to go packages."
