"""All-pairs and row-by-row RCMD with gradient on the compiled kernels, for torch on the CPU.

Nothing of size L x L outlives the kernel: what is kept for the gradient is, for each pair of texts, one small
integer a token that says which token of the other text was nearest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from likewise.kernels import native

__all__ = ["matrix", "pairs"]

_KEEP_AT_MOST = 512 << 20
"""Bytes of places above which the backward pass finds them again instead of keeping them."""

_ROWS_AGAIN = 64
"""Texts on the left whose places are found again at a time."""


def matrix(
    a: torch.Tensor, a_offsets: np.ndarray, b: torch.Tensor, b_offsets: np.ndarray, *, recompute: bool | None = None
) -> torch.Tensor:
    """RCMD of every text of `a` with every text of `b`, float32, differentiable in both.

    Args:
        a: [total_a, dim] float32 or bfloat16 on the CPU; bfloat16 is multiplied as such, summed in float32.
        a_offsets: [n + 1] where each text starts.
        b: [total_b, dim], the same for the right side.
        b_offsets: [m + 1].
        recompute: Find the places of the maxima again in the backward pass, so that memory is O(n m); by default
            where keeping them would take more than 512 MB.

    Returns:
        [n, m] in [-1, 1]; 0, without gradient, where either text has no token.

    Raises:
        InputError: Wrong shapes or offsets; NaN or infinity in a token.

    Source:
        Lee et al. 2022 (CLRCMD), sections 3.2 and 4.5.
    """
    return _Matrix.apply(a, b, a_offsets, b_offsets, recompute)


def pairs(
    a: torch.Tensor, a_offsets: np.ndarray, b: torch.Tensor, b_offsets: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both directions of RCMD row by row, differentiable: the maxima are found without gradient, then gathered."""
    library = native.required()
    left, right = _Side(a, a_offsets), _Side(b, b_offsets)
    n = len(left.offsets) - 1
    forward, backward = np.empty(n, np.float32), np.empty(n, np.float32)
    rows, columns = np.zeros(len(left.unit), np.int32), np.zeros(len(right.unit), np.int32)
    library.score_pairs(
        left.unit, left.offsets, right.unit, right.offsets, forward, backward, rows, columns, native.n_threads()
    )
    if not (a.requires_grad or b.requires_grad):
        return torch.from_numpy(forward), torch.from_numpy(backward)
    return _gathered(a, left, rows, b, right), _gathered(b, right, columns, a, left)


