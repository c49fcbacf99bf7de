"""Fair timing and one format for every benchmark result.

A benchmark is `bench_<claim>.py`: its file name is the claim. It measures ours and the baseline in
turn (A B A B), takes medians, and hands its rows to `write`. A bar is a sentence about a row's own
columns, such as `"ours < 0.3"` or `"ratio >= 2"`; whether it holds is computed here, never typed.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("likewise", "numpy", "scipy", "torch", "transformers", "tokenizers", "sentence-transformers")
COMPARISONS = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


def arguments(description: str | None) -> argparse.Namespace:
    """Reads `--size smoke|full`, the one option every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--size",
        choices=("smoke", "full"),
        default="full",
        help="smoke: does it run at all; records nothing. full: measures and records.",
    )
    return parser.parse_args()


def seconds(job: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def interleaved(jobs: Mapping[str, Callable[[], object]], *, repeats: int, warm_up: int = 1) -> dict[str, float]:
    """Median seconds of each job, timed in turn so that a slow minute falls on all alike.

    Args:
        jobs: What to time, by name.
        repeats: Timed rounds; each round runs every job once, in the order given.
        warm_up: Untimed rounds before them.
    """
    for _ in range(warm_up):
        for job in jobs.values():
            job()
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            times[name].append(seconds(job))
    return {name: statistics.median(values) for name, values in times.items()}


def row(
    job: str,
    ours: float,
    unit: str,
    *,
    baseline: float | None = None,
    baseline_name: str | None = None,
    bar: str | None = None,
    reason: str | None = None,
) -> dict[str, Any]:
    """One line of a result.

    Args:
        job: What was done.
        ours: What likewise measured.
        unit: The unit of `ours` and `baseline`.
        baseline: What the other library measured on the same machine, in the same minutes.
        baseline_name: Which library that was.
        bar: `"ours|ratio < number"`, the promise; None where nothing is promised.
        reason: Why the bar does not hold; recorded only in that case.
    """
    ratio = baseline / ours if baseline is not None and ours else None
    result: dict[str, Any] = {
        "job": job,
        "ours": ours,
        "unit": unit,
        "baseline": baseline,
        "baseline_name": baseline_name,
        "ratio": ratio,  # baseline / ours: above 1 where ours is the smaller
        "bar": bar,
        "holds": None if bar is None else _holds(bar, {"ours": ours, "ratio": ratio}),
    }
    if reason is not None and result["holds"] is False:
        result["reason"] = reason
    return result


def write(claim: str, rows: Sequence[Mapping[str, Any]], *, size: str) -> Path:
    """Prints the rows and records them as `<claim>.json`.

    Only a full run goes to `benchmarks/results`; a smoke run goes to a temporary folder.
    """
    folder = RESULTS if size == "full" else Path(tempfile.mkdtemp(prefix="bench-smoke-"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{claim}.json"
    text = json.dumps({"meta": meta(), "rows": list(rows)}, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"{claim} ({size})")
    print(table(rows))
    return path


def meta() -> dict[str, Any]:
    """Where, when and with what a result was measured."""
    return {
        "commit": _commit(),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **_versions()},
        "threads": _threads(),
        "cpu": _cpu(),
        "command": _command(),
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as plain text, columns aligned."""
    header = ("job", "ours", "unit", "baseline", "ratio", "bar", "holds")
    lines = [header, *(_cells(line) for line in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join("  " + text.rstrip() for text in texts)


def _cells(line: Mapping[str, Any]) -> tuple[str, ...]:
    baseline = _number(line["baseline"])
    if line["baseline_name"]:
        baseline += f" ({line['baseline_name']})"
    holds = {True: "yes", False: "NO", None: "-"}[line["holds"]]
    return (
        line["job"],
        _number(line["ours"]),
        line["unit"],
        baseline,
        _number(line["ratio"]),
        line["bar"] or "-",
        holds,
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _holds(bar: str, columns: Mapping[str, float | None]) -> bool:
    column, comparison, limit = bar.split()
    value = columns[column]
    return value is not None and COMPARISONS[comparison](value, float(limit))


def _commit() -> str:
    """The commit measured; `+changes` where the files measured differ from it."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--", "src", "benchmarks/*.py", "pyproject.toml")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+changes" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _threads() -> int:
    """How many threads a numeric library may use: the limit set, or else the processors allowed."""
    limit = os.environ.get("OMP_NUM_THREADS")
    if limit:
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _command() -> str:
    """The command line, its script named from the project's root."""
    script = Path(sys.argv[0]).resolve()
    name = script.relative_to(ROOT) if script.is_relative_to(ROOT) else Path(script.name)
    return " ".join(["python", name.as_posix(), *sys.argv[1:]])
