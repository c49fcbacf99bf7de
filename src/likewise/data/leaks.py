"""Keeping evaluation sentences out of training data."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from likewise.data.rows import Rows
from likewise.errors import InputError

__all__ = ["drop_overlapping", "normalised", "sentences"]

Example = TypeVar("Example")

_NOT_TEXTS = {"label", "topic", "heading", "title"}
"""Fields of examples that hold names of things, not sentences."""


def drop_overlapping(examples: Iterable[Example], others: Iterable[Any]) -> Rows[Example]:
    """Training examples of which no sentence occurs in `others`.

    STS-b train holds pairs of STS12 to STS16, MRPC train holds most of MSRpar, captions and SNLI stand in several STS
    sets: a model trained on what it is tested on looks better than it is.

    Args:
        examples: Sentences, pairs, triplets or labelled texts, perhaps mixed.
        others: The same of the evaluation sets.

    Returns:
        Those that stay, in their order; `n_skipped` is the number of those that went.

    Raises:
        InputError: Something is neither a string nor an example of `likewise.data`.
    """
    known = {normalised(text) for other in others for text in sentences(other)}
    kept: Rows[Example] = Rows()
    for example in examples:
        if any(normalised(text) in known for text in sentences(example)):
            kept.n_skipped += 1
        else:
            kept.append(example)
    return kept


def normalised(text: str) -> str:
    """What stays the same when a sentence is tokenised, lower-cased or punctuated otherwise: its letters and digits.

    Unicode compatibility forms are made equal (NFKC). A text without any letter or digit is itself, without blanks.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or "".join(folded.split())


def sentences(example: Any) -> Iterator[str]:
    """The sentences of an example: of a pair both, of a triplet all three; a string is its own sentence.

    Raises:
        InputError: It is neither a string nor an example of `likewise.data`.
    """
    if isinstance(example, str):
        yield example
    elif isinstance(example, tuple):
        for part in example:
            yield from sentences(part)
    elif dataclasses.is_dataclass(example) and not isinstance(example, type):
        for field in dataclasses.fields(example):
            value = getattr(example, field.name)
            if field.name not in _NOT_TEXTS and (isinstance(value, str) or dataclasses.is_dataclass(value)):
                yield from sentences(value)
    else:
        raise InputError(f"{example!r} is neither a text nor an example; give what the readers of likewise.data return")
