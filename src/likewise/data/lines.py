"""Lines of a text file as they stand in it: split at newlines only, quotes literal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from likewise.errors import DataError, DataNotFoundError

__all__ = ["read_lines"]


def read_lines(source: str | os.PathLike[str] | Iterable[bytes], encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    r"""Yield (line number from 1, line without its end).

    Lines end at `\n` or `\r\n` and at nothing else, so that form feeds and Unicode separators stay
    inside a text. A byte order mark at the start is dropped.

    Args:
        source: A path, or a stream opened in binary mode.
        encoding: For the few files that are not UTF-8 as published; one in which a newline is the byte 10.

    Raises:
        DataNotFoundError: The file is missing or cannot be opened.
        DataError: A line is not UTF-8, or whatever `encoding` says.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if path.is_dir():
            raise DataNotFoundError(f"cannot read {path}: it is a folder; name a file in it")
        try:
            stream = path.open("rb")
        except OSError as error:
            raise DataNotFoundError(f"cannot read {path}: {error.strerror or error}; check the path") from error
        with stream:
            yield from _decoded(stream, str(path), encoding)
    else:
        yield from _decoded(source, getattr(source, "name", "input"), encoding)


def _decoded(stream: Iterable[bytes], name: str, encoding: str) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(stream, start=1):
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        try:
            yield number, raw.decode(encoding)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}, line {number}: byte {error.start} is not {encoding.upper()}; convert the file, for "
                "example with iconv -f latin1 -t utf-8"
            ) from error
