"""Where results of an evaluation go: checked before anything is computed, and each written whatever befalls others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.errors import InputError, LikewiseError

if TYPE_CHECKING:
    from likewise.evaluation.tables import Results

__all__ = ["STDOUT", "Outputs", "words_of", "write_all"]

STDOUT = "-"
"""Value of --json without a file."""


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
    """Print every subset, the slices and the worst errors, too."""
    n_worst: int = 0
    """Worst errors asked for; 0 for a verb that has none."""

    @property
    def lines(self) -> bool:
        """JSON lines are printed in place of the table."""
        return self.json == STDOUT

    @property
    def files(self) -> dict[str, Path]:
        """Option → the file that it names."""
        json = None if self.json is None or self.lines else Path(self.json)
        named = {"--json": json, "--csv": self.csv, "--latex": self.latex, "--html": self.html}
        return {option: path for option, path in named.items() if path is not None}

    def check(self, inputs: Mapping[str, Path]) -> None:
        """Every file can be written, and none is written twice or over what is read.

        Args:
            inputs: Option → what it names.

        Raises:
            UsageError: An empty name, or one file for two options.
            InputError: The folder is missing or cannot be written, or the name is that of a folder.
        """
        empty = ("", Path())
        for option, given in (("--json", self.json), *self.files.items()):
            if given in empty:
                raise click.UsageError(f"{option} names no file: its value is empty; give a name")
        taken = {_place(path): option for option, path in inputs.items() if path.is_file()}
        for option, path in self.files.items():
            _check_file(path)
            other = taken.setdefault(_place(path), option)
            if other != option and not _is_device(path):
                raise click.UsageError(f"{option} and {other} both name {path}; one would overwrite the other")


def write_all(results: Results, outputs: Outputs) -> None:
    """Write each file that was asked for.

    Raises:
        InputError: Files could not be written; all others are.
    """
    problems = []
    for path, content in _jobs(results, outputs):
        try:
            _write(path, content())
        except (LikewiseError, OSError) as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise InputError("; ".join(map(str, problems)))


def words_of(context: click.Context) -> list[Any]:
    """The command line as options and values, those that were given."""
    names = []
    parent: click.Context | None = context
    while parent is not None and parent.parent is not None:
        names.append(parent.info_name or "")
        parent = parent.parent
    words: list[Any] = ["likewise", *reversed(names)]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is click.core.ParameterSource.COMMANDLINE:
            option, value = max(parameter.opts, key=len), context.params[parameter.name or ""]
            for one in value if isinstance(value, tuple) else (value,):
                alone = one is True or (parameter.name == "as_json" and one == STDOUT)
                words += [option] if alone else [option, one if isinstance(one, (str, Path)) else str(one)]
    return words


def _jobs(results: Results, outputs: Outputs) -> Iterator[tuple[Path, Callable[[], str]]]:
    from likewise.evaluation.latex import to_latex
    from likewise.evaluation.report import to_page
    from likewise.evaluation.tables import to_csv, to_json

    makers: Mapping[str, Callable[[], str]] = {
        "--json": lambda: to_json(results),
        "--csv": lambda: to_csv(results.measures),
        "--latex": lambda: to_latex(results),
        "--html": lambda: to_page(results),
    }
    for option, path in outputs.files.items():
        yield path, makers[option]


def _write(path: Path, text: str) -> None:
    from likewise.files import atomic_file

    with atomic_file(path, "w") as stream:
        stream.write(text)
    click.echo(f"wrote {path}", err=True)


def _check_file(path: Path) -> None:
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"cannot write {path}: it is a folder; name a file in it")
    if not target.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}; make it, or name a file elsewhere")
    if not os.access(path if _is_device(path) else target.parent, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied; choose a folder that is writable")


def _place(path: Path) -> str:
    return os.path.realpath(path)


def _is_device(path: Path) -> bool:
    """Such as /dev/stdout, which can be written more than once."""
    return path.exists() and not path.is_file() and not path.is_dir()


def given_paths(values: Mapping[str, Any], options: Sequence[click.Parameter]) -> dict[str, Path]:
    """Option → the path that it was given."""
    names = {one.name: max(one.opts, key=len) for one in options}
    return {names[key]: value for key, value in values.items() if isinstance(value, Path) and key in names}
