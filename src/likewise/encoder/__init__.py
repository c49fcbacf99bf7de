"""Tokenizer + backbone + head: from texts to packed embeddings and to pooled vectors."""

from likewise.encoder.encoder import Coverage, Encoder, packed
from likewise.encoder.head import Dense, Head, Normalize, SkipTokens
from likewise.encoder.texts import as_texts
from likewise.encoder.tokenizer import Tokenized, Tokenizer, with_markers

__all__ = [
    "Coverage",
    "Dense",
    "Encoder",
    "Head",
    "Normalize",
    "SkipTokens",
    "Tokenized",
    "Tokenizer",
    "as_texts",
    "packed",
    "with_markers",
]
