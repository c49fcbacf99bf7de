"""Hard negatives against a naive search, and the promise never to give a positive."""

from __future__ import annotations

import random

import numpy as np
import pytest

from likewise import Model
from likewise.data import TextTriplet, normalised
from likewise.errors import InputError
from likewise.training import Limits, mine_negatives, negatives

WORDS = "plane cat man woman child dog guitar flute park green large small is was runs plays takes off".split()


def texts(n: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(1, 6))) for _ in range(n)]


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    anchors, positives = texts(12, 1), texts(30, 2)
    drawn = random.Random(3)
    return [(drawn.choice(anchors), positive) for positive in positives]


@pytest.fixture(scope="module")
def corpus(pairs) -> list[str]:
    """Holds anchors and positives, spelt in several ways, beside others."""
    own = [text for pair in pairs for text in pair]
    return [*own, *(text.upper() + "!" for text in own), *texts(60, 4), *texts(60, 4)]


@pytest.fixture(scope="module", params=["cosine", "rcmd"])
def model(request, mean_folder) -> Model:
    return Model.load(mean_folder, similarity=request.param)


def naive(model, pairs, corpus, n, limits, judge=None) -> list[TextTriplet]:
    """Pair by pair, text by text."""
    first = {}
    for text in corpus:
        first.setdefault(normalised(text), text)
    found = []
    for anchor, positive in pairs:
        own = {normalised(b) for a, b in pairs if normalised(a) == normalised(anchor)} | {normalised(anchor)}
        rest = [text for key, text in first.items() if key not in own]
        scores = np.asarray(model.score([anchor] * len(rest), rest))
        ranked = sorted((-score, place, text) for place, (score, text) in enumerate(zip(scores, rest, strict=True)))
        scorer = judge or model
        top = float(np.asarray(scorer.score([anchor], [positive]))[0])
        kept = 0
        seen = [text for _, _, text in ranked[limits.skip : limits.window]]
        for text, score in zip(seen, np.asarray(scorer.score([anchor] * len(seen), seen)).tolist(), strict=True):
            bound = np.inf if limits.margin is None else top - limits.margin
            if limits.relative_margin is not None:
                bound = min(bound, top - limits.relative_margin * abs(top))
            if score <= bound and score <= (np.inf if limits.max_score is None else limits.max_score) and kept < n:
                found.append(TextTriplet(anchor, positive, text))
                kept += 1
    return found


LIMITS = [
    Limits(),
    Limits(margin=None),
    Limits(margin=0.1),
    Limits(margin=None, relative_margin=0.05),
    Limits(margin=None, max_score=0.8),
    Limits(skip=2, window=10, margin=None),
]


@pytest.mark.parametrize("limits", LIMITS, ids=repr)
def test_the_triplets_of_a_naive_search(model, pairs, corpus, limits, monkeypatch):
    monkeypatch.setattr(negatives, "_BLOCK", 17)
    monkeypatch.setattr(negatives, "_ANCHORS", 5)
    monkeypatch.setattr(negatives, "_CELLS", 60)
    found = mine_negatives(model, pairs, corpus, n=2, limits=limits)
    expected = naive(model, pairs, corpus, 2, limits)
    # Float32 scores of the two searches differ in the last digits, which may swap equals.
    assert len(found.triplets) == len(expected)
    for one, other in zip(found.triplets, expected, strict=True):
        assert one == other or model.score(one.anchor, one.negative) == pytest.approx(
            model.score(other.anchor, other.negative), abs=1e-5
        )
    assert found.n_pairs == len(pairs)
    assert found.n_without == len(pairs) - len({(one.anchor, one.positive) for one in found.triplets})


@pytest.mark.parametrize("limits", LIMITS, ids=repr)
def test_a_positive_is_never_given(model, pairs, corpus, limits):
    found = mine_negatives(model, pairs, corpus, n=100, limits=limits)
    own: dict[str, set[str]] = {}
    for anchor, positive in pairs:
        own.setdefault(normalised(anchor), {normalised(anchor)}).add(normalised(positive))
    assert found.triplets
    assert not [one for one in found.triplets if normalised(one.negative) in own[normalised(one.anchor)]]
    assert found.n_positives >= len(pairs)  # all of them stand in the corpus
    given = [(one.anchor, one.positive, normalised(one.negative)) for one in found.triplets]
    assert len(set(given)) == len(given)


def test_blocks_do_not_change_what_is_found(model, pairs, corpus, monkeypatch):
    whole = mine_negatives(model, pairs, corpus, n=3)
    assert mine_negatives(model, pairs, corpus, n=3) == whole
    monkeypatch.setattr(negatives, "_BLOCK", 11)
    parts = mine_negatives(model, pairs, corpus, n=3)
    assert len(parts.triplets) == pytest.approx(len(whole.triplets), abs=2)  # float32 at the margin


class ByLength:
    """A judge with an opinion of its own: texts of like length belong together."""

    def score(self, a, b):
        return np.asarray([-abs(len(x) - len(y)) for x, y in zip(a, b, strict=True)], np.float32)


def test_a_cross_encoder_decides_what_is_too_near(model, pairs, corpus):
    limits, judge = Limits(margin=3.0), ByLength()
    found = mine_negatives(model, pairs, corpus, n=2, limits=limits, cross_encoder=judge)
    assert found.triplets
    for one in found.triplets:
        positive, negative = judge.score([one.anchor] * 2, [one.positive, one.negative])
        assert negative <= positive - 3
    assert len(found.triplets) == len(naive(model, pairs, corpus, 2, limits, judge))
    assert found.n_margin > 0


def test_counts_of_what_was_left_out(tiny):
    corpus = ["a plane", "A plane!", "the cat", "a man plays"]
    found = mine_negatives(tiny, [("a plane", "THE CAT")], corpus, limits=Limits(margin=None, max_score=-2.0))
    assert found.triplets == ()
    assert (found.n_positives, found.n_max_score, found.n_margin, found.n_without) == (2, 1, 0, 1)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"pairs": []}, "0 pairs"),
        ({"corpus": []}, "0 texts of the corpus"),
    ],
)
def test_bad_requests(tiny, more, message):
    given = {"pairs": [("a", "b")], "corpus": ["c"], **more}
    pairs, corpus = given.pop("pairs"), given.pop("corpus")
    with pytest.raises(InputError, match=message):
        mine_negatives(tiny, pairs, corpus, **given)


def test_bad_limits():
    with pytest.raises(InputError, match="hold no candidate"):
        Limits(skip=5, window=5)
    with pytest.raises(InputError, match="margin is -1"):
        Limits(margin=-1.0)
    with pytest.raises(InputError, match="relative_margin is nan"):
        Limits(relative_margin=float("nan"))
