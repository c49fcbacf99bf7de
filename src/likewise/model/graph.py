"""Backbone and head as one torch module over padded batches: what the ONNX export traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.encoder import Dense, Head

if TYPE_CHECKING:
    import torch

__all__ = ["sentence_module"]


def sentence_module(backbone: torch.nn.Module, head: Head) -> torch.nn.Module:
    """A module from ids, mask and, if given, token types to last hidden states and the head's output.

    The output is the pooled vector, or the token vectors if the head has no pooling. Texts are padded on the right.

    Args:
        backbone: A transformers model.
        head: What stands behind it.
    """
    import torch

    names = ("input_ids", "attention_mask", "token_type_ids")

    class Sentence(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = backbone
            self.on_tokens = torch.nn.Sequential(*map(_as_torch, head.on_tokens))
            self.on_pooled = torch.nn.Sequential(*map(_as_torch, head.on_pooled))

        def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            states = self.backbone(**dict(zip(names, inputs, strict=False)), return_dict=True).last_hidden_state
            tokens = self.on_tokens(states)
            if head.pooling is None:
                return states, tokens
            mask = inputs[1].to(tokens.dtype)[:, :, None]
            pooled = torch.cat([_pool(mode, tokens, mask) for mode in head.pooling.modes], dim=1)
            return states, self.on_pooled(pooled)

    return Sentence().eval()


def _pool(mode: str, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Pooling as `likewise.pooling` has it, with a mask [batch, length, 1] in place of exact lengths."""
    if mode == "cls":
        return tokens[:, 0]
    if mode == "max":
        return tokens.masked_fill(mask == 0, float("-inf")).amax(dim=1)
    if mode == "weightedmean":
        mask = mask * mask.cumsum(dim=1)
    elif mode == "lasttoken":
        mask = mask * (mask.cumsum(dim=1) == mask.sum(dim=1, keepdim=True))
    total, count = (tokens * mask).sum(dim=1), mask.sum(dim=1).clamp(min=1)
    return total / (count.sqrt() if mode == "mean_sqrt_len_tokens" else count)


def _as_torch(module: Any) -> torch.nn.Module:
    import torch

    class Normalize(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / x.norm(dim=-1, keepdim=True).clamp(min=1e-30)

    class Residual(torch.nn.Module):
        def __init__(self, inner: torch.nn.Module, beside: torch.nn.Module) -> None:
            super().__init__()
            self.inner, self.beside = inner, beside

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) + self.beside(x)

    if not isinstance(module, Dense):
        return Normalize()
    activations = {
        "identity": torch.nn.Identity,
        "tanh": torch.nn.Tanh,
        "relu": torch.nn.ReLU,
        "gelu": torch.nn.GELU,
        "silu": torch.nn.SiLU,
        "sigmoid": torch.nn.Sigmoid,
    }
    dense = torch.nn.Sequential(_linear(module.weight, module.bias), activations[module.activation]())
    return dense if module.residual is None else Residual(dense, _linear(module.residual, None))


def _linear(weight: Any, bias: Any) -> torch.nn.Linear:
    import torch

    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(weight))
        if bias is not None:
            layer.bias.copy_(torch.as_tensor(bias))
    return layer
