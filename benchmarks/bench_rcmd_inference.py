"""Claim: scoring 512 pairs by RCMD takes no longer than by average pooling (CLRCMD Figure 3).

End to end: text to score by the default model, for texts of 8 to 128 tokens.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from harness import RESULTS, arguments, interleaved, row, write

from likewise import Model

WORDS = "a man dog red car runs over the green hill and sees two birds near his old house by water".split()


def texts_of(n: int, n_tokens: int, seed: int) -> list[str]:
    """Texts of common words that are one token each; two special tokens complete the length."""
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, n_tokens - 2)) for _ in range(n)]


def main() -> None:
    """Measures, prints and (at full size) records."""
    size = arguments(__doc__).size
    full = size == "full"
    lengths, n_pairs = ([8, 16, 32, 48, 64, 96, 128], 512) if full else ([8, 16], 4)
    pooled, tokenwise = Model.load(similarity="cosine"), Model.load(similarity="rcmd")
    rows, curves = [], {"average pooling": [], "RCMD": []}
    for length in lengths:
        a, b = texts_of(n_pairs, length, 1), texts_of(n_pairs, length, 2)
        assert {cover.n_total for cover in pooled.coverage(a)} == {length}
        times = interleaved(
            {"cosine": lambda a=a, b=b: pooled.score(a, b), "rcmd": lambda a=a, b=b: tokenwise.score(a, b)},
            repeats=3 if full else 1,
        )
        curves["average pooling"].append(times["cosine"])
        curves["RCMD"].append(times["rcmd"])
        rows.append(
            row(
                f"RCMD of {n_pairs} pairs of {length} tokens, text to score",
                times["rcmd"],
                "s",
                baseline=times["cosine"],
                baseline_name="average pooling",
                bar="ratio >= 0.8696" if full else None,
            )
        )
    path = write("rcmd_inference", rows, size=size)
    plot(lengths, curves, n_pairs, (RESULTS if full else path.parent) / "rcmd_inference.png")


def plot(lengths: list[int], curves: dict[str, list[float]], n_pairs: int, path: Path) -> None:
    """Seconds over length: the paper's figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name, seconds in curves.items():
        axes.plot(lengths, seconds, marker="o", label=name)
    axes.set(xlabel="tokens a text", ylabel=f"seconds for {n_pairs} pairs, text to score", xticks=lengths)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
