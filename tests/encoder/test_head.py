"""The two readings of a head: pool and transform, or transform what is summed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.encoder import Dense, Head, Normalize
from likewise.encoder.head import ACTIVATIONS
from likewise.errors import InputError, ModelError
from likewise.pooling import MODES, Pooling

TORCH = {
    "identity": torch.nn.Identity(),
    "tanh": torch.nn.Tanh(),
    "relu": torch.nn.ReLU(),
    "gelu": torch.nn.GELU(),
    "silu": torch.nn.SiLU(),
    "sigmoid": torch.nn.Sigmoid(),
}


def _dense(
    into: int, out: int, activation: str = "identity", bias: bool = True, skip: bool = False, seed: int = 3
) -> Dense:
    draw = np.random.default_rng(seed)
    residual = draw.normal(size=(out, into)) if skip else None
    return Dense(draw.normal(size=(out, into)), draw.normal(size=out) if bias else None, activation, residual)


def _states(length: int, dim: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(length, dim))


def _folded(head: Head, states: Any, start: int = 0) -> np.ndarray:
    tokens, weights = (np.asarray(part) for part in head.fold(states, start))
    return (tokens * (weights if weights.ndim == 2 else weights[:, None])).sum(0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("array", [np.asarray, torch.from_numpy])
def test_activations_are_those_of_torch(activation: str, array: Any) -> None:
    z = np.linspace(-60, 60, 241)
    wanted = TORCH[activation](torch.from_numpy(z)).numpy()
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(np.asarray(ACTIVATIONS[activation](array(z))), wanted, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_dense_is_that_of_torch(activation: str, bias: bool, skip: bool) -> None:
    dense, x = _dense(6, 4, activation, bias, skip), _states(5)
    layer = torch.nn.Linear(6, 4, bias=bias, dtype=torch.float64)
    layer.weight.data = torch.from_numpy(dense.weight)
    if bias:
        layer.bias.data = torch.from_numpy(dense.bias)
    wanted = TORCH[activation](layer(torch.from_numpy(x))).detach().numpy()
    if skip:
        wanted = wanted + np.array([[row @ line for line in dense.residual] for row in x])
    np.testing.assert_allclose(dense(x), wanted, atol=1e-12)


def test_normalize_leaves_a_zero_vector() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0]])
    lengths = np.linalg.norm(Normalize()(x), axis=1)
    np.testing.assert_allclose(lengths[:2], [1, 0])
    assert np.isfinite(Normalize()(x)).all()


FOLDABLE = st.one_of(
    st.just("normalize"),
    st.tuples(st.sampled_from(["identity", "tanh", "relu", "gelu", "silu"]), st.booleans(), st.just(False)),
    st.tuples(st.just("identity"), st.booleans(), st.just(True)),
)


def _chain(steps: list[Any], dim: int) -> tuple[Any, ...]:
    modules: list[Any] = []
    for i, step in enumerate(steps):
        if step == "normalize":
            modules.append(Normalize())
        else:
            activation, bias, skip = step
            modules.append(_dense(dim, 7 - i, activation, bias, skip, seed=i))
            dim = 7 - i
    return tuple(modules)


@settings(deadline=None)
@given(
    modes=st.lists(st.sampled_from(MODES), min_size=1, max_size=2, unique=True),
    before=st.lists(FOLDABLE, max_size=1),
    behind=st.lists(FOLDABLE, max_size=3),
    length=st.integers(0, 5),
    start=st.integers(0, 2),
    seed=st.integers(0, 9),
)
def test_the_two_readings_agree(
    modes: list[str], before: list[Any], behind: list[Any], length: int, start: int, seed: int
) -> None:
    on_tokens = _chain(before, 6)
    width = next((len(module.weight) for module in reversed(on_tokens) if isinstance(module, Dense)), 6)
    pooling = Pooling(tuple(modes))
    head = Head(pooling, on_tokens, _chain(behind, pooling.dim(width)))
    states = _states(length, seed=seed)
    pooled = head.pooled(states, start)
    np.testing.assert_allclose(_folded(head, states, start), pooled, atol=1e-9)
    assert head.dims(6) == (width, len(pooled))
    assert length or (pooled == 0).all()


@pytest.mark.parametrize("pooling", MODES)
def test_the_readings_agree_in_torch(pooling: str) -> None:
    modules = (_dense(6, 4, "tanh"), Normalize())
    as_torch = tuple(
        Dense(torch.from_numpy(one.weight), torch.from_numpy(one.bias), one.activation)
        if isinstance(one, Dense)
        else one
        for one in modules
    )
    states = _states(4)
    wanted = Head(Pooling((pooling,)), (), modules).pooled(states)
    head = Head(Pooling((pooling,)), (), as_torch)
    np.testing.assert_allclose(head.pooled(torch.from_numpy(states)).numpy(), wanted, atol=1e-12)
    np.testing.assert_allclose(_folded(head, torch.from_numpy(states)), wanted, atol=1e-12)


def test_an_activation_at_zero_folds_to_zero() -> None:
    head = Head(Pooling(), (), (Dense(np.zeros((2, 6)), None, "gelu"),))
    assert _folded(head, _states(3)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (_dense(6, 4, "sigmoid"), "'sigmoid', which is no sum"),
        (_dense(6, 4, "tanh", skip=True), "'tanh' beside a residual, which is no sum"),
    ],
)
def test_what_cannot_be_folded(module: Dense, said: str) -> None:
    head = Head(Pooling(), (), (module,))
    assert head.pooled(_states(3)).shape == (4,)
    with pytest.raises(InputError, match=said):
        head.fold(_states(3))
    tokens_only = Head(Pooling(), (module,))
    np.testing.assert_allclose(_folded(tokens_only, _states(3)), tokens_only.pooled(_states(3)), atol=1e-12)


def test_a_head_without_pooling() -> None:
    head = Head(None, (_dense(6, 4), Normalize()))
    tokens, weights = head.fold(_states(3))
    assert weights is None
    np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1)
    assert head.dims(6) == (4, 4)
    with pytest.raises(InputError, match="token-level model without pooling"):
        head.pooled(_states(3))
    with pytest.raises(ModelError, match="need a pooling before them"):
        Head(None, (), (Normalize(),))


def test_what_a_dense_refuses() -> None:
    with pytest.raises(ModelError, match="unknown activation 'mish' in a Dense module; known are identity"):
        Dense(np.eye(2), activation="mish")
    for name in ("weight", "bias", "residual"):
        arrays = {"weight": np.eye(2), "bias": np.zeros(2), "residual": np.eye(2)}
        arrays[name] = arrays[name] * np.nan
        with pytest.raises(ModelError, match=rf"the {name} of a Dense module holds NaN"):
            Dense(arrays["weight"], arrays["bias"], residual=arrays["residual"])
    with pytest.raises(ModelError, match="takes 6 features where 12 come in"):
        Head(Pooling(("cls", "mean")), (), (_dense(6, 4),)).dims(6)
