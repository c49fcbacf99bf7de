from __future__ import annotations

import numpy as np
import pytest

from likewise.data import ScoredPair
from likewise.evaluation.slices import measure_slices, slices_of
from likewise.evaluation.sts import SystemScores, TaskScores, correlate

PAIRS = [
    ScoredPair("A man is eating.", "A man is eating!", 5.0),
    ScoredPair("A man isn't eating.", "A man is eating two apples.", 2.0),
    ScoredPair("He has 2 dogs and 3 cats", "No one has 2 dogs, 3 cats", 3.0),
    ScoredPair(" ".join(["word"] * 20), " ".join(["other"] * 20), 0.0),
    ScoredPair("Nobody came in 1,000 days", "never came in 1,000 days", 4.0),
]


def system(scores, pairs=PAIRS):
    task = TaskScores("t", {"all": slice(0, len(pairs))}, pairs, np.asarray(scores, np.float32))
    return SystemScores("m", "cosine", [task], 0)


def places(pairs=PAIRS):
    return {name: np.flatnonzero(members).tolist() for name, members in slices_of(pairs).items()}


def test_a_slice_holds_what_its_name_says():
    found = places()
    assert found["length: below 8 words"] == [0, 1, 2, 4]
    assert found["length: 16 words and more"] == [3]
    assert found["overlap: 2/3 and more"] == [0, 4]
    assert found["overlap: below 1/3"] == [3]
    assert found["negation: in one"] == [1, 2]
    assert found["negation: in both"] == [4]
    assert found["numbers: the same"] == [4]
    assert found["numbers: others"] == [1, 2]  # "one" of "No one" is a number word
    assert found["numbers: none"] == [0, 3]


@pytest.mark.parametrize("kind", ["length", "overlap", "negation", "numbers"])
def test_each_pair_is_in_one_slice_of_each_kind(kind):
    members = [found for name, found in slices_of(PAIRS).items() if name.startswith(kind)]
    assert (np.sum(members, axis=0) == 1).all()


def test_empty_texts_and_no_pairs_have_slices_too():
    assert places([ScoredPair("", "", 1.0)])["overlap: below 1/3"] == [0]
    assert all(members == [] for members in places([]).values())


def test_a_slice_is_measured_on_its_pairs():
    scores = [0.9, 0.8, 0.3, 0.1, 0.2]
    found = {(one.subset, one.metric): one for one in measure_slices(system(scores))}
    short = found["length: below 8 words", "spearman"]
    rows = [0, 1, 2, 4]
    expected = correlate(np.array(scores)[rows], np.array([PAIRS[i].gold for i in rows]))
    assert short.value == pytest.approx(expected.spearman)
    assert short.n == 4
    assert found["length: 16 words and more", "pearson"].value is None
    assert "two pairs" in found["length: 16 words and more", "pearson"].reason
    assert ("length: 8 to 15 words", "spearman") not in found
