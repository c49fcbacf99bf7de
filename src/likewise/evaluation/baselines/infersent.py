"""InferSent: word vectors, a bidirectional LSTM, and the maximum over the words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from likewise.data import NLI_LABELS, LabelledPair
from likewise.encoder import as_texts
from likewise.errors import InputError, ModelError
from likewise.evaluation.baselines.word_vectors import WordVectors
from likewise.files import atomic_folder
from likewise.objectives import Softmax
from likewise.pooling import Pooling
from likewise.types import Embeddings

__all__ = ["InferSent"]

_CONFIG, _WEIGHTS = "infersent.json", "model.safetensors"
_TEXTS_A_CALL = 64


class InferSent:
    """BiLSTM-max in the manner of InferSent; a token is a word, its vector the two states of the LSTM there.

    Max pooling picks one word a dimension, so a cosine is a sum over pairs of words here, too. A text of which no
    word is known has no token.

    Args:
        words: Vectors of words; they stay as they are in training.
        lstm: Bidirectional, one layer, batch first, as wide at its entrance as the vectors.
        name: Name for tables.

    Source:
        Conneau et al. 2017 (Supervised Learning of Universal Sentence Representations), section 3.
    """

    def __init__(self, words: WordVectors, lstm: nn.LSTM, *, name: str = "InferSent-style") -> None:
        if lstm.input_size != words.dim:
            raise InputError(f"an LSTM for vectors of {lstm.input_size} does not fit words of {words.dim} dimensions")
        self.words = words
        self.lstm = lstm.eval()
        self.name = name

    @classmethod
    def untrained(cls, words: WordVectors, *, hidden: int = 2048, seed: int = 0) -> InferSent:
        """Random weights: a start, or something to measure the speed of.

        Args:
            words: Vectors of words.
            hidden: Width of one direction; a sentence vector is twice as long. The paper has 2048.
            seed: Of the weights.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(words, nn.LSTM(words.dim, hidden, batch_first=True, bidirectional=True))

    @classmethod
    def train(
        cls,
        words: WordVectors,
        pairs: Sequence[LabelledPair],
        *,
        hidden: int = 2048,
        epochs: int = 1,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        seed: int = 0,
    ) -> InferSent:
        """Learn from natural language inference: softmax over `(u, v, |u − v|, u * v)`, by Adam.

        Args:
            words: Vectors of words, GloVe in the paper.
            pairs: Premises, hypotheses and how they relate.
            hidden: Width of one direction.
            epochs: Passes over the pairs.
            batch_size: Pairs in a step.
            learning_rate: Of Adam.
            seed: Of the weights and of the order of pairs.

        Raises:
            InputError: No pair.
        """
        if not pairs:
            raise InputError("there are no pairs to learn from; give labelled pairs of natural language inference")
        model = cls.untrained(words, hidden=hidden, seed=seed)
        objective = Softmax(2 * hidden, len(NLI_LABELS), "u,v,|u-v|,u*v")
        optimizer = torch.optim.Adam([*model.lstm.parameters(), *objective.parameters()], lr=learning_rate)
        labels = torch.as_tensor([NLI_LABELS.index(pair.label) for pair in pairs])
        generator = torch.Generator().manual_seed(seed)
        model.lstm.train()
        for _ in range(epochs):
            for rows in torch.randperm(len(pairs), generator=generator).split(batch_size):
                batch = [pairs[row] for row in rows.tolist()]
                both = [pair.premise for pair in batch] + [pair.hypothesis for pair in batch]
                u, v = model._pooled(both).chunk(2)
                optimizer.zero_grad()
                loss: Tensor = objective([Embeddings.from_pooled(u), Embeddings.from_pooled(v)], labels[rows])
                loss.backward()
                optimizer.step()
        model.lstm.eval()
        return model

    @torch.no_grad()
    def embed(self, texts: Sequence[str], *, progress: bool | None = None) -> Embeddings:
        """States of the words, packed, with the one-hot weights of max pooling.

        Args:
            texts: Any number of texts.
            progress: Not used.
        """
        states: dict[int, np.ndarray] = {}
        for rows, padded, lengths in self._batches(list(as_texts(texts))):
            for row, one, length in zip(rows, padded, lengths.tolist(), strict=True):
                states[row] = one[:length].numpy()
        nothing = np.zeros((0, self.dim), np.float32)
        tokens = [states.get(row, nothing) for row in range(len(texts))]
        if not tokens:
            return Embeddings(nothing, np.zeros(1, np.int64), nothing)
        pooling = Pooling(("max",))
        return Embeddings.from_texts(tokens, [pooling.weights(one) for one in tokens])

    @torch.no_grad()
    def encode(self, texts: Sequence[str], *, progress: bool | None = None) -> Float[Any, "n dim"]:
        """[n, 2 * hidden] largest states; zeros where no word is known."""
        return self._pooled(list(as_texts(texts))).numpy()

    @property
    def dim(self) -> int:
        """Length of a sentence vector."""
        return 2 * self.lstm.hidden_size

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write `infersent.json` (settings and words) and `model.safetensors` (word vectors and LSTM).

        Raises:
            InputError: The target holds other files, or cannot be written.
        """
        from safetensors.torch import save_file

        words = sorted(self.words.rows, key=self.words.rows.__getitem__)
        config = {"name": self.name, "dim": self.words.dim, "hidden": self.lstm.hidden_size, "words": words}
        kept = torch.from_numpy(self.words.vectors[[self.words.rows[word] for word in words]])
        with atomic_folder(folder, marker=_CONFIG) as new:
            (new / _CONFIG).write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
            save_file({"words": kept, **self.lstm.state_dict()}, new / _WEIGHTS)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> InferSent:
        """Read what `save` wrote.

        Raises:
            ModelError: A file is missing or damaged.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        folder = Path(folder)
        try:
            config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
            tensors = load_file(folder / _WEIGHTS)
            words = WordVectors(config["words"], tensors.pop("words").numpy())
            lstm = nn.LSTM(config["dim"], config["hidden"], batch_first=True, bidirectional=True)
            lstm.load_state_dict(tensors)
        except (OSError, SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise ModelError(
                f"{folder} is not a whole InferSent folder ({error}); it needs {_CONFIG} and {_WEIGHTS} as they were "
                "saved"
            ) from error
        return cls(words, lstm, name=config["name"])

    def _batches(self, texts: list[str]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Rows, their states padded with minus infinity, and their lengths: texts with known words, longest first."""
        known = [self.words.rows_of(text) for text in texts]
        order = sorted((row for row, one in enumerate(known) if one), key=lambda row: -len(known[row]))
        for start in range(0, len(order), _TEXTS_A_CALL):
            rows = order[start : start + _TEXTS_A_CALL]
            packed = pack_sequence([torch.from_numpy(self.words.vectors[known[row]]) for row in rows])
            padded, lengths = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf)
            yield rows, padded, lengths

    def _pooled(self, texts: list[str]) -> Tensor:
        """[n, 2 * hidden], with gradient."""
        order, largest = [], []
        for rows, padded, _ in self._batches(texts):
            order += rows
            largest.append(padded.amax(1))
        pooled = torch.zeros(len(texts), self.dim)
        return pooled.index_put((torch.as_tensor(order),), torch.cat(largest)) if order else pooled
