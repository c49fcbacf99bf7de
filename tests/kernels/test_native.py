"""Compiled kernels against their plain twins: every instruction set that this processor has, and none."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import InputError
from likewise.kernels import Candidates, native, plain, rcmd_matrix, rcmd_pairs, rcmd_plans, top_pairs

SETS = native.available()
TOLERANCE = {"float32": 2e-6, "bfloat16": 2e-5, "int8": 2e-5}
"""Of a kernel against its twin on the same rounded tokens: what float32 sums may differ by."""


@pytest.fixture(params=SETS or [pytest.param("none", marks=pytest.mark.skip("built without the extension"))])
def instruction_set(request, monkeypatch):
    monkeypatch.setenv("LIKEWISE_KERNELS", request.param)
    yield request.param
    native.library()
    if native._native is not None:
        native._native.use("")


def packed(seed, lengths, dim, levels=None):
    random = np.random.default_rng(seed)
    total = sum(lengths)
    tokens = (
        random.standard_normal((total, dim)) if levels is None else random.integers(-levels, levels + 1, (total, dim))
    )
    return tokens.astype(np.float32), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def expected(a, a_offsets, b, b_offsets, precision="float32"):
    # The same unit tokens as the kernel's: a code may flip where they differ in the last place.
    if native.library() is None:
        sides = [plain.unit(side) for side in (a, b)]
    else:
        sides = [native.normalised(*side)[0] for side in ((a, a_offsets), (b, b_offsets))]
    if precision == "int8":
        sides = [plain.int8_codes(side) for side in sides]
    if precision == "bfloat16":
        sides = [plain.bfloat16(side) for side in sides]
    return plain.rcmd_of_unit(sides[0].astype(np.float64), a_offsets, sides[1].astype(np.float64), b_offsets)


sides = st.tuples(
    st.integers(0, 1000),
    st.lists(st.integers(0, 11), min_size=1, max_size=9),
    st.lists(st.integers(0, 11), min_size=1, max_size=40),
    st.integers(1, 40),
    st.sampled_from([None, 1, 2]),
)


@pytest.mark.parametrize("precision", native.PRECISIONS)
@given(drawn=sides)
@settings(max_examples=25, deadline=None)
def test_scores_equal_the_twin_on_ragged_texts_with_ties(precision, drawn):
    seed, rows, columns, dim, levels = drawn
    a, b = packed(seed, rows, dim, levels), packed(seed + 1, columns, dim, levels)
    scores = Candidates(*b, precision).score(*a)
    assert np.abs(scores - expected(*a, *b, precision)).max() < TOLERANCE[precision]


@pytest.mark.parametrize("precision", native.PRECISIONS)
@pytest.mark.parametrize("dim", [1, 3, 15, 16, 17, 100, 384])
def test_every_instruction_set_and_dim(instruction_set, precision, dim):
    a, b = packed(1, [1, 2, 6, 7, 13, 25], dim), packed(2, list(range(1, 40)), dim)
    assert np.abs(Candidates(*b, precision).score(*a) - expected(*a, *b, precision)).max() < TOLERANCE[precision]


def test_int8_stays_close_to_float32():
    a, b = packed(3, [16] * 50, 384), packed(4, [16] * 200, 384)
    exact = Candidates(*b).score(*a)
    assert np.abs(Candidates(*b, "int8").score(*a) - exact).max() < 3e-3
    assert np.abs(Candidates(*b, "bfloat16").score(*a) - exact).max() < 1e-3


@pytest.mark.parametrize("number", range(36))
def test_recorded_cases(shared, instruction_set, number):
    case = json.loads((shared / "oracle" / "rcmd_cases.json").read_text())["cases"][number]
    tokens = []
    for side in "xy":
        valid = np.asarray(case[side], np.float32).reshape(-1, case["dim"])[np.asarray(case[f"mask_{side}"], bool)]
        tokens += [valid, np.array([0, len(valid)])]
    scores = Candidates(tokens[2], tokens[3]).score(tokens[0], tokens[1])
    forward, backward = rcmd_pairs(*tokens)
    if "empty" in case["flags"]:
        assert scores[0, 0] == forward[0] == backward[0] == 0
        return
    assert scores[0, 0] == pytest.approx(case["rcmd"], abs=1e-5)
    assert forward[0] == pytest.approx(case["rcmd_x_to_y"], abs=1e-5)
    assert backward[0] == pytest.approx(case["rcmd_y_to_x"], abs=1e-5)


@given(drawn=sides)
@settings(max_examples=25, deadline=None)
def test_pairs_equal_the_twin(drawn):
    seed, rows, _, dim, levels = drawn
    a, b = packed(seed, rows, dim, levels), packed(seed + 1, rows[::-1], dim, levels)
    ours, theirs = rcmd_pairs(*a, *b), plain.rcmd_pairs(a[0].astype(np.float64), a[1], b[0].astype(np.float64), b[1])
    assert np.abs(np.stack(ours) - np.stack(theirs)).max() < 2e-6


@given(drawn=sides)
@settings(max_examples=25, deadline=None)
def test_plans_equal_the_twin(drawn):
    seed, rows, _, dim, _ = drawn
    a, b = packed(seed, rows, dim), packed(seed + 1, rows[::-1], dim)
    wide = [a[0].astype(np.float64), a[1], b[0].astype(np.float64), b[1]]
    for (cosine, plan), (twin_cosine, twin_plan) in zip(rcmd_plans(*a, *b), rcmd_plans(*wide), strict=True):
        assert np.allclose(cosine, twin_cosine, atol=2e-6)
        assert np.allclose(plan, twin_plan, atol=1e-6)


def test_a_tie_in_a_plan_sends_to_the_first(instruction_set):
    x, y = np.ones((1, 3), np.float32), np.array([[1, 0, 0], [1, 1, 1], [1, 1, 1]], np.float32)
    ((_, plan),) = rcmd_plans(x, np.array([0, 1]), y, np.array([0, 3]))
    assert np.allclose(plan, [[1 / 6, 1 / 2 + 1 / 6, 1 / 6]])


def test_top_k_is_the_sorted_matrix(instruction_set):
    a, b = packed(5, [3, 0, 9], 24), packed(6, [4] * 30 + [0, 5, 5], 24)
    b[0][b[1][10] : b[1][11]] = b[0][b[1][3] : b[1][4]]  # two equal texts: the lower position comes first
    candidates = Candidates(*b)
    scores = candidates.score(*a)
    values, indices = candidates.top_k(*a, 7)
    scores[:, 30] = -np.inf
    for row in (0, 2):
        order = np.argsort(-scores[row], kind="stable")[:7]
        assert indices[row].tolist() == order.tolist()
        assert values[row].tolist() == scores[row][order].tolist()
    assert indices[1].tolist() == [-1] * 7
    assert candidates.top_k(*a, 1000)[1].shape == (3, 33)
    assert candidates.top_k(*a, 1000)[1][0, -1] == -1


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_rescored_hits_stand_in_the_order_of_float32(instruction_set, precision):
    a, b = packed(13, [5, 0, 9, 12], 32), packed(14, [4, 6, 9] * 40 + [0], 32)
    b[0][:] = b[0][:1] + 0.05 * b[0]  # near ties everywhere
    values, indices = Candidates(*b, precision, rescore=True).top_k(*a, 10)
    expected, exact = Candidates(*b).top_k(*a, 10)
    assert np.allclose(values, expected, atol=1e-6)
    assert (indices == exact).mean() > 0.9
    assert (Candidates(*b, precision).top_k(*a, 10)[1] == exact).mean() < (indices == exact).mean()


def test_top_pairs_are_those_of_the_matrix(instruction_set):
    texts = packed(7, [5, 1, 0, 7, 3] * 9, 16)
    scores = Candidates(*texts).score(*texts)
    scores[np.diff(texts[1]) == 0] = -np.inf
    scores[:, np.diff(texts[1]) == 0] = -np.inf
    scores[np.tril_indices(len(scores))] = -np.inf
    values, found = top_pairs(*texts, 12)
    assert np.allclose(values, np.sort(scores, axis=None)[::-1][:12], atol=1e-6)
    assert all(i < j and abs(scores[i, j] - value) < 1e-6 for value, (i, j) in zip(values, found, strict=True))
    assert len(set(map(tuple, found.tolist()))) == 12
    assert len(top_pairs(*packed(8, [2, 2, 2], 4), 50)[0]) == 3


def test_the_same_numbers_whatever_the_threads_and_the_batch(monkeypatch):
    a, b = packed(9, [9] * 40, 64), packed(10, [3, 8, 21, 14] * 40, 64)
    whole = Candidates(*b).score(*a)
    for threads in ("1", "2", "64"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        assert np.array_equal(Candidates(*b).score(*a), whole)
    monkeypatch.delenv("OMP_NUM_THREADS")
    one = slice(a[1][17], a[1][18])
    assert np.array_equal(Candidates(*b).score(a[0][one], np.array([0, 9])), whole[17:18])


def test_plain_candidates_are_the_twin(monkeypatch):
    a, b = packed(11, [3, 0, 9], 24), packed(12, [4] * 20 + [0, 5], 24)
    compiled = {p: (Candidates(*b, p).score(*a), Candidates(*b, p).top_k(*a, 5)) for p in native.PRECISIONS}
    pairs = top_pairs(*b, 6)
    monkeypatch.setenv("LIKEWISE_KERNELS", "plain")
    for precision, (scores, (values, indices)) in compiled.items():
        assert np.allclose(Candidates(*b, precision).score(*a), scores, atol=2e-5)
        plain_values, plain_indices = Candidates(*b, precision).top_k(*a, 5)
        assert np.allclose(plain_values, values, atol=2e-5)
        assert plain_indices.tolist() == indices.tolist()
    assert np.allclose(top_pairs(*b, 6)[0], pairs[0], atol=1e-6)


@pytest.mark.parametrize(
    ("tokens", "offsets", "message"),
    [
        (np.ones(3), [0, 3], "shape"),
        (np.ones((3, 2), complex), [0, 3], "dtype complex"),
        (np.ones((3, 2)), [0, 2], "rise from 0 to the number of tokens, 3"),
        (np.ones((3, 2)), [0, 3, 2, 3], "rise from 0"),
        (np.ones((3, 2)), [1, 3], "rise from 0"),
        (np.ones((3, 2)), [[0, 3]], "integers"),
        (np.ones((3, 2)), [0.0, 3.0], "integers"),
        (np.array([[1.0, 2], [np.nan, 1], [3, 3]]), [0, 1, 3], "token 0 of text 1 holds NaN"),
        (np.array([[1.0, 2], [1, 1], [3, np.inf]]), [0, 1, 3], "token 1 of text 1 holds NaN"),
    ],
)
@pytest.mark.parametrize("kernels", ["", "plain"])
def test_bad_input_is_named(monkeypatch, kernels, tokens, offsets, message):
    monkeypatch.setenv("LIKEWISE_KERNELS", kernels)
    with pytest.raises(InputError, match=message):
        Candidates(tokens, np.asarray(offsets))
    good = Candidates(np.ones((3, 2), np.float32), np.array([0, 3]))
    with pytest.raises(InputError):
        good.score(tokens, np.asarray(offsets))


def test_unknown_choices_are_refused(monkeypatch):
    texts = packed(1, [2], 4)
    with pytest.raises(InputError, match="known are float32, bfloat16, int8"):
        Candidates(*texts, "fp4")
    with pytest.raises(InputError, match="k is 0"):
        Candidates(*texts).top_k(*texts, 0)
    with pytest.raises(InputError, match="dim 4"):
        Candidates(*texts).score(*packed(1, [2], 5))
    if SETS:
        monkeypatch.setenv("LIKEWISE_KERNELS", "sse9")
        with pytest.raises(InputError, match="LIKEWISE_KERNELS=sse9 is not available"):
            Candidates(*texts)


@pytest.mark.skipif(not SETS, reason="built without the extension")
def test_a_choice_ends_with_the_variable(monkeypatch):
    for name in SETS:
        monkeypatch.setenv("LIKEWISE_KERNELS", name)
        assert native.instruction_set() == name
    monkeypatch.setenv("LIKEWISE_KERNELS", "portable")
    assert native.instruction_set() == "portable"
    monkeypatch.delenv("LIKEWISE_KERNELS")
    assert native.instruction_set() == SETS[-1]


def test_other_layouts_of_memory_are_taken():
    a, offsets = packed(1, [3, 4], 12)
    whole = Candidates(a, offsets).score(a, offsets)
    for other in (np.asfortranarray(a), a[::-1][::-1], np.repeat(a, 2, axis=1)[:, ::2], a.astype(np.float64)):
        assert np.array_equal(Candidates(other, offsets.astype(np.int32)).score(other, offsets), whole)


def test_no_texts_no_tokens_no_dims():
    none = np.zeros((0, 8), np.float32), np.array([0])
    some = packed(1, [2, 3], 8)
    assert Candidates(*none).score(*some).shape == (2, 0)
    assert Candidates(*some).score(*none).shape == (0, 2)
    assert Candidates(*none).top_k(*some, 3)[1].shape == (2, 0)
    assert Candidates(np.zeros((0, 8)), np.array([0, 0, 0])).score(*some).tolist() == [[0, 0], [0, 0]]
    assert Candidates(np.zeros((2, 0), np.float32), np.array([0, 2])).score(
        np.zeros((1, 0)), np.array([0, 1])
    ).tolist() == [[0]]


def test_a_text_of_a_million_tokens():
    long, short = packed(1, [1_000_000], 8), packed(2, [5, 9], 8)
    scores = rcmd_matrix(*long, *short)
    assert np.allclose(scores, rcmd_matrix(*short, *long).T, atol=1e-6)
    forward, backward = rcmd_pairs(*long, *packed(2, [5], 8))
    assert (forward[0] + backward[0]) / 2 == pytest.approx(rcmd_pairs_twin(long, packed(2, [5], 8)), abs=1e-6)


def rcmd_pairs_twin(a, b):
    return float(np.mean(plain.rcmd_pairs(a[0].astype(np.float64), a[1], b[0].astype(np.float64), b[1])))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_after_use_works():
    code = (
        "import numpy as np, os, sys\n"
        "from likewise.kernels import Candidates\n"
        "x, o = np.random.default_rng(0).standard_normal((6400, 64), np.float32), np.arange(0, 6401, 16)\n"
        "before = Candidates(x, o).score(x, o)\n"
        "child = os.fork()\n"
        "same = np.array_equal(Candidates(x, o).score(x, o), before)\n"
        "if not child: os._exit(0 if same else 1)\n"
        "sys.exit(0 if same and os.waitpid(child, 0)[1] == 0 else 1)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_the_twin_says_once_that_it_runs():
    code = (
        "import numpy as np, warnings\n"
        "from likewise.kernels import rcmd_matrix\n"
        "x, o = np.ones((4, 3), np.float32), np.array([0, 4])\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(3): rcmd_matrix(x, o, x, o)\n"
        "print([str(w.category.__name__) for w in said])\n"
    )
    environment = {**os.environ, "LIKEWISE_KERNELS": "plain"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "['PlainKernelsWarning']"
