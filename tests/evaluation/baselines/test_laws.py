"""What every baseline promises: an `Embedder` whose scores are sums of contributions."""

from __future__ import annotations

import numpy as np
import pytest

from likewise import Model
from likewise.evaluation.baselines import Flow, InferSent, TfIdf, Whitening, WordVectors
from likewise.similarity import by_name

TEXTS = [
    "A plane is taking off.",
    "An air plane is taking off!",
    "The cats don't like the dog.",
    "A man plays a large flute.",
    "Three children are running.",
    "",
    "zzz",
]


def words(dim=6):
    names = "a plane is taking off . an air the cats dog man plays flute children running".split()
    return WordVectors(names, np.random.default_rng(0).standard_normal((len(names), dim)))


def max_pooled(checkpoint):
    return Model.load(checkpoint(), pooling="max")


BASELINES = {
    "tf-idf": lambda tiny, checkpoint: TfIdf(TEXTS),
    "word vectors": lambda tiny, checkpoint: words(),
    "infersent": lambda tiny, checkpoint: InferSent.untrained(words(), hidden=5),
    "whitening": lambda tiny, checkpoint: Whitening.fit(tiny, TEXTS),
    "whitening, 2 dimensions": lambda tiny, checkpoint: Whitening.fit(tiny, TEXTS, k=2),
    "whitening of word vectors": lambda tiny, checkpoint: Whitening.fit(words(), TEXTS),
    "whitening of max pooling": lambda tiny, checkpoint: Whitening.fit(max_pooled(checkpoint), TEXTS),
    "flow": lambda tiny, checkpoint: Flow.fit(tiny, TEXTS, epochs=1, hidden=8),
}


@pytest.fixture(params=BASELINES)
def baseline(request, tiny, checkpoint):
    return BASELINES[request.param](tiny, checkpoint)


def test_pooled_tokens_are_the_encoded_vectors(baseline):
    vectors = baseline.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert np.allclose(baseline.embed(TEXTS).pooled(), vectors, atol=1e-4 * np.abs(vectors).max())


def test_a_score_is_the_sum_of_its_contributions(baseline):
    embeddings = baseline.embed(TEXTS)
    other = embeddings.select(list(reversed(range(len(TEXTS)))))
    cosine = by_name("cosine")
    sums = [part.sum() for part in cosine.contributions(embeddings, other)]
    assert np.allclose(sums, cosine.score(embeddings, other), atol=1e-5)
    assert np.ptp(sums) > 0.01


def test_vectors_do_not_depend_on_the_company(baseline):
    assert np.allclose(baseline.encode(TEXTS)[2:3], baseline.encode(TEXTS[2:3]), atol=1e-5)


def test_no_text_at_all(baseline):
    assert baseline.encode([]).shape == (0, baseline.encode(TEXTS).shape[1])
    assert len(baseline.embed([])) == 0


def test_it_has_a_name(baseline):
    assert baseline.name
