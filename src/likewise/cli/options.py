"""Options that several verbs share, and reading of what they name."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from likewise.errors import LikewiseError

if TYPE_CHECKING:
    from likewise.explain import Explanation
    from likewise.model import Model

__all__ = [
    "TEXT",
    "batches",
    "load",
    "model_options",
    "pairs_from",
    "print_json",
    "print_table",
    "similarity_option",
]

_EXPLAINABLE = ("cosine", "dot", "rcmd", "transport")
_ALL = (*_EXPLAINABLE, "euclidean", "manhattan")
_FIRST = 32


class _Text(click.ParamType):
    """A text as its bytes say it in UTF-8, whatever the locale made of them."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return os.fsencode(value).decode("utf-8")
        except UnicodeError as error:
            self.fail(f"it is not UTF-8 ({error}); convert it, for example with iconv -t utf-8", param, ctx)


TEXT = _Text()
"""Type of every argument and option that is a text."""


def model_options(verb: Callable[..., Any], *, multiple: bool = False) -> Callable[..., Any]:
    """--model, --revision, --pooling, --device, --precision; with `multiple` --model may be given several times."""
    for option in (
        click.option(
            "--precision",
            type=click.Choice(["float32", "bfloat16", "float16", "int8", "int8+", "fast"]),
            help="Of the model's products; fast is the quickest that the processor has.  [default: float32]",
        ),
        click.option("--device", help="Such as cpu or cuda:0; by default the first GPU, if there is one."),
        click.option("--pooling", help="For a checkpoint that does not say: mean, cls, max … or none."),
        click.option("--revision", help="Branch, tag or commit on the hub."),
        click.option(
            "-m",
            "--model",
            "name",
            multiple=multiple,
            help=f"Folder or hub name{', may be repeated' if multiple else ''}.  [default: all-MiniLM-L6-v2]",
        ),
    ):
        verb = option(verb)
    return verb


def similarity_option(
    *, explainable: bool = False, default_is: str = "what the model says", **more: Any
) -> Callable[..., Any]:
    """--similarity, with the names that the verb can use; `default_is` stands in its help."""
    names = click.Choice(_EXPLAINABLE if explainable else _ALL)
    repeated = ", may be repeated" if more.get("multiple") else ""
    text = f"How to compare{repeated}.  [default: {default_is}]"
    return click.option("-s", "--similarity", type=names, help=text, **more)


def load(name: str | None, similarity: str | None = None, called: str | None = None, **options: Any) -> Model:
    """The model that the options name; in tables it has the name `called`, if that is given."""
    from likewise.model import DEFAULT, Model

    return Model.load(name or DEFAULT, similarity=similarity, name=called, **options)


def pairs_from(source: Any) -> Iterator[dict[str, Any]]:
    """JSON lines with the texts `a` and `b`; other keys are kept.

    Raises:
        DataError: A line is not such an object; its number is named.
    """
    from likewise.data import read_objects, text_at

    for where, row in read_objects(source):
        for side in "ab":
            text_at(row, side, where, 'give {"a": "…", "b": "…"} a line')
        yield row


def batches(items: Iterator[Any], size: int = 1024) -> Iterator[list[Any]]:
    """Lists of items: few at first, so that an answer comes soon, then up to `size`.

    A bad item ends the stream only after those before it were given out.
    """
    wanted = min(_FIRST, size)
    while True:
        batch: list[Any] = []
        trouble: LikewiseError | None = None
        try:
            for item in itertools.islice(items, wanted):
                batch.append(item)
        except LikewiseError as error:
            trouble = error
        if batch:
            yield batch
        if trouble:
            raise trouble
        if len(batch) < wanted:
            return
        wanted = min(2 * wanted, size)


def print_json(row: Any) -> None:
    """One JSON line on standard output."""
    text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates can only be written escaped
        text = json.dumps(row, allow_nan=False)
    sys.stdout.write(text + "\n")


def print_table(explanation: Explanation, level: str = "word") -> None:
    """An explanation on standard output: in colour and fitted to a terminal, else plain and in full."""
    from likewise.explain.render.terminal import to_console, to_text

    if sys.stdout.isatty():
        from rich.console import Console

        to_console(explanation, Console(), level=level)
    else:
        sys.stdout.write(to_text(explanation, level=level))
