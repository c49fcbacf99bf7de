"""Which form runs: compiled where it can, torch blocks or Triton where gradients or a GPU ask for them, else plain."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from jaxtyping import Float

from likewise.kernels import native, plain

__all__ = ["rcmd_matrix"]


def rcmd_matrix(
    a: Float[Any, "total_a dim"], a_offsets: np.ndarray, b: Float[Any, "total_b dim"], b_offsets: np.ndarray
) -> Float[Any, "rows columns"]:
    """RCMD of every text of `a` with every text of `b`, differentiable for torch tensors.

    Args:
        a: [total_a, dim] token vectors, packed; numpy or torch; only their directions count.
        a_offsets: [n + 1] where each text starts.
        b: [total_b, dim] for the right side.
        b_offsets: [m + 1].

    Returns:
        [n, m] in [-1, 1]: float64 for float64 input, else float32. 0 where either text has no token.

    Raises:
        InputError: Wrong shapes or offsets; NaN or infinity in a token.

    Source:
        Lee et al. 2022 (CLRCMD), section 3.2.
    """
    if is_torch_array(a):
        return _torch_matrix(a, a_offsets, b, b_offsets)
    if native.serves(a, b, a_offsets, b_offsets):
        from likewise.kernels.scoring import Candidates

        return Candidates(b, b_offsets).score(a, a_offsets)
    return plain.rcmd_matrix(a, a_offsets, b, b_offsets)


def _torch_matrix(a: Any, a_offsets: np.ndarray, b: Any, b_offsets: np.ndarray) -> Any:
    if a.is_cuda and 8 not in (a.dtype.itemsize, b.dtype.itemsize) and _has_triton():
        from likewise.kernels import triton_gpu

        return triton_gpu.rcmd_matrix(a, a_offsets, b, b_offsets)
    if native.serves(a, b, a_offsets, b_offsets):
        from likewise.kernels import gradients

        return gradients.matrix(a, a_offsets, b, b_offsets)
    from likewise.kernels import blocked

    return blocked.rcmd_matrix(a, a_offsets, b, b_offsets)


def _has_triton() -> bool:
    from importlib.util import find_spec

    return find_spec("triton") is not None
