"""What the verbs of `likewise evaluate` share: models, similarities, where results go, and printing them."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import click

from likewise.cli.evaluate.outputs import STDOUT, Outputs, given_paths, words_of, write_all
from likewise.cli.options import load, model_options, print_json, similarity_option
from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.evaluation.measures import Measure
    from likewise.evaluation.provenance import MeasuredModel, Provenance
    from likewise.evaluation.statistics import Comparison
    from likewise.evaluation.worst import WorstPair
    from likewise.model import Model

__all__ = [
    "BOTH",
    "Models",
    "Outputs",
    "compared",
    "data_option",
    "default_similarities",
    "evaluation_options",
    "finish",
    "partial_option",
    "resamples_option",
    "rivals",
    "worst_of",
    "worst_option",
]


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
class Models:
    """The models that --model names, loaded one after another: iterate, and only one is held at a time.

    All of them are found, and their folders read, when this is made: a bad name costs no other model's numbers.

    Raises:
        ModelNotFoundError: Nothing of a name is at hand.
        ModelError: A folder holds no model.
        UsageError: Two names are of one folder.
    """

    names: tuple[str, ...]
    """As given; the default model if empty."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of `Model.load`, the same for all."""
    measured: list[MeasuredModel] = field(default_factory=list, init=False)
    """What is to be said of those that were loaded."""
    _folders: list[Path] = field(default_factory=list, init=False)

    def __len__(self) -> int:
        return max(len(self.names), 1)

    def __post_init__(self) -> None:
        from likewise.model import DEFAULT, find
        from likewise.model.loading import folder_spec

        for name in self.names or (DEFAULT,):
            folder = find(name, revision=self.options.get("revision")).folder
            folder_spec(folder, pooling=self.options.get("pooling"))
            if folder.resolve() in [one.resolve() for one in self._folders]:
                raise click.UsageError(
                    f"--model names the same model twice: {name} is in the folder of another one; a model compared "
                    "with itself says nothing"
                )
            self._folders.append(folder)

    def __iter__(self) -> Iterator[Model]:
        from likewise.evaluation.provenance import measured_model

        for place, name in enumerate(self.names or (None,)):
            model = load(name, **self.options, called=self._called(place))
            self.measured.append(measured_model(model, self.options.get("precision")))
            yield model

    def check_similarities(self, names: Sequence[str]) -> None:
        """Each model can be compared as asked.

        Raises:
            InputError: A token-level model and a similarity of pooled vectors.
        """
        from likewise.model.loading import folder_spec
        from likewise.similarity import by_name

        pooled = [name for name in names if not by_name(name).needs_tokens]
        for folder in self._folders if pooled else ():
            if folder_spec(folder, pooling=self.options.get("pooling")).head.pooling is None:
                raise InputError(
                    f"similarity '{pooled[0]}' compares pooled vectors, and {folder.name} is a token-level model "
                    "without pooling; use rcmd or transport"
                )

    def _called(self, place: int) -> str | None:
        """So many last parts of a folder's path as no other has; None where the name that it has by itself will do."""
        paths = [Path(os.path.abspath(name)) for name in self.names if Path(name).is_dir()]
        if not self.names or not Path(self.names[place]).is_dir():
            return None
        own = Path(os.path.abspath(self.names[place])).parts
        tails = [path.parts[-k:] for path in paths for k in range(1, 1 + len(path.parts))]
        length = next(k for k in range(1, 1 + len(own)) if tails.count(own[-k:]) == 1)
        called = str(Path(*own[-length:]))
        return None if called == Path(self.names[place]).name else called  # "." and ".." have no name by themselves


_MODELS = "likewise.evaluate.models"
"""Where the context of a verb holds its models."""

BOTH = "cosine and rcmd; of a token-level model rcmd"
"""What `default_similarities` gives, for help."""


def data_option(help: str, *, required: bool = True) -> Callable[..., Any]:
    """--data, as the parameter `folder`."""
    return click.option("--data", "folder", type=click.Path(path_type=Path), required=required, help=help)


