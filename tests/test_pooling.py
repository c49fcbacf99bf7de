"""Pooling is weights: every mode against a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import ModelError
from likewise.pooling import MODES, Pooling


def _slow(mode: str, tokens: np.ndarray, start: int) -> np.ndarray:
    """One mode the way its definition reads."""
    rows = tokens[start:]
    if mode == "cls":
        return rows[0]
    if mode == "lasttoken":
        return rows[-1]
    if mode == "max":
        return np.array([max(column) for column in rows.T])
    if mode == "mean":
        return sum(rows) / len(rows)
    if mode == "mean_sqrt_len_tokens":
        return sum(rows) / len(rows) ** 0.5
    places = [start + i + 1 for i in range(len(rows))]
    return sum(place * row for place, row in zip(places, rows, strict=True)) / sum(places)


def _pooled(pooling: Pooling, tokens: Any, start: int = 0) -> np.ndarray:
    weights = np.asarray(pooling.weights(tokens, start))
    spread = np.asarray(pooling.spread(tokens))
    return (spread * (weights if weights.ndim == 2 else weights[:, None])).sum(0)


def _tokens(length: int, dim: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(length, dim))


@given(mode=st.sampled_from(MODES), length=st.integers(1, 9), start=st.integers(0, 8), seed=st.integers(0, 99))
def test_every_mode(mode: str, length: int, start: int, seed: int) -> None:
    tokens = _tokens(length, seed=seed)
    start = min(start, length - 1)
    np.testing.assert_allclose(_pooled(Pooling((mode,)), tokens, start), _slow(mode, tokens, start), atol=1e-12)


@given(modes=st.lists(st.sampled_from(MODES), min_size=2, max_size=4, unique=True), start=st.integers(0, 3))
def test_modes_side_by_side(modes: list[str], start: int) -> None:
    tokens = _tokens(4)
    pooling = Pooling(tuple(modes))
    wanted = np.concatenate([_slow(mode, tokens, start) for mode in modes])
    np.testing.assert_allclose(_pooled(pooling, tokens, start), wanted, atol=1e-12)
    assert pooling.dim(5) == len(wanted)


@pytest.mark.parametrize("mode", MODES)
def test_the_weights_of_one_text(mode: str) -> None:
    weights = Pooling((mode,)).weights(_tokens(6), 2)
    assert (weights >= 0).all()
    assert (weights[:2] == 0).all()
    total = 2 if mode == "mean_sqrt_len_tokens" else 1
    np.testing.assert_allclose(weights.sum(0), total, atol=1e-12)


def test_max_takes_a_negative_value_and_the_first_of_equals() -> None:
    weights = Pooling(("max",)).weights(np.array([[-3.0, 1.0], [-1.0, 1.0], [-1.0, 0.0]]))
    assert weights.tolist() == [[0, 1], [1, 0], [0, 0]]


@pytest.mark.parametrize("mode", MODES)
def test_a_text_without_tokens_pools_to_zero(mode: str) -> None:
    for modes in ((mode,), (mode, "mean")):
        pooled = _pooled(Pooling(modes), np.zeros((0, 5), np.float32))
        assert pooled.tolist() == [0.0] * (5 * len(modes))


@pytest.mark.parametrize("mode", MODES)
def test_a_prompt_that_is_all_there_is_takes_part(mode: str) -> None:
    tokens = _tokens(3)
    np.testing.assert_array_equal(Pooling((mode,)).weights(tokens, start=3), Pooling((mode,)).weights(tokens, start=0))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_and_numpy_agree(mode: str, dtype: str) -> None:
    tokens = _tokens(5).astype(dtype)
    ours, theirs = Pooling((mode,)).weights(tokens, 1), Pooling((mode,)).weights(torch.from_numpy(tokens), 1)
    assert isinstance(theirs, torch.Tensor)
    assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.") == dtype
    np.testing.assert_array_equal(theirs.numpy(), ours)


@pytest.mark.parametrize("modes", [("median",), ("mean", "CLS"), (), ("",)])
def test_unknown_modes(modes: tuple[str, ...]) -> None:
    with pytest.raises(ModelError, match=r"unknown pooling .*known are cls, max, mean"):
        Pooling(modes)
