from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import TruncationWarning
from likewise.evaluation import pair_scores
from likewise.evaluation.pair_scores import score_pairs
from likewise.similarity import by_name

TEXTS = ["A plane is taking off.", "An air plane!", "", "The cats don't like the dog.", "three children", "0 1 2"]


@pytest.mark.parametrize("window", [1, 3, 4096])
def test_scores_are_those_of_the_similarity_whatever_the_window(tiny, monkeypatch, window):
    monkeypatch.setattr(pair_scores, "_WINDOW_TEXTS", window)
    monkeypatch.setattr(pair_scores, "_PAIRS", 2)
    pairs = [(a, b) for a in TEXTS for b in reversed(TEXTS)]
    names = ["cosine", "rcmd", "transport", "euclidean", "manhattan", "dot"]
    found = score_pairs(tiny, pairs, names)
    left, right = (tiny.embed([pair[side] for pair in pairs]) for side in (0, 1))
    for name, scores in zip(names, found, strict=True):
        assert np.allclose(scores, by_name(name).score(left, right), rtol=1e-5, atol=1e-5)


def test_pooled_similarities_need_no_tokens(tiny):
    pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[3], TEXTS[0])]
    with_tokens, without = score_pairs(tiny, pairs, ["cosine", "rcmd"]), score_pairs(tiny, pairs, ["cosine"])
    assert np.allclose(with_tokens[0], without[0], atol=1e-6)


def test_a_text_with_itself_scores_exactly_one(tiny):
    for scores in score_pairs(tiny, [(text, text) for text in TEXTS], ["cosine", "rcmd", "transport"]):
        assert set(scores) == {1.0}


def test_rounding_keeps_six_digits_of_any_table():
    scores = np.array([[1.0, 1.0000002], [-0.12345678, 3e-9]], np.float32)
    found = pair_scores.rounded(scores)
    assert found[0, 0] == found[0, 1]
    assert found.dtype == np.float32
    assert np.allclose(found, scores, rtol=1e-6, atol=0)


def test_no_pair_gives_no_score(tiny):
    assert [len(scores) for scores in score_pairs(tiny, [], ["cosine", "rcmd"])] == [0, 0]


def test_texts_cut_in_any_window_are_told_in_one_warning(tiny, monkeypatch):
    monkeypatch.setattr(pair_scores, "_WINDOW_TEXTS", 1)
    long = [" ".join(["word"] * n) for n in (80, 120, 100)]
    with pytest.warns(TruncationWarning) as told:
        score_pairs(tiny, [(text, "short") for text in long], ["cosine", "rcmd"])
    (one,) = told
    assert f"3 of 4 texts are longer than the {tiny.max_length} tokens" in str(one.message)
    with pytest.warns(TruncationWarning, match="1 of 1 texts"):  # and calls outside tell again
        tiny.encode(long[:1])
