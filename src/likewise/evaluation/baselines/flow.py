"""BERT-flow: an invertible network, learned without labels, that makes sentence vectors Gaussian."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from likewise.encoder import as_texts
from likewise.errors import InputError
from likewise.evaluation.measures import Embedder
from likewise.types import Embeddings

__all__ = ["Flow", "InvertibleFlow"]


class InvertibleFlow(nn.Module):
    """Steps of scale and shift, rotation, and additive coupling; Glow for vectors.

    The rotations are random and fixed, in place of Glow's learned 1 × 1 convolutions, and the couplings are
    additive, so that only the scales change volume.

    Args:
        dim: Length of a vector.
        n_steps: Steps one after another.
        hidden: Width of the network inside a coupling.
        seed: Of the rotations and the initial weights.

    Source:
        Kingma & Dhariwal 2018 (Glow), section 3; Dinh et al. 2015 (NICE) for additive coupling.
    """

    def __init__(self, dim: int, *, n_steps: int = 4, hidden: int = 256, seed: int = 0) -> None:
        super().__init__()
        if dim < 2:
            raise InputError(f"a coupling splits a vector in two, and these have {dim} dimension")
        generator = torch.Generator().manual_seed(seed)
        self.n_kept = dim // 2
        self.shifts = nn.Parameter(torch.zeros(n_steps, dim))
        self.log_scales = nn.Parameter(torch.zeros(n_steps, dim))
        rotations = torch.linalg.qr(torch.randn(n_steps, dim, dim, generator=generator)).Q
        self.rotations: Tensor
        self.register_buffer("rotations", rotations)
        self.couplings = nn.ModuleList()
        for _ in range(n_steps):
            inner = nn.Linear(self.n_kept, hidden)
            outer = nn.Linear(hidden, dim - self.n_kept)
            nn.init.normal_(inner.weight, std=self.n_kept**-0.5, generator=generator)
            nn.init.zeros_(inner.bias)
            nn.init.zeros_(outer.weight)  # a coupling starts as the identity
            nn.init.zeros_(outer.bias)
            self.couplings.append(nn.Sequential(inner, nn.GELU(), outer))

    def forward(self, x: Float[Tensor, "n dim"]) -> tuple[Float[Tensor, "n dim"], Float[Tensor, ""]]:
        """Latent vectors, and the logarithm of the volume change, which is the same for every vector."""
        for step in range(len(self.couplings)):
            x = self._couple((x + self.shifts[step]) * self.log_scales[step].exp() @ self.rotations[step], step, 1)
        return x, self.log_scales.sum()

    def inverse(self, z: Float[Tensor, "n dim"]) -> Float[Tensor, "n dim"]:
        """The vectors whose latent vectors these are."""
        for step in reversed(range(len(self.couplings))):
            z = self._couple(z, step, -1) @ self.rotations[step].T
            z = z * (-self.log_scales[step]).exp() - self.shifts[step]
        return z

    def loss(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, ""]:
        """Negative log-likelihood a dimension, of vectors whose latent ones are standard normal."""
        z, log_volume = self(x)
        energy = z.square().sum(1).mean() / 2
        return (energy - log_volume) / x.shape[1] + math.log(2 * math.pi) / 2

    @torch.no_grad()
    def initialise(self, x: Float[Tensor, "n dim"]) -> None:
        """Shifts and scales by which these vectors have mean 0 and variance 1 in every dimension of every step."""
        for step in range(len(self.couplings)):
            self.shifts[step] = -x.mean(0)
            self.log_scales[step] = -torch.log(x.std(0, correction=0) + 1e-6)
            x = self._couple((x + self.shifts[step]) * self.log_scales[step].exp() @ self.rotations[step], step, 1)

    def _couple(self, x: Tensor, step: int, sign: int) -> Tensor:
        kept, changed = x[:, : self.n_kept], x[:, self.n_kept :]
        return torch.cat([kept, changed + sign * self.couplings[step](kept)], dim=1)


class Flow:
    """Latent vectors of the pooled vectors of another model.

    The map is not linear, so a text is one token here, and nothing is said about the parts of a score.

    Source:
        Li et al. 2020 (On the Sentence Embeddings from Pre-trained Language Models), section 3.
    """

    def __init__(self, base: Embedder, flow: InvertibleFlow, *, name: str | None = None) -> None:
        self.base = base
        self.flow = flow.eval()
        self.name = name or f"{base.name}-flow"

    @classmethod
    def fit(
        cls,
        base: Embedder,
        texts: Iterable[str],
        *,
        n_steps: int = 4,
        hidden: int = 256,
        epochs: int = 5,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        seed: int = 0,
        name: str | None = None,
    ) -> Flow:
        """Learn the flow on the vectors of the distinct texts; the model itself stays as it is.

        Args:
            base: The model whose vectors are mapped.
            texts: Unlabelled texts of the kind to be compared.
            n_steps: Steps of the flow.
            hidden: Width of its couplings.
            epochs: Passes over the texts.
            batch_size: Vectors in a step.
            learning_rate: Of Adam.
            seed: Of the initial weights and of the order of texts.
            name: Name for tables; the model's with "-flow" by default.

        Raises:
            InputError: Fewer than two distinct texts.
        """
        distinct = list(dict.fromkeys(as_texts(texts)))
        if len(distinct) < 2:
            raise InputError(f"a flow learns a distribution, and {len(distinct)} distinct texts have none")
        vectors = torch.from_numpy(np.array(base.encode(distinct), dtype=np.float32))
        flow = InvertibleFlow(vectors.shape[1], n_steps=n_steps, hidden=hidden, seed=seed)
        flow.initialise(vectors)
        optimizer = torch.optim.Adam(flow.parameters(), lr=learning_rate)
        generator = torch.Generator().manual_seed(seed)
        for _ in range(epochs):
            for rows in torch.randperm(len(vectors), generator=generator).split(batch_size):
                optimizer.zero_grad()
                loss: Tensor = flow.loss(vectors[rows])
                loss.backward()
                optimizer.step()
        return cls(base, flow, name=name)

    def embed(self, texts: Sequence[str], *, progress: bool | None = None) -> Embeddings:
        """The vectors of `encode`, as one token a text."""
        return Embeddings.from_pooled(self.encode(texts, progress=progress))

    @torch.no_grad()
    def encode(self, texts: Sequence[str], *, progress: bool | None = None) -> Float[Any, "n dim"]:
        """Latent vectors; a vector of zeros (a text without tokens) stays one."""
        vectors = np.array(self.base.encode(texts, progress=progress), dtype=np.float32)
        latent = self.flow(torch.from_numpy(vectors))[0].numpy()
        latent[~vectors.any(axis=1)] = 0
        return latent
