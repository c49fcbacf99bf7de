"""From tokens to words: contributions add, so the sums of blocks are exact too."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.types import TextTokens

__all__ = ["Word", "roll_up", "words_of"]

_JOINERS = "'’"
"""Marks that stay inside a word between two letters, as in don't."""

_JOINER = "\u200d"
"""Zero-width joiner: it makes one sign of its neighbours."""

_JOINED_MARKS = _JOINER + "\ufe0e\ufe0f"
"""The joiner and the variation selectors, which belong to the sign before them."""


@dataclass(frozen=True)
class Word:
    """A run of tokens that make up one word, one punctuation mark or one special token."""

    text: str
    """Its characters in the original text; the token's own name if it is special."""
    start: int
    """First character in the original text."""
    end: int
    """One past the last character."""
    tokens: tuple[int, ...]
    """Rows of the token table that belong to it."""
    special: bool
    """Made of special tokens only."""


def words_of(side: TextTokens) -> list[Word]:
    """The words of a text with the tokens of each, in reading order; special tokens stand alone.

    A token belongs to the word with which it shares most characters. A word that the model did not
    see, because the text was cut, is left out. Every token is in exactly one word.
    """
    spans = _spans(side.text)
    owned: dict[int, list[int]] = {}
    words: list[Word] = []
    for row, token in enumerate(side.tokens):
        owner = None if token.special else _owner(token.start, token.end, spans)
        if owner is None:
            words.append(Word(token.text, token.start, token.end, (row,), token.special))
        else:
            owned.setdefault(owner, []).append(row)
    for owner, rows in owned.items():
        start, end = spans[owner]
        words.append(Word(side.text[start:end], start, end, tuple(rows), False))
    return sorted(words, key=lambda word: word.tokens[0])


def roll_up(
    table: Float[Any, "source target"], rows: Sequence[Sequence[int]], columns: Sequence[Sequence[int]]
) -> Float[np.ndarray, "groups_a groups_b"]:
    """Sum a token table over groups of rows and of columns.

    Args:
        table: One value for each pair of tokens, such as contributions.
        rows: Token rows of each group on the left.
        columns: Token rows of each group on the right.

    Returns:
        One value for each pair of groups. If each token is in one group, the sum is that of the table.
    """
    table = np.asarray(table)
    by_row = np.stack([table[list(group)].sum(0) for group in rows]) if len(rows) else np.zeros((0, table.shape[1]))
    if not len(columns):
        return np.zeros((len(rows), 0))
    return np.stack([by_row[:, list(group)].sum(1) for group in columns], axis=1)


def _owner(start: int, end: int, spans: Sequence[tuple[int, int]]) -> int | None:
    shared = [(min(end, stop) - max(start, begin), -i) for i, (begin, stop) in enumerate(spans)]
    best = max(shared, default=(0, 0))
    return -best[1] if best[0] > 0 else None


def _spans(text: str) -> list[tuple[int, int]]:
    """Words and single signs. Letters, digits and their marks form words; scripts without blanks go sign by sign."""
    spans: list[tuple[int, int]] = []
    previous = ""
    for i, sign in enumerate(text):
        kind = _kind(text, i)
        extends = bool(spans) and spans[-1][1] == i
        joined = kind == "mark" or (kind == previous == "word") or text[i - 1 : i] == _JOINER
        if extends and joined:
            spans[-1] = (spans[-1][0], i + 1)
        elif kind != "blank":
            spans.append((i, i + 1))
        if not (kind == "mark" and extends) and sign not in _JOINED_MARKS:
            previous = kind
    return spans


def _kind(text: str, i: int) -> str:
    sign = text[i]
    category = unicodedata.category(sign)
    if sign in _JOINED_MARKS or category[0] == "M" or "\U0001f3fb" <= sign <= "\U0001f3ff":
        return "mark"
    if sign.isspace() or category in ("Cc", "Cf"):
        return "blank"
    if "\u2e80" <= sign <= "\u9fff" or "\U00020000" <= sign <= "\U0003ffff":
        return "sign"
    if category[0] in "LN":
        return "word"
    if sign in _JOINERS and 0 < i < len(text) - 1 and text[i - 1].isalnum() and text[i + 1].isalnum():
        return "word"
    return "sign"
