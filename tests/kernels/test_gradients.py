"""The compiled training form against autograd through the plain twin, and against recorded losses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.kernels import native, plain, rcmd_matrix, rcmd_pairs

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(native.library() is None, reason="the compiled kernels are not in use")
SETS = native.available()


@pytest.fixture(params=SETS)
def instruction_set(request, monkeypatch):
    monkeypatch.setenv("LIKEWISE_KERNELS", request.param)
    yield request.param
    native._native.use("")


def leaves(seed, lengths, dim, dtype=torch.float32):
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return torch.tensor(random.standard_normal((offsets[-1], dim)), dtype=dtype, requires_grad=True), offsets


def twin(tokens):
    return tokens.detach().double().requires_grad_()


def gradients_of(scores, weights, *tokens):
    return torch.autograd.grad((scores * weights.to(scores.dtype)).sum(), tokens)


shapes = st.tuples(
    st.integers(0, 1000),
    st.lists(st.integers(0, 9), min_size=1, max_size=8),
    st.lists(st.integers(0, 9), min_size=1, max_size=20),
    st.integers(2, 40),
)


@given(shapes)
@settings(max_examples=40, deadline=None)
def test_matrix_and_gradient_equal_the_twin(drawn):
    seed, rows, columns, dim = drawn
    (a, a_offsets), (b, b_offsets) = leaves(seed, rows, dim), leaves(seed + 1, columns, dim)
    c, d = twin(a), twin(b)
    ours, theirs = rcmd_matrix(a, a_offsets, b, b_offsets), plain.rcmd_matrix(c, a_offsets, d, b_offsets)
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(seed))
    assert torch.allclose(ours.double(), theirs, atol=2e-6)
    if not theirs.requires_grad:  # no pair of texts with tokens
        assert not any(of.any() for of in gradients_of(ours, weights, a, b))
        return
    for one, other in zip(gradients_of(ours, weights, a, b), gradients_of(theirs, weights, c, d), strict=True):
        assert torch.allclose(one.double(), other, atol=2e-5, rtol=2e-4)


@pytest.mark.parametrize("lengths", [[3, 1, 7, 12] * 3, [300, 2, 5]], ids=["uint8", "uint16"])
def test_every_instruction_set_and_index_type(instruction_set, lengths):
    (a, a_offsets), (b, b_offsets) = leaves(1, lengths, 24), leaves(2, lengths[::-1] + [4], 24)
    c, d = twin(a), twin(b)
    ours, theirs = rcmd_matrix(a, a_offsets, b, b_offsets), plain.rcmd_matrix(c, a_offsets, d, b_offsets)
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(ours.double(), theirs, atol=2e-6)
    for one, other in zip(gradients_of(ours, weights, a, b), gradients_of(theirs, weights, c, d), strict=True):
        assert torch.allclose(one.double(), other, atol=2e-5, rtol=1e-3)


def test_gradcheck_of_the_twin_in_float64():
    (a, a_offsets), (b, b_offsets) = leaves(3, [2, 1, 4], 5, torch.float64), leaves(4, [3, 2], 5, torch.float64)
    assert torch.autograd.gradcheck(lambda x, y: plain.rcmd_matrix(x, a_offsets, y, b_offsets), (a, b))
    (b, b_offsets) = leaves(5, [3, 2, 1], 5, torch.float64)
    assert torch.autograd.gradcheck(lambda x, y: sum(plain.rcmd_pairs(x, a_offsets, y, b_offsets)), (a, b))


def test_finding_the_places_again_gives_the_same_bits():
    from likewise.kernels import gradients

    (a, a_offsets), (b, b_offsets) = leaves(6, [3, 9, 0, 5] * 40, 32), leaves(7, [8, 2, 5] * 30, 32)
    weights = torch.randn((160, 90), generator=torch.Generator().manual_seed(0))
    found = []
    for again in (False, True):
        scores = gradients.matrix(a, a_offsets, b, b_offsets, recompute=again)
        found.append((scores, *gradients_of(scores, weights, a, b)))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert torch.allclose(found[0][2], found[1][2], atol=1e-6)


def test_the_same_bits_whatever_the_threads(monkeypatch):
    (a, a_offsets), (b, b_offsets) = leaves(8, [9, 14] * 40, 64), leaves(9, [3, 21] * 40, 64)
    weights = torch.randn((80, 80), generator=torch.Generator().manual_seed(0))
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        scores = rcmd_matrix(a, a_offsets, b, b_offsets)
        found.append((scores, *gradients_of(scores, weights, a, b)))
    assert all(torch.equal(*two) for two in zip(*found, strict=True))


def test_a_tie_gives_its_gradient_to_the_first(instruction_set):
    x = torch.tensor([[1.0, 0.0]], requires_grad=True)
    y = torch.tensor([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], requires_grad=True)
    ends = np.array([0, 1]), np.array([0, 3])
    forward, _ = rcmd_pairs(x, ends[0], y, ends[1])
    (of_y,) = torch.autograd.grad(forward.sum(), y)
    assert (of_y[0] != 0).any()
    assert not of_y[1:].any()
    # In the matrix each y adds its own column too, so the first of equals has twice the weight of the others and more.
    (of_y,) = torch.autograd.grad(rcmd_matrix(x, ends[0], y, ends[1]).sum(), y)
    assert torch.allclose(of_y[0], 4 * of_y[2])


def test_zero_vectors_and_empty_texts_have_no_gradient(instruction_set):
    (a, a_offsets), (b, b_offsets) = leaves(10, [3, 0, 2], 6), leaves(11, [0, 4], 6)
    with torch.no_grad():
        a[1] = 0
    scores = rcmd_matrix(a, a_offsets, b, b_offsets)
    of_a, of_b = torch.autograd.grad(scores.sum(), (a, b))
    assert scores[1].tolist() == [0, 0]
    assert scores[:, 0].tolist() == [0, 0, 0]
    assert torch.isfinite(of_a).all()
    assert not of_a[1].any()
    assert torch.isfinite(of_b).all()


def test_bfloat16_is_multiplied_as_such_and_summed_in_float32(instruction_set):
    (a, a_offsets), (b, b_offsets) = leaves(12, [5, 9], 48, torch.bfloat16), leaves(13, [7, 3, 4], 48, torch.bfloat16)
    scores = rcmd_matrix(a, a_offsets, b, b_offsets)
    expected = plain.rcmd_matrix(twin(a), a_offsets, twin(b), b_offsets)
    assert scores.dtype == torch.float32
    assert torch.allclose(scores.double(), expected, atol=3e-3)
    of_a, _ = torch.autograd.grad(scores.sum(), (a, b))
    assert of_a.dtype == torch.bfloat16


def test_one_side_alone_and_no_gradient_at_all():
    (a, a_offsets), (b, b_offsets) = leaves(14, [2, 3], 8), leaves(15, [4], 8)
    both = torch.autograd.grad(rcmd_matrix(a, a_offsets, b, b_offsets).sum(), (a, b))
    (only,) = torch.autograd.grad(rcmd_matrix(a.detach(), a_offsets, b, b_offsets).sum(), b)
    assert torch.equal(only, both[1])
    assert not rcmd_matrix(a.detach(), a_offsets, b.detach(), b_offsets).requires_grad


def pairs_gradients(function, a, a_offsets, b, b_offsets):
    forward, backward = function(a, a_offsets, b, b_offsets)
    return [forward, backward, *torch.autograd.grad((forward + 2 * backward).sum(), (a, b))]


def test_row_by_row_equals_the_twin(instruction_set):
    (a, a_offsets), (b, b_offsets) = leaves(16, [5, 1, 0, 7, 2], 20), leaves(17, [2, 6, 3, 0, 9], 20)
    ours = pairs_gradients(rcmd_pairs, a, a_offsets, b, b_offsets)
    theirs = pairs_gradients(plain.rcmd_pairs, twin(a), a_offsets, twin(b), b_offsets)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one.double(), other, atol=1e-5)


def packed(case, side):
    tokens = torch.tensor(case[side])
    mask = torch.tensor(case[f"mask_{side}"], dtype=torch.bool)
    lengths = mask.sum(1)
    leaf = tokens[mask].requires_grad_()
    return leaf, np.concatenate([[0], np.cumsum(lengths.numpy())]), mask


@pytest.mark.parametrize("kernels", [*SETS, "plain", "float64"])
def test_recorded_clrcmd_losses(shared, monkeypatch, kernels):
    """InfoNCE over RCMD with hard negatives (CLRCMD, section 3.3), values and gradients of every form."""
    if kernels != "float64":
        monkeypatch.setenv("LIKEWISE_KERNELS", kernels)
    dtype, tolerance = (torch.float64, 1e-6) if kernels == "float64" else (torch.float32, 2e-4)
    for case in json.loads((shared / "oracle" / "losses.json").read_text())["clrcmd"]:
        names = [side for side in ("anchor", "positive", "negative") if case.get(side) is not None]
        sides = [packed(case, side) for side in names]
        leaves_ = [side[0].detach().to(dtype).requires_grad_() for side in sides]
        right = torch.cat(leaves_[1:])
        ends = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(side[1]) for side in sides[1:]]))])
        form = plain.rcmd_matrix if kernels == "plain" else rcmd_matrix
        scores = form(leaves_[0], sides[0][1], right, ends)
        assert torch.allclose(scores.double(), torch.tensor(case["pairwise_rcmd"]).double(), atol=tolerance)
        loss = torch.nn.functional.cross_entropy(scores / case["temp"], torch.arange(len(scores)))
        assert loss.item() == pytest.approx(case["loss"], abs=tolerance)
        for name, (_, _, mask), found in zip(names, sides, torch.autograd.grad(loss, leaves_), strict=True):
            expected = torch.tensor(case[f"grad_{name}"])[mask].double()
            assert torch.allclose(found.double(), expected, atol=tolerance)
