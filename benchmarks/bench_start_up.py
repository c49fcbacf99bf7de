"""Claim: likewise starts fast, because it imports nothing heavy before it is asked to.

Every measurement is a fresh process, interpreter start included: what a person at a prompt waits.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from harness import arguments, interleaved, row, write

BASELINE = "sentence_transformers"
BASELINE_NAME = "sentence-transformers"
COUNT = "import json, sys, {module}; print(json.dumps([len(sys.modules), 'torch' in sys.modules]))"
HELP = "import sys; from likewise.cli import main; sys.argv = ['likewise', '--help']; main()"


def python(code: str) -> str:
    """What a fresh interpreter prints when it runs `code`."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def modules(module: str) -> tuple[int, bool]:
    """How many modules importing `module` leaves loaded, and whether torch is among them."""
    n_modules, torch = json.loads(python(COUNT.format(module=module)).splitlines()[-1])
    return n_modules, torch


def main() -> None:
    """Measures, prints and (at full size) records."""
    size = arguments(__doc__).size
    jobs: dict[str, Callable[[], object]] = {
        "import": partial(python, "import likewise"),
        "help": partial(python, HELP),
        "interpreter": partial(python, "pass"),
    }
    baseline: dict[str, Any] = {}
    if importlib.util.find_spec(BASELINE) is not None:
        jobs["baseline"] = partial(python, f"import {BASELINE}")
        baseline = {"baseline_name": BASELINE_NAME}
    medians = interleaved(jobs, repeats=9 if size == "full" else 1)
    n_modules, torch = modules("likewise")
    n_baseline, torch_baseline = modules(BASELINE) if baseline else (None, None)
    timed = {**baseline, "baseline": medians.get("baseline")}
    rows = [
        row("import likewise", medians["import"], "s", **timed, bar="ours < 0.3"),
        row("likewise --help (baseline: import)", medians["help"], "s", **timed, bar="ours < 0.5"),
        row("python -c pass, included above", medians["interpreter"], "s"),
        row("modules loaded by import", n_modules, "modules", **baseline, baseline=n_baseline),
        row(
            "torch loaded by import (1: yes)",
            int(torch),
            "yes/no",
            **baseline,
            baseline=None if torch_baseline is None else int(torch_baseline),
            bar="ours == 0",
        ),
    ]
    write("start_up", rows, size=size)


if __name__ == "__main__":
    main()
