from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

from likewise.data import read_ists
from likewise.types import Embeddings


class TableOfVectors:
    """The plainest embedder: each text has a vector that the test gives."""

    name = "table"

    def __init__(self, vectors):
        self.vectors = {text: np.asarray(vector, np.float32) for text, vector in vectors.items()}
        self.encoded = []

    def encode(self, texts, *, progress=None):
        self.encoded += texts
        dim = len(next(iter(self.vectors.values()), np.zeros(2)))
        return np.stack([self.vectors[text] for text in texts]) if len(texts) else np.zeros((0, dim), np.float32)

    def embed(self, texts, *, progress=None):
        return Embeddings.from_pooled(self.encode(texts))


@pytest.fixture
def embedder():
    """Text → vector, as an embedder."""
    return TableOfVectors


@pytest.fixture(scope="session")
def ists_gold(shared):
    """Name of a set of iSTS 2016 → its test pairs, read once."""

    @functools.cache
    def gold(name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the known faults of the files, tested with the reader
            return read_ists(shared / "data" / "ists2016", name)

    return gold
