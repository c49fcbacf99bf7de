"""What counts as texts: one string, or anything that yields strings in an order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from likewise.errors import InputTypeError

__all__ = ["as_texts"]


def as_texts(texts: Any) -> Iterator[str]:
    """Yield the strings of a list, generator, array, pandas or polars column, or dataset column.

    A pyarrow array is read, too.

    Args:
        texts: Any iterable of strings, read by position; a single string is one text.

    Raises:
        InputTypeError: The container has no order or no rows of text, or an item is not a string;
            the message names its position and its type.
    """
    if isinstance(texts, str):
        texts = [texts]
    if isinstance(texts, (bytes, bytearray, memoryview, Mapping, Set)) or hasattr(texts, "columns"):
        raise InputTypeError(
            f"texts are a {type(texts).__name__}, which is not a sequence of strings; give a list of str or one column"
        )
    try:
        items: Iterable[Any] = iter(texts)
    except TypeError as error:
        raise InputTypeError(f"texts are a {type(texts).__name__}; give a str or an iterable of str") from error
    for position, text in enumerate(items):
        if hasattr(text, "as_py"):  # a scalar of pyarrow
            text = text.as_py()
        if not isinstance(text, str):
            raise InputTypeError(
                f"text {position} is {_shown(text)} of type {type(text).__name__}, not str; drop the row or fill it in"
            )
        yield str(text)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
