"""A cross-encoder: both texts in one input, one score or one distribution over classes out. Needs torch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.encoder import WINDOW, as_texts, progress_bar
from likewise.errors import InputError, MissingExtraError, TruncationWarning, warn
from likewise.model.cross_encoder_folder import (
    ACTIVATIONS,
    chosen_activation,
    model_inputs,
    stored_labels,
    stored_tokenizer,
    write_cross_encoder,
)
from likewise.model.devices import check_device
from likewise.model.folder import tokenizer_limit
from likewise.model.sources import find

try:
    import torch

    from likewise.model.cross_encoder_module import PairClassifier, Pairs, read_classifier
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise MissingExtraError("torch", "train", "a cross-encoder") from error

__all__ = ["ACTIVATIONS", "CrossEncoder", "Ranked"]

_TOKENS_A_CALL, _TOKENS_A_CALL_ELSEWHERE = 2_048, 32_768
"""Tokens that one call of the module is filled with, on the CPU and on a GPU."""

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Ranked:
    """One document of a ranking."""

    index: int
    """Its position among the documents given."""
    score: float
    """As `CrossEncoder.score` gives it."""
    text: str
    """The document."""


class CrossEncoder:
    """Reads two texts at once: more exact than comparing their vectors, and nothing can be computed beforehand.

    With one label it scores (regression), on the scale that its `activation` declares: 0 to 1 for "sigmoid",
    unbounded for "identity". With several it gives the probability of each class. Pairs are not padded.

    Args:
        module: Backbone and classifier.
        definition: The tokenizer as JSON.
        source: The folder that it came from.
        activation: One of `ACTIVATIONS`.
        labels: A name for each row of the classifier.
        max_length: Longest pair in tokens, special tokens included.

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), sections 2 and 4.2, where it is the BERT baseline.
    """

    def __init__(
        self,
        module: PairClassifier,
        definition: str,
        source: Path,
        *,
        activation: str,
        labels: Sequence[str],
        max_length: int,
    ) -> None:
        from tokenizers import Tokenizer as FastTokenizer

        self.module, self.source, self.activation, self.labels = module, source, activation, tuple(labels)
        self.max_length, self._definition = max_length, definition
        self._fast = FastTokenizer.from_str(definition)
        n_added = self._fast.num_special_tokens_to_add(True)
        if max_length <= n_added:
            raise InputError(f"max_length {max_length} leaves no room beside the {n_added} special tokens of a pair")
        self._inputs = model_inputs(source, module.encoder.n_types)
        self._fast.no_padding()
        self._fast.enable_truncation(max_length)  # of the longer text, token by token

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str],
        *,
        n_labels: int | None = None,
        labels: Sequence[str] | None = None,
        activation: str | None = None,
        max_length: int | None = None,
        device: str | None = None,
        revision: str | None = None,
        seed: int = 0,
    ) -> CrossEncoder:
        """Load a cross-encoder, or make one of a checkpoint: a sequence classifier as transformers writes it.

        Folders of sentence-transformers' CrossEncoder are such; so is what `save` writes. A plain checkpoint and
        a sentence model get a new classifier, drawn from `seed`, which is to be trained.

        Args:
            name_or_path: As in `Model.load`.
            n_labels: 1 for a score, else the number of classes; a stored classifier of another size is replaced.
                By default the stored size, or the number of `labels`.
            labels: A name for each class; by default the stored ones.
            activation: Of a score "sigmoid" or "identity"; of classes "softmax", or "sigmoid" for classes that do
                not exclude one another. By default what the folder says, else "sigmoid" for a score and "softmax"
                for classes, whose probabilities then sum to 1.
            max_length: Longest pair in tokens; by default what the folder says.
            device: Such as "cpu" or "cuda:0"; by default the first GPU if there is one.
            revision: Branch, tag or commit on the hub.
            seed: Decides the weights of a new classifier.

        Raises:
            ModelNotFoundError: Nothing of that name is at hand.
            ModelError: The folder is damaged, of another family, or has no classifier and `n_labels` is not given.
            InputError: There is no such device, or the options do not go together.
        """
        check_device(device)
        folder = find(name_or_path, revision=revision).folder
        if labels is not None and n_labels not in (None, len(labels)):
            raise InputError(f"{len(labels)} names for {n_labels} labels; give one a label")
        module = read_classifier(folder, n_labels=len(labels) if labels is not None else n_labels, seed=seed)
        longest = module.encoder.definition.max_length
        model = cls(
            module,
            stored_tokenizer(folder),
            folder,
            activation=chosen_activation(activation, folder, module.n_labels, stored=not module.untrained),
            labels=labels or stored_labels(folder, module.n_labels),
            max_length=min(max_length or tokenizer_limit(folder) or longest, longest),
        )
        module.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        return model

    @property
    def n_labels(self) -> int:
        """1 for a score, else the number of classes."""
        return self.module.n_labels

    @property
    def name(self) -> str:
        """A short name for tables: the folder's."""
        return self.source.name

    def logits(self, a: Any, b: Any, *, progress: bool | None = None) -> Float[np.ndarray, "n labels"]:
        """Row by row, what comes out of the classifier, in float32: the scale on which a teacher's margins mean most.

        Args:
            a: Texts that come first; see `as_texts`.
            b: As many texts that come second.
            progress: Show a bar on standard error; by default only on a terminal and for long work.

        Raises:
            InputError: `a` and `b` differ in length.
            InputTypeError: An item is not a string.
        """
        left, right = list(as_texts(a)), list(as_texts(b))
        if len(left) != len(right):
            raise InputError(f"{len(left)} texts cannot be paired with {len(right)}; give as many on both sides")
        out, n_cut = np.empty((len(left), self.n_labels), np.float32), 0
        with progress_bar(len(left), progress) as advance:
            for first in range(0, len(left), WINDOW):
                window = slice(first, first + WINDOW)
                pairs, cut = self._tokenized(left[window], right[window])
                n_cut += cut
                for some, part in self._calls(pairs):
                    out[first + some] = self._computed(part)
                    advance(len(some))
        if n_cut:
            warn(
                f"{n_cut} of {len(left)} pairs are longer than the {self.max_length} tokens that the model reads, and "
                "the longer text of each was cut; split long texts",
                TruncationWarning,
            )
        return out

    def predict(self, a: Any, b: Any, *, progress: bool | None = None) -> Float[np.ndarray, "n labels"]:
        """Row by row, a value for each label: the probability of each class, or the score. See `logits`."""
        return _activated(self.logits(a, b, progress=progress), self.activation)

    def score(self, a: Any, b: Any, *, progress: bool | None = None) -> Any:
        """Row by row, the score of text i of `a` with text i of `b`, on the scale of `activation`. See `logits`.

        Returns:
            [n] float32; a float if both are single strings.

        Raises:
            InputError: As `logits`, or the model has classes instead of a score.
        """
        self._require_score()
        scores = self.predict(a, b, progress=progress)[:, 0]
        return float(scores[0]) if isinstance(a, str) and isinstance(b, str) else scores

    def rank(
        self, query: str, documents: Any, *, top_k: int | None = None, progress: bool | None = None
    ) -> list[Ranked]:
        """The documents by falling score with the query; equal ones in the order given.

        They are ordered by their logits, which still differ where a sigmoid has come to 1.

        Args:
            query: The text that comes first in each pair.
            documents: See `as_texts`.
            top_k: How many are wanted; None for all.
            progress: Show a bar on standard error.

        Raises:
            InputError: `top_k` is below 1, or the model has classes instead of a score.
        """
        self._require_score()
        if top_k is not None and top_k < 1:
            raise InputError(f"top_k is {top_k}; ask for at least 1 document, or leave it out for all")
        texts = list(as_texts(documents))
        logits = self.logits([query] * len(texts), texts, progress=progress)
        scores = _activated(logits, self.activation)[:, 0]
        order = np.argsort(-logits[:, 0], kind="stable")[:top_k]
        return [Ranked(i, float(scores[i]), texts[i]) for i in order.tolist()]

    def tokenize(self, a: Sequence[str], b: Sequence[str]) -> Pairs:
        """Pairs as the module reads them, laid end to end; what is too long is cut."""
        return self._tokenized(a, b)[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder for `load`, for transformers and for sentence-transformers, whole or not at all.

        Args:
            path: Target; an older folder of the same kind there is replaced.

        Raises:
            InputError: The target holds other files, or cannot be written.
        """
        write_cross_encoder(
            path,
            module=self.module,
            source=self.source,
            tokenizer=self._definition,
            inputs=self._inputs,
            activation=self.activation,
            labels=self.labels,
            max_length=self.max_length,
        )

    def _require_score(self) -> None:
        if self.n_labels != 1:
            raise InputError(f"{self.name} tells {self.n_labels} classes apart and gives no score; use predict()")

    def _tokenized(self, a: Sequence[str], b: Sequence[str]) -> tuple[Pairs, int]:
        """The pairs, and how many of them were cut."""
        clean = [(_SURROGATES.sub("\ufffd", x), _SURROGATES.sub("\ufffd", y)) for x, y in zip(a, b, strict=True)]
        found = self._fast.encode_batch(clean)
        offsets = np.concatenate([[0], np.cumsum([len(one.ids) for one in found])]).astype(np.int64)
        ids, types = (
            np.concatenate([np.zeros(0, np.int64), *(np.asarray(getattr(one, name), np.int64) for one in found)])
            for name in ("ids", "type_ids")
        )
        if "token_type_ids" not in self._inputs:
            types = np.zeros_like(ids)
        return Pairs(ids, types, offsets), sum(bool(one.overflowing) for one in found)

    def _calls(self, pairs: Pairs) -> Iterator[tuple[np.ndarray, Pairs]]:
        """Pairs, shortest first, as many at once as fill a call."""
        lengths = np.diff(pairs.offsets)
        budget = _TOKENS_A_CALL if self._device.type == "cpu" else _TOKENS_A_CALL_ELSEWHERE
        order = np.argsort(lengths, kind="stable")
        calls = np.cumsum(lengths[order]) // budget
        for some in np.split(order, np.flatnonzero(np.diff(calls)) + 1) if len(order) else []:
            rows = np.concatenate([np.arange(pairs.offsets[i], pairs.offsets[i + 1]) for i in some])
            offsets = np.concatenate([[0], np.cumsum(lengths[some])]).astype(np.int64)
            yield some, Pairs(pairs.ids[rows], pairs.types[rows], offsets)

    def _computed(self, pairs: Pairs) -> np.ndarray:
        training = self.module.training
        self.module.eval()
        try:
            with torch.inference_mode():
                ids, types = (torch.from_numpy(x).to(self._device) for x in (pairs.ids, pairs.types))
                found: np.ndarray = self.module(ids, types, pairs.offsets).float().numpy(force=True)
        finally:
            self.module.train(training)
        return found

    @property
    def _device(self) -> torch.device:
        return self.module.out.weight.device


def _activated(logits: np.ndarray, activation: str) -> np.ndarray:
    from scipy.special import expit, softmax

    if activation == "identity":
        return logits
    return expit(logits) if activation == "sigmoid" else softmax(logits, axis=1)
