"""Tokenizer + backbone + head: from texts to packed embeddings and to pooled vectors."""

from likewise.encoder.encoder import Coverage, Encoder, packed
from likewise.encoder.head import Dense, Head, Normalize, SkipTokens
from likewise.encoder.texts import as_texts
from likewise.encoder.tokenizer import Tokenized, Tokenizer, with_markers
from likewise.encoder.windows import WINDOW, Cuts, check_on_truncate, chunks, progress_bar, told_once

__all__ = [
    "WINDOW",
    "Coverage",
    "Cuts",
    "Dense",
    "Encoder",
    "Head",
    "Normalize",
    "SkipTokens",
    "Tokenized",
    "Tokenizer",
    "as_texts",
    "check_on_truncate",
    "chunks",
    "packed",
    "progress_bar",
    "told_once",
    "with_markers",
]
