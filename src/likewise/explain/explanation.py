"""An explained score: every number of it, at the level of tokens and of words."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.errors import InputError
from likewise.explain.words import Word, roll_up, words_of
from likewise.types import TextTokens, Token

__all__ = ["Alignment", "Explanation", "Side", "WordTable", "explain_pair"]


@dataclass(frozen=True)
class Side:
    """One of the two texts."""

    text: str
    """The original text."""
    tokens: tuple[Token, ...]
    """Its tokens, in the order of the table's rows or columns."""
    truncated: bool
    """The model did not read all of it."""


@dataclass(frozen=True, eq=False)
class WordTable:
    """Contributions rolled up to words; they add up to the same score."""

    a: tuple[Word, ...]
    """Words of the left text, special tokens among them."""
    b: tuple[Word, ...]
    """Words of the right text."""
    contributions: Float[np.ndarray, "words_a words_b"]
    """What each pair of words adds to the score."""


@dataclass(frozen=True)
class Alignment:
    """Two words that are each other's strongest partner."""

    a: int
    """Position in `words.a`."""
    b: int
    """Position in `words.b`."""
    contribution: float
    """What the pair adds to the score."""
    cosine: float
    """Cosine of the two words: the mean over their tokens."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """A score and its parts. `contributions.sum()` is the score."""

    score: float
    """The similarity of the two texts."""
    similarity: str
    """Name of the similarity."""
    a: Side
    """The left text: rows of the tables."""
    b: Side
    """The right text: columns of the tables."""
    cosines: Float[np.ndarray, "source target"]
    """Cosine of each token of `a` with each of `b`."""
    plan: Float[np.ndarray, "source target"]
    """Mass that each token sends to each token of the other text."""
    details: dict[str, float] = field(default_factory=dict)
    """Further values of the similarity, such as the two directions of RCMD."""

    @cached_property
    def contributions(self) -> Float[np.ndarray, "source target"]:
        """`plan * cosines`: what each pair of tokens adds to the score."""
        return self.plan * self.cosines

    @cached_property
    def words(self) -> WordTable:
        """The same at word level."""
        left, right = (words_of(TextTokens(side.text, side.tokens)) for side in (self.a, self.b))
        table = roll_up(self.contributions, [w.tokens for w in left], [w.tokens for w in right])
        return WordTable(tuple(left), tuple(right), table)

    @cached_property
    def alignments(self) -> tuple[Alignment, ...]:
        """Pairs of words that are each other's strongest partner, in reading order of `a`.

        The strength of a pair is the mean contribution of its tokens, so that long words have no
        advantage (CLRCMD, section 4.3); it must be above zero. The first partner wins a tie, so each
        word is in one alignment at most. Special tokens are not aligned.
        """
        words = self.words
        strength = self._block_means(self.contributions)
        cosine = self._block_means(self.cosines)
        for axis, side in enumerate((words.a, words.b)):
            special = [i for i, word in enumerate(side) if word.special]
            strength[(special, slice(None)) if axis == 0 else (slice(None), special)] = 0
        pairs = []
        for i in range(strength.shape[0] if strength.size else 0):
            j = int(strength[i].argmax())
            if strength[i, j] > 0 and int(strength[:, j].argmax()) == i:
                pairs.append(Alignment(i, j, float(words.contributions[i, j]), float(cosine[i, j])))
        return tuple(pairs)

    @cached_property
    def unmatched(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Positions in `words.a` and in `words.b` of words without an alignment, special tokens aside."""
        aligned = ({pair.a for pair in self.alignments}, {pair.b for pair in self.alignments})
        sides = (self.words.a, self.words.b)
        left, right = (
            tuple(i for i, word in enumerate(side) if i not in found and not word.special)
            for side, found in zip(sides, aligned, strict=True)
        )
        return left, right

    def phrases(
        self, a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]
    ) -> Float[np.ndarray, "phrases_a phrases_b"]:
        """Contributions rolled up to phrases.

        Args:
            a: Character spans (start, end) of the phrases of the left text; they must not overlap.
            b: The same for the right text.

        Returns:
            One sum for each pair of phrases, and a last row and a last column for the tokens outside
            every phrase, special tokens among them, so that the table adds up to the score.

        Raises:
            InputError: Spans overlap or lie outside the text.
        """
        rows, columns = _groups(self.a, a), _groups(self.b, b)
        return roll_up(self.contributions, rows, columns)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; the keys are documented in `docs/explanation.md`."""
        words = self.words
        return {
            "score": self.score,
            "similarity": self.similarity,
            **({"details": dict(self.details)} if self.details else {}),
            "a": _side_dict(self.a),
            "b": _side_dict(self.b),
            "cosines": self.cosines.tolist(),
            "plan": self.plan.tolist(),
            "contributions": self.contributions.tolist(),
            "words": {
                "a": [_word_dict(word) for word in words.a],
                "b": [_word_dict(word) for word in words.b],
                "contributions": words.contributions.tolist(),
            },
            "alignments": [
                {
                    "a": pair.a,
                    "b": pair.b,
                    "a_text": words.a[pair.a].text,
                    "b_text": words.b[pair.b].text,
                    "contribution": pair.contribution,
                    "cosine": pair.cosine,
                }
                for pair in self.alignments
            ],
            "unmatched": dict(zip("ab", (list(side) for side in self.unmatched), strict=True)),
        }

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as JSON; numbers keep every digit, so that the parts still add up."""
        readable = json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)
        if readable.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in readable):
            return readable
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)  # lone surrogates only exist escaped

    def to_text(self, width: int | None = None, level: str = "word") -> str:
        """The table and the aligned pairs as plain text.

        Args:
            width: Columns to fit into; by default as many as the table needs, up to 200.
            level: What a row of the table is: "word" or "token".

        Raises:
            InputError: There is no such level.
        """
        from likewise.explain.render.terminal import to_text

        return to_text(self, width, level=level)

    def _repr_html_(self) -> str:
        from likewise.explain.render.html import to_html

        return to_html(self)

    def __repr__(self) -> str:
        return f"Explanation({self.similarity} {self.score:.4f}: {self.a.text!r} ~ {self.b.text!r})"

    def _block_means(self, table: np.ndarray) -> np.ndarray:
        left, right = self.words.a, self.words.b
        sums = roll_up(table, [w.tokens for w in left], [w.tokens for w in right])
        sizes = np.outer([len(w.tokens) for w in left], [len(w.tokens) for w in right]).reshape(sums.shape)
        return sums / np.maximum(sizes, 1)


