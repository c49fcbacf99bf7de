"""The same model run the usual way: transformers, in batches padded to their longest text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from likewise.backbone import read_config
from likewise.backbone.pretrained import load_pretrained
from likewise.encoder import Tokenized
from likewise.errors import InputError
from likewise.model import Model
from likewise.types import Embeddings

__all__ = ["PaddedBatches"]


class PaddedBatches:
    """Padded batches, masked mean: what the paper calls its encoder and, sorted by length, smart batching.

    The vectors are the model's own within rounding; only the time differs.

    Args:
        model: With mean pooling over the backbone's states.
        smart: Put texts of alike numbers of tokens into one batch.
        batch_size: Texts in a batch.

    Raises:
        InputError: Another pooling, or a module between backbone and pooling.
        MissingExtraError: transformers is absent.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 7.
    """

    def __init__(self, model: Model, *, smart: bool = False, batch_size: int = 32) -> None:
        head = model.encoder.head
        if head.pooling is None or head.pooling.modes != ("mean",) or head.on_tokens:
            raise InputError(
                f"{model.name} does not pool by the mean of its backbone's states; only such a model runs in padded "
                "batches here"
            )
        self.name = f"{model.name}, {'smart batching' if smart else 'padded batches'}"
        self.smart = smart
        self.batch_size = batch_size
        self._model = model
        self._backbone = load_pretrained(
            model.folder, read_config(model.folder), device="cpu", precision="float32"
        ).module

    def embed(self, texts: Sequence[str], *, progress: bool | None = None) -> Embeddings:
        """The vectors of `encode`, as one token a text."""
        return Embeddings.from_pooled(self.encode(texts))

    def encode(self, texts: Sequence[str], *, progress: bool | None = None) -> Float[Any, "n dim"]:
        """Pooled vectors.

        Args:
            texts: Any number of texts.
            progress: Not used.
        """
        tokenized = self._model.encoder.tokenize(texts)
        order = range(len(tokenized))
        if self.smart:
            order = sorted(order, key=lambda row: len(tokenized[row].ids))  # type: ignore[assignment]
        means = np.zeros((len(tokenized), self._model.encoder.backbone.dim), np.float32)
        for start in range(0, len(tokenized), self.batch_size):
            rows = list(order[start : start + self.batch_size])
            means[rows] = self._means([tokenized[row] for row in rows])
        return self._model.encoder.head.finish(means, np.asarray([len(one.ids) > 0 for one in tokenized]))

    @torch.inference_mode()
    def _means(self, batch: Sequence[Tokenized]) -> Float[np.ndarray, "n dim"]:
        lengths = torch.as_tensor([len(one.ids) for one in batch])
        mask = torch.arange(max(int(lengths.max()), 1)) < lengths[:, None]
        ids = torch.zeros(mask.shape, dtype=torch.int64)
        ids[mask] = torch.from_numpy(np.concatenate([one.ids for one in batch]).astype(np.int64))
        states = self._backbone(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        sums = torch.where(mask[:, :, None], states, 0).sum(1)
        return (sums / lengths.clamp(min=1)[:, None]).numpy()
