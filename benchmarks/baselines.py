"""RCMD of all pairs the usual way, as two baselines: padded batches with masks, gradient by autograd.

Written from the description in Lee et al. 2022 (CLRCMD), section 4.5. `dense` keeps all B·B·L·L cosines. `sparse`
finds the nearest tokens without gradient, by one matrix product an anchor, and computes with gradient only the
B·B·2L cosines so chosen, from gathered vectors.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.utils.checkpoint import checkpoint

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
        to_y, to_x = _nearest(anchor.detach(), mask, y.detach(), y_mask)
        given = (anchor, mask, y, y_mask, to_y, to_x)
        rows.append(checkpoint(_chosen, *given, use_reentrant=False) if gather_again else _chosen(*given))
    forward, backward = (torch.stack(part) for part in zip(*rows, strict=True))
    return _halves(forward, backward, x_mask, y_mask)


def _nearest(anchor: Tensor, mask: Tensor, y: Tensor, y_mask: Tensor) -> tuple[Tensor, Tensor]:
    """For one anchor [length_x, dim]: places [batch_y, length_x] in each text of y, and [batch_y, length_y] in it."""
    cosines = (y.flatten(0, 1) @ anchor.T).view(*y_mask.shape, len(anchor))
    to_y = cosines.masked_fill(~y_mask[:, :, None], LOWEST).argmax(1)
    to_x = cosines.masked_fill(~mask, LOWEST).argmax(2)
    return to_y, to_x


def _chosen(
    anchor: Tensor, mask: Tensor, y: Tensor, y_mask: Tensor, to_y: Tensor, to_x: Tensor
) -> tuple[Tensor, Tensor]:
    """Both directions [batch_y] for one anchor, from the gathered partners alone."""
    starts = torch.arange(len(y), device=y.device)[:, None] * y.shape[1]
    partners = y.flatten(0, 1).index_select(0, (starts + to_y).flatten()).view(*to_y.shape, -1)
    forward = _mean((partners * anchor).sum(2), mask)
    partners = anchor.index_select(0, to_x.flatten()).view_as(y)
    backward = _mean((partners * y).sum(2), y_mask)
    return forward, backward


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, values, 0).sum(-1) / mask.sum(-1).clamp(min=1)


def _halves(forward: Tensor, backward: Tensor, x_mask: Tensor, y_mask: Tensor) -> Tensor:
    filled = x_mask.any(1)[:, None] & y_mask.any(1)
    return torch.where(filled, (forward + backward) / 2, 0)
