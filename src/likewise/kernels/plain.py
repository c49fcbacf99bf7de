"""The slow, plain forms: correct in every precision, on numpy and on torch alike.

They are the oracle of the compiled kernels, and what runs where those are not installed.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from array_api_compat import device, is_torch_array
from jaxtyping import Float, Int

from likewise.types import array_namespace

__all__ = [
    "bfloat16",
    "cosines",
    "int8_codes",
    "nearest",
    "rcmd_matrix",
    "rcmd_of_unit",
    "rcmd_pairs",
    "rcmd_plan",
    "segment_max",
    "segment_mean",
    "unit",
]

_COSINES_AT_ONCE = 1 << 24
"""Most cosines that exist at any time, so that texts of any length fit."""


def unit(x: Float[Any, "rows dim"]) -> Float[Any, "rows dim"]:
    """Rows at length 1; a zero row stays zero, so that its cosine with anything is 0, and so is its gradient.

    Dividing by the largest entry first keeps rows of any magnitude from overflowing or vanishing.
    """
    xp = array_namespace(x)
    if not x.shape[1]:
        return x
    largest = xp.max(xp.abs(x), axis=1, keepdims=True)
    x = xp.where(largest > 0, x / xp.where(largest > 0, largest, xp.ones_like(largest)), xp.zeros_like(x))
    squares = xp.sum(x * x, axis=1, keepdims=True)
    return x / xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares)))


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


def int8_codes(unit_tokens: Float[np.ndarray, "total dim"]) -> Float[np.ndarray, "total dim"]:
    """Tokens as the int8 kernels see them: 255 levels a token, one scale each, back in floating point."""
    largest = np.abs(unit_tokens).max(axis=1, keepdims=True, initial=0)
    filled = np.where(largest > 0, largest, 1)
    return np.rint(unit_tokens * (127 / filled)) * (filled / 127)


def bfloat16(unit_tokens: Float[np.ndarray, "total dim"]) -> Float[np.ndarray, "total dim"]:
    """Tokens as the bfloat16 kernels see them: float32 rounded to 8 significant bits, ties to even."""
    bits = np.ascontiguousarray(unit_tokens, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def segment_max(x: Float[Any, "total columns"], offsets: np.ndarray) -> Float[Any, "n columns"]:
    """Maximum over each run of rows; a run without rows gives 0."""
    return _segments(x, offsets, "max")


def segment_mean(x: Float[Any, "total columns"], offsets: np.ndarray) -> Float[Any, "n columns"]:
    """Mean over each run of rows; a run without rows gives 0."""
    return _segments(x, offsets, "mean")


def rcmd_plan(
    x: Float[Any, "source dim"], y: Float[Any, "target dim"]
) -> tuple[Float[Any, "source target"], Float[Any, "source target"]]:
    """Cosines of two texts' tokens, and the RCMD plan: the mean of the two relaxed ones, of mass 1.

    A tie sends to the first nearest token. A text without tokens gives an empty plan.

    Source:
        Lee et al. 2022 (CLRCMD), section 3.2.
    """
    xp = array_namespace(x, y)
    cosine = cosines(x, y)
    n, m = cosine.shape
    if not n or not m:
        return cosine, xp.zeros_like(cosine)
    rows, columns = (xp.asarray(np.arange(size), device=device(cosine)) for size in (n, m))
    forward = nearest(cosine)[:, None] == columns[None, :]
    backward = nearest(cosine.T)[None, :] == rows[:, None]
    return cosine, xp.astype(forward, cosine.dtype) / (2 * n) + xp.astype(backward, cosine.dtype) / (2 * m)


def rcmd_pairs(
    a: Float[Any, "total_a dim"], a_offsets: np.ndarray, b: Float[Any, "total_b dim"], b_offsets: np.ndarray
) -> tuple[Float[Any, " n"], Float[Any, " n"]]:
    """Both directions of RCMD row by row: `mean_i max_j` and `mean_j max_i`; 0 where either text has no token.

    Source:
        Lee et al. 2022 (CLRCMD), section 3.2.
    """
    xp = array_namespace(a, b)
    zero = xp.zeros((), dtype=a.dtype, device=device(a))
    forward, backward = [], []
    for (start, stop), (begin, end) in zip(itertools.pairwise(a_offsets), itertools.pairwise(b_offsets), strict=True):
        if start == stop or begin == end:
            forward.append(zero)
            backward.append(zero)
            continue
        cosine = cosines(a[int(start) : int(stop)], b[int(begin) : int(end)])
        forward.append(xp.mean(xp.max(cosine, axis=1)))
        backward.append(xp.mean(xp.max(cosine, axis=0)))
    if not forward:
        return zero[None][:0], zero[None][:0]
    return xp.stack(forward), xp.stack(backward)


def rcmd_matrix(
    a: Float[Any, "total_a dim"], a_offsets: np.ndarray, b: Float[Any, "total_b dim"], b_offsets: np.ndarray
) -> Float[Any, "rows columns"]:
    """RCMD of every text of `a` with every text of `b`; 0 where either has no token.

    Source:
        Lee et al. 2022 (CLRCMD), section 3.2.
    """
    return rcmd_of_unit(unit(a), a_offsets, unit(b), b_offsets)


def rcmd_of_unit(
    a: Float[Any, "total_a dim"], a_offsets: np.ndarray, b: Float[Any, "total_b dim"], b_offsets: np.ndarray
) -> Float[Any, "rows columns"]:
    """The same for tokens that are at length 1 already, one text of `a` at a time and few cosines at once."""
    xp = array_namespace(a, b)
    n = len(b_offsets) - 1
    rows = [_one_against_all(a[start:stop], b, b_offsets) for start, stop in itertools.pairwise(a_offsets.tolist())]
    return xp.stack(rows) if rows else xp.zeros((0, n), dtype=a.dtype, device=device(a))


def _one_against_all(x: Any, b: Any, b_offsets: np.ndarray) -> Any:
    xp = array_namespace(x, b)
    if not x.shape[0] or not b.shape[0]:
        return xp.zeros(len(b_offsets) - 1, dtype=b.dtype, device=device(b))
    forward, columns = [], []
    at_once = max(1, _COSINES_AT_ONCE // b.shape[0])
    for first in range(0, x.shape[0], at_once):
        cosine = b @ x[first : first + at_once].T
        forward.append(segment_max(cosine, b_offsets))
        columns.append(xp.max(cosine, axis=1))
    best = xp.max(xp.stack(columns), axis=0)
    return (xp.mean(xp.concat(forward, axis=1), axis=1) + segment_mean(best[:, None], b_offsets)[:, 0]) / 2


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
