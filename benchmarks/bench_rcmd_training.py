"""Claim: all-pairs RCMD with gradient costs less than three plain matrix products, and next to no memory.

Forward and backward over ragged texts of 8 to 32 tokens, 384 dims, beside one `torch.mm` of the same token
products, and beside two forms of our own writing after the paper (baselines.py). Memory by fresh processes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch
from baselines import dense, pad, sparse
from harness import interleaved, row, write
from inputs import peak_extra_mb, ragged

from likewise.kernels import blocked, gradients

LENGTHS = (8, 32)


def sides(n: int, m: int) -> tuple[Any, ...]:
    """Left and right tokens as leaves, with their offsets."""
    (a, a_ends), (b, b_ends) = ragged(1, n, *LENGTHS), ragged(2, m, *LENGTHS)
    return torch.from_numpy(a).requires_grad_(), a_ends, torch.from_numpy(b).requires_grad_(), b_ends


def training_step(form: str, n: int, m: int) -> Callable[[], object]:
    """Forward and backward of one form."""
    a, a_ends, b, b_ends = sides(n, m)
    weights = torch.randn(n, m)

    def step() -> object:
        if form == "native":
            scores = gradients.matrix(a, a_ends, b, b_ends)
        elif form == "torch":
            scores = blocked.rcmd_matrix(a, a_ends, b, b_ends)
        else:
            (x, x_mask), (y, y_mask) = pad(a, a_ends), pad(b, b_ends)
            scores = (dense if form == "dense" else sparse)(x, x_mask, y, y_mask)
        return torch.autograd.grad((scores * weights).sum(), (a, b))

    return step


def product(n: int, m: int) -> Callable[[], object]:
    """One float32 matrix product of all tokens with all tokens."""
    a, _, b, _ = sides(n, m)
    left, right = a.detach(), b.detach().T.contiguous()
    out = torch.empty(left.shape[0], right.shape[1])
    return lambda: torch.mm(left, right, out=out)


def extra_mb(form: str, n: int, m: int) -> float:
    """Peak extra memory of one step in a process of its own."""
    command = [sys.executable, __file__, "--measure", form, str(n), str(m)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def rows_of(n: int, m: int, repeats: int, bars: bool) -> list[dict[str, Any]]:
    """Time and memory of each form for n by m texts."""
    forms = ["native", "torch", "sparse", "dense"]
    times = interleaved({"mm": product(n, m), **{form: training_step(form, n, m) for form in forms}}, repeats=repeats)
    rows = []
    for form in forms:
        limit = {"native": "ratio >= 0.3333", "torch": "ratio >= 0.125"}.get(form) if bars else None
        name = f"{form}, {n} x {m}, forward + backward"
        rows.append(row(name, times[form], "s", baseline=times["mm"], baseline_name="torch.mm", bar=limit))
    for form in forms:
        limit = {"native": "ours <= 100", "torch": "ours <= 130"}.get(form) if bars and m == 256 else None
        rows.append(row(f"{form}, {n} x {m}, extra memory", extra_mb(form, n, m), "MB", bar=limit))
    return rows


def main() -> None:
    """Measures, prints and (at full size) records."""
    if sys.argv[1:2] == ["--measure"]:
        form, n, m = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
        training_step(form, 4, 4)()  # libraries load, threads start
        print(peak_extra_mb(training_step(form, n, m)))
        return
    from harness import arguments

    size = arguments(__doc__).size
    if size == "smoke":
        write("rcmd_training", rows_of(8, 16, 1, bars=False), size=size)
        return
    rows = rows_of(128, 128, 7, bars=True) + rows_of(128, 256, 7, bars=True)
    large = interleaved({"mm": product(512, 1024), "native": training_step("native", 512, 1024)}, repeats=3)
    name = "native, 512 x 1024, forward + backward"
    rows.append(row(name, large["native"], "s", baseline=large["mm"], baseline_name="torch.mm", bar="ours <= 1.5"))
    extra = extra_mb("native", 512, 1024)
    rows.append(row("native, 512 x 1024, extra memory", extra, "MB", bar="ours <= 300"))
    write("rcmd_training", rows, size=size)


if __name__ == "__main__":
    main()
