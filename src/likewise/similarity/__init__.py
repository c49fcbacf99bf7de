"""Scores of two texts, each of which can be told apart token by token.

cosine · dot            of pooled vectors: every pair of tokens contributes
rcmd                    relaxed contextualised mover's distance (CLRCMD)
transport               exact optimal transport between the tokens
euclidean · manhattan   minus the distance of pooled vectors: score and matrix only
"""

from __future__ import annotations

from likewise.errors import InputError
from likewise.similarity.base import Decomposition, Similarity
from likewise.similarity.cosine import Cosine, Dot
from likewise.similarity.distance import Euclidean, Manhattan
from likewise.similarity.rcmd import RCMD
from likewise.similarity.transport import Transport

__all__ = [
    "NAMES",
    "RCMD",
    "Cosine",
    "Decomposition",
    "Dot",
    "Euclidean",
    "Manhattan",
    "Similarity",
    "Transport",
    "by_name",
]

_ALL: tuple[Similarity, ...] = (Cosine(), Dot(), RCMD(), Transport(), Euclidean(), Manhattan())

NAMES = tuple(similarity.name for similarity in _ALL)
"""Names that `by_name` knows."""


def by_name(name: str | Similarity) -> Similarity:
    """The similarity called `name`; an object that is one already is returned as it is.

    Raises:
        InputError: No similarity has this name.
    """
    if isinstance(name, Similarity):
        return name
    for similarity in _ALL:
        if similarity.name == name:
            return similarity
    raise InputError(f"unknown similarity {name!r}; known are {', '.join(NAMES)}")
