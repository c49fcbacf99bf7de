"""likewise train"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.evaluate.common import Outputs, finish
from likewise.cli.options import print_json
from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.recipes import Plan, Preview

__all__ = ["train"]

_EXAMPLE = """\b
Examples:
  likewise train reproduce/clrcmd.toml --data DATA
  likewise train reproduce/clrcmd.toml --data DATA --size full --dry-run
  torchrun --nproc_per_node 2 -m likewise train reproduce/clrcmd.toml --data DATA
"""

_STDOUT = "-"


@click.command(short_help="Train a model by a recipe; see reproduce/.", epilog=_EXAMPLE)
@click.argument("recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--size",
    type=click.Choice(["smoke", "small", "full"]),
    default="smoke",
    show_default=True,
    help="Does it run (minutes on a CPU), does it learn (a small-scale check), or as the recipe says. A recipe "
    "without sizes of its own always runs in full.",
)
@click.option(
    "--data", "folder", type=click.Path(path_type=Path), help="The data sets.  [default: $LIKEWISE_DATA, else data]"
)
@click.option("-m", "--model", "base", help="Folder or hub name of the base model, in place of the recipe's.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where the runs go.  [default: runs/RECIPE-SIZE]")
@click.option(
    "--seed", "seeds", type=click.IntRange(min=0), multiple=True, help="In place of the recipe's; repeatable."
)
@click.option("--resume", is_flag=True, help="Go on after an interruption; finished runs are not repeated.")
@click.option("--dry-run", is_flag=True, help="Count data and steps and estimate memory; train nothing.")
@click.option(
    "--json",
    "as_json",
    metavar="[FILE]",
    is_flag=False,
    flag_value=_STDOUT,
    help="Write the scores as JSON; without FILE, print JSON lines in place of the table.",
)
def train(
    *,
    recipe: Path,
    size: str,
    folder: Path | None,
    base: str | None,
    output: Path | None,
    seeds: tuple[int, ...],
    resume: bool,
    dry_run: bool,
    as_json: str | None,
) -> None:
    """Train a model by RECIPE, a TOML file, and print its scores before and after.

    Each seed leaves a folder OUTPUT/seed-N with the model (which `Model.load` and Sentence-Transformers read), its
    card and the recipe as it ran.
    """
    from likewise.recipes import is_first_process, plan, preview, read_recipe, run, table

    planned = plan(read_recipe(recipe), _data_folder(folder), size=size, base=base, seeds=seeds)
    if dry_run:
        _show(preview(planned), as_json)
        return
    outputs = Outputs(as_json, csv=None, latex=None, html=None, details=False)
    outputs.check({"RECIPE": recipe})  # before the hours, not after them
    first = is_first_process()
    if first:
        _say(f"recipe {planned.recipe.name}: {planned.recipe.source}")
        for note in planned.recipe.notes:
            _say(f"note: {note}")
    target = output or Path("runs") / f"{recipe.stem}-{size}"
    outcomes = run(planned, target, resume=resume, say=_say if first else lambda line: None)
    if first:
        for outcome in outcomes:
            _say(f"wrote {outcome.folder}")
        finish(
            table(outcomes),
            (),
            outputs,
            title=_title(planned),
        )


def _data_folder(given: Path | None) -> Path:
    stored = os.environ.get("LIKEWISE_DATA")
    folder = given or (Path(stored) if stored else Path("data"))
    if not folder.is_dir():
        raise InputError(
            f"no data folder {folder}; name the one that holds the data sets with --data, or set LIKEWISE_DATA "
            "(`likewise data list` says where to get them)"
        )
    return folder


def _title(plan: Plan) -> str:
    what = "the base model, then after training"
    if plan.recipe.model.kind == "cross-encoder":
        what = "after training; before it a cross-encoder has no scores"
    limit = plan.recipe.evaluation.limit
    return f"{plan.recipe.name}, size {plan.size}: {what}" + (f"; the first {limit} pairs of each set" if limit else "")


def _say(line: str) -> None:
    click.echo(line, err=True)
    sys.stderr.flush()


def _show(found: Preview, as_json: str | None) -> None:
    if as_json == _STDOUT:
        print_json(asdict(found))
        return
    if as_json:
        import json

        from likewise.files import atomic_file

        with atomic_file(as_json, "w") as stream:
            json.dump(asdict(found), stream, indent=2, ensure_ascii=False)
        click.echo(f"wrote {as_json}", err=True)
    click.echo(f"{found.name}, size {found.size}: {found.n_runs} run{'s' if found.n_runs > 1 else ''} of")
    click.echo(f"  base model  {found.base}, {found.n_parameters:,} parameters")
    for number, stage in enumerate(found.stages, start=1):
        click.echo(f"  stage {number}     {stage.objective}: {stage.n_steps:,} steps of {stage.batch_size} rows")
        for part in stage.data:
            click.echo(
                f"    {part.name}: {part.n_read:,} rows read, {part.n_overlapping:,} overlap with evaluation sets, "
                f"{part.n_used:,} used, {part.tokens_a_row:.1f} tokens a row"
            )
        click.echo(f"    memory      about {stage.memory_bytes / 1e9:.1f} GB")
    for note in found.notes:
        click.echo(f"  note        {note}")
