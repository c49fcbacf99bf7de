"""Claim: from MiniLM, CLRCMD trains: the loss falls, STS-b dev and iSTS alignment do not get worse (small-scale).

CLRCMD (InfoNCE over RCMD) against SimCSE-avg (InfoNCE over the cosine of the mean), on natural NLI triplets with hard
negatives, without a sentence that is measured on: batch 32, learning rate 5e-5 falling to 0, temperature 0.05, one
epoch, float32, dropout of the config, no new layer, no selection by a development set. The seed chooses triplets,
order and dropout. MiniLM has seen NLI data, so no jump is to be expected.
"""

from __future__ import annotations

from typing import Any

from harness import arguments, write
from small_scale import (
    F1,
    SPEARMAN,
    Place,
    alignments,
    columns,
    correlations,
    data_folder,
    drawn,
    fitted,
    losses,
    paired,
    triplets,
)

from likewise import Model
from likewise.data import STS_SOURCES, read_ists, read_sick, read_sts, read_stsb
from likewise.objectives import Contrastive
from likewise.training import Dataset, TrainableEncoder, TrainingConfig

METHODS = {"CLRCMD": "rcmd", "SimCSE-avg": "cosine"}
RUNS = {512: (0, 1, 2)}
SMOKE_RUNS = {64: (0,)}
MOST_LOST = {SPEARMAN: 0.5, F1: 0.005}
GUARDED = ("STS-b dev", "iSTS images", "iSTS headlines")


def evaluation_sets(limit: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The STS tasks and the sets of iSTS, each source cut to so many pairs."""
    folder = data_folder()
    tasks = {
        "STS-b dev": {"dev": read_stsb(folder, "dev")},
        "STS-b test": {"test": read_stsb(folder, "test")},
        "SICK-R": {"test": read_sick(folder, "test")},
        **{year: read_sts(folder, year) for year in (STS_SOURCES if limit is None else ())},
    }
    cut = {task: {name: pairs[:limit] for name, pairs in sources.items()} for task, sources in tasks.items()}
    return cut, {name: read_ists(folder, name, "test")[:limit] for name in ("images", "headlines")}


def measured(model: Any, similarity: str, sets: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    """Everything that is reported of a model under one similarity, by what was measured."""
    return correlations(model, similarity, sets[0]) | alignments(model, similarity, sets[1])


def rows_of(method: str, n: int, seeds: tuple[int, ...], before: dict[str, Any], sets: Any) -> list[dict[str, Any]]:
    """Train with every seed, measure, and compare with what was before."""
    similarity = METHODS[method]
    histories, after = [], []
    for seed in seeds:
        texts = columns(drawn(triplets(), n, seed), "anchor", "positive", "negative")
        config = TrainingConfig(batch_size=32, learning_rate=5e-5, seed=seed, log_steps=1, device="cpu")
        encoder = TrainableEncoder.from_folder()
        model, history = fitted(encoder, Contrastive(similarity, 0.05), Dataset("nli", texts), config)
        after.append(measured(model, similarity, sets))
        histories.append(history)
        print(f"{method}, {n} triplets, seed {seed}: " + ", ".join(f"{k} {v.value:.4g}" for k, v in after[-1].items()))
    table = f"{n:,} triplets, {len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    column = f"{method}, under {similarity}"
    rows = [losses(Place(table, "loss, first and last third of the steps", column), histories)]
    for what, value in before.items():
        unit = F1 if what.startswith("iSTS") else SPEARMAN
        guarded = method == "CLRCMD" and what in GUARDED
        bar = f"ours >= {value.value - MOST_LOST[unit]:.4f}" if guarded else None
        reason = f"training lost more than {MOST_LOST[unit]}"
        found = [one[what] for one in after]
        rows.append(paired(Place(table, what, column), unit, found, value, bar=bar, reason=reason))
    return rows


def main() -> None:
    """Trains, measures, prints and (at full size) records."""
    size = arguments(__doc__).size
    sets = evaluation_sets(None if size == "full" else 40)
    start = Model.load()
    before = {method: measured(start, similarity, sets) for method, similarity in METHODS.items()}
    rows = []
    for n, seeds in (RUNS if size == "full" else SMOKE_RUNS).items():
        for method in METHODS:
            rows += rows_of(method, n, seeds, before[method], sets)
        write("training_truth", rows, size=size)  # after each number of triplets: a run that is stopped leaves those


if __name__ == "__main__":
    main()
