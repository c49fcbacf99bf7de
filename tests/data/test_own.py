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
    assert read_scored_pairs(write()) == []


@pytest.mark.parametrize(
    ("read", "row", "message"),
    [
        (read_scored_pairs, PAIR, r'mine\.jsonl, line 2: "score" is missing; give \{"a"'),
        (read_scored_pairs, {**PAIR, "score": "4"}, r'line 2: "score" is "4", not a number'),
        (read_scored_pairs, {**PAIR, "score": True}, r'line 2: "score" is true, not a number'),
        (read_scored_pairs, '{"a": "x", "b": "y", "score": NaN}', r"line 2 is not JSON \(NaN is no JSON number\)"),
        (read_scored_pairs, {"a": "x" * 50, "b": ["y" * 50]}, r'line 2: "b" is \["yyy.*\.\.\., not a text'),
        (read_binary_pairs, {**PAIR, "same": "yes"}, r"line 2: \"same\" is 'yes', neither true nor false"),
        (read_binary_pairs, {**PAIR, "same": 2}, r'line 2: "same" is 2'),
        (read_binary_pairs, PAIR, r'line 2: "same" is None'),
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
