"""What every picture says alike: rounded numbers that still add up, and that a text was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

if TYPE_CHECKING:
    from likewise.explain.explanation import Side

__all__ = ["DIGITS", "cut", "printed"]

DIGITS = 4
"""Decimals that a table shows."""


def printed(table: Float[Any, "rows columns"], digits: int = DIGITS) -> Int[np.ndarray, "rows columns"]:
    """The table in units of its last printed decimal, so rounded that the cells add up to the rounded sum.

    Each cell is off by less than one unit: the cells with the largest remainders are rounded up
    (largest remainder method). Exact zeros stay zero wherever other cells can take the units.
    """
    scaled = np.asarray(table, dtype=np.float64) * 10**digits
    floors = np.floor(scaled)
    units = int(round(float(scaled.sum()))) - int(floors.sum())
    order = np.argsort(-(scaled - floors), axis=None, kind="stable")[: max(units, 0)]
    floors.reshape(-1)[order] += 1
    return floors.astype(np.int64)


def cut(name: str, side: Side) -> str:
    """The notice that side `name` is longer than the model reads."""
    return f"{name} was cut: the model reads its first {len(side.tokens)} tokens only"
