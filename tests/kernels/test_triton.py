"""The Triton kernels without a GPU: run under Triton's interpreter, and compiled for two GPUs.

Triton decides when it is imported whether it interprets, so that the kernels run in a process of their own: this
file, run as a program. The process reads jobs and answers with scores and gradients; expectations stay here.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import InputError, InputTypeError, MissingExtraError
from likewise.kernels import plain

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")

SMALL = {"tokens": 8, "least": 2, "depth": 16, "width": 16}
"""Tiles small enough that short texts cross their edges; a GPU needs 16 or more."""

Result = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # score, gradient of a, gradient of b; in float64
Kernel = Callable[..., Result]


# ------------------------------------------------------------------------------------------ the process


def repair_bfloat16() -> None:
    """The interpreter multiplies the bit patterns of bfloat16 (triton-lang/triton#11584), so widen them before."""
    import triton.language as tl
    from triton.runtime import interpreter

    narrow = interpreter.InterpreterBuilder.create_dot

    def create_dot(self: Any, *operands: Any) -> Any:
        a, b, *rest = operands
        wide = [self.cast_impl(x, tl.float32) if x.dtype.scalar == tl.bfloat16 else x for x in (a, b)]
        return narrow(self, *wide, *rest)

    interpreter.InterpreterBuilder.create_dot = create_dot


def answer(job: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Scores, and gradients of both sides for `job["upstream"]`."""
    from likewise.kernels.triton_gpu import Tiling, rcmd_matrix

    a, b = (job[side].clone().requires_grad_(job["upstream"] is not None) for side in ("a", "b"))
    score = rcmd_matrix(a, job["a_offsets"], b, job["b_offsets"], tiling=Tiling(**job["tiling"]))
    if job["upstream"] is None:
        return score, a, b
    score.backward(job["upstream"].to(score.dtype))
    return score.detach(), a.grad, b.grad


def serve() -> None:
    """Answers the pickled jobs of standard input until it ends."""
    jobs, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    torch.set_num_threads(1)
    repair_bfloat16()
    while True:
        try:
            job = pickle.load(jobs)
        except EOFError:
            return
        try:
            result: Any = answer(job)
        except Exception as error:
            result = error
        pickle.dump(result, answers)
        answers.flush()


def compile_all() -> None:
    """Compiles the kernels to machine code and prints their shared memory and how often they use the tensor cores."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from likewise.kernels import triton_gpu

    def of_type(name: str, tokens: str, places: str) -> str:
        if name in ("x", "y"):
            return tokens
        if name in ("row_place", "column_place", "column_piece"):
            return places
        if name.startswith("table") or name in ("ends", "y_offsets"):
            return "*i64"
        return "i32" if name.startswith(("n_", "total_", "dim")) else "*fp32"

    two = {"T_X": 16, "T_Y": 32, "TOKENS": 64, "PRECISION": "ieee"}
    forward = {**two, "DEPTH": 64, "SAVE": True, "CUT": False}
    for name, tokens, places, constants, capability in [
        ("_forward", "*bf16", "*u8", forward, 90),
        ("_forward", "*fp16", "*u8", forward, 80),
        ("_forward", "*fp32", "*i16", {**forward, "T_X": 64, "CUT": True}, 90),
        ("_backward", "*bf16", "*i32", {**two, "WIDTH": 128}, 90),
        ("_backward", "*fp16", "*u8", {**two, "WIDTH": 128}, 80),
        ("_join", "*bf16", "*u8", {"TOKENS": 64, "SAVE": True}, 90),
    ]:
        kernel = getattr(triton_gpu, name)
        types = {each: "constexpr" if each in constants else of_type(each, tokens, places) for each in kernel.arg_names}
        target = GPUTarget("cuda", capability, 32)
        ready = triton.compile(ASTSource(kernel, types, constants), target=target, options={"num_warps": 8})
        assert ready.asm["cubin"]
        print(name, tokens, ready.metadata.shared, ready.asm["ptx"].count("mma"))


# ------------------------------------------------------------------------------------------ around it


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """`rcmd_matrix` under the interpreter: tokens, offsets → score and both gradients, in float64."""
    pytest.importorskip("triton", reason="Triton is not installed")
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def run(a: Any, a_offsets: Any, b: Any, b_offsets: Any, upstream: Any = None, **tiling: Any) -> Result:
        job = {"a": a, "a_offsets": a_offsets, "b": b, "b_offsets": b_offsets, "upstream": upstream}
        pickle.dump({**job, "tiling": tiling or SMALL}, process.stdin)
        process.stdin.flush()
        result = pickle.load(process.stdout)
        if isinstance(result, Exception):
            raise result
        return tuple(each.double() for each in result)

    yield run
    process.stdin.close()
    process.wait(timeout=30)
    process.stdout.close()


def offsets_of(lengths: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def ragged(a_lengths: Any, b_lengths: Any, dim: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> list[Any]:
    """Normal tokens of both sides, and offsets."""
    random = np.random.default_rng(seed)
    sides = []
    for lengths in (a_lengths, b_lengths):
        sides += [torch.tensor(random.standard_normal((sum(lengths), dim))).to(dtype), offsets_of(lengths)]
    return sides


def upstream_of(a_offsets: Any, b_offsets: Any, seed: int = 1) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal((len(a_offsets) - 1, len(b_offsets) - 1)))


def first_twin(a: torch.Tensor, a_offsets: Any, b: torch.Tensor, b_offsets: Any) -> torch.Tensor:
    """RCMD pair by pair through `nearest`, so that the gradient of a tie goes to the first."""
    rows = []
    for start, stop in itertools.pairwise(a_offsets):
        for begin, end in itertools.pairwise(b_offsets):
            cosine = plain.cosines(a[start:stop], b[begin:end])
            if not cosine.numel():
                rows.append(cosine.sum())
                continue
            to_b, to_a = (plain.nearest(each)[:, None] for each in (cosine, cosine.T))
            rows.append((cosine.gather(1, to_b).mean() + cosine.T.gather(1, to_a).mean()) / 2)
    return torch.stack(rows).reshape(len(a_offsets) - 1, len(b_offsets) - 1)


def expected(twin: Any, a: Any, a_offsets: Any, b: Any, b_offsets: Any, upstream: torch.Tensor) -> Result:
    a, b = a.double().requires_grad_(), b.double().requires_grad_()
    score = twin(a, a_offsets, b, b_offsets)
    score.backward(upstream)
    return score.detach(), a.grad, b.grad


def assert_close(result: Result, wanted: Result, tolerance: float = 1e-5) -> None:
    for name, ours, theirs in zip(("score", "gradient of a", "gradient of b"), result, wanted, strict=True):
        assert ours.shape == theirs.shape, name
        assert (ours - theirs).abs().max() <= tolerance, f"{name}: {(ours - theirs).abs().max():.2e}"


# ------------------------------------------------------------------------------------------ against the twin


@pytest.mark.parametrize(
    ("a_lengths", "b_lengths", "dim", "tiling"),
    [
        ([1, 3, 9, 5, 0, 4], [2, 8, 1, 0, 9], 33, SMALL),
        ([9, 1], [3, 6, 4], 5, {**SMALL, "tokens": 4}),  # both sides longer than a tile; a the longer one
        ([4, 6], [9, 5, 2], 48, {**SMALL, "tokens": 4, "width": 32}),  # the same with b the longer one
        ([1], [1], 1, SMALL),
        ([7, 2, 16, 17], [1, 20, 33], 40, {"tokens": 16, "depth": 16, "width": 16}),
        ([300, 2, 70], [310, 20], 40, {"tokens": 64}),  # as on a GPU; places of two bytes
    ],
    ids=["ragged", "long a", "long b", "one", "sixteen", "places of two bytes"],
)
def test_equals_the_plain_form(kernel, a_lengths, b_lengths, dim, tiling):
    given_sides = ragged(a_lengths, b_lengths, dim)
    upstream = upstream_of(given_sides[1], given_sides[3])
    wanted = expected(plain.rcmd_matrix, *given_sides, upstream)
    assert_close(kernel(*given_sides, upstream, **tiling), wanted)


def test_without_gradient_no_place_is_kept(kernel):
    given_sides = ragged([9, 1], [3, 6, 10], 5)
    wanted = plain.rcmd_matrix(*(each.double() if isinstance(each, torch.Tensor) else each for each in given_sides))
    assert torch.allclose(kernel(*given_sides)[0], wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.bfloat16, 2e-2), (torch.float16, 2e-3)], ids=["bfloat16", "float16"]
)
def test_half_precision(kernel, dtype, tolerance):
    given_sides = ragged([1, 4, 9], [8, 3, 0, 2], 48, dtype)
    upstream = upstream_of(given_sides[1], given_sides[3])
    result = kernel(*given_sides, upstream)
    wanted = expected(plain.rcmd_matrix, *given_sides, upstream)
    assert_close(result, wanted, tolerance)
    assert (result[0] - wanted[0]).abs().max() < 1e-6  # products and maxima are float32


def test_float16_does_not_lose_a_small_gradient(kernel):
    a, a_offsets, b, b_offsets = ragged([4, 9], [8, 3, 2], 16, torch.float16)
    a /= 2048  # makes its gradient large
    upstream = upstream_of(a_offsets, b_offsets) * torch.tensor([[1.0], [1e-8]])
    of_a = kernel(a, a_offsets, b, b_offsets, upstream)[1][4:]
    wanted = expected(plain.rcmd_matrix, a, a_offsets, b, b_offsets, upstream)[1][4:]
    assert (of_a - wanted).abs().max() < 0.05 * wanted.abs().max()


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 5), max_size=3), st.lists(st.integers(0, 5), max_size=3))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_ties_go_to_the_first(kernel, seed, a_lengths, b_lengths):
    random = np.random.default_rng(seed)
    a, b = (torch.tensor(random.integers(-1, 2, (sum(n), 3))).float() for n in (a_lengths, b_lengths))
    for side in (a, b):
        side[(side == 0).all(1)] = 1.0  # zero vectors have a test of their own
    given_sides = a, offsets_of(a_lengths), b, offsets_of(b_lengths)
    upstream = upstream_of(given_sides[1], given_sides[3])
    if not upstream.numel():
        assert kernel(*given_sides, upstream)[0].shape == upstream.shape
        return
    assert_close(kernel(*given_sides, upstream, **{**SMALL, "tokens": 4}), expected(first_twin, *given_sides, upstream))


