"""The slow, plain forms: correct in every precision, on numpy and on torch alike."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_torch_array
from jaxtyping import Float, Int

__all__ = ["cosines", "nearest", "rcmd_matrix", "segment_max", "segment_mean", "unit"]


def unit(x: Float[Any, "rows dim"]) -> Float[Any, "rows dim"]:
    """Rows at length 1; a zero row stays zero, so that its cosine with anything is 0.

    Dividing by the largest entry first keeps rows of any magnitude from overflowing or vanishing.
    """
    xp = array_namespace(x)
    if not x.shape[1]:
        return x
    largest = xp.max(xp.abs(x), axis=1, keepdims=True)
    x = x / xp.where(largest > 0, largest, xp.ones_like(largest))
    length = xp.sqrt(xp.sum(x * x, axis=1, keepdims=True))
    return x / xp.where(length > 0, length, xp.ones_like(length))


def cosines(x: Float[Any, "source dim"], y: Float[Any, "target dim"]) -> Float[Any, "source target"]:
    """Cosine of every row of `x` with every row of `y`; 0 where either is a zero vector."""
    return unit(x) @ unit(y).T


def nearest(similarities: Float[Any, "source target"]) -> Int[Any, " source"]:
    """For each row its first column that is as large as the row's maximum.

    Equal tokens can differ by a few units in the last place after a matrix product, depending on
    where they stand; within that distance they count as tied, and the first one wins.
    """
    xp = array_namespace(similarities)
    slack = 8 * xp.finfo(similarities.dtype).eps
    top = xp.max(similarities, axis=1, keepdims=True)
    return xp.argmax(xp.astype(similarities >= top - slack, xp.uint8), axis=1)


def segment_max(x: Float[Any, "total columns"], offsets: np.ndarray) -> Float[Any, "n columns"]:
    """Maximum over each run of rows; a run without rows gives 0."""
    return _segments(x, offsets, "max")


def segment_mean(x: Float[Any, "total columns"], offsets: np.ndarray) -> Float[Any, "n columns"]:
    """Mean over each run of rows; a run without rows gives 0."""
    return _segments(x, offsets, "mean")


def rcmd_matrix(
    a: Float[Any, "total_a dim"], a_offsets: np.ndarray, b: Float[Any, "total_b dim"], b_offsets: np.ndarray
) -> Float[Any, "rows columns"]:
    """RCMD of every text of `a` with every text of `b`; 0 where either has no token.

    One text of `a` at a time, so that no more than length * total_b cosines exist at once.

    Source:
        Lee et al. 2022 (CLRCMD), section 3.2.
    """
    xp = array_namespace(a, b)
    a, b = unit(a), unit(b)
    filled = np.asarray(np.diff(b_offsets) > 0)
    rows = []
    for start, stop in itertools.pairwise(a_offsets.tolist()):
        if start == stop or not b.shape[0]:
            rows.append(xp.zeros(len(filled), dtype=a.dtype, device=device(a)))
            continue
        cosine = b @ a[start:stop].T
        forward = xp.mean(segment_max(cosine, b_offsets), axis=1)
        backward = segment_mean(xp.max(cosine, axis=1)[:, None], b_offsets)[:, 0]
        rows.append((forward + backward) / 2)
    return xp.stack(rows) if rows else xp.zeros((0, len(filled)), dtype=a.dtype, device=device(a))


def _segments(x: Any, offsets: np.ndarray, reduce: str) -> Any:
    if is_torch_array(x):
        return _torch_segments(x, offsets, reduce)
    out = np.zeros((len(offsets) - 1, x.shape[1]), dtype=x.dtype)
    lengths = np.diff(offsets)
    starts = np.asarray(offsets[:-1])[lengths > 0]
    if not len(starts):
        return out
    if reduce == "max":
        out[lengths > 0] = np.maximum.reduceat(x, starts, axis=0)
    else:
        out[lengths > 0] = np.add.reduceat(x, starts, axis=0) / lengths[lengths > 0, None]
    return out


def _torch_segments(x: Any, offsets: np.ndarray, reduce: str) -> Any:
    import torch

    lengths = torch.as_tensor(np.diff(offsets), device=x.device)
    filled = torch.segment_reduce(x.contiguous(), reduce, lengths=lengths, axis=0)
    return torch.where(lengths[:, None] > 0, filled, torch.zeros_like(filled))
