"""What the small-scale training benchmarks share: data without leaks, training, paired rows, tables of the documents.

As a script it writes the tables of `docs/small-scale.md` anew from the recorded results.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # idle threads must not spin where other work runs, too

import numpy as np
from harness import RESULTS, ROOT, row

from likewise import Model
from likewise.data import (
    STS_SOURCES,
    drop_overlapping,
    nli_triplets,
    read_ists,
    read_nli,
    read_sick,
    read_sts,
    read_stsb,
)
from likewise.evaluation import align_ists, correlate, score_sts
from likewise.evaluation.ists_f1 import alignment_sums, f1_values, resampled_f1, strong_alignments
from likewise.evaluation.statistics import interval_of, resampled
from likewise.objectives import Objective
from likewise.training import Dataset, TrainableEncoder, TrainingConfig, train

RESAMPLES = 1_000
SPEARMAN, F1 = "Spearman × 100", "F1"
"""Units of the rows."""
PAGE = ROOT / "docs" / "small-scale.md"
NLI_FILES = (
    "snli/snli_1.0_dev.csv",
    "snli/snli_1.0_test.csv",
    "multinli/multinli_1.0_dev_matched.csv",
    "multinli/multinli_1.0_dev_mismatched.csv",
    "snli/cat_20k/train.tsv",
)
CLAIMS = ("training_truth", "training_raw")

# ---------------------------------------------------------------------------------------------- data


def data_folder() -> Path:
    """The shared data: LIKEWISE_SHARED, else beside the project."""
    return Path(os.environ.get("LIKEWISE_SHARED", ROOT.parent / "shared")) / "data"


@cache
def evaluation_texts() -> tuple[str, ...]:
    """Every sentence that something here is measured on: STS12 to STS16, STS-b dev and test, SICK-R, iSTS."""
    folder = data_folder()
    pairs = [pair for year in STS_SOURCES for source in read_sts(folder, year).values() for pair in source]
    pairs += [*read_stsb(folder, "dev"), *read_stsb(folder, "test"), *read_sick(folder, "test")]
    chunked = [pair for name in ("images", "headlines") for pair in read_ists(folder, name, "test")]
    texts = [text for pair in pairs for text in (pair.a, pair.b)]
    return tuple(dict.fromkeys([*texts, *(text for pair in chunked for text in (pair.left.text, pair.right.text))]))


@cache
def nli_pairs() -> tuple[Any, ...]:
    """Labelled NLI pairs of which no sentence is measured on."""
    read = [pair for file in NLI_FILES for pair in read_nli(data_folder() / file)]
    return tuple(drop_overlapping(read, evaluation_texts()))


@cache
def triplets() -> tuple[Any, ...]:
    """Natural triplets of those pairs: premise, entailed, contradicting."""
    return tuple(nli_triplets(nli_pairs()))


def drawn(rows: Sequence[Any], n: int, seed: int) -> list[Any]:
    """n of the rows, or all where there are fewer, chosen by the seed alone."""
    places = np.random.default_rng(seed).permutation(len(rows))[:n]
    return [rows[place] for place in sorted(places.tolist())]


def columns(rows: Sequence[Any], *names: str) -> tuple[list[str], ...]:
    """The texts of the rows, role by role."""
    return tuple([getattr(one, name) for one in rows] for name in names)


# ----------------------------------------------------------------------------------- before and after


@dataclass(frozen=True)
class Place:
    """Where a number stands in the documents."""

    table: str
    line: str
    column: str


@dataclass(frozen=True, eq=False)
class Values:
    """One number and the same on resamples of its examples; equal `what` means equal resamples."""

    what: str
    value: float
    draws: np.ndarray


def correlations(model: Any, similarity: str, tasks: Mapping[str, Any]) -> dict[str, Values]:
    """Spearman times 100 of each task, over the pairs of all its sources together."""
    (system,) = score_sts(model, tasks, [similarity], n_resamples=0, progress=False)
    found = {}
    for task in system.tasks:
        value = correlate(task.scores, task.gold).spearman
        assert value is not None, f"{task.task}: the scores are constant"
        seed = zlib.crc32(task.task.encode())
        draws = 100 * resampled("spearman", task.scores, task.gold, resamples=RESAMPLES, seed=seed)
        found[task.task] = Values(task.task, value, draws)
    return found


def alignments(model: Any, similarity: str, sets: Mapping[str, Sequence[Any]]) -> dict[str, Values]:
    """Alignment F1 of iSTS, 0 to 1, by the protocol of CLRCMD with gold chunks."""
    found = {}
    for name, pairs in sets.items():
        (system,) = align_ists(model, pairs, [similarity], subset=name, progress=False)
        sums = alignment_sums(strong_alignments(pairs), system.aligned("paper"))
        value = f1_values(sums).alignment
        assert value is not None
        found[f"iSTS {name}"] = Values(f"iSTS {name}", value, resampled_f1(sums, resamples=RESAMPLES))
    return found


def paired(
    place: Place,
    unit: str,
    after: Sequence[Values],
    before: Values,
    *,
    bar: str | None = None,
    reason: str | None = None,
) -> dict[str, Any]:
    """A row: the mean over the seeds after training, and before it, with the interval of the difference.

    The interval is of the examples, by a paired bootstrap: each resample gives the mean over the seeds minus the
    value before. What the seeds add stands beside it as their standard deviation.

    Args:
        place: What was trained and measured.
        unit: Of the values.
        after: One entry a seed.
        before: Before training.
        bar: As in `harness.row`.
        reason: As in `harness.row`.
    """
    assert {one.what for one in after} == {before.what}
    values = [one.value for one in after]
    mean = float(np.mean(values))
    interval = interval_of(np.mean([one.draws for one in after], axis=0) - before.draws)
    job = f"{place.table}, {place.column}: {place.line}"
    line = row(job, mean, unit, baseline=before.value, baseline_name="before training", bar=bar, reason=reason)
    return line | asdict(place) | _said(mean - before.value, interval, values)


def losses(place: Place, histories: Sequence[Sequence[float]], *, bar: bool = True) -> dict[str, Any]:
    """A row: the mean loss of the last third of the steps, and of the first third."""
    thirds = [max(1, len(history) // 3) for history in histories]
    first = [float(np.mean(history[:n])) for history, n in zip(histories, thirds, strict=True)]
    last = [float(np.mean(history[-n:])) for history, n in zip(histories, thirds, strict=True)]
    line = row(
        f"{place.table}, {place.column}: {place.line}",
        float(np.mean(last)),
        "loss",
        baseline=float(np.mean(first)),
        baseline_name="first third",
        bar="ratio > 1" if bar else None,
        reason="the loss did not fall",
    )
    return line | asdict(place) | _said(line["ours"] - line["baseline"], None, last)


def _said(difference: float, interval: tuple[float, float] | None, seeds: Sequence[float]) -> dict[str, Any]:
    low, high = interval or (None, None)
    spread = float(np.std(seeds, ddof=1)) if len(seeds) > 1 else None
    return {"difference": difference, "low": low, "high": high, "seeds": list(seeds), "deviation": spread}


def fitted(
    encoder: TrainableEncoder, objective: Objective, data: Dataset, config: TrainingConfig
) -> tuple[Model, list[float]]:
    """The model after training and the loss of each step; no checkpoint is selected."""
    with tempfile.TemporaryDirectory() as folder:
        result = train(encoder, objective, [data], config, output=Path(folder, "run"))
        return Model.load(result.folder), [entry["loss"] for entry in result.history if "loss" in entry]


# -------------------------------------------------------------------------------------------- documents


def tables(claim: str, folder: Path = RESULTS) -> str:
    """The recorded rows of a claim as Markdown, each in the table, line and column that it names."""
    result = json.loads((folder / f"{claim}.json").read_text(encoding="utf-8"))
    meta, rows = result["meta"], result["rows"]
    lines = [f"`{meta['command']}`, {meta['date'][:10]}, {meta['threads']} threads, torch {meta['versions']['torch']}."]
    for table in dict.fromkeys(one["table"] for one in rows):
        own = {(one["line"], one["column"]): one for one in rows if one["table"] == table}
        across = list(dict.fromkeys(column for _, column in own))
        lines += ["", f"| {table} | " + " | ".join(across) + " |", "|---" * (len(across) + 1) + "|"]
        for down in dict.fromkeys(line for line, _ in own):
            cells = [_cell(own[down, column]) if (down, column) in own else "" for column in across]
            lines.append(f"| {down} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def with_tables(page: str, folder: Path = RESULTS) -> str:
    """The page with each table between its marks written anew."""
    for claim in CLAIMS:
        begin, end = f"<!-- {claim} -->\n", "\n<!-- end -->"
        page, n = re.subn(
            re.escape(begin) + ".*?" + re.escape(end),
            lambda _, claim=claim, begin=begin, end=end: begin + tables(claim, folder) + end,
            page,
            flags=re.DOTALL,
        )
        assert n == 1, f"{n} places for the tables of {claim}"
    return page


def _cell(one: Mapping[str, Any]) -> str:
    """before → after ± deviation over seeds (interval of the difference), and whether the bar holds."""
    digits = {SPEARMAN: 2, "loss": 3}.get(one["unit"], 4)
    text = f"{one['baseline']:.{digits}f} → {one['ours']:.{digits}f}"
    if one["deviation"] is not None:
        text += f" ± {one['deviation']:.{digits}f}"
    if one["low"] is not None:
        text += f" ({one['low']:+.{digits}f} … {one['high']:+.{digits}f})"
    return text + {True: " ✓", False: " **✗**", None: ""}[one["holds"]]


def main() -> None:
    """Writes the tables of the page anew."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: tables of {', '.join(CLAIMS)}")


if __name__ == "__main__":
    main()
