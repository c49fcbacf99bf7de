"""Peak memory of the all-pairs objective above what was in memory before, measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import MissingExtraError

__all__ = ["FORMS", "extra_gb"]

FORMS = ("dense", "ours")
"""All B² L² cosines kept for the gradient · our kernels, which keep an index a text pair and token."""


def extra_gb(form: str, n: int, m: int, length: int, dim: int) -> float | None:
    """Peak extra memory in GB of forward and backward for n anchors and m candidates of equal lengths.

    Args:
        form: One of `FORMS`.
        n: Anchors.
        m: Candidates.
        length: Tokens of each.
        dim: Length of a token vector.

    Returns:
        None where it cannot be measured: it is read from /proc, which only Linux has.

    Raises:
        MissingExtraError: torch is absent.
    """
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "train", "measuring a training objective")
    if not Path("/proc/self/clear_refs").exists():
        return None
    command = [sys.executable, "-c", f"from {__name__} import _main; _main()", form, *map(str, (n, m, length, dim))]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1000


def _step(form: str, n: int, m: int, length: int, dim: int) -> Callable[[], Any]:
    import torch

    from likewise.kernels import gradients

    a, b = (torch.randn(texts * length, dim, requires_grad=True) for texts in (n, m))
    a_ends, b_ends = (np.arange(texts + 1) * length for texts in (n, m))

    def dense() -> Any:
        x, y = (torch.nn.functional.normalize(side.view(-1, length, dim), dim=2) for side in (a, b))
        cosines = torch.einsum("aid,bjd->abij", x, y)
        return (cosines.amax(3).mean(2) + cosines.amax(2).mean(2)) / 2

    def step() -> Any:
        scores = dense() if form == "dense" else gradients.matrix(a, a_ends, b, b_ends)
        return torch.autograd.grad(torch.logsumexp(scores / 0.05, 1).sum(), (a, b))

    return step


def _main() -> None:
    form, *numbers = sys.argv[1:]
    n, m, length, dim = map(int, numbers)
    _step(form, 2, 2, length, dim)()  # libraries load, threads start
    step = _step(form, n, m, length, dim)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    step()
    sys.stdout.write(f"{(_status('VmHWM') - before) / 1000}\n")


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))
