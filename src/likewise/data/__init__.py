"""Data files to examples. No tensors, no network; every bad row is named by file and line."""

from likewise.data.examples import (
    NLI_LABELS,
    ArgumentPair,
    Article,
    BinaryPair,
    LabelledPair,
    LabelledText,
    RetrievalSet,
    ScoredPair,
    Section,
    TextTriplet,
)
from likewise.data.lines import read_lines
from likewise.data.sts import read_stsb

__all__ = [
    "NLI_LABELS",
    "ArgumentPair",
    "Article",
    "BinaryPair",
    "LabelledPair",
    "LabelledText",
    "RetrievalSet",
    "ScoredPair",
    "Section",
    "TextTriplet",
    "read_lines",
    "read_stsb",
]