class _Side:
    """One side made ready: unit tokens, their lengths before that, offsets."""

    def __init__(self, tokens: torch.Tensor, offsets: np.ndarray) -> None:
        self.shape, self.dtype = tokens.shape, tokens.dtype
        given = tokens.detach().to(torch.float32).numpy()
        self.unit, self.lengths, self.offsets = native.normalised(given, offsets)

    def rows(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Unit tokens and offsets of the texts from `first` to `last`."""
        start, stop = self.offsets[first], self.offsets[last]
        return self.unit[start:stop], self.offsets[first : last + 1] - start

    def gradient(self, of_unit: np.ndarray) -> torch.Tensor:
        """From the gradient of the unit tokens to that of the tokens given."""
        out = np.empty(tuple(self.shape), np.float32)
        native.required().through_normalise(self.unit, self.lengths, of_unit, out, native.n_threads())
        return torch.from_numpy(out).to(self.dtype)


class _Matrix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, a_offsets: Any, b_offsets: Any, again: Any) -> torch.Tensor:
        ctx.left, ctx.right = _Side(a, a_offsets), _Side(b, b_offsets)
        ctx.precision = native.PRECISIONS["bfloat16" if a.dtype == b.dtype == torch.bfloat16 else "float32"]
        n, m = len(ctx.left.offsets) - 1, len(ctx.right.offsets) - 1
        n_places = m * len(ctx.left.unit) + n * len(ctx.right.unit)
        itemsize = np.dtype(native.places_dtype(ctx.left.offsets, ctx.right.offsets)).itemsize
        wanted = any(ctx.needs_input_grad)
        keep = wanted and not (n_places * itemsize > _KEEP_AT_MOST if again is None else again)
        ctx.candidates = _candidates(ctx) if wanted else None
        if keep:
            scores, *ctx.places = _with_places(ctx, 0, n)
        else:
            ctx.places = None
            scores = np.empty((n, m), np.float32)
            candidates = ctx.candidates or _candidates(ctx)
            native.required().score(ctx.left.unit, ctx.left.offsets, candidates, scores, native.n_threads())
        if keep:
            ctx.candidates = None  # its panels are as large as the tokens, and the places are all that is needed
        return torch.from_numpy(scores)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        g = np.ascontiguousarray(gradients[0].to(torch.float32).numpy())
        left, right = ctx.left, ctx.right
        of_a, of_b = np.zeros_like(left.unit), np.zeros_like(right.unit)
        n = len(left.offsets) - 1
        step = max(n, 1) if ctx.places is not None else _ROWS_AGAIN
        for first in range(0, n, step):
            last = min(n, first + step)
            rows, columns = ctx.places if ctx.places is not None else _with_places(ctx, first, last)[1:]
            _add(ctx, (first, last), (rows, columns), g, of_a, of_b)
        needed = ctx.needs_input_grad
        return left.gradient(of_a) if needed[0] else None, right.gradient(of_b) if needed[1] else None, None, None, None


def _candidates(ctx: Any) -> Any:
    right = ctx.right
    return native.required().Candidates(right.unit, right.offsets, ctx.precision, native.n_threads())


def _with_places(ctx: Any, first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    unit, offsets = ctx.left.rows(first, last)
    dtype = native.places_dtype(ctx.left.offsets, ctx.right.offsets)
    m, n_right = len(ctx.right.offsets) - 1, len(ctx.right.unit)
    scores = np.empty((last - first, m), np.float32)
    rows, columns = np.zeros((m, len(unit)), dtype), np.zeros((last - first, n_right), dtype)
    native.required().score_places(
        unit, offsets, ctx.candidates, ctx.right.offsets, scores, rows, columns, native.n_threads()
    )
    return scores, rows, columns


def _add(
    ctx: Any, span: tuple[int, int], places: tuple[np.ndarray, np.ndarray], g: np.ndarray, of_a: Any, of_b: Any
) -> None:
    """Add what the texts of `span` give to the gradients of both sides' unit tokens."""
    library, right, (rows, columns) = native.required(), ctx.right, places
    unit, offsets = ctx.left.rows(*span)
    start, stop = ctx.left.offsets[span[0]], ctx.left.offsets[span[1]]
    weights, m = g[span[0] : span[1]], g.shape[1]
    threads = native.n_threads()
    if ctx.needs_input_grad[0]:
        library.gradient(offsets, right.unit, right.offsets, rows, columns, weights, m, 1, of_a[start:stop], threads)
    if ctx.needs_input_grad[1]:
        library.gradient(right.offsets, unit, offsets, columns, rows, weights, 1, m, of_b, threads)


def _gathered(x: torch.Tensor, side: _Side, places: np.ndarray, y: torch.Tensor, other: _Side) -> torch.Tensor:
    """Mean over each text's tokens of the cosine with the token of the other text that was found nearest."""
    filled = (np.diff(side.offsets) > 0) & (np.diff(other.offsets) > 0)
    text = np.repeat(np.arange(len(filled)), np.diff(side.offsets))
    kept = np.flatnonzero(filled[text])
    partner = torch.from_numpy(other.offsets[:-1][text[kept]] + places[kept])
    chosen = torch.nn.functional.cosine_similarity(x[torch.from_numpy(kept)].float(), y[partner].float(), eps=1e-30)
    share = torch.from_numpy((1 / np.diff(side.offsets)[text[kept]]).astype(np.float32))
    return torch.zeros(len(filled)).index_add(0, torch.from_numpy(text[kept]), chosen * share)
