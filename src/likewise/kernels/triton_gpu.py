"""RCMD of all pairs with gradient on GPUs, in Triton: packed tokens, running maxima, and no atomics.

**Tiles.** A tile is the product of `tokens` tokens of x with `tokens` tokens of y (64 × 64). Texts of like length
share one: those of 17 to 32 tokens get T = 32 places each, and G = tokens / T = 2 of them fill a side. Seen as [G of
x, T of x, G of y, T of y], a tile has the cosines of G × G pairs of texts; its maxima along the last axis are the row
maxima, along the second the column maxima. Places behind the end of a text exist inside a tile alone, where offsets
mask them; in memory the tokens stay end to end. T is a power of two; each pair of T's is one launch.

**Long texts.** x is the side whose longest text is the shorter. A text of y longer than a tile is walked tile by
tile with running row maxima. A text of x longer than a tile is cut into pieces of `tokens` tokens; a program has
the row maxima of its piece, but only its part of the column maxima, which `_join` puts together.

**Precision.** Tokens are divided by a power of two, so that no magnitude overflows, and stay in their own dtype for
the tensor cores. Products are added up in float32 and scaled by both lengths afterwards: maxima are float32, and no
rounded unit vector exists. Nearest is the first within 8 units in the last place, as in `plain.nearest`.

**Backward.** RCMD is the sum of plan * cosine, so the gradient of x's unit tokens is plan @ y's unit tokens: token i
of x sends 1 / 2 length_x to its nearest token and receives 1 / 2 length_y from each that chose it. A program owns G
texts of x and walks over all texts of y: it rebuilds their tile of the plan from the places saved (two comparisons)
and multiplies it with the tokens of y on tensor cores; for y the roles are exchanged. No element has two writers,
nothing is sorted, the order of each sum is fixed: run twice, the same bits. It costs two products of the forward's
size. The plan is rounded to the dtype of the tokens, after the upstream gradient was made a share of its row's
largest, so that float16 cannot lose it.

**Buffers**, by elements (n, total: texts and tokens of a side; pieces: 0 where no text of x is cut):

    saved for backward   tokens [total, dim] in their dtype; two float32 scales [total]; where a gradient is asked for,
                         row_place [n_y, total_x] and column_place [n_x, total_y]: bytes, or int16, int32 if longest
    only in forward      column_top float32, column_piece as column_place [pieces, total_y]; row_sum [pieces, n_y]
    only in backward     of_unit [total, dim] float32, one side after the other
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, no_type_check

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from likewise.errors import InputError, InputTypeError, MissingExtraError
from likewise.kernels.inputs import checked_tensor

__all__ = ["Tiling", "rcmd_matrix"]

try:
    import triton
    import triton.language as tl
except ImportError:  # rcmd_matrix says so when it is called
    triton = tl = None
_COUNTS = ["n_table_x", "n_table_y", "n_y", "total_x", "total_y", "n_pieces"]  # not to be compiled for anew
_jit: Any = triton.jit(do_not_specialize=_COUNTS) if triton else lambda kernel: kernel
_SLACK: Any = tl.constexpr(8 * 2.0**-23) if tl else None  # 8 units in the last place of float32


@dataclass(frozen=True)
class Tiling:
    """How the work is cut. Numbers of tokens and dimensions are powers of two, 16 or more on a GPU."""

    tokens: int = 64
    """Tokens of either side in a tile."""
    least: int = 16
    """Fewest places a text gets in a tile."""
    depth: int = 64
    """Dimensions that the forward product takes at a time."""
    width: int = 128
    """Dimensions of the gradient that one backward program owns."""
    precision: str = "ieee"
    """Products of float32 tokens: "ieee" (exact), "tf32x3" (nearly so, on tensor cores) or "tf32" (3 digits)."""
    n_warps: int = 8
    """Warps of a program; with 4, backward runs out of registers."""


def rcmd_matrix(
    a: Float[Tensor, "total_a dim"],
    a_offsets: Int[np.ndarray | Tensor, " offsets_a"],
    b: Float[Tensor, "total_b dim"],
    b_offsets: Int[np.ndarray | Tensor, " offsets_b"],
    *,
    tiling: Tiling | None = None,
) -> Float[Tensor, "rows columns"]:
    """RCMD of every text of `a` with every text of `b`; differentiable once, the same bits every time.

    `½ [mean_i max_j cos(x_i, y_j) + mean_j max_i cos(x_i, y_j)]`; 0 where either text has no token. A zero
    vector has cosine 0 and gradient 0. Where several tokens are nearest, the gradient goes to the first.

    Args:
        a: Tokens of the texts on the left, laid end to end, on a GPU: float32, bfloat16 or float16.
        a_offsets: Text i owns the rows `a_offsets[i]` to `a_offsets[i + 1]`.
        b: Tokens of the texts on the right.
        b_offsets: Their offsets.
        tiling: How the work is cut; the default fits sentences.

    Returns:
        Scores in float32.

    Raises:
        MissingExtraError: Triton is not installed.
        InputTypeError: The tokens are of another dtype, such as float64.
        InputError: Offsets do not rise from 0 to the number of tokens; a token holds NaN or infinity; the
            tokens are not on one GPU.

    Source:
        Lee et al. 2022 (CLRCMD), sections 3.2 and 3.3.
    """
    if triton is None:
        raise MissingExtraError("triton", "gpu", "RCMD of all pairs on a GPU")
    dtype = torch.promote_types(a.dtype, b.dtype)
    if dtype not in (torch.float32, torch.bfloat16, torch.float16):
        raise InputTypeError(f"tokens are {a.dtype} and {b.dtype}; give float32, bfloat16 or float16")
    if isinstance(_forward, triton.JITFunction) and not (a.is_cuda and a.device == b.device):
        raise InputError(f"tokens are on {a.device} and {b.device}; the Triton kernels need both on one GPU")
    left, right, tiling = checked_tensor(a, a_offsets), checked_tensor(b, b_offsets), tiling or Tiling()
    a, b = a.to(dtype), b.to(dtype)
    if np.diff(left).max(initial=0) > np.diff(right).max(initial=0):
        return _AllPairs.apply(b, a, right, left, tiling).T
    return _AllPairs.apply(a, b, left, right, tiling)


class _Group(NamedTuple):
    tile: int  # places that each text gets in a tile
    n: int  # texts, or pieces of texts
    table: Tensor  # [6, n] int64: slot in the output, text, first row, tokens, position in the text, text's tokens
    ends: Tensor | None  # [texts + 1] int64: first piece of each text; None where texts are whole

    def blocks(self, tiling: Tiling) -> int:
        return -(-self.n * self.tile // tiling.tokens)


class _Side(NamedTuple):
    tokens: Tensor  # [total, dim] times a power of two, so that the largest entry is in [½, 1)
    inverse: Tensor  # [total] 1 / length of that, 0 for a zero vector
    power: Tensor  # [total] the power of two
    offsets: np.ndarray

    def groups(self, tiling: Tiling, *, cut: bool) -> list[_Group]:
        """Texts by length; those longer than a tile are a group of their own, whole or cut."""
        lengths, groups, above = np.diff(self.offsets), [], 0
        bounds = [2**k for k in range(tiling.least.bit_length() - 1, tiling.tokens.bit_length())]
        for bound in (*bounds, np.inf):
            texts = np.flatnonzero((lengths > above) & (lengths <= bound))
            tile, cutting, above = int(min(bound, tiling.tokens)), cut and bound == np.inf, bound
            counts = -(-lengths[texts] // tile) if cutting else np.ones_like(texts)
            ends = np.concatenate([[0], np.cumsum(counts)])
            text, piece = np.repeat(texts, counts), np.arange(ends[-1])
            first = (piece - np.repeat(ends[:-1], counts)) * tile
            length = np.minimum(lengths[text] - first, tile) if cutting else lengths[text]
            slot, start = piece if cutting else text, self.offsets[text] + first
            table = np.stack([slot, text, start, length, first, lengths[text]])
            if len(texts):
                groups.append(_Group(tile, len(text), self.beside(table), self.beside(ends) if cutting else None))
        return groups

    def beside(self, numbers: np.ndarray) -> Tensor:
        return torch.as_tensor(numbers.astype(np.int64), device=self.tokens.device)


def _side(tokens: Tensor, offsets: np.ndarray) -> _Side:
    largest = tokens.float().abs().amax(1) if tokens.shape[1] else tokens.new_zeros(len(tokens)).float()
    power = torch.exp2(-torch.frexp(largest).exponent.clamp(-126, 126).float())
    wide = tokens.float() * power[:, None]
    length = torch.linalg.vector_norm(wide, dim=1)
    inverse = torch.where(length > 0, 1 / length, 0.0)
    return _Side(wide.to(tokens.dtype).contiguous(), inverse, power, offsets)


class _AllPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, x_offsets: Any, y_offsets: Any, tiling: Tiling) -> Tensor:
        left, right = _side(x, x_offsets), _side(y, y_offsets)
        score, *places = _scores(left, right, tiling, save=any(ctx.needs_input_grad))
        ctx.save_for_backward(*left[:3], *right[:3], *places)
        ctx.rest = x_offsets, y_offsets, tiling
        return score

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        *sides, row_place, column_place = ctx.saved_tensors
        x_offsets, y_offsets, tiling = ctx.rest
        x, y = _Side._make([*sides[:3], x_offsets]), _Side._make([*sides[3:], y_offsets])
        needed, of_score = ctx.needs_input_grad, upstream[0].float()
        of_x = _gradient(x, y, row_place, column_place, of_score, tiling) if needed[0] else None
        of_y = _gradient(y, x, column_place, row_place, of_score.T, tiling) if needed[1] else None
        return of_x, of_y, None, None, None


def _scores(x: _Side, y: _Side, tiling: Tiling, *, save: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Score of all pairs, and if `save` the places of the nearest tokens, [n_y, total_x] and [n_x, total_y]."""
    (total_x, dim), total_y, n_x, n_y = x.tokens.shape, len(y.tokens), len(x.offsets) - 1, len(y.offsets) - 1
    longest, new = np.diff(y.offsets).max(initial=0), x.inverse.new_empty
    dtype = torch.uint8 if longest <= 2**8 else torch.int16 if longest <= 2**15 else torch.int32
    score = x.inverse.new_zeros(n_x, n_y)
    row_place = new((n_y, total_x) if save else 0, dtype=dtype)
    column_place = new((n_x, total_y) if save else 0, dtype=dtype)
    for group in x.groups(tiling, cut=True):
        cut, pieces = group.ends is not None, 0 if group.ends is None else group.n
        column_top, row_sum = new(pieces, total_y), score.new_zeros(pieces, n_y) if cut else score
        column_piece = new(pieces, total_y, dtype=dtype) if cut and save else column_place
        for other in y.groups(tiling, cut=False):
            _forward[(group.blocks(tiling) * other.blocks(tiling),)](
                x.tokens, y.tokens, x.inverse, y.inverse, group.table, other.table, group.n, other.n,
                row_sum, row_place, column_piece, column_top, dim, n_y, total_x, total_y,
                group.tile, other.tile, tiling.tokens, tiling.depth, tiling.precision, save, cut,
                num_warps=tiling.n_warps,
            )  # fmt: skip
        if group.ends is not None:
            _join[((len(group.ends) - 1) * n_y,)](
                row_sum, column_top, column_piece, score, column_place, group.table, group.ends,
                y.beside(y.offsets), pieces, n_y, total_y, tiling.tokens, save,
            )  # fmt: skip
    return score, row_place, column_place


