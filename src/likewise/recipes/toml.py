"""TOML in and out, as far as recipes need it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from likewise.errors import InputError

__all__ = ["read_toml", "to_toml"]


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        InputError: It is missing, not UTF-8 or not TOML.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from error


def to_toml(table: Mapping[str, Any]) -> str:
    """TOML text of nested mappings; None is left out, since TOML has no such value."""
    return "\n".join(_lines(table, "")).strip() + "\n"


def _lines(table: Mapping[str, Any], place: str) -> Iterator[str]:
    plain = {key: value for key, value in table.items() if not _is_table(value) and value is not None}
    yield from (f"{key} = {_text(value)}" for key, value in plain.items())
    for key, value in table.items():
        if isinstance(value, Mapping):
            if lines := list(_lines(value, f"{place}{key}.")):
                yield from ("", f"[{place}{key}]", *lines)
        elif _is_table(value):
            for one in value:
                yield from ("", f"[[{place}{key}]]", *_lines(one, f"{place}{key}."))


def _is_table(value: Any) -> bool:
    lists = isinstance(value, (list, tuple)) and bool(value) and all(isinstance(one, Mapping) for one in value)
    return isinstance(value, Mapping) or lists


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    return json.dumps(value, ensure_ascii=False)  # strings, numbers and truth values are written alike
