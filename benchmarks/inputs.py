"""Inputs that several benchmarks share: ragged random tokens, and real sentences from the shared data."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def ragged(seed: int, n: int, shortest: int, longest: int, dim: int = 384) -> tuple[np.ndarray, np.ndarray]:
    """Packed random tokens of n texts and their offsets."""
    random = np.random.default_rng(seed)
    lengths = random.integers(shortest, longest + 1, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return random.standard_normal((offsets[-1], dim), dtype=np.float32), offsets


def captions(n: int) -> list[str]:
    """The first n distinct Flickr8k captions; needs the shared data (LIKEWISE_SHARED)."""
    folder = Path(os.environ.get("LIKEWISE_SHARED", ROOT.parent / "shared")) / "data" / "flickr8k"
    lines = next(folder.glob("*token*.txt")).read_text(encoding="utf-8").split("\n")
    found = dict.fromkeys(line.split("\t", 1)[1].strip() for line in lines if "\t" in line)
    return list(found)[:n]


def peak_extra_mb(job) -> float:
    """Peak resident memory of one call above what was resident before it, in MB; for fresh processes (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    job()
    return (_status("VmHWM") - before) / 1024


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))