@pytest.mark.parametrize(("a_lengths", "b_lengths"), [([0, 0], [2, 1]), ([2], [0]), ([], [1]), ([], []), ([0], [0])])
def test_texts_without_tokens_score_zero(kernel, a_lengths, b_lengths):
    given_sides = ragged(a_lengths, b_lengths, 5)
    score, of_a, of_b = kernel(*given_sides, upstream_of(given_sides[1], given_sides[3]))
    assert score.shape == (len(a_lengths), len(b_lengths))
    assert not score.any()
    assert not of_a.any()
    assert not of_b.any()


def test_zero_vectors_have_cosine_and_gradient_zero(kernel):
    a, a_offsets, b, b_offsets = ragged([3, 1, 2], [4, 2], 6)
    a[[1, 3]], b[2] = 0, 0
    upstream = upstream_of(a_offsets, b_offsets)
    score, of_a, of_b = kernel(a, a_offsets, b, b_offsets, upstream)
    wanted = expected(first_twin, a, a_offsets, b, b_offsets, upstream)
    wanted[1][[1, 3]], wanted[2][2] = 0, 0
    assert_close((score, of_a, of_b), wanted)
    assert score[1].abs().max() == 0
    assert not of_a[[1, 3]].any()


@pytest.mark.parametrize("scale", [1e-36, 1e30])
def test_any_magnitude(kernel, scale):
    a, a_offsets, b, b_offsets = ragged([3, 1], [4, 2], 6)
    upstream = upstream_of(a_offsets, b_offsets)
    score, of_a, of_b = kernel(a * scale, a_offsets, b / scale, b_offsets, upstream)
    wanted = expected(plain.rcmd_matrix, a, a_offsets, b, b_offsets, upstream)
    assert_close((score, of_a * scale, of_b / scale), wanted)


