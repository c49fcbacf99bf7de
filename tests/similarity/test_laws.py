"""One set of laws for all similarities; a new one joins by a line in a list."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import EmptyTextWarning, InputError
from likewise.pooling import MODES, Pooling
from likewise.similarity import RCMD, Cosine, Dot, Euclidean, Manhattan, Transport, by_name
from likewise.types import Embeddings

ALL = [Cosine(), Dot(), RCMD(), Transport(), Euclidean(), Manhattan()]
DECOMPOSED = [Cosine(), Dot(), RCMD(), Transport()]
BOUNDED = [Cosine(), RCMD(), Transport()]
TOKENWISE = [RCMD(), Transport()]


def by_class(similarity: object) -> str:
    return type(similarity).__name__


def embeddings(seed: int, lengths: list[int], dim: int, pooling: str = "mean", dtype: type = np.float64) -> Embeddings:
    random = np.random.default_rng(seed)
    texts = [random.standard_normal((length, dim)).astype(dtype) for length in lengths]
    return Embeddings.from_texts(texts, [Pooling((pooling,)).weights(text) for text in texts])


sides = st.tuples(
    st.integers(0, 10_000),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4),
    st.integers(1, 12),
    st.sampled_from(MODES),
)


def two_sides(drawn: tuple) -> tuple[Embeddings, Embeddings]:
    seed, lengths, dim, pooling = drawn
    left = embeddings(seed, [a for a, _ in lengths], dim, pooling)
    return left, embeddings(seed + 1, [b for _, b in lengths], dim, pooling)


@pytest.mark.parametrize("similarity", DECOMPOSED, ids=by_class)
@given(sides)
@settings(max_examples=40, deadline=None)
def test_a_score_is_the_sum_of_its_contributions(similarity, drawn):
    a, b = two_sides(drawn)
    sums = [float(part.sum()) for part in similarity.contributions(a, b)]
    scale = np.maximum(1, np.abs(sums))
    assert np.max(np.abs(similarity.score(a, b) - sums) / scale) < 1e-12


@pytest.mark.parametrize("similarity", DECOMPOSED, ids=by_class)
def test_a_score_is_the_sum_of_its_contributions_in_float32(similarity):
    a, b = (embeddings(seed, [5, 9, 30], 64, "mean", np.float32) for seed in (1, 2))
    sums = [float(part.sum()) for part in similarity.contributions(a, b)]
    assert np.allclose(similarity.score(a, b), sums, atol=1e-5)


@pytest.mark.parametrize("similarity", ALL, ids=by_class)
@given(sides)
@settings(max_examples=25, deadline=None)
def test_symmetry_and_the_diagonal_of_the_matrix(similarity, drawn):
    a, b = two_sides(drawn)
    matrix = similarity.matrix(a, b)
    assert np.allclose(similarity.score(a, b), similarity.score(b, a), rtol=1e-12, atol=1e-12)
    assert np.allclose(matrix, similarity.matrix(b, a).T, rtol=1e-12, atol=1e-12)
    assert np.allclose(np.diagonal(matrix), similarity.score(a, b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("similarity", BOUNDED, ids=by_class)
@given(sides)
@settings(max_examples=25, deadline=None)
def test_a_text_is_wholly_like_itself_and_no_score_is_larger(similarity, drawn):
    a, b = two_sides(drawn)
    assert np.allclose(similarity.score(a, a), 1, atol=1e-9)
    assert (np.abs(similarity.score(a, b)) <= 1 + 1e-12).all()


@pytest.mark.parametrize("similarity", [*TOKENWISE, Cosine()], ids=by_class)
@given(sides, st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_the_order_of_tokens_does_not_count(similarity, drawn, seed):
    a, b = two_sides(drawn)
    random = np.random.default_rng(seed)
    order = np.concatenate([random.permutation(np.arange(*ends)) for ends in itertools.pairwise(a.offsets)])
    shuffled = Embeddings(a.tokens[order], a.offsets, a.weights[order])
    assert np.allclose(similarity.score(shuffled, b), similarity.score(a, b), atol=1e-9)


@pytest.mark.parametrize("similarity", TOKENWISE, ids=by_class)
@given(sides, st.floats(1e-3, 1e3))
@settings(max_examples=25, deadline=None)
def test_the_length_of_a_token_does_not_count(similarity, drawn, scale):
    a, b = two_sides(drawn)
    scales = np.linspace(1, scale, len(a.tokens))[:, None]
    scaled = Embeddings(a.tokens * scales, a.offsets, a.weights)
    assert np.allclose(similarity.score(scaled, b), similarity.score(a, b), atol=1e-9)


@given(sides)
@settings(max_examples=60, deadline=None)
def test_the_relaxed_distance_is_a_lower_bound_of_the_exact_one(drawn):
    a, b = two_sides(drawn)
    exact = 1 - Transport().score(a, b)
    forward, backward = RCMD().directions(a, b)
    assert (1 - RCMD().score(a, b) <= exact + 1e-9).all()
    assert (1 - np.minimum(forward, backward) <= exact + 1e-9).all()


@pytest.mark.parametrize("similarity", ALL, ids=by_class)
def test_packed_equals_one_by_one(similarity):
    a, b = embeddings(3, [1, 4, 9, 2], 6), embeddings(4, [7, 1, 3, 2], 6)
    alone = [float(similarity.score(a.select([i]), b.select([i]))[0]) for i in range(4)]
    assert np.allclose(similarity.score(a, b), alone, atol=1e-12)
    assert np.allclose(similarity.matrix(a, b)[2], similarity.matrix(a.select([2]), b)[0], atol=1e-12)


@pytest.mark.parametrize("similarity", TOKENWISE, ids=by_class)
def test_plans_are_masses(similarity):
    a, b = embeddings(5, [1, 4, 9], 6), embeddings(6, [7, 1, 3], 6)
    for part, n, m in zip(similarity.decompose(a, b), a.lengths, b.lengths, strict=True):
        assert (part.plan >= 0).all()
        assert part.plan.sum() == pytest.approx(1)
        if isinstance(similarity, Transport):
            assert np.allclose(part.plan.sum(1), 1 / n)
            assert np.allclose(part.plan.sum(0), 1 / m)


@pytest.mark.parametrize("similarity", ALL, ids=by_class)
def test_half_precision_is_scored_in_float32(similarity):
    a, b = (embeddings(seed, [3, 5], 16, "mean", np.float32) for seed in (7, 8))
    halves = [
        Embeddings(side.tokens.astype(np.float16), side.offsets, side.weights.astype(np.float32)) for side in (a, b)
    ]
    widened = [Embeddings(side.tokens.astype(np.float32), side.offsets, side.weights) for side in halves]
    assert similarity.score(*halves).dtype in (np.float32, np.float64)
    assert np.array_equal(similarity.score(*halves), similarity.score(*widened))


def test_close_cosines_stay_apart_in_half_precision():
    random = np.random.default_rng(0)
    vectors = (np.ones(64) + 0.02 * random.standard_normal((100, 64))).astype(np.float16)
    half, single = (Embeddings.from_pooled(vectors.astype(dtype)) for dtype in (np.float16, np.float32))
    scores, expected = (Cosine().matrix(side.select([0]), side)[0] for side in (half, single))
    assert len(set(scores.tolist())) == len(set(expected.tolist())) > 90


@pytest.mark.parametrize("similarity", ALL, ids=by_class)
def test_zero_vectors_give_finite_scores(similarity):
    zero = Embeddings.from_texts([np.zeros((2, 4)), np.ones((3, 4))])
    scores = similarity.matrix(zero, zero)
    assert np.isfinite(scores).all()
    if not isinstance(similarity, (Euclidean, Manhattan)):
        assert scores[0, 1] == scores[0, 0] == 0


@pytest.mark.parametrize("similarity", TOKENWISE, ids=by_class)
def test_a_text_without_tokens_scores_zero_and_is_announced(similarity):
    a = Embeddings.from_texts([np.zeros((0, 4)), np.ones((2, 4))])
    b = Embeddings.from_texts([np.ones((2, 4)), np.ones((2, 4))])
    with pytest.warns(EmptyTextWarning, match="1 of the texts has no token"):
        assert similarity.score(a, b).tolist() == pytest.approx([0, 1])
    with pytest.warns(EmptyTextWarning):
        assert similarity.matrix(a, b)[0].tolist() == [0, 0]
    with pytest.warns(EmptyTextWarning):
        assert similarity.contributions(a, b)[0].shape == (0, 2)


@pytest.mark.parametrize("similarity", ALL, ids=by_class)
def test_no_texts_give_an_empty_answer(similarity):
    none, some = Embeddings(np.zeros((0, 4)), np.zeros(1, int), np.zeros(0)), embeddings(1, [2, 3], 4)
    assert similarity.score(none, none).shape == (0,)
    assert similarity.matrix(none, some).shape == (0, 2)
    assert similarity.matrix(some, none).shape == (2, 0)


@pytest.mark.parametrize("similarity", ALL, ids=by_class)
def test_unequal_sides_are_refused(similarity):
    with pytest.raises(InputError, match="2 texts cannot be scored row by row with 1"):
        similarity.score(embeddings(1, [2, 3], 4), embeddings(1, [2], 4))
    with pytest.raises(InputError, match="dim 4 and 5"):
        similarity.matrix(embeddings(1, [2], 4), embeddings(1, [2], 5))


@pytest.mark.parametrize("similarity", [Euclidean(), Manhattan()], ids=by_class)
def test_a_distance_says_that_it_has_no_contributions(similarity):
    with pytest.raises(InputError, match="not a sum over pairs of tokens"):
        similarity.contributions(embeddings(1, [2], 4), embeddings(2, [2], 4))


@pytest.mark.parametrize("similarity", ALL, ids=by_class)
def test_torch_and_numpy_agree_and_gradients_flow(similarity):
    torch = pytest.importorskip("torch")
    a, b = embeddings(9, [2, 5], 8), embeddings(10, [4, 3], 8)
    moved = [Embeddings(torch.tensor(s.tokens, requires_grad=True), s.offsets, torch.tensor(s.weights)) for s in (a, b)]
    scores = similarity.matrix(*moved)
    assert np.allclose(scores.detach().numpy(), similarity.matrix(a, b), atol=1e-12)
    scores.sum().backward()
    assert torch.isfinite(moved[0].tokens.grad).all()
    assert moved[0].tokens.grad.abs().sum() > 0


def test_similarities_are_found_by_name():
    assert all(type(by_name(similarity.name)) is type(similarity) for similarity in ALL)
    with pytest.raises(InputError, match="known are cosine"):
        by_name("cosin")
