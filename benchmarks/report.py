"""Prints each recorded claim that does not hold, with its reason if one was given. Always exits 0."""

from __future__ import annotations

import json
from pathlib import Path

from harness import RESULTS, table


def main(folder: Path = RESULTS) -> None:
    """Reads every result in `folder` and prints the rows whose bar does not hold."""
    n_bars, n_broken = 0, 0
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        n_bars += sum(row["holds"] is not None for row in result["rows"])
        broken = [row for row in result["rows"] if row["holds"] is False]
        n_broken += len(broken)
        if broken:
            print(f"{path.stem} (commit {result['meta']['commit']}, {result['meta']['date']})")
            print(table(broken))
            for row in broken:
                print(f"  {row['job']}: {row.get('reason', 'no reason given')}")
    print(f"{n_bars - n_broken} of {n_bars} recorded bars hold.")


if __name__ == "__main__":
    main()
