"""Claim: the STS table (7 tasks, 4 similarities, MiniLM, with intervals) takes less than 2 minutes on a CPU.

The command as a user types it, in a fresh process; needs the shared data (LIKEWISE_SHARED).
"""

from __future__ import annotations

import subprocess
import sys

from harness import arguments, row, seconds, write
from inputs import data_folder


def main() -> None:
    """Measures, prints and (at full size) records."""
    size = arguments(__doc__).size
    full = size == "full"
    similarities = ("cosine", "rcmd", "euclidean", "manhattan") if full else ("cosine",)
    command = [sys.executable, "-m", "likewise", "evaluate", "sts", "--data", str(data_folder())]
    command += [word for name in similarities for word in ("-s", name)]
    command += [] if full else ["--tasks", "STS16"]
    spent = seconds(lambda: subprocess.run(command, check=True, capture_output=True))
    job = f"likewise evaluate sts, {'7 tasks' if full else 'STS16'}, {', '.join(similarities)}"
    write("sts_table", [row(job, spent, "s", bar="ours < 120" if full else None)], size=size)


if __name__ == "__main__":
    main()
