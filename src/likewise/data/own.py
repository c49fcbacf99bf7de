"""One's own examples, as JSON lines."""

from __future__ import annotations

import os

from likewise.data.examples import BinaryPair, ScoredPair, TextTriplet
from likewise.data.json_lines import number_at, read_objects, text_at
from likewise.errors import DataError

__all__ = ["read_binary_pairs", "read_scored_pairs", "read_triplets"]

_SCORED = 'give {"a": "…", "b": "…", "score": 4.2} a line'
_BINARY = 'give {"a": "…", "b": "…", "same": true} a line'
_TRIPLET = 'give {"anchor": "…", "positive": "…", "negative": "…"} a line'


def read_scored_pairs(path: str | os.PathLike[str]) -> list[ScoredPair]:
    """Pairs with the score that people gave them: `{"a": "…", "b": "…", "score": 4.2}` a line.

    Any scale will do, since only order and proportion count. Other keys are ignored.

    Raises:
        DataError: A missing file or key, or a value of another kind.
    """
    pairs = []
    for where, row in read_objects(path):
        a, b = (text_at(row, key, where, _SCORED) for key in "ab")
        pairs.append(ScoredPair(a, b, number_at(row, "score", where, _SCORED)))
    return pairs


def read_binary_pairs(path: str | os.PathLike[str]) -> list[BinaryPair]:
    """Pairs that mean the same, or not: `{"a": "…", "b": "…", "same": true}` a line; 1 and 0 do as well.

    Raises:
        DataError: A missing file or key, or a value of another kind.
    """
    pairs = []
    for where, row in read_objects(path):
        a, b = (text_at(row, key, where, _BINARY) for key in "ab")
        same = row.get("same")
        if not isinstance(same, (bool, int)) or same not in (0, 1):
            raise DataError(f'{where}: "same" is {same!r}, neither true nor false; {_BINARY}')
        pairs.append(BinaryPair(a, b, bool(same)))
    return pairs


def read_triplets(path: str | os.PathLike[str]) -> list[TextTriplet]:
    """Triplets: `{"anchor": "…", "positive": "…", "negative": "…"}` a line, as `likewise negatives` writes them.

    Raises:
        DataError: A missing file or key, or a value of another kind.
    """
    return [
        TextTriplet(*(text_at(row, key, where, _TRIPLET) for key in ("anchor", "positive", "negative")))
        for where, row in read_objects(path)
    ]
