"""Claim: the fastest CPU encoder: text to vectors in a fraction of sentence-transformers' time, at the same quality.

Both libraries in one process, in turn; sentence-transformers in the best of its batch sizes. "short" are distinct
STS-b sentences, "mixed" runs of 5 to 120 words of WikiText-2. The share of the roofline is the multiplications of all
linear layers, divided by the time from text to vectors (tokenization included), over the rate of a loop that never
leaves the registers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from harness import arguments, interleaved, row, write
from inputs import captions, mixed_texts, mpnet_folder, stsb_sentences

from likewise import Model
from likewise.backbone.flat import FlatBackbone
from likewise.data import read_stsb
from likewise.encoder import Encoder
from likewise.evaluation import evaluate_pairs
from likewise.kernels import native
from likewise.model import find

PRECISIONS = ("float32", "bfloat16", "int8")
BARS = {
    ("MiniLM", "short"): {"float32": 1.9, "bfloat16": 3.5, "int8": 6.0},
    ("MiniLM", "mixed"): {"float32": 1.9, "bfloat16": 3.3, "int8": 5.0},
    ("mpnet", "short"): {"float32": 1.7, "bfloat16": 3.2, "int8": None},
}
ROOFLINE = {"float32": 0.90, "bfloat16": 0.85, "int8": 0.75}
TORCH = {"float32": 1.5, "bfloat16": 2.6}
"""Bars of the torch path alone, on short texts."""
PEER = "sentence-transformers"

REASONS = {
    "float32": (
        "with its data in L1 or L2 a tile product takes 15 to 20 cycles of the 16 that it needs; a layer computed "
        "again and again runs at 285 to 355 GFLOP/s a thread, within the model at 180 to 195: for every 128 tokens all "
        "weights pass once more, 6 bytes each, most of them from L3 (the likely rest, inferred)"
    ),
    "bfloat16": "the peak is that of AMX tiles: by it the products alone would take only this share of the time",
    "int8": (
        "the peak is that of AMX tiles: of 298 ms of thread time (1,200 short texts) products with their stores and "
        "GELU are 172, attention 58, conversions 47; tokenization comes on top"
    ),
    "request": (
        "sentence-transformers loses nothing on small requests here (as many texts a second as on 2,500, or more), "
        "where the bar expected padding to cost it"
    ),
    "one": "every call reads all weights once: 65, 21 or 11 MB",
    "tail": "not looked into",
    "cold": "imports 230 ms, SHA-256 of the weights 93, loading 130 to 160, encoding 8; the rest is Python's own",
}
"""Why a bar does not hold, from measurements apart: of one product, of one layer, of the parts of a start."""


class Subject:
    """One model in both libraries."""

    def __init__(self, name: str, folder: Path) -> None:
        from sentence_transformers import SentenceTransformer

        self.name, self.folder = name, folder
        self.ours = {precision: Model.load(folder, precision=precision) for precision in PRECISIONS}
        self.theirs = SentenceTransformer(str(folder), device="cpu")
        self.batch = 32

    def choose_batch(self, texts: list[str]) -> None:
        """The batch size at which sentence-transformers is quickest on these texts."""
        jobs = {size: lambda size=size: self.theirs.encode(texts, batch_size=size) for size in (16, 32, 64, 128)}
        times = interleaved({str(size): job for size, job in jobs.items()}, repeats=2, warm_up=0)
        self.batch = int(min(times, key=times.get))

    def jobs(self, texts: list[str]) -> dict[str, Callable[[], Any]]:
        """The same texts through everything."""
        ours = {p: lambda m=m: m.encode(texts, on_truncate="ignore", progress=False) for p, m in self.ours.items()}
        return {"theirs": lambda: self.theirs.encode(texts, batch_size=self.batch), **ours}

    def multiplications(self, texts: list[str]) -> float:
        """Of all linear layers, for these texts."""
        d = self.ours["float32"].encoder.backbone._definition
        tokens = sum(min(cover.n_tokens, d.max_length) for cover in self.ours["float32"].coverage(texts))
        return 2.0 * tokens * d.n_layers * (4 * d.hidden * d.hidden + 2 * d.hidden * d.feed)


def peak(precision: str) -> float:
    """Operations a second of all threads together in registers."""
    threads = native.n_threads()
    with ThreadPoolExecutor(threads) as pool:
        rates = pool.map(lambda _: native.required().peak(native.PRECISIONS[precision], 0.3), range(threads))
        return sum(rates)


def throughput(subject: Subject, kind: str, texts: list[str], repeats: int, bars: bool) -> list[dict[str, Any]]:
    """Sentences a second, quality beside float32, share of the roofline."""
    subject.choose_batch(texts[:300])
    times = interleaved(subject.jobs(texts), repeats=repeats)
    limits = BARS.get((subject.name, kind), {}) if bars else {}
    rows = []
    for precision in PRECISIONS:
        limit = limits.get(precision)
        job = f"{subject.name}, {len(texts)} {kind} texts, {precision}"
        rows.append(
            row(
                f"{job}: seconds",
                times[precision],
                "s",
                baseline=times["theirs"],
                baseline_name=f"{PEER}, batches of {subject.batch}",
                bar=f"ratio >= {limit}" if limit else None,
                reason=REASONS[precision],
            )
        )
        rows.append(row(f"{job}: texts a second", len(texts) / times[precision], "1/s"))
        share = subject.multiplications(texts) / times[precision] / max(peak(precision) for _ in range(3))
        bar = f"ours >= {ROOFLINE[precision]}" if bars and (subject.name, kind) == ("MiniLM", "short") else None
        rows.append(row(f"{job}: share of the multiply roofline", share, "share", bar=bar, reason=REASONS[precision]))
    return rows


def torch_path(subject: Subject, texts: list[str], repeats: int, bars: bool) -> list[dict[str, Any]]:
    """The same model where the native engine does not serve: one torch module on flat tokens."""
    native_one = subject.ours["float32"].encoder
    jobs = {"theirs": lambda: subject.theirs.encode(texts, batch_size=subject.batch)}
    for precision in TORCH:
        backbone = FlatBackbone(native_one.backbone._definition, subject.folder, device="cpu", precision=precision)
        encoder = Encoder(native_one.tokenizer, backbone, native_one.head)
        jobs[precision] = lambda encoder=encoder: encoder.pooled(texts, on_truncate="ignore", progress=False)
    times = interleaved(jobs, repeats=repeats)
    return [
        row(
            f"{subject.name}, {len(texts)} short texts, {precision} by torch on flat tokens",
            times[precision],
            "s",
            baseline=times["theirs"],
            baseline_name=f"{PEER}, batches of {subject.batch}",
            bar=f"ratio >= {limit}" if bars else None,
        )
        for precision, limit in TORCH.items()
    ]


def quality(subject: Subject, texts: list[str], bars: bool) -> list[dict[str, Any]]:
    """How close each precision stays to sentence-transformers' float32."""
    theirs = subject.theirs.encode(texts, batch_size=32)
    rows = []
    for precision, limit in (("float32", None), ("bfloat16", 0.9999), ("int8", 0.999)):
        ours = subject.ours[precision].encode(texts, on_truncate="ignore")
        if precision == "float32":
            apart = float(np.abs(ours - theirs).max())
            rows.append(row(f"{subject.name}, float32: largest difference to {PEER}", apart, "", bar="ours <= 1e-6"))
            continue
        cosine = float((ours * theirs).sum(1).mean())
        bar = f"ours >= {limit}" if bars and (subject.name == "MiniLM" or precision == "bfloat16") else None
        rows.append(row(f"{subject.name}, {precision}: mean cosine to {PEER}", cosine, "cosine", bar=bar))
    return rows


