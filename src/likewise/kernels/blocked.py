"""RCMD of all pairs with gradient, in pure torch: for any device, and for where no compiled kernel is.

The texts of each side are sorted by length and laid out in groups of like length, position-major: row
`position * texts + text` of its group. Short texts of a group are filled up with copies of their first
token. A copy stands behind what it copies, and a tie goes to the first, so a copy is nobody's nearest
token; and it weighs nothing. So there is neither mask nor infinity, and a *block*, the cosines of two
groups, is one matrix product that, seen as [source, texts of a, target, texts of b], has both maxima
along outer axes, where they are plain vector operations. Backward scatters the weights of the plan into
a block of zeros, and two products carry them to the tokens.

Sizes: a block has at most 2**21 cosines, its comparison with the maxima a byte for each. Kept for backward
are the unit tokens and, unless recomputed, one place for each token and text of the other side (a byte
where texts have at most 255 tokens).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from likewise.kernels.inputs import checked_tensor

__all__ = ["rcmd_matrix"]

_BLOCK = 2**21  # most cosines of a block, unless those of two texts are more
_ROWS = 2**10  # most rows of a group of `a`, unless one text has more; groups of `b` fill the block
_SPREAD = 1.25  # how many times its shortest text the longest text of a group may be


def rcmd_matrix(
    a: Float[Tensor, "total_a dim"],
    a_offsets: Int[np.ndarray | Tensor, " offsets_a"],
    b: Float[Tensor, "total_b dim"],
    b_offsets: Int[np.ndarray | Tensor, " offsets_b"],
    *,
    recompute: bool = False,
) -> Float[Tensor, "rows columns"]:
    """RCMD of every text of `a` with every text of `b`; differentiable once.

    `½ [mean_i max_j cos(x_i, y_j) + mean_j max_i cos(x_i, y_j)]`; 0 where either text has no token. A zero
    vector has cosine 0 and gradient 0. Where several tokens are nearest, the gradient goes to the first.

    Args:
        a: Tokens of the texts on the left, laid end to end; half precision is widened to float32.
        a_offsets: Text i owns the rows `a_offsets[i]` to `a_offsets[i + 1]`.
        b: Tokens of the texts on the right.
        b_offsets: Their offsets.
        recompute: In backward find the nearest tokens anew instead of keeping their places: less memory for
            one matrix product more.

    Returns:
        Scores in float32, or float64 where `a` or `b` is.

    Raises:
        InputError: Offsets do not rise from 0 to the number of tokens, or a token holds NaN or infinity.

    Source:
        Lee et al. 2022 (CLRCMD), sections 3.2 and 3.3.
    """
    a_bounds, b_bounds = checked_tensor(a, a_offsets), checked_tensor(b, b_offsets)
    wide = torch.promote_types(torch.promote_types(a.dtype, b.dtype), torch.float32)
    a, b = a.to(wide), b.to(wide)
    left = _lay_out(a_bounds, min(_ROWS, _BLOCK // int(np.diff(b_bounds).max(initial=1))), like=a)
    right = _lay_out(b_bounds, _BLOCK // left.largest, like=b)
    return _AllPairs.apply(a, b, left, right, recompute)


class _Group(NamedTuple):
    texts: slice  # of the sorted texts
    rows: slice  # of the layout
    weights: Float[Tensor, "length texts"]  # 1 / (2 * length of the text); 0 for a copy


class _Side(NamedTuple):
    n: int  # texts, empty ones among them
    order: Int[Tensor, " filled"]  # the texts that have tokens, by length
    tokens: Int[Tensor, " rows"]  # the token that stands in each row of the layout
    places: Int[Tensor, " total"]  # the row in which each token stands
    groups: list[_Group]
    largest: int  # most rows of a group


def _lay_out(offsets: np.ndarray, most: int, like: Tensor) -> _Side:
    """Groups of texts of like length, each of at most `most` rows or one text."""
    lengths = np.diff(offsets)
    order = np.argsort(lengths, kind="stable")[np.count_nonzero(lengths == 0) :]
    tokens, places, groups, n_rows = [np.arange(0)], np.zeros(offsets[-1], dtype=np.int64), [], 0
    for texts in _runs(lengths[order], most):
        own = lengths[order[texts]]
        position = np.arange(own[-1])[:, None]
        real = position < own
        token = offsets[order[texts]] + np.where(real, position, 0)
        rows = slice(n_rows, n_rows := n_rows + token.size)
        places[token[real]] = n_rows - token.size + np.flatnonzero(real)
        groups.append(_Group(texts, rows, torch.as_tensor(np.where(real, 0.5 / own, 0)).to(like)))
        tokens.append(token.ravel())
    indices = [torch.as_tensor(x, device=like.device) for x in (order, np.concatenate(tokens), places)]
    largest = max((group.weights.numel() for group in groups), default=1)
    return _Side(len(lengths), indices[0], indices[1], indices[2], groups, largest)


def _runs(lengths: np.ndarray, most: int) -> Iterator[slice]:
    """Cuts rising lengths where a run would be too uneven, or would be filled up to more than `most` rows."""
    start = 0
    for stop, length in enumerate([*lengths.tolist(), np.inf]):
        if stop > start and (length > _SPREAD * lengths[start] or length * (stop + 1 - start) > most):
            yield slice(start, stop)
            start = stop


class _AllPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, left: _Side, right: _Side, recompute: bool) -> Tensor:
        (x, x_norm), (y, y_norm) = _unit(a[left.tokens]), _unit(b[right.tokens])
        keep = any(ctx.needs_input_grad) and not recompute
        kept: list[Tensor] = []
        ordered = x.new_empty(len(left.order), len(right.order))
        for p, q, block, flat in _blocks(left, right, x):
            torch.mm(x[p.rows], y[q.rows].T, out=flat)
            to_b, to_a = block.amax(2), block.amax(0)
            ordered[p.texts, q.texts] = (p.weights[:, :, None] * to_b).sum(0) + (q.weights * to_a).sum(1)
            if keep:
                kept += _first(block, to_b, 2), _first(block, to_a, 0)
        ctx.save_for_backward(x, x_norm, y, y_norm, *kept)
        ctx.left, ctx.right = left, right
        scores = x.new_zeros(left.n, right.n)
        scores[left.order[:, None], right.order] = ordered
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, x_norm, y, y_norm, *kept = ctx.saved_tensors
        x_grad, y_grad, places = torch.zeros_like(x), torch.zeros_like(y), iter(kept)
        ordered = grad[ctx.left.order[:, None], ctx.right.order]
        for p, q, block, flat in _blocks(ctx.left, ctx.right, x):
            if kept:
                to_b, to_a = next(places), next(places)
            else:
                torch.mm(x[p.rows], y[q.rows].T, out=flat)
                to_b, to_a = _first(block, block.amax(2), 2), _first(block, block.amax(0), 0)
            _plan(p, q, to_b, to_a, ordered[p.texts, q.texts], block)
            if ctx.needs_input_grad[0]:
                x_grad[p.rows].addmm_(flat, y[q.rows])
            if ctx.needs_input_grad[1]:
                y_grad[q.rows].addmm_(flat.T, x[p.rows])
        a_grad = _to_tokens(x_grad, x, x_norm, ctx.left.places)
        return a_grad, _to_tokens(y_grad, y, y_norm, ctx.right.places), None, None, None


def _unit(x: Tensor) -> tuple[Tensor, Tensor]:
    """The rows, scaled in place to length 1, and their lengths; a zero vector stays so, its length is infinite."""
    largest = torch.linalg.vector_norm(x, torch.inf, dim=1, keepdim=True)
    x /= torch.where(largest > 0, largest, 1)
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    x /= torch.where(length > 0, length, 1)
    return x, torch.where(largest > 0, largest * length, torch.inf)


def _to_tokens(grad: Tensor, x: Tensor, norm: Tensor, places: Tensor) -> Tensor:
    """Gradient of the given tokens from `grad`, that of the laid out unit tokens, which is changed in place."""
    grad.addcmul_(x, (x * grad).sum(1, keepdim=True), value=-1)
    return grad.div_(norm)[places]


def _blocks(left: _Side, right: _Side, like: Tensor) -> Iterator[tuple[_Group, _Group, Tensor, Tensor]]:
    """Each pair of groups and one buffer, as [source, texts of a, target, texts of b] and as [rows of a, rows of b]."""
    buffer = like.new_empty(left.largest * right.largest)
    for p, q in itertools.product(left.groups, right.groups):
        flat = buffer[: p.weights.numel() * q.weights.numel()].view(p.weights.numel(), q.weights.numel())
        yield p, q, flat.view(*p.weights.shape, *q.weights.shape), flat


def _first(block: Tensor, top: Tensor, dim: int) -> Tensor:
    """Where along `dim` the first cosine stands that is the maximum, but for rounding, as `plain.nearest` has it.

    An arg max by one comparison and one more maximum: of a countdown, 0 where not tied.
    """
    length = block.shape[dim]
    dtype = torch.uint8 if length < 2**8 else torch.int16 if length < 2**15 else torch.int32
    countdown = torch.arange(length, 0, -1, dtype=dtype, device=block.device).view(-1, *[1] * (3 - dim))
    tied = block >= (top - 8 * torch.finfo(block.dtype).eps).unsqueeze(dim)
    return length - tied.view(torch.uint8).to(dtype).mul_(countdown).amax(dim)


def _plan(p: _Group, q: _Group, to_b: Tensor, to_a: Tensor, grad: Tensor, block: Tensor) -> None:
    """Makes the block the gradient of its cosines: a weight where a token is the nearest, else 0."""
    block.zero_()
    block.scatter_(2, to_b.long().unsqueeze(2), (p.weights[:, :, None] * grad).unsqueeze(2))
    block.scatter_add_(0, to_a.long().unsqueeze(0), (q.weights * grad[:, None]).unsqueeze(0))
