"""What every form of the kernels asks of its input, said in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from likewise.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["checked_offsets", "checked_tensor", "refuse_token"]


def checked_offsets(offsets: Any, n_tokens: int) -> np.ndarray:
    """Offsets as contiguous int64.

    Raises:
        InputError: They are not integers that rise from 0 to the number of tokens.
    """
    given = np.asarray(offsets.cpu() if hasattr(offsets, "cpu") else offsets)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        raise InputError(f"offsets have shape {given.shape} and dtype {given.dtype}; give n + 1 integers")
    bounds = np.ascontiguousarray(given, np.int64)
    if bounds[0] != 0 or bounds[-1] != n_tokens or (np.diff(bounds) < 0).any():
        shown = ", ".join(map(str, bounds[:4].tolist())) + (", …" if len(bounds) > 4 else "")
        raise InputError(f"offsets must rise from 0 to the number of tokens, {n_tokens}; got [{shown}]")
    return bounds


def checked_tensor(x: Tensor, offsets: Any) -> np.ndarray:
    """Offsets of a torch tensor's tokens, as `checked_offsets`, once every token is known to be finite.

    Raises:
        InputError: As `checked_offsets`, or a token holds NaN or infinity; text and token are named.
    """
    bounds = checked_offsets(offsets, len(x))
    if x.numel() and not all(bool(end.isfinite()) for end in x.detach().aminmax()):
        refuse_token(int((~x.isfinite().all(dim=1)).nonzero()[0]), bounds)
    return bounds


def refuse_token(token: int, offsets: np.ndarray) -> NoReturn:
    """Raise an InputError that names a token which is not finite by its text and its place in it."""
    text = int(np.searchsorted(offsets, token, side="right") - 1)
    raise InputError(
        f"token {token - int(offsets[text])} of text {text} holds NaN or infinity; the weights are damaged or the "
        "precision is too low; try dtype='float32'"
    )