def _gradient(x: _Side, y: _Side, row_place: Tensor, column_place: Tensor, of_score: Tensor, tiling: Tiling) -> Tensor:
    """Gradient of the tokens of x as they were given, in their dtype."""
    (total_x, dim), total_y, (n_x, n_y) = x.tokens.shape, len(y.tokens), of_score.shape
    largest = of_score.abs().amax(1) if n_y else of_score.new_zeros(n_x)
    share = (of_score / torch.where(largest > 0, largest, 1.0)[:, None]).contiguous()
    of_unit = torch.zeros_like(x.tokens, dtype=torch.float32)
    for group in x.groups(tiling, cut=True) if dim else ():
        for other in y.groups(tiling, cut=True):
            _backward[(group.blocks(tiling) * -(-dim // tiling.width),)](
                of_unit, y.tokens, y.inverse, group.table, other.table, group.n, other.n,
                share, row_place, column_place, dim, n_y, total_x, total_y,
                group.tile, other.tile, tiling.tokens, tiling.width, tiling.precision,
                num_warps=tiling.n_warps,
            )  # fmt: skip
    text = x.beside(np.repeat(np.arange(n_x), np.diff(x.offsets)))
    of_unit *= largest[text, None] / 2
    unit = x.tokens.float() * x.inverse[:, None]
    of_unit -= (of_unit * unit).sum(1, keepdim=True) * unit
    return of_unit.mul_((x.inverse * x.power)[:, None]).to(x.tokens.dtype)


# ---------------------------------------------------------------------------------------------- kernels
# A block of TOKENS places has G texts of T. Parameters: pointers to the buffers above, numbers, CONSTANTS.


@_jit
@no_type_check
def _block(table, n, block, T: tl.constexpr, TOKENS: tl.constexpr):
    """Of G texts: is it there (if not, its text is 0, of length 0), slot, text, tokens, position of the first, tokens
    of the uncut text; of each place: its row in memory, and how many tokens of its text stand from there on."""
    G: tl.constexpr = TOKENS // T
    entry, there = table + block * G + tl.arange(0, G), block * G + tl.arange(0, G) < n
    slot, text = tl.load(entry, mask=there, other=0), tl.load(entry + n, mask=there, other=0)
    length = tl.load(entry + 3 * n, mask=there, other=0).to(tl.int32)
    first = tl.load(entry + 4 * n, mask=there, other=0).to(tl.int32)
    size = tl.load(entry + 5 * n, mask=there, other=1).to(tl.float32)
    place, owner = tl.arange(0, TOKENS) % T, block * G + tl.arange(0, TOKENS) // T
    row = tl.load(table + 2 * n + owner, mask=owner < n, other=0) + place
    rest = tl.load(table + 3 * n + owner, mask=owner < n, other=0).to(tl.int32) - place
    return there, slot, text, length, first, size, row, rest


@_jit
@no_type_check
def _vectors(x, row, inside, d, dim):
    """Dimensions d of these rows; 0 where no token stands and behind the last dimension."""
    return tl.load(x + row[:, None] * dim + d[None, :], mask=inside[:, None] & (d < dim)[None, :], other=0.0)


@_jit
@no_type_check
def _nearest(cosine, inside, position, AXIS: tl.constexpr):
    """Maximum along AXIS of what is inside, and the first position that is as large but for rounding."""
    cosine = tl.where(inside, cosine, float("-inf"))
    top = tl.max(cosine, AXIS)
    tied = cosine >= tl.expand_dims(top, AXIS) - _SLACK
    return top, tl.min(tl.where(tied, position, 2147483647), AXIS)


@_jit
@no_type_check
def _forward(  # noqa: PLR0917
    x, y, inverse_x, inverse_y, table_x, table_y, n_table_x, n_table_y,
    score, row_place, column_place, column_top, dim, n_y, total_x, total_y,
    T_X: tl.constexpr, T_Y: tl.constexpr, TOKENS: tl.constexpr, DEPTH: tl.constexpr,
    PRECISION: tl.constexpr, SAVE: tl.constexpr, CUT: tl.constexpr,
):  # fmt: skip
    """G_X texts of x with G_Y texts of y: their scores, or if CUT the sums and maxima that `_join` needs."""
    G_X: tl.constexpr = TOKENS // T_X
    G_Y: tl.constexpr = TOKENS // T_Y
    n_blocks = tl.cdiv(n_table_y, G_Y)
    block_x, block_y = tl.program_id(0) // n_blocks, tl.program_id(0) % n_blocks
    there_x, slot_x, _, length_x, first_x, size_x, row, rest_x = _block(table_x, n_table_x, block_x, T_X, TOKENS)
    there_y, _, text_y, length_y, _, size_y, start_y, rest_y = _block(table_y, n_table_y, block_y, T_Y, TOKENS)
    scale_x = tl.load(inverse_x + row, mask=rest_x > 0, other=0.0)
    position_x = tl.arange(0, T_X)[None, :]
    inside_x, position_x = position_x < length_x[:, None], position_x + first_x[:, None]
    row_top = tl.full((G_X, T_X, G_Y), float("-inf"), tl.float32)
    row_first = tl.zeros((G_X, T_X, G_Y), tl.int32)
    column_sum = tl.zeros((G_X, G_Y), tl.float32)
    for skip in range(0, tl.max(length_y, 0), T_Y):
        column, within = start_y + skip, rest_y > skip
        product = tl.zeros((TOKENS, TOKENS), tl.float32)
        for start in range(0, dim, DEPTH):
            d = start + tl.arange(0, DEPTH)
            left, right = _vectors(x, row, rest_x > 0, d, dim), _vectors(y, column, within, d, dim)
            product = tl.dot(left, tl.trans(right), product, input_precision=PRECISION)
        scale_y = tl.load(inverse_y + column, mask=within, other=0.0)
        cosine = tl.reshape(product * scale_x[:, None] * scale_y[None, :], (G_X, T_X, G_Y, T_Y))
        position_y = skip + tl.arange(0, T_Y)[None, :]
        inside_y = position_y < length_y[:, None]
        top, first = _nearest(cosine, inside_y[None, None, :, :], position_y[None, None, :, :], 3)
        row_first = tl.where(top > row_top + _SLACK, first, row_first)
        row_top = tl.maximum(row_top, top)
        top, first = _nearest(cosine, inside_x[:, :, None, None], position_x[:, :, None, None], 1)
        column_sum += tl.sum(tl.where(inside_y[None, :, :], top, 0.0), 2)
        out = slot_x[:, None, None] * total_y + tl.reshape(column, (1, G_Y, T_Y))
        stored = there_x[:, None, None] & inside_y[None, :, :]
        if SAVE:
            tl.store(column_place + out, first, mask=stored)
        if CUT:
            tl.store(column_top + out, top, mask=stored)
    if SAVE:
        out = text_y[None, None, :] * total_x + tl.reshape(row, (G_X, T_X, 1))
        tl.store(row_place + out, row_first, mask=inside_x[:, :, None] & there_y[None, None, :])
    result = tl.sum(tl.where(inside_x[:, :, None], row_top, 0.0), 1)
    if not CUT:
        result = (result / size_x[:, None] + column_sum / size_y[None, :]) / 2
    tl.store(score + slot_x[:, None] * n_y + text_y[None, :], result, mask=there_x[:, None] & there_y[None, :])


@_jit
@no_type_check
def _join(  # noqa: PLR0917
    row_sum, column_top, column_piece, score, column_place, table, ends, y_offsets, n_pieces, n_y, total_y,
    TOKENS: tl.constexpr, SAVE: tl.constexpr,
):  # fmt: skip
    """One text of x that was cut, with one text of y: column maxima over the pieces, and the score."""
    piece, stop_piece = tl.load(ends + tl.program_id(0) // n_y), tl.load(ends + tl.program_id(0) // n_y + 1)
    text_y = tl.program_id(0) % n_y
    text_x, size_x = tl.load(table + n_pieces + piece), tl.load(table + 5 * n_pieces + piece)
    start, stop = tl.load(y_offsets + text_y), tl.load(y_offsets + text_y + 1)
    rows, columns = 0.0, 0.0
    for p in range(piece, stop_piece):
        rows += tl.load(row_sum + p * n_y + text_y)
    for column in range(start, stop, TOKENS):
        column = column + tl.arange(0, TOKENS)
        best = tl.full((TOKENS,), float("-inf"), tl.float32)
        first = tl.zeros((TOKENS,), tl.int32)
        for p in range(piece, stop_piece):
            top = tl.load(column_top + p * total_y + column, mask=column < stop, other=0.0)
            if SAVE:
                own = tl.load(column_piece + p * total_y + column, mask=column < stop, other=0).to(tl.int32)
                first = tl.where(top > best + _SLACK, own, first)
            best = tl.maximum(best, top)
        if SAVE:
            tl.store(column_place + text_x * total_y + column, first, mask=column < stop)
        columns += tl.sum(tl.where(column < stop, best, 0.0), 0)
    result = (rows / size_x.to(tl.float32) + columns / tl.maximum((stop - start).to(tl.float32), 1.0)) / 2
    tl.store(score + text_x * n_y + text_y, result)


@_jit
@no_type_check
def _backward(  # noqa: PLR0917
    of_unit, y, inverse_y, table_x, table_y, n_table_x, n_table_y,
    share, row_place, column_place, dim, n_y, total_x, total_y,
    T_X: tl.constexpr, T_Y: tl.constexpr, TOKENS: tl.constexpr, WIDTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Adds plan @ unit tokens of y, over all texts of y in the table, to WIDTH dimensions of G_X texts of x."""
    G_X: tl.constexpr = TOKENS // T_X
    G_Y: tl.constexpr = TOKENS // T_Y
    n_blocks = tl.cdiv(dim, WIDTH)
    block_x, d = tl.program_id(0) // n_blocks, tl.program_id(0) % n_blocks * WIDTH + tl.arange(0, WIDTH)
    _there_x, _x, text_x, _length_x, first_x, size_x, row, rest_x = _block(table_x, n_table_x, block_x, T_X, TOKENS)
    position_x = (first_x[:, None] + tl.arange(0, T_X)[None, :])[:, :, None, None]
    total = _vectors(of_unit, row, rest_x > 0, d, dim)
    for block_y in range(0, tl.cdiv(n_table_y, G_Y)):
        _there, _y, text_y, _length, first_y, size_y, column, rest_y = _block(table_y, n_table_y, block_y, T_Y, TOKENS)
        position_y = (first_y[:, None] + tl.arange(0, T_Y)[None, :])[None, None, :, :]
        weight = tl.load(share + text_x[:, None] * n_y + text_y[None, :])
        sent = tl.reshape(weight / size_x[:, None], (G_X, 1, G_Y, 1))
        received = tl.reshape(weight / size_y[None, :], (G_X, 1, G_Y, 1))
        own = tl.load(row_place + text_y[None, :] * total_x + row[:, None], mask=(rest_x > 0)[:, None], other=0)
        chosen = tl.load(column_place + text_x[:, None] * total_y + column[None, :], mask=rest_y[None, :] > 0, other=0)
        plan = tl.where(tl.reshape(own, (G_X, T_X, G_Y, 1)) == position_y, sent, 0.0)
        plan += tl.where(tl.reshape(chosen, (G_X, 1, G_Y, T_Y)) == position_x, received, 0.0)
        scale_y = tl.load(inverse_y + column, mask=rest_y > 0, other=0.0)
        plan = tl.reshape(plan, (TOKENS, TOKENS)) * scale_y[None, :]
        right = _vectors(y, column, rest_y > 0, d, dim)
        total = tl.dot(plan.to(right.dtype), right, total, input_precision=PRECISION)
    out = of_unit + row[:, None] * dim + d[None, :]
    tl.store(out, total, mask=(rest_x > 0)[:, None] & (d < dim)[None, :])
