"""RCMD of all pairs the usual way, as two baselines: padded batches with masks, gradient by autograd.

Written from the description in Lee et al. 2022 (CLRCMD), section 4.5. `dense` keeps all B·B·L·L cosines. `sparse`
finds the nearest tokens without gradient, by one matrix product an anchor, and computes with gradient only the
B·B·2L cosines so chosen, from gathered vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

__all__ = ["dense", "pad", "sparse"]

LOWEST = -2.0
"""Below every cosine: what a padded token gets before a maximum."""


def pad(tokens: Tensor, offsets: np.ndarray) -> tuple[Tensor, Tensor]:
    """Packed [total, dim] tokens to padded [batch, length, dim] ones and their mask; differentiable."""
    lengths = torch.as_tensor(np.diff(offsets), device=tokens.device)
    mask = torch.arange(int(lengths.max()), device=tokens.device) < lengths[:, None]
    padded = tokens.new_zeros(*mask.shape, tokens.shape[1])
    padded[mask] = tokens
    return padded, mask


def dense(x: Tensor, x_mask: Tensor, y: Tensor, y_mask: Tensor) -> Tensor:
    """Scores [batch_x, batch_y] of padded tokens [batch, length, dim]; a text without tokens scores 0."""
    cosines = torch.einsum("aid,bjd->abij", normalize(x, dim=2), normalize(y, dim=2))
    to_y = cosines.masked_fill(~y_mask[None, :, None, :], LOWEST).amax(3)
    to_x = cosines.masked_fill(~x_mask[:, None, :, None], LOWEST).amax(2)
    return _halves(_mean(to_y, x_mask[:, None]), _mean(to_x, y_mask[None]), x_mask, y_mask)


def sparse(x: Tensor, x_mask: Tensor, y: Tensor, y_mask: Tensor, *, gather_again: bool = False) -> Tensor:
    """The same scores; `gather_again` drops the gathered vectors after use and gathers them anew in backward."""
    x, y = normalize(x, dim=2), normalize(y, dim=2)
    rows = []
    for anchor, mask in zip(x, x_mask, strict=True):
        places = _nearest(anchor.detach(), mask, y.detach(), y_mask)
        to_y, to_x = _GatherAgain.apply(anchor, y, *places) if gather_again else _chosen(anchor, y, *places)
        rows.append((_mean(to_y, mask), _mean(to_x, y_mask)))
    forward, backward = (torch.stack(part) for part in zip(*rows, strict=True))
    return _halves(forward, backward, x_mask, y_mask)


def _nearest(anchor: Tensor, mask: Tensor, y: Tensor, y_mask: Tensor) -> tuple[Tensor, Tensor]:
    """For one anchor [length_x, dim]: rows [batch_y, length_x] of all of y, and places [batch_y, length_y] in it."""
    cosines = (y.flatten(0, 1) @ anchor.T).view(*y_mask.shape, len(anchor))
    to_y = cosines.masked_fill(~y_mask[:, :, None], LOWEST).argmax(1)
    to_x = cosines.masked_fill(~mask, LOWEST).argmax(2)
    return to_y + torch.arange(len(y), device=y.device)[:, None] * y.shape[1], to_x


def _chosen(anchor: Tensor, y: Tensor, to_y: Tensor, to_x: Tensor) -> tuple[Tensor, Tensor]:
    """The chosen cosines of one anchor, [batch_y, length_x] and [batch_y, length_y], from gathered partners."""
    return (_rows(y.flatten(0, 1), to_y) * anchor).sum(2), (_rows(anchor, to_x) * y).sum(2)


class _GatherAgain(torch.autograd.Function):
    """`_chosen`, of which nothing is kept but the places."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, y: Tensor, to_y: Tensor, to_x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(anchor, y, to_y, to_x)
        return _chosen(anchor, y, to_y, to_x)

    @staticmethod
    def backward(ctx: Any, to_y_grad: Tensor, to_x_grad: Tensor) -> tuple[Tensor | None, ...]:
        anchor, y, to_y, to_x = ctx.saved_tensors
        anchor_grad = (_rows(y.flatten(0, 1), to_y).mul_(to_y_grad[:, :, None])).sum(0)
        anchor_grad.index_add_(0, to_x.flatten(), (y * to_x_grad[:, :, None]).flatten(0, 1))
        y_grad = _rows(anchor, to_x).mul_(to_x_grad[:, :, None])
        y_grad.flatten(0, 1).index_add_(0, to_y.flatten(), (anchor * to_y_grad[:, :, None]).flatten(0, 1))
        return anchor_grad, y_grad, None, None


def _rows(x: Tensor, places: Tensor) -> Tensor:
    return x.index_select(0, places.flatten()).view(*places.shape, -1)


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, values, 0).sum(-1) / mask.sum(-1).clamp(min=1)


def _halves(forward: Tensor, backward: Tensor, x_mask: Tensor, y_mask: Tensor) -> Tensor:
    filled = x_mask.any(1)[:, None] & y_mask.any(1)
    return torch.where(filled, (forward + backward) / 2, 0)
