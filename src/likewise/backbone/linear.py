"""A layer of the encoder in torch, and its products for inference: plain, or packed once for oneDNN if proved right."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.backbone.definition import Definition

__all__ = ["Layer", "plain", "prepacked", "proves"]

Apply = Callable[[Tensor], Tensor]
"""[T, inputs] to [T, outputs]."""

Step = tuple[Tensor, Tensor, str]
"""Weight [outputs, inputs], bias [outputs], and the name of the activation that follows, "" for none."""

_ACTIVATIONS: dict[str, tuple[Apply, str, str]] = {
    "": (lambda x: x, "none", ""),
    "gelu": (F.gelu, "gelu", "none"),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), "gelu", "tanh"),
    "relu": (F.relu, "relu", ""),
}
"""Name → the function, and how oneDNN calls it: attribute and algorithm."""

_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
"""Precisions that are packed → largest error in the self-test, relative to the largest value."""

_TEST_ROWS = (1, 7, 130)


class Layer(nn.Module):
    """Attention and feed-forward halves, each normalised after its residual sum."""

    def __init__(self, d: Definition, dropout: tuple[float, float]) -> None:
        super().__init__()
        self._after_attention, self._after_feed = dropout
        self._activation = d.activation
        self.query, self.key, self.value, self.output = (nn.Linear(d.hidden, d.hidden) for _ in range(4))
        self.up, self.down = nn.Linear(d.hidden, d.feed), nn.Linear(d.feed, d.hidden)
        self.after_attention, self.after_feed = (nn.LayerNorm(d.hidden, d.epsilon) for _ in range(2))
        self._prepared: list[Apply] | None = None

    def forward(self, x: Tensor, attend: Apply) -> Tensor:
        """States [T, hidden] of the layer below to this layer's; `attend` turns [T, 3 hidden] into [T, hidden]."""
        joint, output, up, down = self._prepared or (self._joint, self.output, self._up, self.down)
        x = self.after_attention(x + F.dropout(output(attend(joint(x))), self._after_attention, self.training))
        return self.after_feed(x + F.dropout(down(up(x)), self._after_feed, self.training))

    def steps(self, dtype: torch.dtype) -> list[Step]:
        """Weight, bias and activation of the four products of a layer, in another precision."""
        found = [(*self._weights(), ""), (self.output.weight, self.output.bias, "")]
        found += [(self.up.weight, self.up.bias, self._activation), (self.down.weight, self.down.bias, "")]
        return [(weight.detach().to(dtype), bias.detach().to(dtype), name) for weight, bias, name in found]

    def prepare(self, make: Callable[[Step], Apply], dtype: torch.dtype) -> None:
        """Compute the products by what `make` makes of their weights from now on, and let go of the weights."""
        self._prepared = [make(step) for step in self.steps(dtype)]
        for role in ("query", "key", "value", "output", "up", "down"):
            setattr(self, role, None)

    def _weights(self) -> tuple[Tensor, Tensor]:
        roles = (self.query, self.key, self.value)
        return torch.cat([role.weight for role in roles]), torch.cat([role.bias for role in roles])

    def _joint(self, x: Tensor) -> Tensor:
        return F.linear(x, *self._weights())

    def _up(self, x: Tensor) -> Tensor:
        return _ACTIVATIONS[self._activation][0](self.up(x))


def plain(step: Step) -> Apply:
    """The layer as torch has it. The input is cast to the precision of the weight."""
    weight, bias, activation = step
    function = _ACTIVATIONS[activation][0]
    return lambda x: function(F.linear(x.to(weight.dtype), weight, bias))


def prepacked(step: Step) -> Apply:
    """The same by oneDNN: weights laid out once for its kernels, the activation in the same pass.

    Raises:
        RuntimeError, AttributeError: This build of torch has no oneDNN, or not these operations.
    """
    weight, bias, activation = step
    _, attribute, algorithm = _ACTIVATIONS[activation]
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