def explain_pair(
    similarity: str,
    sides: tuple[Side, Side],
    cosines: Float[Any, "source target"],
    plan: Float[Any, "source target"],
    details: dict[str, float] | None = None,
) -> Explanation:
    """Put an explanation together from one decomposed score.

    Raises:
        InputError: The tables do not fit the tokens.
    """
    cosines, plan = np.asarray(cosines), np.asarray(plan)
    shape = (len(sides[0].tokens), len(sides[1].tokens))
    if cosines.shape != shape or plan.shape != shape:
        raise InputError(
            f"tables of shape {cosines.shape} and {plan.shape} do not fit texts of {shape[0]} and {shape[1]} tokens"
        )
    score = float((plan * cosines).sum())
    return Explanation(score, similarity, sides[0], sides[1], cosines, plan, details or {})


def _groups(side: Side, spans: Sequence[tuple[int, int]]) -> list[list[int]]:
    ordered = sorted(spans)
    if any(start < 0 or end > len(side.text) or start >= end for start, end in ordered):
        raise InputError(
            f"phrase spans must lie within the text's {len(side.text)} characters and hold at least one; got {ordered}"
        )
    if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(ordered)):
        raise InputError(f"phrase spans overlap: {ordered}; a token can count in one phrase only")
    groups: list[list[int]] = [[] for _ in range(len(spans) + 1)]
    for row, token in enumerate(side.tokens):
        shared = [min(token.end, end) - max(token.start, start) for start, end in spans]
        best = int(np.argmax(shared)) if shared and not token.special and max(shared) > 0 else -1
        groups[best].append(row)
    return groups


def _side_dict(side: Side) -> dict[str, Any]:
    tokens = [{"text": t.text, "start": t.start, "end": t.end, "special": t.special} for t in side.tokens]
    return {"text": side.text, "truncated": side.truncated, "tokens": tokens}


def _word_dict(word: Word) -> dict[str, Any]:
    return {
        "text": word.text,
        "start": word.start,
        "end": word.end,
        "tokens": list(word.tokens),
        "special": word.special,
    }