def evaluation_options(
    *, similarity: bool = True, default_is: str = BOTH
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The shared options. The verb gets `models: Models`, `outputs: Outputs` and, unless False, `similarity`.

    `similarity` is a tuple of names, empty if none was given; `default_is` says in its help what that means. What
    cannot be written, and models that are not there, are refused before the verb begins.
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
            context = click.get_current_context()
            outputs = Outputs(as_json, csv, latex, html, details, own.get("worst", 0))
            outputs.check(given_paths(own, context.command.params))
            options = {"revision": revision, "pooling": pooling, "device": device, "precision": precision}
            models = Models(name, options)
            if similarity:
                own["similarity"] = tuple(dict.fromkeys(own["similarity"]))
                models.check_similarities(own["similarity"])
            context.meta[_MODELS] = models
            verb(models=models, outputs=outputs, **own)

        run: Callable[..., None] = shared
        for option in reversed(_OUTPUT_OPTIONS):
            run = option(run)
        run = model_options(run, multiple=True)
        return similarity_option(multiple=True, default_is=default_is)(run) if similarity else run

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
    help="Worst errors (pairs, triplets, queries, whatever is measured) a task, model and similarity, for --details, "
    "--json FILE and --html; 0 for none.",
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


partial_option = click.option(
    "--partial", is_flag=True, help="Of a folder: leave out judgements on documents and queries that are not there."
)
"""--partial, for a part of a set with the judgements of the whole."""


_FILE = click.Path(path_type=Path, dir_okay=False)

_OUTPUT_OPTIONS = (
    click.option(
        "--json",
        "as_json",
        metavar="[FILE]",
        is_flag=False,
        flag_value=STDOUT,
        help="Write everything as JSON; without FILE, print JSON lines in place of the table: a record for each task, "
        "subset, model and similarity, and no differences.",
    ),
    click.option("--csv", type=_FILE, help="Write every measure, one a line."),
    click.option("--latex", type=_FILE, help="Write the tables for LaTeX (booktabs)."),
    click.option("--html", type=_FILE, help="Write one self-contained page with everything."),
    click.option("--details", is_flag=True, help="Print every subset, the slices and the worst errors, too."),
)


def finish(
    measures: Sequence[Measure],
    worst: Sequence[WorstPair],
    outputs: Outputs,
    *,
    title: str,
    comparisons: Sequence[Comparison] = (),
    slices: Sequence[Measure] = (),
    notes: Sequence[str] = (),
) -> None:
    """Print the table, or JSON lines, and write the files that were asked for, even where printing fails.

    Args:
        measures: Every number.
        worst: Pairs that a system gets most wrong.
        outputs: Where results go.
        title: What was evaluated and in which unit, such as "STS benchmark, test (correlations × 100)".
        comparisons: Differences of systems.
        slices: Numbers of kinds of pairs.
        notes: What a reader of the numbers has to know, a sentence each.
    """
    from likewise.evaluation.tables import Results, to_records

    listed = worst if outputs.n_worst else None
    how = _how(measures, comparisons)
    results = Results(title, measures, comparisons, slices, listed, notes, how)
    try:
        if outputs.lines:
            for record in to_records(measures):
                print_json(record)
        else:
            _print_tables(results, outputs.details)
    finally:
        write_all(results, outputs)


def worst_of(
    model: Model, names: Sequence[str], systems: Sequence[Any], k: int, *, special_tokens: bool = True
) -> list[WorstPair]:
    """The k worst errors of each system of a model, explained by the similarity of the same place in `names`."""
    from likewise.evaluation.worst import explain_worst

    return [
        pair
        for name, system in zip(names, systems, strict=True)
        for pair in explain_worst(model, system.worst(k), name, special_tokens=special_tokens)
    ]


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


def _how(measures: Sequence[Measure], comparisons: Sequence[Comparison]) -> Provenance:
    from likewise.evaluation.provenance import command_line, measured
    from likewise.evaluation.statistics import RESAMPLES

    context = click.get_current_context()
    drawn = context.params.get("resamples", RESAMPLES)
    lows = [*(one.low for one in measures), *(one.low for one in comparisons)]
    if not drawn or all(low is None for low in lows):
        drawn = None
    models = context.meta[_MODELS].measured if _MODELS in context.meta else ()  # a training names its own
    similarities = list(dict.fromkeys(one.similarity for one in measures))
    return measured(command_line(words_of(context)), models, similarities, drawn)
