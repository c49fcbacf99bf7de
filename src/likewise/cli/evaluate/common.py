"""What the verbs of `likewise evaluate` share: models, similarities, where results go, and printing them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import click

from likewise.cli.options import load, model_options, print_json, similarity_option

if TYPE_CHECKING:
    from likewise.evaluation.measures import Measure
    from likewise.evaluation.statistics import Comparison
    from likewise.evaluation.worst import WorstPair
    from likewise.model import Model

__all__ = [
    "Models",
    "Outputs",
    "compared",
    "data_option",
    "default_similarities",
    "evaluation_options",
    "finish",
    "resamples_option",
    "rivals",
    "worst_option",
]

_STDOUT = "-"


@runtime_checkable
class HasNames(Protocol):
    """Scores of one model under one similarity."""

    @property
    def model(self) -> str:
        """Name of the model."""

    @property
    def similarity(self) -> str:
        """How it compared."""


System = TypeVar("System", bound=HasNames)


@dataclass(frozen=True)
class Outputs:
    """Where results go besides the table."""

    json: str | None
    """File for everything as JSON; "-" for JSON lines on standard output in place of the table."""
    csv: Path | None
    """File for the measures."""
    latex: Path | None
    """File for the tables."""
    html: Path | None
    """File for one page with everything."""
    details: bool
    """Print every subset, the slices and the worst pairs, too."""


@dataclass(frozen=True)
class Models:
    """The models that --model names, loaded one after another: iterate, and only one is held at a time."""

    names: tuple[str, ...]
    """As given; the default model if empty."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of `Model.load`, the same for all."""

    def __len__(self) -> int:
        return max(len(self.names), 1)

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            raise click.UsageError("--model names the same model twice; a model compared with itself says nothing")

    def __iter__(self) -> Iterator[Model]:
        folders = [Path(name).absolute().name for name in self.names]
        for name in self.names or (None,):
            same = name is not None and folders.count(Path(name).absolute().name) > 1
            yield load(name, **self.options, called=name if same else None)


def data_option(help: str, *, required: bool = True) -> Callable[..., Any]:
    """--data, as the parameter `folder`."""
    return click.option("--data", "folder", type=click.Path(path_type=Path), required=required, help=help)


def evaluation_options(*, similarity: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The shared options. The verb gets `models: Models`, `outputs: Outputs` and, unless False, `similarity`.

    `similarity` is a tuple of names, empty if none was given.
    """

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(verb)
        def shared(
            *,
            name: tuple[str, ...],
            revision: str | None,
            pooling: str | None,
            device: str | None,
            precision: str | None,
            as_json: str | None,
            csv: Path | None,
            latex: Path | None,
            html: Path | None,
            details: bool,
            **own: Any,
        ) -> None:
            options = {"revision": revision, "pooling": pooling, "device": device, "precision": precision}
            outputs = Outputs(as_json, csv, latex, html, details)
            verb(models=Models(name, options), outputs=outputs, **own)

        run: Callable[..., None] = shared
        for option in reversed(_OUTPUT_OPTIONS):
            run = option(run)
        run = model_options(run, multiple=True)
        return similarity_option(multiple=True)(run) if similarity else run

    return decorate


resamples_option = click.option(
    "--resamples",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="Of the bootstrap; 0 for no intervals.",
)
"""--resamples."""

worst_option = click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Worst pairs a task, model and similarity, for --details, --json FILE and --html.",
)
"""--worst."""


def default_similarities(model: Model) -> tuple[str, ...]:
    """Cosine and RCMD; RCMD alone for a token-level model."""
    return ("cosine", "rcmd") if model.pooled else ("rcmd",)


def rivals(systems: Sequence[System]) -> list[tuple[System, System]]:
    """Which systems are compared, as (first, second).

    Each model with the first one under the same similarity; the similarities of a single model with its first.
    """
    if len({system.model for system in systems}) == 1:
        return [(systems[0], system) for system in systems[1:]]
    first = {system.similarity: system for system in systems if system.model == systems[0].model}
    others = [system for system in systems if system.model != systems[0].model]
    return [(first[system.similarity], system) for system in others if system.similarity in first]


_FILE = click.Path(path_type=Path, dir_okay=False)

_OUTPUT_OPTIONS = (
    click.option(
        "--json",
        "as_json",
        metavar="[FILE]",
        is_flag=False,
        flag_value=_STDOUT,
        help="Write everything as JSON; without FILE, print JSON lines in place of the table.",
    ),
    click.option("--csv", type=_FILE, help="Write every measure, one a line."),
    click.option("--latex", type=_FILE, help="Write the tables for LaTeX (booktabs)."),
    click.option("--html", type=_FILE, help="Write one self-contained page with everything."),
    click.option("--details", is_flag=True, help="Print every subset, the slices and the worst pairs, too."),
)


def finish(
    measures: Sequence[Measure],
    worst: Sequence[WorstPair],
    outputs: Outputs,
    *,
    title: str,
    comparisons: Sequence[Comparison] = (),
    slices: Sequence[Measure] = (),
) -> None:
    """Print the table, or JSON lines, and write the files that were asked for.

    Args:
        measures: Every number.
        worst: Pairs that a system gets most wrong.
        outputs: Where results go.
        title: What was evaluated, such as "STS benchmark, test".
        comparisons: Differences of systems.
        slices: Numbers of kinds of pairs.
    """
    from likewise.evaluation.tables import Results, to_json, to_latex, to_records, write_csv

    results = Results(title, measures, comparisons, slices, worst)
    if outputs.json == _STDOUT:
        for record in to_records(measures):
            print_json(record)
    else:
        _print_tables(results, outputs.details)
    if outputs.json and outputs.json != _STDOUT:
        _write(Path(outputs.json), to_json(results))
    if outputs.csv:
        write_csv(measures, outputs.csv)
        click.echo(f"wrote {outputs.csv}", err=True)
    if outputs.latex:
        _write(outputs.latex, to_latex(results))
    if outputs.html:
        from likewise.evaluation.report import to_page

        _write(outputs.html, to_page(results))


def compared(systems: Sequence[Any]) -> list[Comparison]:
    """Each system against its rival, see `rivals`."""
    return [one for first, second in rivals(systems) for one in second.compare(first)]


def _print_tables(results: Any, details: bool) -> None:
    from likewise.evaluation.terminal import print_results, to_text

    if sys.stdout.isatty():
        from rich.console import Console

        print_results(results, Console(), details=details)
    else:
        sys.stdout.write(to_text(results, details=details))


def _write(path: Path, text: str) -> None:
    from likewise.files import atomic_file

    with atomic_file(path, "w") as stream:
        stream.write(text)
    click.echo(f"wrote {path}", err=True)
