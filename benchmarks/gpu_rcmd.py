"""Claim: on a GPU the Triton kernels agree with float64 and beat the torch form in time and memory.

One prepared script for whenever a GPU is at hand (about five minutes, most of them compilation): correctness,
then forward and backward over ragged texts of 4 to 32 tokens, 384 dims, B anchors by B and by 2 B candidates.
Without a GPU it says so and records nothing, which is why `make bench` does not call it.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from baselines import pad
from harness import arguments, interleaved, row, write
from inputs import ragged

from likewise.kernels import blocked

DEVICE = "cuda"
LENGTHS = (4, 32)
HALF = torch.bfloat16
GAP = 1e-5
"""Least lead of a nearest token in the correctness inputs: rounding must not choose another, whose gradient differs."""

Sides = tuple[torch.Tensor, np.ndarray, torch.Tensor, np.ndarray]


def kernel(*sides: Any, **tiling: Any) -> torch.Tensor:
    """The Triton form, cut as `tiling` says."""
    from likewise.kernels.triton_gpu import Tiling, rcmd_matrix

    return rcmd_matrix(*sides, tiling=Tiling(**tiling))


def with_gradients(form: Callable[..., torch.Tensor], sides: Sides) -> list[torch.Tensor]:
    """Score and both gradients, in float64, for one fixed upstream gradient."""
    a, a_ends, b, b_ends = sides
    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
    score = form(a, a_ends, b, b_ends)
    upstream = torch.linspace(-1, 2, score.numel(), dtype=torch.float64, device=score.device).reshape(score.shape)
    return [each.detach().double() for each in (score, *torch.autograd.grad(score, (a, b), upstream.to(score.dtype)))]


def separated(n: int, m: int, lengths: tuple[int, int], dtype: torch.dtype) -> Sides:
    """Random sides in which every nearest token leads by `GAP`."""
    for seed in range(0, 1000, 2):
        (a, a_ends), (b, b_ends) = ragged(seed, n, *lengths), ragged(seed + 1, m, *lengths)
        x, y = (torch.from_numpy(side).to(dtype) for side in (a, b))
        cosine = torch.nn.functional.normalize(x.double()) @ torch.nn.functional.normalize(y.double()).T
        if min(_least_lead(cosine, b_ends), _least_lead(cosine.T, a_ends)) > GAP:
            return x.to(DEVICE), a_ends, y.to(DEVICE), b_ends
    raise RuntimeError(f"no seed separates {n} x {m} texts of {lengths} tokens")


def _least_lead(cosine: torch.Tensor, ends: np.ndarray) -> float:
    parts = [part.topk(min(2, part.shape[1]), dim=1).values for part in cosine.split(np.diff(ends).tolist(), dim=1)]
    return min((float((part[:, 0] - part[:, -1]).min()) for part in parts if part.shape[1] > 1), default=1.0)


def correctness() -> list[dict[str, Any]]:
    """Worst errors against the torch form in float64, and whether two runs give the same bits."""
    rows = []
    for dtype, precision, gradient_bar in [
        (torch.float32, "ieee", "1e-05"),
        (torch.float32, "tf32x3", "1e-05"),
        (torch.bfloat16, "ieee", "0.02"),
        (torch.float16, "ieee", "0.02"),
    ]:
        form = functools.partial(kernel, precision=precision)
        for name, sides in [
            ("short", separated(6, 9, (1, 40), dtype)),
            ("long", separated(2, 2, (70, 90), dtype)),  # longer than a tile
        ]:
            ours, again = with_gradients(form, sides), with_gradients(form, sides)
            a, a_ends, b, b_ends = sides
            theirs = with_gradients(blocked.rcmd_matrix, (a.double(), a_ends, b.double(), b_ends))
            job = f"{str(dtype).removeprefix('torch.')} {precision}, {name} texts"
            score, *gradients = (float((x - y).abs().max() / y.abs().max()) for x, y in zip(ours, theirs, strict=True))
            changed = sum(int((x != y).sum()) for x, y in zip(ours, again, strict=True))
            rows.append(row(f"{job}: score off by", score, "of largest", bar="ours <= 1e-05"))
            rows.append(row(f"{job}: gradient off by", max(gradients), "of largest", bar=f"ours <= {gradient_bar}"))
            rows.append(row(f"{job}: differs when run twice", changed, "elements", bar="ours == 0"))
    return rows


def sides_of(n: int, m: int, dtype: torch.dtype) -> Sides:
    """Random tokens on the GPU, as leaves."""
    (a, a_ends), (b, b_ends) = ragged(1, n, *LENGTHS), ragged(2, m, *LENGTHS)
    x, y = (torch.from_numpy(side).to(DEVICE, dtype).requires_grad_() for side in (a, b))
    return x, a_ends, y, b_ends


def step(form: Callable[..., torch.Tensor], inputs: Any, leaves: Any) -> Callable[[], object]:
    """Forward and backward, waited for."""

    def run() -> None:
        score = form(*inputs)
        torch.autograd.grad(score, leaves, torch.ones_like(score))
        torch.cuda.synchronize()

    return run


def product(sides: Sides) -> Callable[[], object]:
    """One product of all tokens with all tokens, kept in memory, waited for."""
    a, _, b, _ = sides

    def run() -> None:
        torch.mm(a.detach(), b.detach().T)
        torch.cuda.synchronize()

    return run


def fits(name: str, job: Callable[[], object]) -> bool:
    """Runs the job once; says so where memory does not suffice or the other library refuses."""
    try:
        job()
    except (RuntimeError, ValueError, TypeError, ImportError, AssertionError) as error:
        print(f"left out: {name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
        return False
    return True


def extra_mb(job: Callable[[], object]) -> float:
    """Peak memory of one run above what was allocated before it."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    job()
    return (torch.cuda.max_memory_allocated() - before) / 1e6