def spearman(subject: Subject) -> list[dict[str, Any]]:
    """STS-b test, cosine: how far each precision moves the correlation."""
    data = Path(os.environ.get("LIKEWISE_SHARED", Path(__file__).parents[2] / "shared")) / "data" / "stsbenchmark"
    pairs = read_stsb(data, "test")
    found = {p: evaluate_pairs(m, pairs, ["cosine"])["cosine"].spearman for p, m in subject.ours.items()}
    rows = [row(f"{subject.name}, STS-b test, float32: Spearman", found["float32"], "x100")]
    for precision, limit in (("bfloat16", 0.03), ("int8", 0.1)):
        moved = abs(found[precision] - found["float32"])
        bar = f"ours <= {limit}" if subject.name == "MiniLM" or precision == "bfloat16" else None
        rows.append(row(f"{subject.name}, STS-b test, {precision}: Spearman moved by", moved, "x100", bar=bar))
    return rows


def requests(subject: Subject, texts: list[str], repeats: int, bars: bool) -> list[dict[str, Any]]:
    """Small requests, and one text."""
    rows = []
    for n, limits in ((32, {"float32": 3, "int8": 8}), (256, {"float32": 3, "int8": 8})):
        subject.choose_batch(texts[:n])
        times = interleaved(subject.jobs(texts[:n]), repeats=repeats)
        for precision in PRECISIONS:
            bar = f"ratio >= {limits[precision]}" if bars and precision in limits else None
            job = f"{subject.name}, a request of {n} texts, {precision}"
            ours, theirs = times[precision] * 1e3, times["theirs"] * 1e3
            reason = REASONS["request"]
            rows.append(row(job, ours, "ms", baseline=theirs, baseline_name=PEER, bar=bar, reason=reason))
    # Ten calls in turn, since the peer's idle threads go on looking for work for some milliseconds: one call right
    # after one of the peer's takes two to three times as long as the next.
    ten = {name: lambda job=job: [job() for _ in range(10)] for name, job in subject.jobs(texts[:1]).items()}
    times = {name: spent / 10 for name, spent in interleaved(ten, repeats=4 * repeats).items()}
    for precision, limit in (("float32", 2.5), ("bfloat16", None), ("int8", 7)):
        bar = f"ratio >= {limit}" if bars and limit else None
        job = f"{subject.name}, one short text, warm, {precision}"
        ours, theirs = times[precision] * 1e3, times["theirs"] * 1e3
        rows.append(row(job, ours, "ms", baseline=theirs, baseline_name=PEER, bar=bar, reason=REASONS["one"]))
        spent = []
        for _ in range(100 * repeats):
            start = time.perf_counter()
            subject.ours[precision].encode(texts[0])
            spent.append(time.perf_counter() - start)
        tail = float(np.percentile(spent, 99) / np.median(spent))
        rows.append(
            row(
                f"{job}: 99th percentile over median",
                tail,
                "x",
                bar="ours <= 2" if bars else None,
                reason=REASONS["tail"],
            )
        )
    return rows


