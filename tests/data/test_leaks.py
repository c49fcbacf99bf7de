from __future__ import annotations

import pytest

from likewise.data import (
    ArgumentPair,
    LabelledPair,
    LabelledText,
    ScoredPair,
    TextTriplet,
    drop_overlapping,
    normalised,
    read_ists,
    read_sts,
    read_stsb,
    sentences,
)
from likewise.errors import InputError


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("The cat doesn't sit.", "the cat does n't sit ."),
        ("It\u2019s  a “CAT”", 'it\'s a "cat"'),
        ("ﬁne Ａ１", "fine a1"),
        ("?!", " ? !"),
    ],
)
def test_the_same_sentence_in_other_clothes(a, b):
    assert normalised(a) == normalised(b)


def test_other_sentences_stay_apart():
    assert len(set(map(normalised, ["a b", "ab c", "!", "?", "", "café", "cafe"]))) == 7


def test_every_kind_of_example_is_searched_for_its_sentences_only():
    triplet = TextTriplet("x1", "x2", "x3")
    assert list(sentences(triplet)) == ["x1", "x2", "x3"]
    assert list(sentences(ArgumentPair("guns", "a", "b", 1.0))) == ["a", "b"]
    assert list(sentences(LabelledPair("p", "h", "neutral"))) == ["p", "h"]
    assert list(sentences(LabelledText("t", "pos"))) == ["t"]
    assert list(sentences(("a", "b"))) == ["a", "b"]
    for wrong in (None, 1, {"a": "b"}, ScoredPair):
        with pytest.raises(InputError, match="neither a text nor an example"):
            list(sentences(wrong))


def test_an_example_goes_if_any_of_its_sentences_is_known():
    triplets = [TextTriplet("a one", "b", "c"), TextTriplet("d", "e", "f"), TextTriplet("g", "h", "A, one!")]
    kept = drop_overlapping(triplets, [ScoredPair("A one.", "z", 1.0)])
    assert kept == [triplets[1]]
    assert kept.n_skipped == 2
    assert drop_overlapping(["x", "y"], ["Y"]) == ["x"]
    assert drop_overlapping([], triplets) == []
    assert drop_overlapping(triplets, []).n_skipped == 0


def test_the_benchmarks_leak_is_found(shared):
    """STS-b train and STS12 share 997 distinct pairs, so at least as many rows must go."""
    train = read_stsb(shared / "data", "train")
    test = [pair for pairs in read_sts(shared / "data", "STS12", text="moses").values() for pair in pairs]
    kept = drop_overlapping(train, test)
    assert len(kept) + kept.n_skipped == len(train)
    assert kept.n_skipped >= 997
    assert drop_overlapping(kept, test).n_skipped == 0
    assert drop_overlapping(train, read_ists(shared / "data")).n_skipped >= 131
