"""Claim: scoring 512 pairs by RCMD takes no longer than by average pooling (CLRCMD Figure 3).

End to end: text to score by the default model, for texts of 8 to 128 tokens.
"""

from __future__ import annotations

import numpy as np
from harness import arguments, interleaved, row, write

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
    rows = []
    for length in lengths:
        a, b = texts_of(n_pairs, length, 1), texts_of(n_pairs, length, 2)
        assert {cover.n_total for cover in pooled.coverage(a)} == {length}
        times = interleaved(
            {"cosine": lambda a=a, b=b: pooled.score(a, b), "rcmd": lambda a=a, b=b: tokenwise.score(a, b)},
            repeats=3 if full else 1,
        )
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
    write("rcmd_inference", rows, size=size)


if __name__ == "__main__":
    main()
