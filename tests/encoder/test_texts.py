"""What counts as texts, and what is refused with its position and type."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likewise import Model
from likewise.encoder import as_texts
from likewise.errors import InputTypeError

THREE = ["a plane", "", "a dog"]


class ByPosition:
    """A lazy column: integer positions only, no iterator of its own."""

    def __len__(self) -> int:
        return len(THREE)

    def __getitem__(self, position: int) -> str:
        if type(position) is not int:
            raise TypeError(position)
        return THREE[position]


def _datasets_column() -> Any:
    return pytest.importorskip("datasets").Dataset.from_dict({"text": THREE})["text"]


CONTAINERS: dict[str, Any] = {
    "list": lambda: THREE,
    "tuple": lambda: tuple(THREE),
    "deque": lambda: deque(THREE),
    "generator": lambda: (text for text in THREE),
    "numpy strings": lambda: np.array(THREE),
    "numpy objects": lambda: np.array(THREE, dtype=object),
    "pandas": lambda: pd.Series(THREE),
    "pandas with gaps": lambda: pd.Series(THREE, index=[0, 2, 5]),
    "pandas filtered": lambda: pd.DataFrame({"t": ["x", *THREE]})[1:]["t"],
    "pandas string": lambda: pd.Series(THREE, index=[7, 7, 1], dtype="string"),
    "polars": lambda: pl.Series(THREE),
    "pyarrow": lambda: pytest.importorskip("pyarrow").array(THREE),
    "pyarrow in chunks": lambda: pytest.importorskip("pyarrow").chunked_array([THREE[:1], THREE[1:]]),
    "datasets column": _datasets_column,
    "by position": ByPosition,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_is_read_by_position(container: str, tiny: Model) -> None:
    texts = list(as_texts(CONTAINERS[container]()))
    assert texts == THREE
    assert all(type(text) is str for text in texts)
    np.testing.assert_array_equal(tiny.encode(CONTAINERS[container]()), tiny.encode(THREE))
    embedded = tiny.embed(CONTAINERS[container]())
    assert embedded.lengths.tolist() == tiny.embed(THREE).lengths.tolist()


def test_one_string_is_one_text(tiny: Model) -> None:
    assert list(as_texts("a plane")) == ["a plane"]
    assert list(as_texts(np.str_("a plane"))) == ["a plane"]
    np.testing.assert_allclose(tiny.encode("a plane"), tiny.encode(["a plane"])[0], atol=1e-6)
    assert tiny.encode("a plane").shape == (tiny.dim,)


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        ({"a": "b"}, "dict"),
        ({"a", "b"}, "set"),
        (frozenset("ab"), "frozenset"),
        (b"a plane", "bytes"),
        (bytearray(b"a plane"), "bytearray"),
        (pd.DataFrame({"text": THREE}), "DataFrame"),
        (pl.DataFrame({"text": THREE}), "DataFrame"),
        (3, "int"),
        (None, "NoneType"),
        (np.float64(3), "float64"),
        (np.array("a plane"), "ndarray"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_row_of_texts(texts: Any, name: str, tiny: Model) -> None:
    for read in (lambda: list(as_texts(texts)), lambda: tiny.encode(texts), lambda: tiny.embed(texts)):
        with pytest.raises(InputTypeError, match=rf"texts are a {name}"):
            read()


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (None, "NoneType"),
        (float("nan"), "float"),
        (b"bytes", "bytes"),
        (7, "int"),
        (["nested"], "list"),
        (pd.NA, "NAType"),
        (np.float32(1), "float32"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("position", [0, 7])
def test_an_item_that_is_no_string(item: Any, name: str, position: int, tiny: Model) -> None:
    texts = ["a"] * 10
    texts[position] = item
    for read in (tiny.encode, tiny.embed, tiny.coverage, tiny.matrix):
        with pytest.raises(InputTypeError, match=rf"text {position} is .* of type {name}, not str"):
            read(texts)
    with pytest.raises(TypeError):
        tiny.encode(texts)


def test_a_column_with_gaps_in_its_values() -> None:
    for column in (pd.Series(["a", None, "b"]), pl.Series(["a", None, "b"]), pd.Series(["a", None], dtype="string")):
        with pytest.raises(InputTypeError, match="text 1 is"):
            list(as_texts(column))


def test_a_pyarrow_column_with_gaps_or_of_numbers() -> None:
    array = pytest.importorskip("pyarrow").array
    for column, name in ((["a", None], "NoneType"), ([1, 2], "int")):
        with pytest.raises(InputTypeError, match=rf"of type {name}, not str"):
            list(as_texts(array(column)))


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(InputTypeError) as caught:
        list(as_texts([b"x" * 10_000]))
    assert len(str(caught.value)) < 160


def test_texts_are_read_one_at_a_time() -> None:
    def endless() -> Iterator[str]:
        while True:
            yield "again"

    texts = as_texts(endless())
    assert [next(texts) for _ in range(3)] == ["again"] * 3
