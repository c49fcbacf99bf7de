"""Texts to words, for the baselines that know words instead of word pieces."""

from __future__ import annotations

import re

__all__ = ["words_of"]

_WORD = re.compile(r"\w+(?:['’.-]\w+)*|[^\w\s]")


def words_of(text: str) -> list[str]:
    """Words and punctuation marks in their order; case is kept.

    Example:
        >>> words_of("It isn't 3.5 m away.")
        ['It', "isn't", '3.5', 'm', 'away', '.']
    """
    return _WORD.findall(text)
