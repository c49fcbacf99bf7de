"""The compiled kernels behind numpy arrays: checked inputs, outputs allocated here, threads as the caller allows.

The C++ is in `src/native`; its README explains the blocking.
"""

from __future__ import annotations

import importlib
import os
import sys
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from jaxtyping import Float, Int

from likewise.errors import InputError, PlainKernelsWarning, warn
from likewise.kernels.inputs import checked_offsets, refuse_token
from likewise.types import array_namespace

_native: ModuleType | None
try:
    _native = importlib.import_module("likewise._native")
except ImportError:  # built without a compiler
    _native = None

__all__ = [
    "LONGEST",
    "PRECISIONS",
    "available",
    "checked",
    "instruction_set",
    "library",
    "limit_threads",
    "n_threads",
    "normalised",
    "places_dtype",
    "quick_at_bfloat16",
    "refuse_non_finite",
    "required",
    "serves",
]

LONGEST = 4096
"""Tokens of the longest text that the group layout takes: 16 texts of one group are as long as its longest."""

PRECISIONS = {"float32": 0, "bfloat16": 1, "int8": 2}
"""Number formats of the scoring kernels."""


def library() -> ModuleType | None:
    """The extension module; None where it was not built, or LIKEWISE_KERNELS=plain asks to do without.

    The variable is read at every call, so a change of it, or its end, holds from the next use of a kernel on.

    Raises:
        InputError: LIKEWISE_KERNELS names an instruction set that this build or processor does not have.
    """
    wanted = os.environ.get("LIKEWISE_KERNELS", "")
    if _native is None or wanted == "plain":
        return None
    if not _native.use(wanted):
        raise InputError(
            f"LIKEWISE_KERNELS={wanted} is not available here; known are plain, {', '.join(_native.available())}"
        )
    return _native


def required() -> ModuleType:
    """The extension module, where the caller's own choice of path says that it is there."""
    found = library()
    assert found is not None, "the caller has asked library() first"
    return found


def available() -> list[str]:
    """Instruction sets that can be asked for with LIKEWISE_KERNELS, the last the best; empty without the extension."""
    return list(_native.available()) if _native is not None else []


def instruction_set() -> str:
    """What runs now: "plain", "portable", "avx2", "avx512" or "amx"."""
    native = library()
    return "plain" if native is None else str(native.active())


@cache
def _bfloat16_is_quicker() -> bool:
    native = required()
    rates = {p: max(native.peak(PRECISIONS[p], 1e-3) for _ in range(3)) for p in ("float32", "bfloat16")}
    return rates["bfloat16"] > rates["float32"]


def quick_at_bfloat16() -> bool:
    """Whether bfloat16 products take less time here than float32 ones.

    Measured once a process, in 10 ms, where the instruction set alone does not say: with AVX-512 some processors run
    them at twice the rate of float32, and some at half of it.
    """
    name = instruction_set()
    return name == "amx" or (name == "avx512" and _bfloat16_is_quicker())


def n_threads() -> int:
    """Threads that a kernel may use: the smallest of the processors allowed, OMP_NUM_THREADS and torch's limit."""
    limits = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    if (omp := os.environ.get("OMP_NUM_THREADS", "")).isdigit():
        limits.append(int(omp))
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "get_num_threads"):
        limits.append(torch.get_num_threads())
    return max(1, min(limits))


def limit_threads(n: int) -> None:
    """Use at most `n` threads from now on, in kernels, engine and torch: as OMP_NUM_THREADS=n before the start does.

    Raises:
        InputError: `n` is below 1.
    """
    if n < 1:
        raise InputError(f"{n} threads cannot compute anything; give 1 or more")
    os.environ["OMP_NUM_THREADS"] = str(n)  # which torch reads if it is imported later
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(n)


def checked(tokens: Any, offsets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Tokens as contiguous float32 and offsets as contiguous int64.

    Raises:
        InputError: Wrong shapes, or offsets that do not rise from 0 to the number of tokens.
    """
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or tokens.dtype.kind not in "fiu":
        raise InputError(f"tokens have shape {tokens.shape} and dtype {tokens.dtype}; give [total, dim] numbers")
    return np.ascontiguousarray(tokens, np.float32), checked_offsets(offsets, len(tokens))


def normalised(
    tokens: Any, offsets: Any
) -> tuple[Float[np.ndarray, "total stride"], Float[np.ndarray, " total"], Int[np.ndarray, " ends"]]:
    """Tokens at length 1 in the kernels' stride (dim rounded up to 16, zeros behind), their lengths, the offsets.

    Raises:
        InputError: As `checked`, or a token holds NaN or infinity; text and token are named.
    """
    native = required()
    tokens, offsets = checked(tokens, offsets)
    unit = np.empty((len(tokens), native.padded(max(tokens.shape[1], 1))), np.float32)
    lengths = np.empty(len(tokens), np.float32)
    if tokens.shape[1] == 0:
        unit[:], lengths[:] = 0, 0
        return unit, lengths, offsets
    bad = native.normalise(tokens, offsets, unit, lengths, n_threads())
    if bad >= 0:
        refuse_token(bad, offsets)
    return unit, lengths, offsets


def refuse_non_finite(tokens: Float[np.ndarray, "total dim"], offsets: Int[np.ndarray, " ends"]) -> None:
    """Raise an InputError that names the first token with NaN or infinity."""
    bad = ~np.isfinite(tokens).all(axis=1)
    if bad.any():
        refuse_token(int(bad.argmax()), offsets)


def places_dtype(*offsets: np.ndarray) -> type[np.uint8] | type[np.uint16]:
    """The smallest integer that can point into the longest text (of at most `LONGEST` tokens)."""
    longest = max((int(np.diff(one).max(initial=0)) for one in offsets), default=0)
    return np.uint8 if longest <= 1 << 8 else np.uint16


def serves(a: Any, b: Any, *offsets: np.ndarray) -> bool:
    """The compiled kernels take these: on the CPU, float32 or less, and short enough for the group layout."""
    xp = array_namespace(a, b)
    if xp.float64 in (a.dtype, b.dtype) or (is_torch_array(a) and not (a.is_cpu and b.is_cpu)):
        return False
    if max((int(np.diff(one).max(initial=0)) for one in offsets), default=0) > LONGEST:
        return False
    if library() is None:
        _say_once()
        return False
    return True


_said: list[bool] = []


def _say_once() -> None:
    if not _said:
        _said.append(True)
        warn(
            "the compiled kernels are not in use (no C++ compiler when likewise was installed, or "
            "LIKEWISE_KERNELS=plain): the plain ones give the same results more slowly; install a compiler and "
            "reinstall likewise",
            PlainKernelsWarning,
        )
