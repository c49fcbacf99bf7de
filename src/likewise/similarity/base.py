"""What every similarity offers, and what an explained score is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.errors import EmptyTextWarning, InputError, warn
from likewise.types import Embeddings, array_namespace

__all__ = ["Decomposition", "Similarity", "check_same_dim", "check_same_rows", "warn_if_empty"]


@dataclass(frozen=True, eq=False)
class Decomposition:
    """One score, told apart: mass moved between tokens, times the cosine of those tokens."""

    cosines: Float[Any, "source target"]
    """Cosine of each token of the left text with each of the right one."""
    plan: Float[Any, "source target"]
    """Mass that each token sends to each token of the other text."""

    @property
    def contributions(self) -> Float[Any, "source target"]:
        """`plan * cosines`: the parts whose sum is the score."""
        return self.plan * self.cosines

    @property
    def score(self) -> Float[Any, ""]:
        """The sum of the contributions."""
        return array_namespace(self.plan).sum(self.contributions)


class Similarity(ABC):
    """A score of two texts: larger means more alike.

    All arithmetic is done in float32 or better, whatever the embeddings are stored in. A text without
    tokens, and a zero vector, score 0 with anything under every similarity but the distances.
    """

    name: str
    """The name under which `by_name` finds it and model folders keep it."""
    needs_tokens: bool = False
    """It looks at token vectors; otherwise pooled ones are enough for `score` and `matrix`."""

    @abstractmethod
    def score(self, a: Embeddings, b: Embeddings) -> Float[Any, " rows"]:
        """Row by row: text i of `a` with text i of `b`.

        Raises:
            InputError: `a` and `b` differ in rows or dim.
        """

    @abstractmethod
    def matrix(self, a: Embeddings, b: Embeddings) -> Float[Any, "rows columns"]:
        """All against all: text i of `a` with text j of `b`.

        Raises:
            InputError: `a` and `b` differ in dim.
        """

    @abstractmethod
    def decompose(self, a: Embeddings, b: Embeddings) -> list[Decomposition]:
        """Row by row, each score as a plan and the cosines that it multiplies.

        Raises:
            InputError: `a` and `b` differ in rows or dim, or this similarity is not a sum over tokens.
        """

    def contributions(self, a: Embeddings, b: Embeddings) -> list[Float[Any, "source target"]]:
        """Row by row, what each pair of tokens adds to the score; the parts sum to it.

        Raises:
            InputError: As `decompose`.
        """
        return [one.contributions for one in self.decompose(a, b)]


def check_same_dim(a: Embeddings, b: Embeddings) -> None:
    """Both sides come from one space.

    Raises:
        InputError: They differ in dim.
    """
    if a.dim != b.dim:
        raise InputError(f"embeddings of dim {a.dim} and {b.dim} cannot be compared; encode both sides with one model")


def check_same_rows(a: Embeddings, b: Embeddings) -> None:
    """Both sides can be compared row by row.

    Raises:
        InputError: They differ in rows or dim.
    """
    check_same_dim(a, b)
    if len(a) != len(b):
        raise InputError(f"{len(a)} texts cannot be scored row by row with {len(b)}; use matrix() for all against all")


def warn_if_empty(*sides: Embeddings) -> None:
    """Say once that a text has no token, so that its score is the documented 0."""
    n_empty = sum(int(np.count_nonzero(side.lengths == 0)) for side in sides)
    if n_empty:
        warn(
            f"{n_empty} of the texts {'has' if n_empty == 1 else 'have'} no token (an empty text without special "
            "tokens): the score with such a text is 0",
            EmptyTextWarning,
        )
