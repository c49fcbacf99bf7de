"""Claim: packed texts are encoded faster than by smart batching, the paper's answer to padding (SBERT Table 7).

Word vectors, a BiLSTM of InferSent's size with random weights, and the default model four ways: transformers in padded
batches of 32, the same sorted by length (smart batching), ours packed in float32 and in int8. Distinct STS-b sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from harness import RESULTS, arguments, interleaved, row, write
from inputs import stsb_sentences

from likewise import Model
from likewise.evaluation.reproduce.resources import speed_systems

BARS = {  # beside smart batching
    "packed, float32": "ratio >= 1.5",
    "packed, int8": "ratio >= 4",
}


def padding_share(model: Model, texts: list[str], batch: int = 32) -> float:
    """Share of the places in padded, unsorted batches that hold no token."""
    lengths = [cover.n_tokens for cover in model.coverage(texts)]
    batches = [lengths[start : start + batch] for start in range(0, len(lengths), batch)]
    return 1 - sum(lengths) / sum(max(some) * len(some) for some in batches)


def rows_of(model: Model, texts: list[str], times: Mapping[str, float], bars: bool) -> list[dict[str, Any]]:
    """Seconds beside padded batches, sentences a second, gains over padded batches."""
    padded = next(value for name, value in times.items() if name.endswith(" padded"))
    smart = next(value for name, value in times.items() if name.endswith(" smart batching"))
    rows = [row("share of padding in unsorted batches of 32", padding_share(model, texts), "share")]
    for name, seconds in times.items():
        bar = next((bar for end, bar in BARS.items() if name.endswith(end)), None) if bars else None
        rows.append(
            row(
                f"{name}, {len(texts)} sentences", seconds, "s", baseline=smart, baseline_name="smart batching", bar=bar
            )
        )
        rows.append(row(f"{name}: sentences a second", len(texts) / seconds, "1/s"))
        rows.append(row(f"{name}: faster than padded batches by", 100 * (padded / seconds - 1), "%"))
    return rows


def plot(rates: Mapping[str, float], path: Path) -> None:
    """Sentences a second as bars, logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.5))
    names = list(rates)
    bars = axes.barh(names, [rates[name] for name in names], color=["#b0b0b0"] * (len(names) - 2) + ["#2f6fb0"] * 2)
    axes.bar_label(bars, fmt="{:,.0f}", padding=3)
    axes.set(xscale="log", xlabel="sentences a second on this machine (SBERT Table 7)")
    axes.set_xlim(10, 5 * max(rates.values()))
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measures, prints, plots and (at full size) records."""
    size = arguments(__doc__).size
    full = size == "full"
    texts = stsb_sentences(2500 if full else 24)
    model = Model.load()
    systems = speed_systems(model, texts, hidden=2048 if full else 64)
    jobs = {name: partial(system.encode, texts, progress=False) for name, system in systems.items()}
    times = interleaved(jobs, repeats=3 if full else 1)
    path = write("sentences_per_second", rows_of(model, texts, times, full), size=size)
    folder = RESULTS if full else path.parent
    plot({name: len(texts) / seconds for name, seconds in times.items()}, folder / "sentences_per_second.png")


if __name__ == "__main__":
    main()
