"""One's own examples: JSON lines, or columns with a header.

`FIELD_NAMES` says under which names their fields are found. Files that end in `.csv` (RFC 4180) or `.tsv` (tabs, quotes
literal) have those names in their first line, whatever the case; any other file holds one JSON object on each line.
Other fields are ignored. A file that has two names of one field is refused, since only one of them can be meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from likewise.data.examples import BinaryPair, ScoredPair, TextTriplet
from likewise.data.json_lines import number_at, object_in, shown, text_at, value_at
from likewise.data.lines import read_lines
from likewise.data.rows import columns_named, csv_rows, decimal, same_width, tab_rows
from likewise.errors import DataError

__all__ = ["FIELD_NAMES", "read_binary_pairs", "read_scored_pairs", "read_triplets"]

FIELD_NAMES: Mapping[str, tuple[str, ...]] = {
    "a": ("a", "sentence1"),
    "b": ("b", "sentence2"),
    "score": ("score", "label"),
    "same": ("same", "label"),
    "anchor": ("anchor",),
    "positive": ("positive",),
    "negative": ("negative",),
}
"""Field of one's own examples → the names it may have: ours first, then those of data for Sentence-Transformers."""

_SCORED = 'give {"a": "…", "b": "…", "score": 4.2} a line'
_BINARY = 'give {"a": "…", "b": "…", "same": true} a line'
_TRIPLET = 'give {"anchor": "…", "positive": "…", "negative": "…"} a line'

_TRUTH = {"true": True, "false": False}

T = TypeVar("T")


def read_scored_pairs(path: str | os.PathLike[str]) -> list[ScoredPair]:
    """Pairs with the score that people gave them: `{"a": "…", "b": "…", "score": 4.2}` a line, or columns so named.

    Any scale will do, since only order and proportion count. For other names see `FIELD_NAMES`.

    Raises:
        DataError: A missing file, field or pair, an empty text, a value of another kind, or two names of one field.
    """
    pairs = []
    for where, row, names in _rows(path, ("a", "b", "score")):
        a, b = (_text(row, names[side], where, _SCORED) for side in "ab")
        pairs.append(ScoredPair(a, b, number_at(row, names["score"], where, _SCORED)))
    return _some(pairs, path, "pair", _SCORED)


def read_binary_pairs(path: str | os.PathLike[str]) -> list[BinaryPair]:
    """Pairs that mean the same, or not: `{"a": "…", "b": "…", "same": true}` a line, or columns so named.

    1 and 0 do as well as true and false. For other names see `FIELD_NAMES`.

    Raises:
        DataError: A missing file, field or pair, an empty text, a value of another kind, or two names of one field.
    """
    pairs = []
    for where, row, names in _rows(path, ("a", "b", "same")):
        a, b = (_text(row, names[side], where, _BINARY) for side in "ab")
        same = value_at(row, names["same"], where, _BINARY)
        if not isinstance(same, (bool, int, float)) or same not in (0, 1):
            raise DataError(f'{where}: "{names["same"]}" is {shown(same)}, neither true nor false; {_BINARY}')
        pairs.append(BinaryPair(a, b, bool(same)))
    return _some(pairs, path, "pair", _BINARY)


def read_triplets(path: str | os.PathLike[str]) -> list[TextTriplet]:
    """Triplets: `{"anchor": "…", "positive": "…", "negative": "…"}` a line, or columns so named.

    `likewise negatives` writes them so.

    Raises:
        DataError: A missing file, field or triplet, an empty text, or a value of another kind.
    """
    sides = ("anchor", "positive", "negative")
    triplets = [
        TextTriplet(*(_text(row, names[side], where, _TRIPLET) for side in sides))
        for where, row, names in _rows(path, sides)
    ]
    return _some(triplets, path, "triplet", _TRIPLET)


def _rows(path: str | os.PathLike[str], fields: Sequence[str]) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
    """Yield (where it stands, row, our name of a field → its name in the row)."""
    if Path(path).suffix.lower() in (".csv", ".tsv"):
        yield from _columns(Path(path), fields)
        return
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{os.fspath(path)}, line {number}"
        if line.lstrip()[0] not in "{[":
            raise DataError(
                f"{where} is not a JSON object, which begins with {{; for columns, name the file .csv or .tsv and "
                f"begin it with a header ({', '.join(fields)})"
            )
        row = object_in(line, where)
        yield where, row, _names(row, fields, where)


def _columns(path: Path, fields: Sequence[str]) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
    if path.suffix.lower() == ".csv":
        rows = csv_rows(path)
    else:
        rows = (row for row in tab_rows(path, lambda n: True, "any") if row[1] != [""])
    number, header = next(rows, (1, [""]))
    keys = [name.strip().lower() for name in header]
    places = columns_named(header, {field: FIELD_NAMES[field] for field in fields}, path)
    names = _names(keys, fields, f"{path}, line {number}")
    for number, row in rows:
        same_width(row, header, path, number)
        found: dict[str, Any] = {names[field]: row[place] for field, place in places.items()}
        for field in {"score", "same"} & set(fields):
            found[names[field]] = _value_in(found[names[field]])
        yield f"{path}, line {number}", found, names


def _value_in(cell: str) -> str | bool | float:
    """What a cell says; the cell itself if it is neither a truth value nor a number, so that a message can show it."""
    value = _TRUTH.get(cell.strip().lower(), decimal(cell))
    return cell if value is None else value


def _names(keys: Mapping[str, Any] | Sequence[str], fields: Sequence[str], where: str) -> dict[str, str]:
    """Our name of a field → its name among `keys`; our own where it has none, so that a message can name it."""
    names = {}
    for field in fields:
        present = [key for key in keys if key in FIELD_NAMES[field]]
        if len(present) > 1:
            shown_keys = " and ".join(f'"{key}"' for key in present)
            raise DataError(f"{where} has both {shown_keys}, and only one can be meant; leave the other out")
        names[field] = present[0] if present else field
    return names


def _text(row: dict[str, Any], key: str, where: str, advice: str) -> str:
    text = text_at(row, key, where, advice)
    if not text.strip():
        raise DataError(f'{where}: "{key}" is empty; leave the line out, or {advice}')
    return text


def _some(rows: list[T], path: str | os.PathLike[str], what: str, advice: str) -> list[T]:
    if not rows:
        raise DataError(f"{os.fspath(path)} holds no {what}; {advice}")
    return rows
