"""Tables, of TOML or JSON, to dataclasses: every value has the type that its field names."""

from __future__ import annotations

import dataclasses
import difflib
import reprlib
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from likewise.errors import InputError

__all__ = ["build"]

T = TypeVar("T")

_TOO_LARGE = 2**1023
"""No whole number below it overflows a float."""


def build(kind: type[T], table: Mapping[str, Any], path: str, place: str = "") -> T:
    """A dataclass from a table; lists become tuples, tables the dataclasses of their fields.

    Args:
        kind: The dataclass.
        table: Its fields by name.
        path: Where the table is from, for messages.
        place: What comes before the names of its fields, such as "model.".

    Raises:
        InputError: A key is unknown (the nearest known one is named), missing, or has a value of another type.
    """
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key in table:
        if key not in fields:
            near = difflib.get_close_matches(key, fields, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(fields)}"
            raise InputError(f"{path}: unknown key {place + key!r}{hint}")
    for name, field in fields.items():
        if name not in table and field.default is dataclasses.MISSING:
            raise InputError(f"{path}: {place + name!r} is missing; nothing stands in for it")
    values = {key: _value(hints[key], value, path, place + key) for key, value in table.items()}
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _value(hint: Any, value: Any, path: str, place: str) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for option in options:
        if typing.get_origin(option) is tuple and isinstance(value, list):
            part = typing.get_args(option)[0]
            return tuple(_value(part, one, path, f"{place}[{number}]") for number, one in enumerate(value))
        if dataclasses.is_dataclass(option) and isinstance(value, dict):
            return build(typing.cast(type, option), value, path, f"{place}.")
        if option is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < _TOO_LARGE:
            return float(value)
        if option in (str, int, float, bool, type(None)) and type(value) is option:
            return value
    wanted = " or ".join(getattr(option, "__name__", str(option)) for option in options if option is not type(None))
    raise InputError(f"{path}: {place!r} is {reprlib.repr(value)}; give a value of type {wanted}")
