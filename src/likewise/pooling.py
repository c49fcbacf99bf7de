"""Pooling is weights: a sentence embedding is the sum of `weights * tokens`.

Mean gives every token 1 / L, CLS gives the first token everything, max gives each dimension to the
token that is largest in it (Reimers & Gurevych 2019, section 3; the other modes are those of the
Sentence-Transformers folder format). Several modes side by side repeat the tokens, one copy a mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device
from jaxtyping import Float, Shaped

from likewise.errors import ModelError
from likewise.types import array_namespace

__all__ = ["MODES", "Pooling"]

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
"""Every pooling of the folder format, in the order in which combined modes are concatenated."""


@dataclass(frozen=True)
class Pooling:
    """How token vectors become one vector.

    Example:
        >>> Pooling(("mean",)).weights(np.ones((4, 2))).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """

    modes: tuple[str, ...] = ("mean",)
    """One or more of `MODES`; several are concatenated."""
    include_prompt: bool = True
    """Whether the tokens of a prompt take part."""

    def __post_init__(self) -> None:
        unknown = [mode for mode in self.modes if mode not in MODES]
        if unknown or not self.modes:
            raise ModelError(f"unknown pooling {unknown or 'with no mode'}; known are {', '.join(MODES)}")

    def dim(self, token_dim: int) -> int:
        """Length of the pooled vector for tokens of length `token_dim`."""
        return token_dim * len(self.modes)

    def spread(self, tokens: Shaped[Any, "length dim"]) -> Shaped[Any, "length spread"]:
        """The tokens as the weights multiply them: one copy for each mode."""
        xp = array_namespace(tokens)
        return tokens if len(self.modes) == 1 else xp.concat([tokens] * len(self.modes), axis=1)

    def weights(self, tokens: Float[Any, "length dim"], start: int = 0) -> Float[Any, "..."]:
        """Weights of one text's tokens.

        Args:
            tokens: Its token vectors; only max pooling looks at the values.
            start: The first token that takes part (those before it belong to a prompt).

        Returns:
            [length], or [length, dim * modes] for max pooling and for several modes.
            A text without tokens has no weights, so that its pooled vector is zero.
        """
        if start >= tokens.shape[0]:
            start = 0
        columns = [self._mode(mode, tokens, start) for mode in self.modes]
        if len(columns) == 1:
            return columns[0]
        xp = array_namespace(tokens)
        return xp.concat([c if c.ndim == 2 else xp.broadcast_to(c[:, None], tokens.shape) for c in columns], axis=1)

    def _mode(self, mode: str, tokens: Any, start: int) -> Any:
        xp = array_namespace(tokens)
        length = tokens.shape[0]
        if mode == "max":
            if not length:
                return xp.zeros_like(tokens)
            inside = xp.argmax(tokens[start:], axis=0) + start
            rows = xp.asarray(np.arange(length), device=device(tokens))[:, None]
            return xp.astype(rows == inside[None, :], tokens.dtype)
        position = np.arange(length)
        chosen = (position >= start).astype(np.float64)
        count = max(int(chosen.sum()), 1)
        if mode == "cls":
            values = (position == start).astype(np.float64)
        elif mode == "lasttoken":
            values = (position == length - 1).astype(np.float64)
        elif mode == "weightedmean":
            ranks = chosen * (position + 1)
            values = ranks / max(ranks.sum(), 1)
        else:
            values = chosen / (count if mode == "mean" else count**0.5)
        values = values.astype(np.float64 if tokens.dtype == xp.float64 else np.float32)
        return xp.asarray(values, device=device(tokens))
