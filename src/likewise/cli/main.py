"""The group of verbs, and how errors leave the program."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from typing import Any

import click

from likewise import __version__
from likewise.cli.calibrate import calibrate
from likewise.cli.data import data
from likewise.cli.demo import demo
from likewise.cli.encode import encode
from likewise.cli.evaluate import evaluate
from likewise.cli.explain import explain
from likewise.cli.export import export
from likewise.cli.inspect import inspect
from likewise.cli.models import models
from likewise.cli.negatives import negatives
from likewise.cli.reproduce import reproduce
from likewise.cli.score import score
from likewise.cli.train import train
from likewise.errors import InputError, LikewiseError, LikewiseWarning
from likewise.files import NOT_WRITTEN

__all__ = ["main"]


class _ClosedOutput(io.TextIOBase):
    """What stands for a standard output that was closed from the start: it fails when it is used."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


class _ClosedInput(io.TextIOBase):
    """What stands for a standard input that was closed from the start."""

    @property
    def buffer(self) -> Any:
        """Nothing to read from."""
        raise InputError("standard input is closed, so that no text can be read from it; name a file")


class _OneLineErrors(click.Group):
    """Exit code 2 and one line on standard error for everything that the user can mend."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, writing UTF-8 whatever the locale says."""
        if sys.stdout is None:
            sys.stdout = _ClosedOutput()
        if sys.stdin is None:
            sys.stdin = _ClosedInput()
        for stream in (sys.stdout, sys.stderr):
            _speak_utf8(stream)
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if error.errno not in (*NOT_WRITTEN, errno.EBADF):
                raise
            _drop_output()
            reason = error.strerror or error
            click.echo(f"likewise: cannot write the output: {reason}; free some space or write elsewhere", err=True)
            sys.exit(2)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                warnings.simplefilter("always", LikewiseWarning)
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
        except LikewiseError as error:
            click.echo(f"likewise: {' '.join(str(error).split())}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            _drop_output()
            click.echo("likewise: interrupted", err=True)
            ctx.exit(130)
        except BrokenPipeError:  # the reader, such as head, has seen enough
            _drop_output()
            ctx.exit(0)


@click.group(cls=_OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="likewise")
def main() -> None:
    """Sentence similarity that shows its work.

    Texts and JSON lines go in, JSON lines come out; `likewise VERB --help` says more.
    """


_VERBS = (
    score,
    explain,
    encode,
    calibrate,
    export,
    inspect,
    models,
    evaluate,
    train,
    negatives,
    reproduce,
    data,
    demo,
)

for verb in _VERBS:
    main.add_command(verb)


def _speak_utf8(stream: Any) -> None:
    if hasattr(stream, "reconfigure") and stream.encoding.lower().replace("-", "") != "utf8":
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _drop_output() -> None:
    """Write what standard output still holds, or else let it go, so that the interpreter's end cannot fail on it."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    if issubclass(category, LikewiseWarning):
        click.echo(f"likewise: warning: {message}", err=True)
    elif os.environ.get("LIKEWISE_DEBUG"):
        click.echo(warnings.formatwarning(message, category, filename, lineno, line), err=True, nl=False)
