"""What all readers share: finding a file, its columns and numbers, and how many rows it must have."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from likewise.data.lines import read_lines
from likewise.errors import DataError, DataNotFoundError, DataWarning, warn

__all__ = [
    "Rows",
    "chosen",
    "columns_named",
    "csv_rows",
    "decimal",
    "expect",
    "find",
    "number_in",
    "records",
    "same_width",
    "tab_rows",
    "text_of",
]

T = TypeVar("T")

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Rows(list[T]):
    """What a reader returns: a list that also knows how many rows of the file are not in it."""

    n_skipped: int
    """Rows without a label, a score or (CR, MPQA) a text. Rows that are *wrong* are never skipped: they are errors."""

    def __init__(self, rows: Iterable[T] = (), n_skipped: int = 0) -> None:
        super().__init__(rows)
        self.n_skipped = n_skipped


def find(folder: str | os.PathLike[str], candidates: Sequence[str], what: str) -> Path:
    """The first of `candidates` that is a file in `folder`.

    Raises:
        DataNotFoundError: None is there, or `folder` is a file.
    """
    if Path(folder).is_file():
        raise DataNotFoundError(f"{folder} is a file; name the folder of {what} that holds it")
    for candidate in candidates:
        path = Path(folder) / candidate
        if path.is_file():
            return path
    name = Path(candidates[0]).name
    raise DataNotFoundError(
        f"no {name} of {what} in {folder}; download {what} from its authors (`likewise data list` says where) and "
        "name the folder that holds it"
    )


def chosen(name: str, known: Iterable[str], what: str) -> str:
    """`name`, if it is one of `known`.

    Raises:
        DataError: It is not.
    """
    names = list(known)
    if name not in names:
        raise DataError(f"unknown {what} {name!r}; known are {', '.join(names)}")
    return name


def tab_rows(path: Path, accepts: Callable[[int], bool], expected: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, columns) of a file separated by tabs, in which quotes mean nothing.

    Args:
        path: The file.
        accepts: Says whether a number of columns fits the format.
        expected: The same in words, such as "at least 7 columns".

    Raises:
        DataError: A line has another number of columns.
    """
    for number, line in read_lines(path):
        columns = line.split("\t")
        if not accepts(len(columns)):
            raise DataError(
                f"{path}, line {number}: {len(columns)} columns, {expected} expected; a tab is missing or too many"
            )
        yield number, columns


def csv_rows(path: Path, lines: Iterable[tuple[int, str]] | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the line on which the row starts, fields) of a CSV file as RFC 4180 has it.

    Raises:
        DataError: A quote is not closed, or text follows a closing quote.
    """
    start = 1
    reader = csv.reader((line + "\n" for _, line in (read_lines(path) if lines is None else lines)), strict=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"{path}, line {start}: the row that starts here is not CSV ({error}); is a quote missing?"
            ) from error
        if row:
            yield start, row
        start = reader.line_num + 1


def columns_named(header: Sequence[str], aliases: Mapping[str, Sequence[str]], path: Path) -> dict[str, int]:
    """Place of each wanted column in a header, whatever the case of its name.

    Args:
        header: The names in the file.
        aliases: Our name → the names that files give it, the preferred one first.
        path: For the message.

    Raises:
        DataError: A column is not there.
    """
    names = [name.strip().lower() for name in header]
    places = {}
    for ours, theirs in aliases.items():
        place = next((names.index(name) for name in theirs if name in names), None)
        if place is None:
            shown = ", ".join(map(repr, header[:8]))
            raise DataError(
                f"{path}, line 1: no column {' or '.join(map(repr, theirs))} among {shown}; is it another file?"
            )
        places[ours] = place
    return places


def same_width(row: Sequence[str], header: Sequence[str], path: Path, number: int) -> None:
    """Nothing, if a row has as many columns as its header.

    Raises:
        DataError: It has not.
    """
    if len(row) != len(header):
        raise DataError(
            f"{path}, line {number}: {len(row)} columns, {len(header)} expected as in the header; a separator is "
            "missing, or one too many (in CSV, is a text with a comma not quoted?)"
        )


def records(
    rows: Iterator[tuple[int, list[str]]], aliases: Mapping[str, Sequence[str]], path: Path
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, our name → field) for each row below the header, which is the first row.

    Raises:
        DataError: See `columns_named` and `same_width`.
    """
    header = next(rows, (1, [""]))[1]
    places = columns_named(header, aliases, path)
    for number, row in rows:
        same_width(row, header, path, number)
        yield number, {ours: row[place] for ours, place in places.items()}


def decimal(text: str) -> float | None:
    """The number that a text writes in plain digits, such as "3", "-0.25" or "1e-3", with or without blanks around.

    None for anything else, also for what `float` takes besides: "1_0", "٣", "nan", "inf", "1e999".
    """
    plain = text.strip(" \t")
    value = float(plain) if _DECIMAL.fullmatch(plain) else math.inf
    return value if math.isfinite(value) else None


def number_in(text: str, low: float, high: float, path: Path, number: int) -> float:
    """A score in its range.

    Raises:
        DataError: `text` is not a number (see `decimal`) from `low` to `high`.
    """
    value = decimal(text)
    if value is None:
        raise DataError(
            f"{path}, line {number}: the score {text!r} is not a number in plain digits; have the columns shifted?"
        )
    if not low <= value <= high:
        raise DataError(
            f"{path}, line {number}: the score {value} is outside {low:g} to {high:g}; the columns have shifted"
        )
    return value


def text_of(text: str, path: Path, number: int) -> str:
    """A text that is not blank.

    Raises:
        DataError: It is.
    """
    if not text.strip():
        raise DataError(f"{path}, line {number}: a text is empty; the columns have shifted")
    return text


def expect(
    rows: Rows[T], n: int | None, path: str | os.PathLike[str], what: str = "rows", *, newline_at_end: bool = True
) -> Rows[T]:
    """`rows`, if they are as many as were published (`n`; None: nobody published a number).

    Warns if a published file ends inside a line, since its last text may be cut (`newline_at_end=False`: it was
    published so).

    Raises:
        DataError: They are not.
    """
    if n is not None and len(rows) != n:
        skipped = f" and {rows.n_skipped} without a label" if rows.n_skipped else ""
        raise DataError(f"{path}: {len(rows)} {what}{skipped}, {n} expected; the copy is not whole; fetch it again")
    if n is not None and newline_at_end and not _ends_with_a_newline(Path(path)):
        warn(
            f"{path} ends without a newline: its last line may be cut; compare with the original, or fetch it again",
            DataWarning,
        )
    return rows


def _ends_with_a_newline(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - 1))
        return stream.read() == b"\n"
