"""likewise evaluate sts, stsb, sick, pairs"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.evaluate.common import (
    Models,
    Outputs,
    compared,
    data_option,
    default_similarities,
    evaluation_options,
    finish,
    resamples_option,
    worst_option,
)

if TYPE_CHECKING:
    from likewise.data import ScoredPair
    from likewise.evaluation.sts import SystemScores

__all__ = ["pairs", "sick", "sts", "stsb"]

_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-b", "SICK-R")


def _protocol_options(verb: Callable[..., None]) -> Callable[..., None]:
    """What the three verbs share besides the options of every evaluation."""
    for option in (
        click.option("--no-special", is_flag=True, help="Leave out [CLS], [SEP] and the like."),
        click.option("--unnormalised", is_flag=True, help="Compare pooled vectors before a final scaling to length 1."),
        resamples_option,
        worst_option,
    ):
        verb = option(verb)
    return evaluation_options()(verb)


_SPLITS = ("train", "dev", "test")

_SICK_FILES = {
    "SICK_train.txt": "train",
    "SICK_trial.txt": "dev",
    "SICK_test_annotated.txt": "test",
    "SICK.txt": None,
}
"""File → the split that it holds; None if it holds all."""

_split_option = click.option(
    "--split",
    type=click.Choice(_SPLITS),
    help="[default: test, or what the file named by --data holds]",
)

_STS = """\b
Examples:
  likewise evaluate sts --data DATA
  likewise evaluate sts --data DATA --tasks STS12,STS16 --similarity cosine --similarity rcmd
  likewise evaluate sts --data DATA --model MODEL_A --model MODEL_B --html table.html
"""


@click.command(short_help="STS12-16, STS-b, SICK-R: how well scores agree with people.", epilog=_STS)
@data_option("Folder that holds sts12 … sts16, stsbenchmark and sick.")
@click.option("--tasks", default=",".join(_TASKS), show_default=True, help="Which of them, separated by commas.")
@click.option(
    "--text",
    type=click.Choice(["raw", "moses"]),
    default="raw",
    show_default=True,
    help="STS12-16 as released, or tokenised and lower-cased as SentEval has them.",
)
@_protocol_options
def sts(folder: Path, tasks: str, text: str, **options: Any) -> None:
    """The seven STS tasks: Spearman and Pearson correlation, times 100, of scores and gold."""
    names = [_task(name) for name in tasks.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--tasks names no task")
    found = {name: _read(folder, name, text) for name in dict.fromkeys(names)}
    _run(found, f"Semantic textual similarity{', Moses-tokenised, lower-cased' if text == 'moses' else ''}", **options)


_STSB = """\b
Example:
  likewise evaluate stsb --data stsbenchmark --similarity cosine --similarity rcmd
"""


@click.command(short_help="STS benchmark: how well scores agree with people.", epilog=_STSB)
@data_option("Folder with sts-test.csv and its kin, or one of these files.")
@_split_option
@_protocol_options
def stsb(folder: Path, split: str | None, **options: Any) -> None:
    """STS benchmark: Spearman and Pearson correlation, times 100, of scores and gold."""
    from likewise.data import read_stsb

    folder, split = _named(folder, split, {f"sts-{one}.csv": one for one in _SPLITS})
    _run({f"stsb-{split}": {"all": read_stsb(folder, split)}}, f"STS benchmark, {split}", **options)


_SICK = """\b
Example:
  likewise evaluate sick --data sick --split test --similarity rcmd
"""


@click.command(short_help="SICK relatedness: how well scores agree with people.", epilog=_SICK)
@data_option("Folder with the SICK files, or one of these files.")
@_split_option
@_protocol_options
def sick(folder: Path, split: str | None, **options: Any) -> None:
    """SICK relatedness: Spearman and Pearson correlation, times 100, of scores and gold."""
    from likewise.data import read_sick

    folder, split = _named(folder, split, _SICK_FILES)
    _run({f"sick-{split}": {"all": read_sick(folder, split)}}, f"SICK relatedness, {split}", **options)


_PAIRS = """\b
Example:
  likewise evaluate pairs --data my-pairs.jsonl --similarity cosine --similarity rcmd --details
"""


@click.command(short_help="Your own pairs with scores: how well scores agree with people.", epilog=_PAIRS)
@click.option(
    "--data",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help='JSON lines {"a": "…", "b": "…", "score": 4.2}, or .csv or .tsv with such columns (sentence1, sentence2 and '
    "label do as well); any scale, higher means more alike.",
)
@_protocol_options
def pairs(path: Path, **options: Any) -> None:
    """Your own pairs: Spearman and Pearson correlation, times 100, of scores and those that people gave."""
    from likewise.data import read_scored_pairs

    _run({path.stem: {"all": read_scored_pairs(path)}}, f"Pairs with scores, {path.name}", **options)


def _named(path: Path, split: str | None, files: Mapping[str, str | None]) -> tuple[Path, str]:
    """The folder and the split that --data and --split mean, where --data may name a file.

    Raises:
        UsageError: The file is none of `files`, or holds another split.
    """
    if not path.is_file():
        return path, split or "test"
    if path.name not in files:
        raise click.UsageError(
            f"--data names the file {path.name}, and this set has {', '.join(files)}; name one of these or their "
            "folder; pairs of your own go to `likewise evaluate pairs`"
        )
    held = files[path.name]
    if held and split not in (None, held):
        raise click.UsageError(f"--data names {path.name}, which holds the split {held}, and --split is {split}")
    return path.parent, held or split or "test"


def _task(name: str) -> str:
    plain = name.strip().lower().replace("-", "").replace("_", "")
    known = {task.lower().replace("-", ""): task for task in _TASKS} | {"sick": "SICK-R", "stsbenchmark": "STS-b"}
    if plain not in known:
        raise click.UsageError(f"unknown task {name.strip()!r}; known are {', '.join(_TASKS)}")
    return known[plain]


def _read(folder: Path, task: str, text: str) -> Mapping[str, Sequence[ScoredPair]]:
    from likewise.data import read_sick, read_sts, read_stsb

    if task == "STS-b":
        return {"all": read_stsb(folder, "test")}
    return {"all": read_sick(folder, "test")} if task == "SICK-R" else read_sts(folder, task, text=text)


def _run(
    tasks: Mapping[str, Mapping[str, Sequence[ScoredPair]]],
    title: str,
    *,
    models: Models,
    similarity: tuple[str, ...],
    outputs: Outputs,
    no_special: bool,
    unnormalised: bool,
    resamples: int,
    worst: int,
) -> None:
    from likewise.evaluation.slices import measure_slices
    from likewise.evaluation.sts import score_sts
    from likewise.evaluation.worst import explain_worst, worst_pairs

    systems: list[SystemScores] = []
    listed = []
    for model in models:
        names = similarity or default_similarities(model)
        found = score_sts(
            model,
            tasks,
            names,
            special_tokens=not no_special,
            normalised=not unnormalised,
            n_resamples=resamples,
        )
        systems += found
        for name, system in zip(names, found, strict=True):
            for task in tasks:
                pairs = worst_pairs(system, task, worst)
                listed += explain_worst(model, pairs, name, special_tokens=not no_special)
    finish(
        [measure for system in systems for measure in system.measures()],
        listed,
        outputs,
        title=f"{title} (correlations × 100)",
        comparisons=compared(systems),
        slices=[one for system in systems for one in measure_slices(system)],
    )
