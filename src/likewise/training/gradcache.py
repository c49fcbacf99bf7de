"""Contrastive batches larger than memory: only one chunk of texts has a graph at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from likewise.training.encoder import TrainableEncoder
from likewise.types import Embeddings

__all__ = ["embed_in_chunks"]


def embed_in_chunks(encoder: TrainableEncoder, ids: Tensor, offsets: np.ndarray, n_texts: int) -> Embeddings:
    """What the encoder gives for the texts, chunk by chunk, keeping no activations.

    Every chunk is computed without a graph first. Once the objective over all texts has given the gradients of
    the token vectors, each chunk is computed again, with its random state restored, so that dropout drops the
    same, and carries them on to the parameters. The gradients are those of the chunks computed with their graphs.

    Args:
        encoder: The module, in training or evaluation mode.
        ids: [total] vocabulary ids.
        offsets: [n + 1] where each text starts.
        n_texts: Texts of a chunk.

    Source:
        Gao et al. 2021 (GradCache), section 3: representation gradients, then gradient accumulation.
    """
    tokens: list[Tensor] = []
    weights: list[Tensor] = []
    lengths: list[np.ndarray] = [np.zeros(1, np.int64)]
    for first in range(0, len(offsets) - 1, n_texts):
        ends = offsets[first : first + n_texts + 1]
        some = ids[int(ends[0]) : int(ends[-1])]
        found, pooling, counts = checkpoint(_embed, encoder, some, ends - ends[0], use_reentrant=False)
        tokens.append(found)
        weights += [] if pooling is None else [pooling]
        lengths.append(counts)
    return Embeddings(torch.cat(tokens), np.cumsum(np.concatenate(lengths)), torch.cat(weights) if weights else None)


def _embed(encoder: TrainableEncoder, ids: Tensor, offsets: np.ndarray) -> tuple[Tensor, Any, np.ndarray]:
    found = encoder(ids, offsets)
    return found.tokens, found.weights, found.lengths
