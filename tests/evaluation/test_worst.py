from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from likewise import Model
from likewise.data import ScoredPair
from likewise.errors import InputError
from likewise.evaluation.sts import SystemScores, TaskScores, score_sts
from likewise.evaluation.worst import explain_worst, worst_pairs

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


def test_the_worst_pairs_are_farthest_from_their_place_by_gold():
    found = worst_pairs(system([0.9, 0.8, 0.3, 0.99, 0.85]), "t", 2)
    assert [pair.a for pair in found] == [PAIRS[3].a, PAIRS[2].a]
    assert found[0].verdict == "+80 percentiles: found too alike"  # from last to first of five
    assert found[1].verdict == "-40 percentiles: found too unlike"
    assert (found[0].gold, found[0].score) == (0.0, pytest.approx(0.99))
    assert len(worst_pairs(system([0.9, 0.8, 0.3, 0.99, 0.85]), "t", 99)) == 5


def test_no_worst_pairs_without_scores():
    assert worst_pairs(system([np.nan] * 5), "t") == []
    assert worst_pairs(system([], []), "t") == []
    with pytest.raises(InputError, match="no task 'u'"):
        worst_pairs(system([1, 2, 3, 4, 5]), "u")
    with pytest.raises(InputError, match="-1 worst pairs"):
        worst_pairs(system([1, 2, 3, 4, 5]), "t", -1)


def test_worst_pairs_carry_the_explanation_of_their_score(tiny):
    listed = worst_pairs(system([0.9, 0.8, 0.3, 0.99, 0.85]), "t", 2)
    explained = explain_worst(tiny, listed, "rcmd")  # one text is longer than the model reads
    assert explained[0].explanation.b.truncated
    assert [pair.explanation.similarity for pair in explained] == ["rcmd", "rcmd"]
    assert explained[0].explanation.a.text == listed[0].a
    assert explain_worst(tiny, listed, "euclidean") == listed


def test_a_prompt_other_than_the_models_own_is_explained_with_it(tiny):
    (pair,) = worst_pairs(system([0.9, 0.8, 0.3, 0.99, 0.85]), "t", 1)
    pair = replace(pair, a="A plane.", b="The cats")
    for prompt in ("", "query: "):
        for name in ("rcmd", "cosine"):
            (found,) = explain_worst(tiny, [replace(pair, prompt=prompt, compared_by=name)], "dot")
            own = tiny.explain(prompt + pair.a, prompt + pair.b, similarity=name)
            assert found.explanation.score == pytest.approx(own.score, abs=1e-6)
            assert (found.explanation.similarity, found.explanation.details.keys()) == (name, own.details.keys())
            assert (found.explanation.a.text, found.explanation.b.text) == (pair.a, pair.b)


@pytest.mark.filterwarnings("ignore::likewise.errors.TruncationWarning")  # one of the pairs is long
def test_what_is_scored_before_the_final_scaling_has_no_explanation_and_says_so(sentence_folder):
    from sentence_transformers.sentence_transformer.modules import Normalize

    model = Model.load(sentence_folder(modules=[Normalize()]))
    for normalised in (True, False):
        systems = score_sts(
            model, {"t": {"all": PAIRS}}, ["cosine", "dot", "rcmd"], normalised=normalised, n_resamples=0
        )
        for name, one in zip(["cosine", "dot", "rcmd"], systems, strict=True):
            for pair in explain_worst(model, worst_pairs(one, "t"), name):
                if name == "dot" and not normalised:
                    assert pair.explanation is None
                    assert pair.verdict.endswith("scaling to length 1, which no explanation has)")
                else:
                    assert pair.explanation.score == pytest.approx(pair.score, abs=1e-4)
