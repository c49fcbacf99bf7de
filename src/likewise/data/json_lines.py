"""JSON lines: one object on each line, and the texts and numbers in it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

from likewise.data.lines import read_lines
from likewise.errors import DataError

__all__ = ["number_at", "object_in", "read_objects", "shown", "text_at", "texts_at", "value_at"]


def read_objects(source: str | os.PathLike[str] | Iterable[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (where it stands, object) for every line that is not blank.

    Args:
        source: A path, or a stream opened in binary mode. For a path the place names the file.

    Raises:
        DataError: See `read_lines` and `object_in`.
    """
    prefix = f"{os.fspath(source)}, " if isinstance(source, (str, os.PathLike)) else ""
    for number, line in read_lines(source):
        if line.strip():
            where = f"{prefix}line {number}"
            yield where, object_in(line, where)


def object_in(line: str, where: str) -> dict[str, Any]:
    """The object that a line holds.

    Raises:
        DataError: It is not JSON (NaN and numbers beyond float64 are not), not an object, or has a key twice.
    """
    try:
        row = json.loads(line, parse_constant=_refused, parse_float=_finite, object_pairs_hook=_once)
    except _RepeatedKey as error:
        raise DataError(f"{where}: {error}, and only one value can be meant; leave the other out") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON ({error}); is the file cut? give one JSON object on each line") from error
    if not isinstance(row, dict):
        raise DataError(f"{where} is a JSON {type(row).__name__}, not an object; give one object on each line")
    return row


def text_at(row: dict[str, Any], key: str, where: str, advice: str) -> str:
    """The text under a key.

    Raises:
        DataError: The key is missing, or holds something else.
    """
    value = value_at(row, key, where, advice)
    if not isinstance(value, str):
        raise DataError(f'{where}: "{key}" is {shown(value)}, not a text; {advice}')
    return value


def texts_at(row: dict[str, Any], key: str, where: str, advice: str) -> list[str]:
    """The list of texts under a key.

    Raises:
        DataError: The key is missing, or holds something else.
    """
    value = value_at(row, key, where, advice)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise DataError(f'{where}: "{key}" is {shown(value)}, not a list of texts; {advice}')
    return value


def number_at(row: dict[str, Any], key: str, where: str, advice: str) -> float:
    """The number under a key.

    Raises:
        DataError: The key is missing, or holds something else, or a number beyond float64.
    """
    value = value_at(row, key, where, advice)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f'{where}: "{key}" is {shown(value)}, not a number; {advice}')
    try:
        return float(value)
    except OverflowError as error:
        raise DataError(f'{where}: "{key}" is {shown(value)}, beyond the range of float64; {advice}') from error


def value_at(row: dict[str, Any], key: str, where: str, advice: str) -> Any:
    """Whatever stands under a key.

    Raises:
        DataError: The key is missing.
    """
    if key not in row:
        raise DataError(f'{where}: "{key}" is missing; {advice}')
    return row[key]


def shown(value: Any) -> str:
    """A value as JSON, short enough for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


class _RepeatedKey(ValueError):
    """An object has a key twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKey(f"the key {shown(next(key for key in keys if keys.count(key) > 1))} stands twice")
    return row


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refused(text)