# ------------------------------------------------------------------------------------------ against the oracle


def packed(texts: Any, masks: Any) -> tuple[torch.Tensor, np.ndarray, torch.Tensor]:
    """Padded texts as tokens, offsets, and the mask [texts, length] that picks the tokens."""
    mask = torch.tensor(masks).bool()
    return torch.tensor(texts)[mask].float(), offsets_of(mask.sum(1).numpy()), mask


def test_recorded_scores(kernel, shared):
    cases = json.loads((shared / "oracle" / "rcmd_cases.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 36
    for case in cases:
        x, x_offsets, _ = packed([case["x"]], [case["mask_x"]])
        y, y_offsets, _ = packed([case["y"]], [case["mask_y"]])
        score = kernel(x, x_offsets, y, y_offsets, tokens=16, depth=16)[0].item()
        assert score == pytest.approx(0 if case["rcmd"] is None else case["rcmd"], abs=1e-5), case["name"]


def test_recorded_losses(kernel, shared):
    cases = json.loads((shared / "oracle" / "losses.json").read_text(encoding="utf-8"))["clrcmd"]
    for case in cases:
        candidates = ["positive", "negative"] if case.get("negative") else ["positive"]
        texts, masks, gradients = (
            list(itertools.chain.from_iterable(case[prefix + name] for name in candidates))
            for prefix in ("", "mask_", "grad_")
        )
        a, a_offsets, a_mask = packed(case["anchor"], case["mask_anchor"])
        b, b_offsets, b_mask = packed(texts, masks)
        score = kernel(a, a_offsets, b, b_offsets)[0].requires_grad_()
        assert torch.allclose(score, torch.tensor(case["pairwise_rcmd"]).double(), atol=1e-5), case["name"]
        loss = torch.nn.functional.cross_entropy(score / case["temp"], torch.arange(len(score)))
        assert loss.item() == pytest.approx(case["loss"], rel=1e-5), case["name"]
        loss.backward()
        _, of_a, of_b = kernel(a, a_offsets, b, b_offsets, score.grad)
        assert torch.allclose(of_a, torch.tensor(case["grad_anchor"])[a_mask].double(), atol=1e-5), case["name"]
        assert torch.allclose(of_b, torch.tensor(gradients)[b_mask].double(), atol=1e-5), case["name"]


# ------------------------------------------------------------------------------------------ the door


def test_what_cannot_be_used_is_named(kernel):
    a, a_offsets, b, b_offsets = ragged([2, 1], [2], 4)
    with pytest.raises(InputTypeError, match="float64"):
        kernel(a.double(), a_offsets, b, b_offsets)
    with pytest.raises(InputError, match="offsets must rise"):
        kernel(a, a_offsets, b, np.array([0, 3]))
    a[1, 2] = torch.nan
    with pytest.raises(InputError, match=r"token . of text . holds NaN"):
        kernel(a, a_offsets, b, b_offsets)


def test_without_triton_the_error_has_the_pip_line(monkeypatch):
    from likewise.kernels import triton_gpu

    monkeypatch.setattr(triton_gpu, "triton", None)
    with pytest.raises(MissingExtraError, match=r"pip install triton \(it comes with likewise\[gpu\]\)"):
        triton_gpu.rcmd_matrix(*ragged([1], [1], 4))


@needs_triton
def test_the_kernels_compile_for_a_gpu(tmp_path):
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "TRITON_INTERPRET": "0"}
    command = [sys.executable, __file__, "compile"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 6
    assert all(int(shared_bytes) <= 96 * 1024 for *_, shared_bytes, _ in lines)  # what any of today's GPUs has
    on_tensor_cores = [name for name, tokens, _, n_mma in lines if tokens != "*fp32" and int(n_mma)]
    assert on_tensor_cores == ["_forward", "_forward", "_backward", "_backward"]


if __name__ == "__main__":
    if sys.argv[1:] == ["compile"]:
        compile_all()
    else:
        serve()
