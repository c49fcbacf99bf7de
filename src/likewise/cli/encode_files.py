"""A run that writes a file: at constant memory, and able to go on where it was interrupted.

Beside the target `out.npy` stand, while a run lasts and after an interrupted one, `out.npy.partial` with the rows done
and the journal `out.npy.partial.json`: how many rows and bytes these are, their hash, and which model and settings made
them. Rows count as done a window at a time, so that the windows of a run that goes on are those of one in one go, and
with them every byte.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np

from likewise import __version__
from likewise.cli.encode_formats import FORMATS, Format
from likewise.encoder import WINDOW
from likewise.errors import DataError, InputError
from likewise.files import NOT_WRITTEN, atomic_file, sha256

if TYPE_CHECKING:
    from likewise.model import Model

__all__ = ["Line", "PartialFile", "same_run", "write_file"]

Line = tuple[str, dict[str, Any]]
"""One line of the input, and the row that it stands for."""

_fcntl: ModuleType | None
try:
    _fcntl = importlib.import_module("fcntl")
except ImportError:  # Windows
    _fcntl = None

_FORMAT = "likewise-encode-1"


def write_file(
    target: Path,
    empty: np.ndarray,
    run: Mapping[str, Any],
    lines: Iterator[Line],
    blocks: Iterable[tuple[Sequence[Line], np.ndarray]],
    *,
    resume: bool | None,
) -> None:
    """Write the vectors of all lines, whole or not at all.

    Args:
        target: File to write; its ending says the format.
        empty: [0, dim], of the type that the vectors have.
        run: What decides the vectors, see `same_run`.
        lines: The input; those done are taken from it before the first block is asked for.
        blocks: Lines and their vectors, in order.
        resume: See `PartialFile`.

    Raises:
        InputError: See `PartialFile`; or the disk is full.
        DataError: The rows do not fit the format, or the input is not that of the interrupted run.
    """
    form = FORMATS[target.suffix](empty)
    with PartialFile(target, form, {**run, "format": target.suffix}, lines, resume=resume) as partial:
        for some, vectors in blocks:
            partial.add(some, vectors)
        n = partial.finish()
    click.echo(f"wrote {n} vectors of {empty.shape[1]} to {target}", err=True)


def same_run(model: Model, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be the same in two runs for their rows to fit together; of files, their hashes."""
    digest = hashlib.sha256()
    for pattern in ("*.json", "*.safetensors", "*.txt", "*.model"):
        for path in sorted(model.folder.rglob(pattern)):
            digest.update(f"{path.relative_to(model.folder).as_posix()} {sha256(path)}\n".encode())
    files = {name: sha256(value) for name, value in settings.items() if isinstance(value, Path)}
    engine = {"likewise": __version__, "engine": model.encoder.backbone.describe()}
    return {"model": digest.hexdigest(), **engine, **settings, **files}


