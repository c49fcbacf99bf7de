"""A sentence encoder as a torch module: flat tokens in, packed embeddings out, gradients all the way."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from likewise.backbone import read_config, tokenizer_json
from likewise.backbone.definition import Definition, define
from likewise.backbone.flat import FlatEncoder, dropouts
from likewise.backbone.native import Named
from likewise.backbone.tensors import Tensors
from likewise.encoder import Tokenizer, packed, with_markers
from likewise.errors import InputError, ModelError
from likewise.model import DEFAULT, FolderSpec, find
from likewise.model.loading import folder_spec
from likewise.model.writing import write_folder
from likewise.similarity import Similarity, by_name
from likewise.training.head import TrainableHead
from likewise.types import Embeddings

__all__ = ["TrainableEncoder"]

_WINDOW = 4_096
"""Texts tokenized at once; bounds the memory of the tokenizer's records."""


class TrainableEncoder(nn.Module):
    """Tokenizer, backbone and head, to be trained. Make one with `from_folder`.

    In training mode dropout is on, with the probabilities of the folder's config.json, and a projection that is
    there in training only is applied. In evaluation mode it computes what the saved model will.

    Args:
        source: The folder that it came from; tokenizer files, config and card go into a saved model.
        spec: What the folder says beside its weights.
        backbone: The flat-token module.
        head: What follows it.
        tokenizer: Cuts texts at the training length.
    """

    def __init__(
        self, source: Path, spec: FolderSpec, backbone: FlatEncoder, head: TrainableHead, tokenizer: Tokenizer
    ) -> None:
        super().__init__()
        self.source, self.tokenizer = source, tokenizer
        self.backbone, self.head, self._spec = backbone, head, spec
        words = spec.head.skip.words if "document" in spec.head.skip.tasks else ()
        self._skipped = torch.tensor([found for word in words if (found := tokenizer.id_of(word)) is not None])

    @classmethod
    def from_folder(
        cls,
        name_or_path: str | os.PathLike[str] = DEFAULT,
        *,
        pooling: str | None = None,
        projection: str = "none",
        keep_projection: bool = True,
        max_length: int | None = None,
        seed: int = 0,
    ) -> TrainableEncoder:
        """Load a model of the BERT family in float32.

        Args:
            name_or_path: As in `Model.load`.
            pooling: For a plain checkpoint: "mean", "cls", "max", …, or "none" for a token-level model.
            projection: A new head: "none", "linear" (on the tokens, before pooling: CLRCMD, SimCSE-avg) or "mlp"
                (linear and tanh on the pooled vector: SimCSE-CLS).
            keep_projection: Save the new head with the model; False drops it after training, as unsupervised
                SimCSE does.
            max_length: Cut texts in training at so many tokens, special tokens included; the saved model keeps the
                length of the folder.
            seed: Decides the weights of a new head.

        Raises:
            ModelNotFoundError: Nothing of that name is at hand.
            ModelError: The folder is damaged, holds an unknown module, or needs `pooling`.
            InputError: The model is of another family, or an option is unknown.
        """
        folder = find(name_or_path).folder
        spec = folder_spec(folder, pooling=pooling)
        config = read_config(folder)
        definition = define(config)
        if not isinstance(definition, Definition):
            raise InputError(
                f"{folder} cannot be trained here: {definition}; train a model of the BERT family (BERT, RoBERTa, "
                "XLM-RoBERTa, CamemBERT, MPNet, DistilBERT, ELECTRA)"
            )
        if spec.head.pooling is not None and not spec.head.pooling.include_prompt and spec.default_prompt:
            raise InputError(
                f"{folder} leaves its prompt out of the pooling, which is not trained here; set include_prompt in its "
                "Pooling config.json, or remove its default prompt"
            )
        spec = replace(spec, max_length=min(spec.max_length or definition.max_length, definition.max_length))
        read = with_markers(tokenizer_json(folder), spec.markers)
        length = min(spec.max_length or definition.max_length, max_length or definition.max_length)
        tokenizer = Tokenizer(read, length, lower_case=spec.lower_case, unknown=spec.unknown_token)
        if tokenizer.size > definition.vocabulary:
            raise ModelError(
                f"the tokenizer of {folder} has {tokenizer.size} ids and its backbone only {definition.vocabulary}: "
                "they belong to different models; fetch both from one place"
            )
        backbone = FlatEncoder(definition, Named(Tensors(folder), definition), dropout=dropouts(config))
        head = TrainableHead(spec.head, definition.hidden, projection=projection, keep=keep_projection, seed=seed)
        return cls(folder, spec, backbone, head, tokenizer).eval()

    @property
    def dim(self) -> int:
        """Length of a pooled vector in training; of a token vector for a token-level model."""
        return self.head.dim

    @property
    def max_length(self) -> int:
        """Tokens at which texts are cut in training."""
        return int(self.tokenizer.max_length or self.backbone.definition.max_length)

    def tokenize(self, texts: Iterable[str]) -> tuple[Int[np.ndarray, " total"], Int[np.ndarray, " ends"]]:
        """Ids of the texts laid end to end, each behind the model's default prompt, and where each starts.

        Texts longer than `max_length` are cut.
        """
        prompt = self._spec.prompts.get(self._spec.default_prompt or "", "")
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        iterator = iter(texts)
        while window := list(itertools.islice(iterator, _WINDOW)):
            some, offsets = packed(self.tokenizer(window, prompt))
            ids.append(some)
            lengths.append(np.diff(offsets))
        return np.concatenate(ids), np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)

    def forward(self, ids: Int[Tensor, " total"], offsets: Int[np.ndarray, " ends"]) -> Embeddings:
        """Tokens of all texts with their pooling weights; gradients flow to all parameters.

        Args:
            ids: Vocabulary ids, laid end to end, on the module's device.
            offsets: [n + 1] text i owns the ids offsets[i] to offsets[i + 1].

        Raises:
            InputError: A text is longer than the position table, or a token vector is not finite.
        """
        states = self.backbone(ids, offsets)
        if len(self._skipped):
            kept = ~torch.isin(ids, self._skipped.to(ids.device))
            ends = np.concatenate([[0], np.cumsum(kept.numpy(force=True))])
            states, offsets = states[kept], ends[offsets].astype(np.int64)
        return self.head(states, offsets)

    def check(self, similarity: Similarity) -> None:
        """The similarity can be trained on what this model gives.

        Raises:
            InputError: It looks at tokens and the model has none that make up its pooled vector, or the new head
                stands where it would not be seen; or it looks at pooled vectors and there is no pooling.
        """
        if not similarity.needs_tokens:
            if self.head.pooling is None:
                raise InputError(
                    f"similarity '{similarity.name}' compares pooled vectors, and {self.source.name} is a token-level "
                    "model without pooling; train it with 'rcmd', or load it with pooling='mean'"
                )
            return
        if self.head.projection == "mlp":
            raise InputError(
                f"projection 'mlp' stands on the pooled vector, which similarity '{similarity.name}' never sees; take "
                "projection='linear', on the tokens"
            )
        if not self.head.is_sum:
            raise InputError(
                f"similarity '{similarity.name}' compares tokens, and the pooled vector of {self.source.name} passes "
                "through a module that is no sum over tokens, so that it has pooled vectors only; train with 'cosine'"
            )

    def save(self, path: str | os.PathLike[str], *, similarity: str | Similarity | None = None) -> None:
        """Write a Sentence-Transformers folder, whole or not at all; `Model.load` gives what evaluation mode gives.

        Args:
            path: Target; an older model folder there is replaced.
            similarity: The one that the model is to be used with; by default the folder's own, else the cosine, or
                RCMD for a token-level model.

        Raises:
            InputError: The target holds other files, or cannot be written.
        """
        head = self.head.frozen()
        default = self._spec.similarity or ("rcmd" if head.pooling is None else "cosine")
        write_folder(
            path,
            spec=replace(self._spec, head=head),
            source=self.source,
            tokenizer=self.tokenizer.definition,
            similarity=by_name(similarity or default).name,
            backbone_dim=self.backbone.definition.hidden,
            weights=self._weights(),
        )

    def read(self, folder: Path) -> None:
        """Take over the weights that `save` wrote to a folder; a head that is there in training only stays."""
        saved = type(self).from_folder(folder)
        self.load_state_dict(saved.state_dict(), strict=False)

    def _weights(self) -> dict[str, np.ndarray]:
        """The backbone's tensors, and the pooler's if the source has one: transformers would make up another."""
        source, prefix = Tensors(self.source), self.backbone.definition.prefix
        poolers = [name for name in source if name.removeprefix(prefix).startswith("pooler.")]
        kept = {name.removeprefix(prefix): source.get(name, source.shape(name)).copy() for name in poolers}
        own = {name: tensor.float().numpy(force=True) for name, tensor in self.backbone.checkpoint().items()}
        return kept | {name: np.ascontiguousarray(array) for name, array in own.items()}
