"""Columns of texts put together: those of one process, and those of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed
from torch.autograd.function import once_differentiable

from likewise.types import Embeddings

__all__ = ["gathered", "joined", "process_count"]


def joined(sides: Sequence[Embeddings]) -> Embeddings:
    """All texts of all columns, column after column; tokens and their order stay, pooling weights are left out."""
    if len(sides) == 1:
        return sides[0]
    starts = np.cumsum([0] + [int(side.offsets[-1]) for side in sides[:-1]])
    ends = [side.offsets[1:] + start for side, start in zip(sides, starts, strict=True)]
    return Embeddings(torch.cat([side.tokens for side in sides]), np.concatenate([[0], *ends]).astype(np.int64))


def process_count() -> int:
    """Processes that train together; 1 where torch.distributed is not set up."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def gathered(side: Embeddings) -> tuple[Embeddings, int]:
    """The texts of all processes, process after process; without pooling weights. Differentiable.

    In backward every process gets, for its own tokens, the sum of the gradients of all processes.

    Args:
        side: Texts of this process; the processes may differ in number of texts and of tokens.

    Returns:
        All texts, and which of them is the first of this process.
    """
    device = side.tokens.device
    sizes = _all(torch.tensor([len(side), int(side.offsets[-1])], device=device)).numpy(force=True)
    n_texts, n_tokens = sizes[:, 0], sizes[:, 1]
    lengths = _all(_filled(torch.as_tensor(side.lengths, device=device), int(n_texts.max()))).numpy(force=True)
    of_all = np.concatenate([row[:n] for row, n in zip(lengths, n_texts, strict=True)])
    offsets = np.concatenate([[0], np.cumsum(of_all)]).astype(np.int64)
    first = int(n_texts[: distributed.get_rank()].sum())
    return Embeddings(_Gather.apply(side.tokens, n_tokens), offsets), first


class _Gather(torch.autograd.Function):
    """Rows of all processes. Collectives take equal shapes only, so that the rows are filled up on the way."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, n_rows: np.ndarray) -> Tensor:
        first = int(n_rows[: distributed.get_rank()].sum())
        ctx.own = slice(first, first + len(rows))
        of_all = _all(_filled(rows, int(n_rows.max())))
        return torch.cat([part[:n] for part, n in zip(of_all, n_rows.tolist(), strict=True)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].contiguous().clone()
        distributed.all_reduce(total)
        return total[ctx.own], None


def _all(x: Tensor) -> Tensor:
    """[processes, ...] the tensors of all processes, which are of one shape."""
    parts = [torch.empty_like(x) for _ in range(distributed.get_world_size())]
    distributed.all_gather(parts, x.contiguous())
    return torch.stack(parts)


def _filled(x: Tensor, n_rows: int) -> Tensor:
    return torch.cat([x, x.new_zeros(n_rows - len(x), *x.shape[1:])])