class PartialFile:
    """The rows done of a run, and the journal that says which they are.

    Args:
        target: The file to be made.
        form: Its format.
        run: What decides the vectors, as JSON can say it: model and settings.
        lines: The input; those whose rows are done are taken from it.
        resume: Go on with an interrupted run if there is one; False to drop it, None to refuse.

    Raises:
        InputError: The place cannot be written; another run writes it; there is an interrupted one and
            `resume` is None; or that run had
            another model or other settings.
        DataError: The input does not begin with the rows done.
    """

    def __init__(
        self, target: Path, form: Format, run: Mapping[str, Any], lines: Iterator[Line], *, resume: bool | None
    ) -> None:
        self._target, self._form, self._run = target, form, dict(run)
        self._path = target.with_name(target.name + ".partial")
        self._journal = target.with_name(target.name + ".partial.json")
        self._n_rows = self._n_done = 0
        self._digest = hashlib.sha256()
        if target.is_dir():
            raise InputError(f"cannot write {target}: it is a folder; name a file in it")
        self._stream = self._opened()
        try:
            self._start(lines, resume)
        except BaseException:
            self._stream.close()
            if not self._path.stat().st_size:
                self._path.unlink()
            raise

    def add(self, lines: Sequence[Line], vectors: np.ndarray) -> None:
        """Write the vectors of the next lines."""
        self._stream.write(self._form.body([row for _, row in lines], vectors))
        for line, _ in lines:
            self._count(line)
        if self._n_rows % WINDOW == 0:
            self._stream.flush()
            self._note(self._stream.tell())

    def finish(self) -> int:
        """Make the target of the rows; how many they are."""
        self._stream.flush()
        self._stream.seek(0)
        self._stream.write(self._form.head(self._n_rows))
        self._stream.close()
        self._form.finish(self._path, self._target)
        self._journal.unlink()
        return self._n_rows

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with suppress(OSError):  # what a full disk has left unwritten is not among the rows done
            self._stream.close()
        if error is None:
            return
        kept = f"{self._n_done} rows are kept in {self._path}; the same call with --resume goes on from there"
        if not self._n_done:
            self._path.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)
        elif isinstance(error, OSError) and error.errno in NOT_WRITTEN:
            raise InputError(f"cannot write {self._path}: {error.strerror}; free some space: {kept}") from error
        else:
            click.echo(f"likewise: {kept}", err=True)

    def _opened(self) -> IO[bytes]:
        try:
            stream = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")
        except OSError as error:
            raise InputError(
                f"cannot write {self._target}: {error.strerror or error}; choose a folder that exists and is writable"
            ) from error
        if _fcntl is not None:
            try:
                _fcntl.flock(stream, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            except BlockingIOError as error:
                stream.close()
                raise InputError(f"{self._path} is being written by another run; wait for its end") from error
        return stream

    def _start(self, lines: Iterator[Line], resume: bool | None) -> None:
        left = self._left()
        if left is not None and left["rows"]:
            if resume is None:
                raise InputError(
                    f"{self._path} holds {left['rows']} rows of an interrupted run; go on with them by --resume, or "
                    "drop them by --restart"
                )
            if resume:
                self._go_on(left, lines)
                return
            click.echo(f"likewise: the {left['rows']} rows in {self._path} are dropped", err=True)
        self._note(0)  # first, so that whose file it is can always be told
        self._stream.truncate(0)
        self._stream.write(self._form.head(0))

    def _go_on(self, left: dict[str, Any], lines: Iterator[Line]) -> None:
        for name in dict.fromkeys([*self._run, *left["run"]]):
            was, now = left["run"].get(name), self._run.get(name)
            if was != now:
                raise InputError(
                    f"{self._path} was made with {name} {was!r}, and this run has {now!r}, so that their rows would "
                    "not fit together; give the same model and settings, or begin anew with --restart"
                )
        for line, _ in islice(lines, left["rows"]):
            self._count(line)
        if (self._n_rows, self._digest.hexdigest()) != (left["rows"], left["input_sha256"]):
            raise DataError(
                f"the input does not begin with the {left['rows']} rows that {self._path} was made of: it was changed, "
                "or is another one; give the same input, or begin anew with --restart"
            )
        click.echo(f"likewise: going on after {self._n_rows} rows", err=True)
        self._n_done = self._n_rows
        self._stream.truncate(left["bytes"])
        self._stream.seek(0, os.SEEK_END)
        self._form.recall(self._path)

    def _count(self, line: str) -> None:
        self._digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
        self._n_rows += 1

    def _note(self, n_bytes: int) -> None:
        """Write the journal: the rows until now are done, and fill so many bytes."""
        state = {
            "format": _FORMAT,
            "rows": self._n_rows,
            "bytes": n_bytes,
            "input_sha256": self._digest.hexdigest(),
            "run": self._run,
        }
        with atomic_file(self._journal, "w") as stream:
            stream.write(json.dumps(state, indent=1) + "\n")
        self._n_done = self._n_rows

    def _left(self) -> dict[str, Any] | None:
        """The journal of an interrupted run, if there is one."""
        size = self._path.stat().st_size
        if not size:
            return None
        try:
            found = json.loads(self._journal.read_text(encoding="utf-8"))
            known = found["format"] == _FORMAT and size >= found["bytes"]
        except (OSError, ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise InputError(
                f"{self._path} and {self._journal.name} are not the two files of one interrupted run: they are "
                "damaged, or another program's; move them away"
            )
        return dict(found)
