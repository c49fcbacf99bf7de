"""Row by row: text i with text i, as scores in both directions or as whole plans."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from jaxtyping import Float

from likewise.kernels import native, plain

__all__ = ["rcmd_pairs", "rcmd_plans"]


def rcmd_pairs(
    a: Float[Any, "total_a dim"], a_offsets: np.ndarray, b: Float[Any, "total_b dim"], b_offsets: np.ndarray
) -> tuple[Float[Any, " n"], Float[Any, " n"]]:
    """Both directions of RCMD row by row, `mean_i max_j` and `mean_j max_i`, differentiable for torch tensors.

    Args:
        a: [total_a, dim] token vectors, packed.
        a_offsets: [n + 1] where each text starts.
        b: [total_b, dim] for the right side.
        b_offsets: [n + 1].

    Returns:
        Two vectors [n]; 0 where either text has no token.

    Raises:
        InputError: Wrong shapes or offsets; NaN or infinity in a token.

    Source:
        Lee et al. 2022 (CLRCMD), section 3.2.
    """
    if not native.serves(a, b):
        return plain.rcmd_pairs(a, a_offsets, b, b_offsets)
    if is_torch_array(a):
        from likewise.kernels import gradients

        return gradients.pairs(a, a_offsets, b, b_offsets)
    left, _, a_offsets = native.normalised(a, a_offsets)
    right, _, b_offsets = native.normalised(b, b_offsets)
    forward, backward = (np.empty(len(a_offsets) - 1, np.float32) for _ in range(2))
    nowhere = np.empty(0, np.int32)
    native.required().score_pairs(
        left, a_offsets, right, b_offsets, forward, backward, nowhere, nowhere, native.n_threads()
    )
    return forward, backward


def rcmd_plans(
    a: Float[Any, "total_a dim"], a_offsets: np.ndarray, b: Float[Any, "total_b dim"], b_offsets: np.ndarray
) -> list[tuple[Float[Any, "source target"], Float[Any, "source target"]]]:
    """Row by row, the cosines of two texts' tokens and the RCMD plan; their product sums to the score.

    Args:
        a: [total_a, dim] token vectors, packed.
        a_offsets: [n + 1] where each text starts.
        b: [total_b, dim] for the right side.
        b_offsets: [n + 1].

    Returns:
        For each pair cosines and plan, [tokens of a, tokens of b] each; the plan has mass 1, and a tie sends to
        the first nearest token.

    Source:
        Lee et al. 2022 (CLRCMD), section 3.2.
    """
    if is_torch_array(a) or not native.serves(a, b):
        ends = zip(itertools.pairwise(a_offsets.tolist()), itertools.pairwise(b_offsets.tolist()), strict=True)
        return [plain.rcmd_plan(a[start:stop], b[begin:end]) for (start, stop), (begin, end) in ends]
    left, _, a_offsets = native.normalised(a, a_offsets)
    right, _, b_offsets = native.normalised(b, b_offsets)
    n = len(a_offsets) - 1
    scores, library = np.empty((2, n), np.float32), native.required()
    rows, columns = np.zeros(len(left), np.int32), np.zeros(len(right), np.int32)
    library.score_pairs(left, a_offsets, right, b_offsets, *scores, rows, columns, native.n_threads())
    plans = []
    for (start, stop), (begin, end) in zip(itertools.pairwise(a_offsets), itertools.pairwise(b_offsets), strict=True):
        shape = (int(stop - start), int(end - begin))
        cosine, plan = np.empty(shape, np.float32), np.zeros(shape, np.float32)
        library.cosines(left[start:stop], right[begin:end], cosine)
        if cosine.size:
            plan[np.arange(shape[0]), rows[start:stop]] = 0.5 / shape[0]
            plan[columns[begin:end], np.arange(shape[1])] += 0.5 / shape[1]
        plans.append((cosine, plan))
    return plans