def cold(repeats: int, bars: bool) -> list[dict[str, Any]]:
    """A fresh process, from the command to the vector."""
    script = (
        "from sentence_transformers import SentenceTransformer; import sys; "
        "SentenceTransformer(sys.argv[1], device='cpu').encode('A plane is taking off.')"
    )
    commands = {
        "ours": [sys.executable, "-m", "likewise", "encode", "--text", "A plane is taking off."],
        "theirs": [sys.executable, "-c", script, str(find().folder)],
    }
    spent: dict[str, list[float]] = {name: [] for name in commands}
    memory: dict[str, float] = {}
    for _ in range(repeats):
        for name, command in commands.items():
            seconds, memory[name] = _fresh(command)
            spent[name].append(seconds)
    ours, theirs = (float(np.median(spent[name])) for name in ("ours", "theirs"))
    job = "likewise encode of one text, cold process to result"
    return [
        row(
            job,
            ours,
            "s",
            baseline=theirs,
            baseline_name=PEER,
            bar="ours <= 0.5" if bars else None,
            reason=REASONS["cold"],
        ),
        row(
            f"{job}: peak memory",
            memory["ours"],
            "MB",
            baseline=memory["theirs"],
            baseline_name=PEER,
            bar="ours <= 150" if bars else None,
        ),
    ]


def _fresh(command: list[str]) -> tuple[float, float]:
    """Seconds and peak MB of a command. A small process starts it: a child's peak counts its parent's at the fork."""
    script = (
        "import json, resource, subprocess, sys, time; start = time.perf_counter(); "
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True); "
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024; "
        "print(json.dumps([time.perf_counter() - start, peak]))"
    )
    done = subprocess.run([sys.executable, "-c", script, *command], check=True, capture_output=True, text=True)
    seconds, peak_mb = json.loads(done.stdout)
    return seconds, peak_mb


def main() -> None:
    """Measures, prints and (at full size) records."""
    size = arguments(__doc__).size
    full = size == "full"
    n, repeats = (2500, 5) if full else (40, 1)
    short, mixed = stsb_sentences(n), mixed_texts(n if full else 20)
    minilm = Subject("MiniLM", find().folder)
    rows = throughput(minilm, "short", short, repeats, full)
    rows += torch_path(minilm, short, 3 if full else 1, full)
    rows += throughput(minilm, "mixed", mixed, 2 if full else 1, full)
    rows += quality(minilm, short[:1000], full)
    rows += requests(minilm, short, repeats, full)
    rows += cold(5 if full else 1, full)
    if full:
        rows += spearman(minilm)
        ten = captions(10_000)
        times = interleaved({p: lambda m=m: m.encode(ten, progress=False) for p, m in minilm.ours.items()}, repeats=1)
        for precision in PRECISIONS:
            bar = "ours <= 5" if precision == "int8" else None
            rows.append(row(f"MiniLM, 10,000 captions, {precision}, text to vectors", times[precision], "s", bar=bar))
        if (folder := mpnet_folder()) is not None:
            mpnet = Subject("mpnet", folder)
            rows += throughput(mpnet, "short", short, 1, full) + quality(mpnet, short[:300], full) + spearman(mpnet)
    write("encode", rows, size=size)


if __name__ == "__main__":
    main()
