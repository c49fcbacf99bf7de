"""One's own pairs and triplets."""

from __future__ import annotations

import json

import pytest

from likewise.data import BinaryPair, ScoredPair, TextTriplet, read_binary_pairs, read_scored_pairs, read_triplets
from likewise.errors import DataError, DataNotFoundError

PAIR = {"a": "a cat", "b": "a dog"}
TRIPLET = {"anchor": "a cat", "positive": "cats", "negative": "a car"}


@pytest.fixture
def write(tmp_path):
    def to(*rows):
        path = tmp_path / "mine.jsonl"
        path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), "utf-8")
        return path

    return to


def test_pairs_and_triplets_as_they_stand(write):
    assert read_scored_pairs(write({**PAIR, "score": 4, "id": 7}, "", {**PAIR, "score": -0.5})) == [
        ScoredPair("a cat", "a dog", 4.0),
        ScoredPair("a cat", "a dog", -0.5),
    ]
    assert read_binary_pairs(write({**PAIR, "same": True}, {**PAIR, "same": 0})) == [
        BinaryPair("a cat", "a dog", True),
        BinaryPair("a cat", "a dog", False),
    ]
    assert read_triplets(write(TRIPLET)) == [TextTriplet("a cat", "cats", "a car")]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (read_scored_pairs, r'mine\.jsonl holds no pair; give \{"a"'),
        (read_binary_pairs, r"mine\.jsonl holds no pair"),
        (read_triplets, r"mine\.jsonl holds no triplet"),
    ],
)
def test_a_file_without_any_row(write, read, message):
    for nothing in ((), ("", " ")):
        with pytest.raises(DataError, match=message):
            read(write(*nothing))


def test_names_of_data_for_sentence_transformers(write):
    pair = {"sentence1": "a cat", "sentence2": "a dog"}
    assert read_scored_pairs(write({**pair, "score": 4}, {**PAIR, "label": 2})) == [
        ScoredPair("a cat", "a dog", 4.0),
        ScoredPair("a cat", "a dog", 2.0),
    ]
    assert read_binary_pairs(write({**pair, "label": 1}))[0].same is True


@pytest.mark.parametrize("suffix", ["csv", "TSV"])
def test_columns_with_a_header(tmp_path, suffix):
    path = tmp_path / f"mine.{suffix}"

    def write(*rows):
        quoted = [[f'"{cell}"' if "," in cell and suffix == "csv" else cell for cell in row] for row in rows]
        mark = "," if suffix == "csv" else "\t"
        path.write_bytes(("\ufeff" + "\r\n".join(map(mark.join, quoted)) + "\r\n\r\n").encode())

    write(["id", "Sentence1", "sentence2", "Label"], ["7", "a cat, mine", "a dog", "4.5"], ["8", "x", "y", "-1"])
    assert read_scored_pairs(path) == [ScoredPair("a cat, mine", "a dog", 4.5), ScoredPair("x", "y", -1.0)]
    write(["a", "b", "same"], ["x", "y", "True"], ["x", "z", "0"])
    assert read_binary_pairs(path) == [BinaryPair("x", "y", True), BinaryPair("x", "z", False)]
    write(["anchor", "positive", "negative"], ["a", "b", "c"])
    assert read_triplets(path) == [TextTriplet("a", "b", "c")]
    for rows, message in (
        ([["a", "b", "score"], ["x", "y", "high"]], 'line 2: "score" is "high", not a number'),
        ([["a", "b", "label"], ["x", "y", "1_0"]], 'line 2: "label" is "1_0", not a number'),
        ([["a", "b", "score"], ["x", " ", "1"]], 'line 2: "b" is empty'),
        ([["a", "b", "score"], ["x", "y"]], "line 2: 2 columns, 3 expected"),
        ([["a", "b"], ["x", "y"]], "line 1: no column 'score' or 'label' among 'a', 'b'"),
        ([["a", "b", "sentence1", "score"], ["x", "y", "z", "1"]], 'line 1 has both "a" and "sentence1"'),
        ([["a", "a", "b", "score"], ["x", "y", "z", "1"]], 'line 1 has both "a" and "a"'),
        ([["a", "b", "score"]], "holds no pair"),
    ):
        write(*rows)
        with pytest.raises(DataError, match=message):
            read_scored_pairs(path)


def test_columns_under_another_name_are_told_what_to_be_called(write):
    with pytest.raises(DataError, match=r"line 1 is not a JSON object.*\.csv or \.tsv.*header \(a, b, score\)"):
        read_scored_pairs(write("a\tb\tscore", "x\ty\t1"))


@pytest.mark.parametrize(
    ("read", "row", "message"),
    [
        (read_scored_pairs, PAIR, r'mine\.jsonl, line 2: "score" is missing; give \{"a"'),
        (read_scored_pairs, {**PAIR, "score": "4"}, r'line 2: "score" is "4", not a number'),
        (read_scored_pairs, {**PAIR, "score": True}, r'line 2: "score" is true, not a number'),
        (read_scored_pairs, '{"a": "x", "b": "y", "score": NaN}', r"line 2 is not JSON \(NaN is no JSON number\)"),
        (read_scored_pairs, {"a": "x" * 50, "b": ["y" * 50]}, r'line 2: "b" is \["yyy.*\.\.\., not a text'),
        (read_binary_pairs, {**PAIR, "same": "yes"}, r"line 2: \"same\" is \"yes\", neither true nor false"),
        (read_binary_pairs, {**PAIR, "same": 2}, r'line 2: "same" is 2'),
        (read_binary_pairs, PAIR, r'line 2: "same" is missing; give'),
        (read_binary_pairs, {**PAIR, "same": True, "label": 1}, r'line 2 has both "same" and "label", and only one'),
        (read_scored_pairs, {**PAIR, "sentence1": "x", "score": 1}, r'line 2 has both "a" and "sentence1"'),
        (read_scored_pairs, {"sentence1": "x", "sentence2": "y", "label": None}, r'line 2: "label" is null, not a'),
        (read_scored_pairs, {"a": "", "b": "x", "score": 1}, r'line 2: "a" is empty; leave the line out'),
        (read_binary_pairs, {"a": "x", "b": "  ", "same": True}, r'line 2: "b" is empty'),
        (read_triplets, {**TRIPLET, "negative": "\n"}, r'line 2: "negative" is empty'),
        (read_scored_pairs, f'{{"a": "x", "b": "y", "score": 1{"0" * 400}}}', r'line 2: "score" is 100.* beyond'),
        (read_scored_pairs, '{"a": "x", "a": "z", "b": "y", "score": 1}', r'line 2: the key "a" stands twice'),
        (read_triplets, {"anchor": "a", "positive": "b"}, r'line 2: "negative" is missing'),
        (read_triplets, "[1]", r"line 2 is a JSON list, not an object"),
        (read_triplets, "{", r"line 2 is not JSON"),
    ],
)
def test_a_bad_line_is_named(write, read, row, message):
    good = {**PAIR, **TRIPLET, "score": 1, "same": True}
    with pytest.raises(DataError, match=message):
        read(write(good, row))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"mine\.jsonl: No such file"):
        read_triplets(tmp_path / "mine.jsonl")
