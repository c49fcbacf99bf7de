"""Columns of random texts, in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from likewise.types import Embeddings


def _columns(n_columns: int, n: int = 4, dim: int = 3, seed: int = 0) -> list[Embeddings]:
    draw = np.random.default_rng(seed)
    columns = []
    for _ in range(n_columns):
        lengths = draw.integers(1, 5, n)
        tokens = torch.from_numpy(draw.normal(size=(lengths.sum(), dim))).requires_grad_()
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        columns.append(Embeddings(tokens, offsets, torch.from_numpy(np.repeat(1 / lengths, lengths))))
    return columns


@pytest.fixture
def columns() -> Callable[..., list[Embeddings]]:
    """Number of columns (, rows, dim, seed) → mean-pooled texts of 1 to 4 tokens that ask for a gradient."""
    return _columns
