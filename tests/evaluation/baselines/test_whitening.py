from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.evaluation import correlate
from likewise.evaluation.baselines import Whitening, WordVectors
from likewise.similarity import by_name
from likewise.types import Embeddings

WORDS = [f"w{i}" for i in range(40)]


@pytest.fixture(scope="module")
def base():
    random = np.random.default_rng(0)
    return WordVectors(WORDS, random.standard_normal((40, 5)) @ random.standard_normal((5, 5)) + 3)


def test_the_texts_it_was_fit_on_are_white(base):
    white = Whitening.fit(base, WORDS).encode(WORDS).astype(np.float64)
    assert np.allclose(white.mean(0), 0, atol=1e-5)
    assert np.allclose(np.cov(white, rowvar=False, bias=True), np.eye(5), atol=1e-4)


def test_fewer_dimensions_are_those_of_largest_variance(base):
    whole, cut = (Whitening.fit(base, WORDS, k=k) for k in (None, 2))
    assert np.allclose(whole.encode(WORDS)[:, :2], cut.encode(WORDS), atol=1e-5)
    spread = base.encode(WORDS) - base.encode(WORDS).mean(0)
    kept = spread @ cut.linear / np.linalg.norm(cut.linear, axis=0)
    assert kept.var(0).tolist() == pytest.approx(np.linalg.eigvalsh(np.cov(spread.T, bias=True))[:-3:-1], rel=1e-4)


def test_repeated_texts_count_once(base):
    assert np.allclose(Whitening.fit(base, WORDS + WORDS[:1] * 50).mean, Whitening.fit(base, WORDS).mean)


def test_the_name_says_what_was_done(base):
    assert Whitening.fit(base, WORDS).name == f"{base.name}-whitening"


@pytest.mark.parametrize(
    ("texts", "k", "message"),
    [
        (["w1"], None, "1 distinct texts have none"),
        (["w1", "w1"], None, "1 distinct texts have none"),
        (["w1", "w2", "w3"], 3, r"vary in 2 directions, and k = 3"),
        (["w1", "w2", "w3"], 0, r"k = 0"),
        (["none", "known"], None, "vary in 0 directions"),
    ],
)
def test_what_cannot_be_learned(base, texts, k, message):
    with pytest.raises(InputError, match=message):
        Whitening.fit(base, texts, k=k)


def test_a_token_level_model_is_refused(base):
    class TokenLevel:
        name = "tokens"

        def encode(self, texts, *, progress=None):
            return base.encode(texts)

        def embed(self, texts, *, progress=None):
            one = base.embed(texts)
            return Embeddings(one.tokens, one.offsets)

    with pytest.raises(InputError, match="token-level model"):
        Whitening.fit(TokenLevel(), WORDS).embed(["w1"])


@pytest.mark.model
def test_whitened_scores_of_a_real_model(minilm, shared):
    from likewise.data import read_stsb

    pairs = read_stsb(shared / "data" / "stsbenchmark", "dev")[:150]
    texts = [text for pair in pairs for text in (pair.a, pair.b)]
    white = Whitening.fit(minilm, texts, k=100)
    vectors = white.encode(texts)
    scores = by_name("cosine").score(Embeddings.from_pooled(vectors[::2]), Embeddings.from_pooled(vectors[1::2]))
    assert correlate(scores, np.asarray([pair.gold for pair in pairs])).spearman > 80
