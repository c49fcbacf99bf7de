"""tf-idf: how alike two texts are by the words that they share, rare words first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.encoder import as_texts
from likewise.errors import InputError, MissingExtraError
from likewise.evaluation.baselines.words import words_of
from likewise.types import Embeddings

__all__ = ["TfIdf"]


class TfIdf:
    """Term frequency times inverse document frequency, one dimension a word, rows of length 1.

    A text is one vector as long as the vocabulary; vectors of single words would be that long each, so `embed`
    gives a bag of one token a text.

    Example:
        >>> model = TfIdf(["a cat", "a dog"])
        >>> model.encode(["cat", "bird"]).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]

    Source:
        Reimers & Gurevych 2019 (Sentence-BERT), section 4.3, its unsupervised baseline.
    """

    name = "tf-idf"

    def __init__(self, texts: Iterable[str]) -> None:
        """Learn words and their document frequencies.

        Args:
            texts: Those to be compared, or others of their kind.

        Raises:
            InputError: They hold no word at all.
            MissingExtraError: scikit-learn is absent.
        """
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError as error:
            raise MissingExtraError("scikit-learn", "eval", "tf-idf") from error
        self._vectorizer = TfidfVectorizer(tokenizer=words_of, token_pattern=None, dtype=np.float32)
        try:
            self._vectorizer.fit(list(as_texts(texts)))
        except ValueError as error:
            raise InputError(f"tf-idf learns from texts with words, and these have none ({error})") from error

    def embed(self, texts: Sequence[str], *, progress: bool | None = None) -> Embeddings:
        """The vectors of `encode`, as one token a text.

        Args:
            texts: Any number of texts.
            progress: Not used: this takes no time.
        """
        return Embeddings.from_pooled(self.encode(texts))

    def encode(self, texts: Sequence[str], *, progress: bool | None = None) -> Float[Any, "n dim"]:
        """[n, vocabulary], rows of length 1; zeros where no word is known."""
        texts = list(as_texts(texts))
        if not texts:
            return np.zeros((0, len(self._vectorizer.vocabulary_)), np.float32)
        return self._vectorizer.transform(texts).toarray()
