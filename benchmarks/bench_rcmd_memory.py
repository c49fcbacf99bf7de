"""Claim: the memory of the all-pairs objective grows with its B² L indices only (CLRCMD Table 3, as a plot).

Peak extra memory of forward and backward for B anchors and B candidates, each in a fresh process: dense, the
paper's sparse form, ours. A form is not run where it would take more than 8 GB.
"""

from __future__ import annotations

import math

from bench_rcmd_training import extra_mb
from harness import RESULTS, arguments, row, write

FORMS = ("dense", "sparse", "torch", "native")
MOST_MB = 8000


def main() -> None:
    """Measures, prints, plots and (at full size) records."""
    size = arguments(__doc__).size
    batches = [16, 32, 64, 128, 256, 512, 1024] if size == "full" else [8, 16]
    measured: dict[str, dict[int, float]] = {form: {} for form in FORMS}
    rows = []
    for form in FORMS:
        for batch in batches:
            last = list(measured[form].values())[-1:]
            if last and last[0] * 4 > MOST_MB:
                rows.append(row(f"{form}, B = {batch}: not run, would take about {last[0] * 4 / 1000:.0f} GB", 0, "MB"))
                break
            measured[form][batch] = extra_mb(form, batch, batch)
            rows.append(row(f"{form}, B = {batch}", measured[form][batch], "MB"))
    ours = measured["native"]
    largest, before = batches[-1], batches[-2]
    indices = 2 * largest * largest * 20 / 1e6  # two bytes a pair and token: 8 to 32 tokens, 20 in the mean
    tokens = largest * 20 * 384 * 4 / 1e6
    bound = indices + 12 * tokens
    rows.append(
        row(
            f"native, B = {largest}, beside indices and 12 buffers of the tokens' size",
            ours[largest],
            "MB",
            baseline=bound,
            baseline_name="B² 2L bytes + 12 B L d floats",
            bar="ratio >= 1" if size == "full" else None,
        )
    )
    slope = math.log2(max(ours[largest], 1) / max(ours[before], 1))
    rows.append(
        row("native: growth as B doubles, power of B", slope, "power", bar="ours <= 2" if size == "full" else None)
    )
    path = write("rcmd_memory", rows, size=size)
    plot(measured, (RESULTS if size == "full" else path.parent) / "rcmd_memory.png")


def plot(measured: dict[str, dict[int, float]], path) -> None:
    """Memory over batch size, both logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for form, values in measured.items():
        axes.plot(list(values), [max(value, 0.5) for value in values.values()], marker="o", label=form)
    axes.set(
        xscale="log", yscale="log", xlabel="batch size B (B anchors, B candidates)", ylabel="peak extra memory, MB"
    )
    axes.set_xscale("log", base=2)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
