"""likewise evaluate ists, wa"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.evaluate.common import (
    BOTH,
    Models,
    Outputs,
    data_option,
    default_similarities,
    evaluation_options,
    finish,
    rivals,
    worst_of,
    worst_option,
)
from likewise.cli.options import print_json

if TYPE_CHECKING:
    from likewise.evaluation.ists import SystemAlignments
    from likewise.evaluation.worst import WorstPair

__all__ = ["ists", "wa"]

_ISTS = """\b
Examples:
  likewise evaluate ists --data DATA
  likewise evaluate ists --data DATA --set images --similarity transport --wa FOLDER
"""


@click.command(short_help="iSTS 2016: do contributions single out the chunks that people aligned?", epilog=_ISTS)
@data_option("Folder of iSTS 2016 with test/ and train/, or one that holds it as ists2016.")
@click.option(
    "--set",
    "sets",
    type=click.Choice(["images", "headlines", "answers-students"]),
    multiple=True,
    default=("images", "headlines"),
    show_default=True,
    help="May be repeated.",
)
@click.option("--split", type=click.Choice(["test", "train"]), default="test", show_default=True)
@click.option("--no-special", is_flag=True, help="Score without [CLS], [SEP] and the like.")
@click.option(
    "--wa",
    "folder_wa",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for what each system aligned, as .wa files.",
)
@worst_option
@evaluation_options(default_is=BOTH)
def ists(
    *,
    folder: Path,
    sets: tuple[str, ...],
    split: str,
    no_special: bool,
    folder_wa: Path | None,
    worst: int,
    models: Models,
    similarity: tuple[str, ...],
    outputs: Outputs,
) -> None:
    """Interpretable STS with gold chunks: F1 of the alignments that the contributions of a score give.

    alignment_f1 follows the paper; alignment_f1_lawful lets special tokens take part and breaks ties by the first,
    so that what is shown adds up to the score; lawful_gain is their difference.
    """
    from likewise.data import read_ists
    from likewise.evaluation.ists import align_ists

    gold = {name: read_ists(folder, name, split) for name in dict.fromkeys(sets)}
    systems: list[SystemAlignments] = []
    listed: list[WorstPair] = []
    for model in models:
        names = similarity or default_similarities(model)
        for subset, pairs in gold.items():
            found = align_ists(model, pairs, names, subset=subset, special_tokens=not no_special)
            systems += found
            listed += worst_of(model, names, found, worst, special_tokens=not no_special)
    if folder_wa is not None:
        _write_all(folder_wa, systems)
    by_subset = [[system for system in systems if system.subset == subset] for subset in gold]
    finish(
        [measure for system in systems for measure in system.measures()],
        listed,
        outputs,
        title=f"Interpretable STS, {split} (F1 from 0 to 1)",
        comparisons=[second.compare(first) for own in by_subset for first, second in rivals(own)],
    )


@click.command(short_help="The official F1 of two .wa files.")
@click.argument("gold", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("system", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="One JSON line.")
@click.option("--strong", is_flag=True, help="Drop NOALI and scores below 3 from the gold, as CLRCMD does.")
def wa(gold: Path, system: Path, as_json: bool, strong: bool) -> None:
    """The official F1 values of iSTS for the alignments in SYSTEM against those in GOLD, from anywhere.

    A sentence pair of GOLD that SYSTEM does not have counts as one in which it aligns nothing.
    """
    from dataclasses import asdict

    from likewise.data import read_wa
    from likewise.errors import DataWarning, warn
    from likewise.evaluation.ists_f1 import alignment_f1, strong_alignments

    people = strong_alignments(read_wa(gold)) if strong else read_wa(gold)
    found = read_wa(system)
    values = asdict(alignment_f1(people, found))
    n_missing = len(people) - len(found)  # those of a system are among the gold's, or there is an error
    if n_missing:
        warn(
            f"{system} lacks {n_missing} of the {len(people)} sentence pairs of {gold}, and counts as aligning nothing "
            "in them; is the file cut?",
            DataWarning,
        )
    if as_json:
        record = {"gold": str(gold), "system": str(system), "n": len(people), "n_missing": n_missing}
        print_json({**record, **values})
        return
    for name, value in values.items():
        click.echo(f"{name:<10} {'none: the gold aligns nothing' if value is None else f'{value:.4f}'}")


def _write_all(folder: Path, systems: Sequence[SystemAlignments]) -> None:
    from likewise.data import write_wa
    from likewise.evaluation.ists import VARIANTS

    folder.mkdir(parents=True, exist_ok=True)
    written: set[str] = set()
    for system in systems:
        for variant in VARIANTS:
            stem = re.sub(r"[^\w.-]+", "_", f"{system.subset}.{system.model}.{system.similarity}.{variant}")
            name, number = f"{stem}.wa", 1
            while name.lower() in written:  # "p/m" and "p_m" are two models; and some disks see no capitals
                number += 1
                name = f"{stem}.{number}.wa"
            written.add(name.lower())
            write_wa(folder / name, system.aligned(variant))
            click.echo(f"wrote {folder / name}, what {system.model}, {system.similarity} aligned", err=True)