def sizes(n: int, m: int, dtype: torch.dtype, repeats: int) -> list[dict[str, Any]]:
    """Time and memory of n by m texts: ours beside the torch form and one matrix product."""
    sides = sides_of(n, m, dtype)
    leaves = sides[0], sides[2]
    candidates = {
        "ours": step(kernel, sides, leaves),
        "torch": step(blocked.rcmd_matrix, sides, leaves),
        "mm": product(sides),
    }
    job = f"{n} x {m}, {str(dtype).removeprefix('torch.')}"
    jobs = {name: run for name, run in candidates.items() if fits(f"{job}, {name}", run)}
    if "ours" not in jobs:
        return []
    times = interleaved(jobs, repeats=repeats)
    rows = []
    if "torch" in jobs:
        named = {"baseline_name": "torch form", "bar": "ratio >= 1"}
        memory = extra_mb(jobs["ours"]), extra_mb(jobs["torch"])
        rows.append(row(f"{job}: forward + backward", times["ours"], "s", baseline=times["torch"], **named))
        rows.append(row(f"{job}: extra memory", memory[0], "MB", baseline=memory[1], **named))
    if "mm" in jobs:
        name = f"{job}: forward + backward, and one product of all tokens"
        rows.append(row(name, times["ours"], "s", baseline=times["mm"], baseline_name="torch.mm"))
    return rows


def tilings(n: int, m: int, repeats: int) -> list[dict[str, Any]]:
    """Other ways to cut the work beside the default."""
    sides = sides_of(n, m, HALF)
    ways = [{}, {"tokens": 32}, {"tokens": 128}, {"n_warps": 4}, {"width": 64}, {"depth": 128}]
    candidates = {
        ", ".join(f"{key} {value}" for key, value in way.items()) or "default": step(
            functools.partial(kernel, **way), sides, (sides[0], sides[2])
        )
        for way in ways
    }
    jobs = {name: run for name, run in candidates.items() if fits(f"tiling {name}", run)}
    times = interleaved(jobs, repeats=repeats)
    default = times.pop("default")
    job = f"{n} x {m}, bfloat16, forward + backward"
    return [row(f"{job}: {way}", time, "s", baseline=default, baseline_name="default") for way, time in times.items()]


def one_way(n: int, m: int, repeats: int) -> list[dict[str, Any]]:
    """Libraries that know one direction, on padded unit tokens, beside both directions of ours."""
    sides = sides_of(n, m, HALF)
    leaves, inputs = [], []
    for tokens, ends in (sides[:2], sides[2:]):
        padded, mask = pad(torch.nn.functional.normalize(tokens.detach().float(), dim=1).to(HALF), ends)
        leaves.append(padded.requires_grad_())
        inputs.append(mask)
    lengths = [mask.sum(1).int() for mask in inputs]
    candidates = {}
    if importlib.util.find_spec("flash_maxsim") is not None:
        from flash_maxsim import flash_maxsim_batched_train

        form = functools.partial(
            flash_maxsim_batched_train, shared_docs=True, query_lengths=lengths[0], doc_lengths=lengths[1]
        )
        candidates["flash-maxsim"] = step(form, leaves, leaves)
    if importlib.util.find_spec("late_interaction_kernels") is not None:
        from late_interaction_kernels import maxsim

        form = functools.partial(maxsim, q_mask=inputs[0], d_mask=inputs[1])
        candidates["late-interaction-kernels"] = step(form, leaves, leaves)
    others = {name: run for name, run in candidates.items() if fits(name, run)}
    if not others:
        print("neither flash-maxsim nor late-interaction-kernels can be measured here")
        return []
    times = interleaved({"ours": step(kernel, sides, (sides[0], sides[2])), **others}, repeats=repeats)
    job = f"{n} x {m}, bfloat16: both directions, forward + backward (baseline: one direction)"
    return [row(job, times["ours"], "s", baseline=times[name], baseline_name=name) for name in others]


def main() -> None:
    """Measures, prints and (at full size) records; without a GPU says so."""
    size = arguments(__doc__).size
    if not torch.cuda.is_available() or importlib.util.find_spec("triton") is None:
        print("gpu_rcmd: no GPU with Triton here, so nothing is measured and nothing recorded.")
        return
    full = size == "full"
    repeats = 9 if full else 1
    name = torch.cuda.get_device_name()
    rows = [row(f"memory of this {name}", torch.cuda.get_device_properties(0).total_memory / 1e9, "GB")]
    rows += correctness()
    for dtype in (HALF, torch.float32):
        for n in (16, 64, 128, 256, 512, 1024) if full else (16,):
            rows += sizes(n, n, dtype, repeats) + sizes(n, 2 * n, dtype, repeats)
    rows += tilings(1024, 2048, repeats) if full else []
    rows += one_way(512, 1024, repeats) if full else []
    write("gpu_rcmd", rows, size=size)


if __name__ == "__main__":
    main()
