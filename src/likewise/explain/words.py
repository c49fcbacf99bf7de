"""From tokens to words: contributions add, so the sums of blocks are exact too."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.types import TextTokens, Token

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

    Every token is in exactly one word. Words that share a token are one word, since their parts cannot be
    told apart. A token without characters of its own, such as a blank, counts to the word behind it. Words
    that the model did not see, because the text was cut, are left out.
    """
    spans = _merged(_spans(side.text), side.tokens)
    owners = [None if token.special else _owner(token, spans) for token in side.tokens]
    for row in reversed(range(len(owners) - 1)):
        if owners[row] is None and not side.tokens[row].special:
            owners[row] = owners[row + 1]
    words: dict[tuple[int, int] | int, list[int]] = {}
    for row, owner in enumerate(owners):
        words.setdefault(row if owner is None else owner, []).append(row)
    return [_word(side, rows, None if isinstance(owner, int) else owner) for owner, rows in words.items()]


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


def _word(side: TextTokens, rows: list[int], span: tuple[int, int] | None) -> Word:
    token = side.tokens[rows[0]]
    if span is None:
        return Word(token.text, token.start, token.end, tuple(rows), token.special)
    return Word(side.text[slice(*span)], *span, tuple(rows), False)


def _merged(spans: list[tuple[int, int]], tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """The spans, those that one token overlaps made one."""
    for token in tokens:
        shared = [span for span in spans if not token.special and _overlap(token, span) > 0]
        if len(shared) > 1:
            at = spans.index(shared[0])
            spans = [*spans[:at], (shared[0][0], shared[-1][1]), *spans[at + len(shared) :]]
    return spans


def _owner(token: Token, spans: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    return next((span for span in spans if _overlap(token, span) > 0), None)


def _overlap(token: Token, span: tuple[int, int]) -> int:
    return min(token.end, span[1]) - max(token.start, span[0])


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
