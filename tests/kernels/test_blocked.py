"""The blocked form against the plain one, recorded values, and a form in which ties are told apart."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from likewise.errors import InputError
from likewise.kernels import blocked, plain
from likewise.kernels.blocked import rcmd_matrix
from likewise.kernels.plain import nearest
from tests.conftest import ROOT

N_CASES = 36
LENGTHS = ([3, 1, 0, 6, 2, 9, 1, 4], [2, 5, 1, 0, 12, 7])


def packed(lengths: list[int], dim: int = 7, seed: int = 0) -> tuple[torch.Tensor, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return torch.tensor(np.random.default_rng(seed).standard_normal((offsets[-1], dim))), offsets


def sides() -> tuple[torch.Tensor, np.ndarray, torch.Tensor, np.ndarray]:
    return *packed(LENGTHS[0]), *packed(LENGTHS[1], seed=1)


def gradients(form, a, a_offsets, b, b_offsets, **options):
    """Scores, and the gradients of their sum weighted so that no two pairs count alike."""
    a, b = (x.detach().clone().requires_grad_() for x in (a, b))
    scores = form(a, a_offsets, b, b_offsets, **options)
    weights = torch.linspace(-1, 2, scores.numel(), dtype=scores.dtype).reshape(scores.shape)
    (scores * weights).sum().backward()
    return scores.detach(), a.grad, b.grad


def first_nearest(a, a_offsets, b, b_offsets):
    """Two loops over texts; the places come from `plain.nearest`, the values from autograd at those places."""

    def unit(x):
        squares = (x * x).sum(1, keepdim=True)
        return torch.where(squares > 0, x / torch.where(squares > 0, squares, 1).sqrt(), 0)

    def score(x, y):
        if not len(x) or not len(y):
            return x.sum() * 0 + y.sum() * 0
        cosines = x @ y.T
        forward = cosines.gather(1, nearest(cosines.detach())[:, None]).mean()
        backward = cosines.T.gather(1, nearest(cosines.detach().T)[:, None]).mean()
        return (forward + backward) / 2

    parts = (torch.tensor_split(unit(x), o[1:-1].tolist()) for x, o in ((a, a_offsets), (b, b_offsets)))
    left, right = parts
    return torch.stack([torch.stack([score(x, y) for y in right]) for x in left])


def assert_close(found, expected, atol=1e-12):
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one.double(), other.double(), rtol=0, atol=atol)


@pytest.mark.parametrize("recompute", [False, True])
def test_values_and_gradients_equal_the_plain_form(recompute):
    given = sides()
    found = gradients(rcmd_matrix, *given, recompute=recompute)
    assert_close(found, gradients(plain.rcmd_matrix, *given))
    assert_close(found, gradients(first_nearest, *given))


@pytest.mark.parametrize(("rows", "block"), [(1, 1), (8, 40), (1024, 2**21)])
def test_values_and_gradients_do_not_depend_on_the_blocks(monkeypatch, rows, block):
    monkeypatch.setattr(blocked, "_ROWS", rows)
    monkeypatch.setattr(blocked, "_BLOCK", block)
    monkeypatch.setattr(blocked, "_SPREAD", 3)
    given = (*packed([5, 9, 0, 7, 5, 14, 5, 6, 6]), *packed([8, 3, 4, 2, 4, 5, 7, 0, 4, 6], seed=1))
    assert_close(gradients(rcmd_matrix, *given), gradients(plain.rcmd_matrix, *given))


def test_gradcheck_away_from_ties():
    a, a_offsets, b, b_offsets = sides()
    inputs = (a.requires_grad_(), b.requires_grad_())
    for recompute in (False, True):
        assert torch.autograd.gradcheck(
            lambda a, b, again=recompute: rcmd_matrix(a, a_offsets, b, b_offsets, recompute=again), inputs
        )


vectors = st.lists(st.integers(-2, 2), min_size=2, max_size=2)  # few directions: ties and zero vectors abound
texts = st.lists(st.lists(vectors, max_size=5), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None)
@given(texts, texts, st.booleans())
def test_ties_empty_texts_and_zero_vectors(left, right, recompute):
    given = []
    for side in (left, right):
        given.append(torch.tensor([token for text in side for token in text], dtype=torch.float64).reshape(-1, 2))
        given.append(np.cumsum([0, *map(len, side)]))
    found = gradients(rcmd_matrix, *given, recompute=recompute)
    assert_close(found, gradients(first_nearest, *given))
    assert torch.allclose(found[0], plain.rcmd_matrix(*given), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_a_tie_goes_to_the_first_even_across_rounding(dtype, atol):
    a, a_offsets = packed([5, 3], dim=384)
    b, b_offsets = packed([1, 1], dim=384, seed=1)
    given = (a.to(dtype), a_offsets, b.to(dtype).repeat_interleave(37, dim=0), 37 * b_offsets)
    found = gradients(rcmd_matrix, *given)
    assert_close(found, gradients(first_nearest, *given), atol=atol)
    sizes = found[2].norm(dim=1).reshape(2, 37)
    assert (sizes[:, 0] > 2 * sizes[:, 1:].amax(1)).all()


@pytest.mark.parametrize("length", [255, 256, 300, 40_000])
def test_long_texts_take_wider_places(length):
    a, a_offsets = packed([length, 1, length // 2], dim=3)
    a[length - 1] = torch.tensor([9.0, 0, 0])
    b, b_offsets = torch.tensor([[3.0, 0, 0], [0, 1, 1]], dtype=torch.float64), np.array([0, 2])
    assert_close(
        gradients(rcmd_matrix, a, a_offsets, b, b_offsets), gradients(first_nearest, a, a_offsets, b, b_offsets)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_low_precision_is_computed_in_float32(dtype):
    a, a_offsets, b, b_offsets = sides()
    a, b = a.to(dtype), b.to(dtype)
    scores, *found = gradients(rcmd_matrix, a, a_offsets, b, b_offsets)
    exact, *expected = gradients(first_nearest, a.double(), a_offsets, b.double(), b_offsets)
    assert scores.dtype == torch.float32
    assert [x.dtype for x in found] == [dtype, dtype]
    assert_close([scores], [exact], atol=1e-6)
    assert_close(found, expected, atol=2 * torch.finfo(dtype).eps)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(gradients(rcmd_matrix, a, a_offsets, b, b_offsets), [scores, *found], atol=0)


def test_mixed_precision_takes_the_better():
    a, a_offsets, b, b_offsets = sides()
    scores, a_grad, b_grad = gradients(rcmd_matrix, a.float(), a_offsets, b, b_offsets)
    assert (scores.dtype, a_grad.dtype, b_grad.dtype) == (torch.float64, torch.float32, torch.float64)
    assert torch.allclose(scores, rcmd_matrix(a.float().double(), a_offsets, b, b_offsets), atol=1e-12)


def test_strided_input_offsets_as_tensors_and_one_side_with_gradient():
    a, a_offsets, b, b_offsets = sides()
    expected = gradients(rcmd_matrix, a, a_offsets, b, b_offsets)
    strided = a.repeat_interleave(2, dim=1)[:, ::2], torch.tensor(a_offsets), b.T.contiguous().T, b_offsets
    assert not strided[0].is_contiguous()
    assert not strided[2].is_contiguous()
    assert_close(gradients(rcmd_matrix, *strided), expected)
    a = a.requires_grad_()
    rcmd_matrix(a, a_offsets, b, torch.tensor(b_offsets, dtype=torch.int32)).sum().backward()
    assert a.grad is not None
    assert b.grad is None


def test_the_same_every_time():
    given = tuple(x.float() if isinstance(x, torch.Tensor) else x for x in sides())
    once, twice = (gradients(rcmd_matrix, *given) for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(once, twice, strict=True))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_vectors_of_any_magnitude(scale):
    a, a_offsets, b, b_offsets = sides()
    scores, gradient, _ = gradients(rcmd_matrix, a * scale, a_offsets, b, b_offsets)
    expected, unscaled, _ = gradients(rcmd_matrix, a, a_offsets, b, b_offsets)
    assert torch.allclose(scores, expected, atol=1e-12)
    assert torch.allclose(gradient * scale, unscaled, atol=1e-12)


@pytest.mark.parametrize("lengths", [([], [2]), ([0, 0], [2, 0]), ([0], [])])
def test_nothing_but_empty_texts(lengths):
    given = (*packed(lengths[0]), *packed(lengths[1]))
    scores, a_grad, b_grad = gradients(rcmd_matrix, *given)
    assert scores.shape == (len(lengths[0]), len(lengths[1]))
    assert not scores.any()
    assert not a_grad.any()
    assert not b_grad.any()


@pytest.mark.parametrize("offsets", [[], [1, 5], [0, 3], [0, 4, 2, 5]])
def test_offsets_that_do_not_fit_are_refused(offsets):
    a, whole = packed([5])
    with pytest.raises(InputError, match=r"^offsets "):
        rcmd_matrix(a, np.array(offsets, dtype=np.int64), a, whole)
    with pytest.raises(InputError, match=r"^offsets "):
        rcmd_matrix(a, whole, a, np.array(offsets, dtype=np.int64))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_token_that_is_not_finite_is_named(value):
    a, offsets = packed([5])
    b = a.clone()
    b[3, 2] = value
    with pytest.raises(InputError, match=r"token . of text . holds NaN or infinity"):
        rcmd_matrix(a, offsets, b, offsets)


# ------------------------------------------------------------------------------------------ recorded values


def kept(tokens, masks) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """Padded token lists of a batch, packed; their offsets; and the mask of the places they came from."""
    masks = np.asarray(masks, dtype=bool)
    tokens = np.asarray(tokens, dtype=np.float64).reshape(*masks.shape, -1)
    return torch.tensor(tokens[masks]), np.cumsum([0, *masks.sum(1)]), masks


@pytest.mark.parametrize("number", range(N_CASES))
def test_recorded_scores(shared, number):
    cases = json.loads((shared / "oracle" / "rcmd_cases.json").read_text())["cases"]
    assert len(cases) == N_CASES
    case = cases[number]
    sides = []
    for side in "xy":
        tokens = np.asarray(case[side], dtype=np.float64).reshape(-1, case["dim"])
        sides.append(torch.tensor(tokens[np.asarray(case[f"mask_{side}"], dtype=bool)]))
    x, y = sides
    found = rcmd_matrix(x, np.array([0, len(x)]), y, np.array([0, len(y)]))
    assert found.item() == pytest.approx(0 if "empty" in case["flags"] else case["rcmd"], abs=1e-9)


@pytest.mark.parametrize("recompute", [False, True])
def test_recorded_losses_and_gradients(shared, recompute):
    cases = json.loads((shared / "oracle" / "losses.json").read_text())["clrcmd"]
    for case in cases:
        names = [name for name in ("anchor", "positive", "negative") if f"grad_{name}" in case]
        parts = {name: kept(case[name], case[f"mask_{name}"]) for name in names}
        leaves = {name: part[0].requires_grad_() for name, part in parts.items()}
        candidates = torch.cat([leaves[name] for name in names[1:]])
        lengths = np.concatenate([np.diff(parts[name][1]) for name in names[1:]])
        scores = rcmd_matrix(
            leaves["anchor"], parts["anchor"][1], candidates, np.cumsum([0, *lengths]), recompute=recompute
        )
        assert np.allclose(scores.detach(), case["pairwise_rcmd"], atol=1e-9)
        loss = cross_entropy(scores / case["temp"], torch.arange(len(scores)))
        loss.backward()
        assert loss.item() == pytest.approx(case["loss"], abs=1e-6)
        for name in names:
            assert np.allclose(leaves[name].grad, np.asarray(case[f"grad_{name}"])[parts[name][2]], atol=1e-6)


def test_recorded_gradient_at_a_tie(shared):
    case = json.loads((shared / "oracle" / "losses.json").read_text())["tie_gradient"]
    x, y = (torch.tensor(case[side], dtype=torch.float64, requires_grad=True) for side in "xy")
    score = rcmd_matrix(x, np.array([0, len(x)]), y, np.array([0, len(y)])).sum()
    score.backward()
    expected = case["sparse"]
    assert score.item() == pytest.approx(expected["value"], abs=1e-9)
    assert np.allclose(x.grad, expected["grad_x"], atol=1e-9)
    assert np.allclose(y.grad, expected["grad_y"], atol=1e-9)


# ---------------------------------------------------------------------------------------------- the baselines


@pytest.mark.parametrize(("form", "options"), [("dense", {}), ("sparse", {}), ("sparse", {"gather_again": True})])
def test_the_benchmarks_baselines_are_right(form, options):
    spec = importlib.util.spec_from_file_location("baselines", ROOT / "benchmarks" / "baselines.py")
    baselines = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(baselines)

    def padded(a, a_offsets, b, b_offsets):
        return getattr(baselines, form)(*baselines.pad(a, a_offsets), *baselines.pad(b, b_offsets), **options)

    assert_close(gradients(padded, *sides()), gradients(plain.rcmd_matrix, *sides()))
