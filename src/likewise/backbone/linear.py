"""Linear layers for inference with torch: plain, and packed once for oneDNN, which a self-test must prove right."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["ACTIVATIONS", "Apply", "Step", "plain", "prepacked", "proves"]

Apply = Callable[[Tensor], Tensor]
"""[T, inputs] to [T, outputs]."""

Step = tuple[Tensor, Tensor, str]
"""Weight [outputs, inputs], bias [outputs], and the name of the activation that follows, "" for none."""

ACTIVATIONS: dict[str, tuple[Apply, str, str]] = {
    "": (lambda x: x, "none", ""),
    "gelu": (F.gelu, "gelu", "none"),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), "gelu", "tanh"),
    "relu": (F.relu, "relu", ""),
}
"""Name → the function, and how oneDNN calls it: attribute and algorithm."""

_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
"""Precisions that are packed → largest error in the self-test, relative to the largest value."""

_TEST_ROWS = (1, 7, 130)


def plain(step: Step) -> Apply:
    """The layer as torch has it. The input is cast to the precision of the weight."""
    weight, bias, activation = step
    function = ACTIVATIONS[activation][0]
    return lambda x: function(F.linear(x.to(weight.dtype), weight, bias))


def prepacked(step: Step) -> Apply:
    """The same by oneDNN: weights laid out once for its kernels, the activation in the same pass.

    Raises:
        RuntimeError, AttributeError: This build of torch has no oneDNN, or not these operations.
    """
    weight, bias, activation = step
    _, attribute, algorithm = ACTIVATIONS[activation]
    dtype, packed = weight.dtype, torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())
    compute = torch.ops.mkldnn._linear_pointwise
    return lambda x: compute(x.to(dtype).contiguous(), packed, bias, attribute, [], algorithm)


def proves(steps: list[Step]) -> bool:
    """Whether oneDNN is there and computes these layers as torch does in float64, on few rows and on many."""
    dtype = steps[0][0].dtype
    if dtype not in _TOLERANCE or not torch.backends.mkldnn.is_available():
        return False
    try:
        if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return False
        return all(_error(step) <= _TOLERANCE[dtype] for step in steps)
    except (RuntimeError, AttributeError, TypeError):
        return False


def _error(step: Step) -> float:
    """Largest error of a packed layer relative to its largest value; NaN if it gives NaN."""
    weight, bias, activation = step
    fast, exact = prepacked(step), plain((weight.double(), bias.double(), activation))
    draw = torch.Generator().manual_seed(0)
    errors = []
    with torch.inference_mode():
        for rows in _TEST_ROWS:
            x = torch.randn(rows, weight.shape[1], generator=draw).to(weight.dtype)
            wanted = exact(x)
            errors.append((fast(x) - wanted).abs().max() / wanted.abs().max())
        return float(torch.stack(errors).max())
