"""The papers' baselines, each an `Embedder`. BERT average and CLS are `Model.load(..., pooling="mean" | "cls")`.

`Flow`, `InferSent` and `PaddedBatches` need torch and are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from likewise.errors import MissingExtraError
from likewise.evaluation.baselines.tfidf import TfIdf
from likewise.evaluation.baselines.whitening import Whitening
from likewise.evaluation.baselines.word_vectors import WordVectors
from likewise.evaluation.baselines.words import words_of

if TYPE_CHECKING:
    from likewise.evaluation.baselines.flow import Flow
    from likewise.evaluation.baselines.infersent import InferSent
    from likewise.evaluation.baselines.padded import PaddedBatches

__all__ = ["Flow", "InferSent", "PaddedBatches", "TfIdf", "Whitening", "WordVectors", "words_of"]

_WITH_TORCH = {"Flow": "flow", "InferSent": "infersent", "PaddedBatches": "padded"}


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'likewise.evaluation.baselines' has no attribute {name!r}")
    try:
        module = importlib.import_module(f"likewise.evaluation.baselines.{_WITH_TORCH[name]}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("torch", "train", f"the baseline {name}") from error
    return getattr(module, name)
