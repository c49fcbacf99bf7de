"""Embeddings are checked when they are made, and pooling is a weighted sum over a text's own rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise import Embeddings
from likewise.errors import InputError, InputTypeError
from likewise.types import computable

LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=6)


def _made(lengths: list[int], by_dim: bool, seed: int = 0) -> Embeddings:
    draw = np.random.default_rng(seed)
    total = sum(lengths)
    weights = draw.normal(size=(total, 3) if by_dim else total)
    return Embeddings(draw.normal(size=(total, 3)), np.cumsum([0, *lengths]), weights)


@given(lengths=LENGTHS, by_dim=st.booleans())
def test_pooled_is_the_sum_of_the_parts(lengths: list[int], by_dim: bool) -> None:
    made = _made(lengths, by_dim)
    pooled = np.zeros((len(lengths), 3))
    row = 0
    for i, length in enumerate(lengths):
        for _ in range(length):
            pooled[i] += made.weights[row] * made.tokens[row]
            row += 1
    np.testing.assert_allclose(made.pooled(), pooled, atol=1e-12)
    for i in range(len(made)):
        np.testing.assert_allclose(made.parts(i).sum(0), pooled[i], atol=1e-12)


@given(lengths=LENGTHS, by_dim=st.booleans(), data=st.data())
def test_selecting_texts(lengths: list[int], by_dim: bool, data: st.DataObject) -> None:
    made = _made(lengths, by_dim)
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=5))
    some = made.select(rows)
    assert some.lengths.tolist() == [lengths[i] for i in rows]
    for got, i in zip(some, rows, strict=True):
        np.testing.assert_array_equal(got, made.text(i))
    np.testing.assert_array_equal(some.pooled(), made.pooled()[rows])


@given(lengths=LENGTHS, by_dim=st.booleans())
def test_torch_pools_to_the_same_bytes(lengths: list[int], by_dim: bool) -> None:
    made = _made(lengths, by_dim)
    there = Embeddings(torch.from_numpy(made.tokens), made.offsets, torch.from_numpy(np.asarray(made.weights)))
    np.testing.assert_array_equal(there.pooled().numpy(), made.pooled())


@pytest.mark.parametrize("by_dim", [True, False])
def test_the_gradient_of_torch_pooling(by_dim: bool) -> None:
    made = _made([2, 0, 4, 1], by_dim)

    def pooled(tokens: torch.Tensor, weights: torch.Tensor) -> Any:
        return Embeddings(tokens, made.offsets, weights).pooled()

    given = [torch.from_numpy(np.asarray(x)).requires_grad_() for x in (made.tokens, made.weights)]
    assert torch.autograd.gradcheck(pooled, given)


def test_torch_pooling_is_deterministic() -> None:
    made = _made([40] * 200, by_dim=False)
    there = Embeddings(torch.from_numpy(made.tokens).float(), made.offsets, torch.from_numpy(made.weights).float())
    first = there.pooled()
    for _ in range(5):
        assert torch.equal(there.pooled(), first)
    np.testing.assert_allclose(first, made.pooled(), atol=1e-4)


@given(lengths=LENGTHS)
def test_a_text_pools_to_the_same_bytes_alone_and_in_a_batch(lengths: list[int]) -> None:
    made = _made(lengths, by_dim=False)
    for i in range(len(made)):
        np.testing.assert_array_equal(made.select([i]).pooled()[0], made.pooled()[i])


def test_shape() -> None:
    made = _made([2, 0, 3], by_dim=False)
    assert (len(made), made.dim, made.lengths.tolist()) == (3, 3, [2, 0, 3])
    assert [text.shape for text in made] == [(2, 3), (0, 3), (3, 3)]
    assert made.pooled()[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("array", [np.asarray, torch.tensor])
def test_from_texts_pools_by_the_mean(array: Any) -> None:
    texts = [array([[1.0, 2.0], [3.0, 4.0]]), array(np.zeros((0, 2))), array([[5.0, 6.0]])]
    made = Embeddings.from_texts(texts)
    assert np.asarray(made.pooled()).tolist() == [[2, 3], [0, 0], [5, 6]]
    assert type(made.pooled()) is type(texts[0])
    weighted = Embeddings.from_texts(texts, [array([1.0, 0.0]), array(np.zeros(0)), array([2.0])])
    assert np.asarray(weighted.pooled()).tolist() == [[1, 2], [0, 0], [10, 12]]


@pytest.mark.parametrize("array", [np.asarray, torch.from_numpy])
def test_from_pooled(array: Any) -> None:
    vectors = array(np.arange(6, dtype=np.float32).reshape(2, 3))
    made = Embeddings.from_pooled(vectors)
    assert made.lengths.tolist() == [1, 1]
    np.testing.assert_array_equal(np.asarray(made.pooled()), np.asarray(vectors))
    assert Embeddings.from_pooled(vectors[:0]).pooled().shape == (0, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_half_precision_is_widened_before_it_is_computed_with(dtype: torch.dtype) -> None:
    tokens = torch.full((3, 2), 300.0, dtype=dtype)  # 300² is infinite in float16
    made = Embeddings(tokens, np.array([0, 3]), torch.full((3,), 300.0))
    wide = dtype if dtype is torch.float64 else torch.float32
    assert made.text(0).dtype == wide
    assert made.pooled().tolist() == [[270_000.0, 270_000.0]]
    assert made.tokens.dtype == dtype


def test_computable() -> None:
    assert computable(np.ones(2, np.float16)).dtype == np.float32
    assert computable(np.ones(2, np.int64)).dtype == np.float32
    wide = np.ones(2, np.float64)
    assert computable(wide) is wide


@pytest.mark.parametrize(
    ("tokens", "offsets", "weights", "said"),
    [
        (np.zeros(3), [0, 3], None, r"tokens have shape \(3,\); give \[total, dim\]"),
        (np.zeros((3, 2)), [1, 3], None, "they run from 1 to 3"),
        (np.zeros((3, 2)), [0, 2], None, r"number of tokens \(3\); they run from 0 to 2"),
        (np.zeros((3, 2)), [0, 2, 1, 3], None, "and fall in between"),
        (np.zeros((3, 2)), [], None, "vector of n . 1 integers"),
        (np.zeros((3, 2)), [[0, 3]], None, "vector of n . 1 integers"),
        (np.zeros((3, 2)), [0.0, 3.0], None, "vector of n . 1 integers"),
        (np.zeros((3, 2)), [0, 3], np.zeros(2), r"weights have shape \(2,\); give \[total\] or \[total, dim\]"),
        (np.zeros((3, 2)), [0, 3], np.zeros((3, 1)), r"weights have shape \(3, 1\)"),
    ],
)
def test_what_does_not_fit(tokens: Any, offsets: Any, weights: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Embeddings(tokens, np.asarray(offsets), weights)


def test_tokens_of_another_type() -> None:
    with pytest.raises(InputTypeError, match="tokens are a list; give a numpy array or a torch tensor"):
        Embeddings([[1.0]], np.array([0, 1]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("array", [np.asarray, torch.from_numpy])
def test_a_value_that_is_not_finite_is_named(value: float, array: Any) -> None:
    tokens = np.zeros((6, 2), np.float32)
    tokens[4, 1] = tokens[5, 0] = value
    with pytest.raises(InputError, match=r"token 1 of text 2 holds NaN or infinity \(2 such tokens in all\)"):
        Embeddings(array(tokens), np.array([0, 3, 3, 6]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_large_finite_values_pass(dtype: type) -> None:
    big = np.full((4, 2), np.finfo(dtype).max, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(Embeddings(big, np.array([0, 4]))) == 1


def test_no_weights_no_pooled_vector() -> None:
    made = Embeddings(np.ones((2, 2)), np.array([0, 2]))
    for read in (made.pooled, lambda: made.parts(0)):
        with pytest.raises(InputError, match=r"no pooling weights .*use similarity='rcmd' or 'transport'"):
            read()
    assert made.select([0]).weights is None


def test_texts_that_do_not_go_together() -> None:
    with pytest.raises(InputError, match="no text given, so that the dimension is unknown"):
        Embeddings.from_texts([])
    with pytest.raises(InputError, match=r"unequal dims \[2, 3\]"):
        Embeddings.from_texts([np.ones((1, 2)), np.ones((1, 3))])
