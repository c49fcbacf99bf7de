"""What data files hold: pairs, triplets, labelled texts and collections, without a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "NLI_LABELS",
    "ArgumentPair",
    "Article",
    "BinaryPair",
    "DuplicateSet",
    "LabelledPair",
    "LabelledText",
    "RetrievalSet",
    "ScoredPair",
    "Section",
    "TextTriplet",
]

NLI_LABELS = ("contradiction", "entailment", "neutral")
"""The three classes of natural language inference; a class number is its place here."""


@dataclass(frozen=True)
class ScoredPair:
    """Two texts and the score that people gave them."""

    a: str
    """First sentence."""
    b: str
    """Second sentence."""
    gold: float
    """How alike they are on the scale of the data set, such as 0 (nothing in common) to 5 (the same meaning)."""


@dataclass(frozen=True)
class ArgumentPair:
    """Two arguments on one topic and the score that people gave them."""

    topic: str
    """What both argue about."""
    a: str
    """First argument."""
    b: str
    """Second argument."""
    gold: float
    """How alike they are on the scale of the data set."""


@dataclass(frozen=True)
class LabelledPair:
    """A premise, a hypothesis and how they relate."""

    premise: str
    """What is given."""
    hypothesis: str
    """What may follow from it."""
    label: str
    """One of `NLI_LABELS`."""


@dataclass(frozen=True)
class BinaryPair:
    """Two texts that mean the same, or not."""

    a: str
    """First text."""
    b: str
    """Second text."""
    same: bool
    """They mean the same."""


@dataclass(frozen=True)
class DuplicateSet:
    """Distinct texts, and which of them mean the same."""

    texts: tuple[str, ...]
    """The texts, each once."""
    pairs: frozenset[tuple[int, int]]
    """Places of two texts that mean the same, the smaller first."""


@dataclass(frozen=True)
class TextTriplet:
    """A text, one that belongs with it and one that does not."""

    anchor: str
    """The text compared."""
    positive: str
    """Nearer to the anchor: entailed by it, or from its section."""
    negative: str
    """Farther from the anchor: contradicting it, or from another section."""


@dataclass(frozen=True)
class LabelledText:
    """A text and its class."""

    text: str
    """The text."""
    label: str
    """Its class, as the file names it."""


@dataclass(frozen=True)
class Section:
    """A part of an article under one heading."""

    heading: str
    """The heading; empty for what stands before the first one."""
    sentences: tuple[str, ...]
    """Its sentences in order."""


@dataclass(frozen=True)
class Article:
    """A text with headings."""

    title: str
    """Its title."""
    sections: tuple[Section, ...]
    """Its sections in order."""


@dataclass(frozen=True)
class RetrievalSet:
    """Documents, queries, and which documents answer which query."""

    corpus: Mapping[str, str]
    """Document id → text."""
    queries: Mapping[str, str]
    """Query id → text."""
    relevant: Mapping[str, Mapping[str, int]]
    """Query id → document id → degree of relevance, above 0."""
