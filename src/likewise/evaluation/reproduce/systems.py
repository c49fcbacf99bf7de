"""Which systems a table is measured for: the models given, and the papers' baselines made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float

from likewise.data import LabelledPair, read_nli
from likewise.evaluation.baselines import Whitening, WordVectors
from likewise.evaluation.measures import Embedder
from likewise.evaluation.reproduce.result import Request
from likewise.model import Model
from likewise.types import Embeddings

__all__ = ["HAS_TORCH", "about", "about_words", "derived", "inference_pairs", "label", "with_words"]

HAS_TORCH = find_spec("torch") is not None
"""BERT-flow and InferSent can be had."""

_FLOW = {"smoke": (1, 32), "small": (3, 256), "full": (8, 512)}
"""Size → passes over the texts, width of the couplings."""
_INFERSENT = {"smoke": (300, 32), "small": (20_000, 256), "full": (1_000_000, 2048)}
"""Size → at most so many pairs of natural language inference, width of the LSTM."""

_INFERENCE = (
    "snli/snli_1.0_train.jsonl",
    "multinli/multinli_1.0_train.jsonl",
    "snli/cat_20k/train.tsv",
    "multinli/multinli_1.0_dev_matched.csv",
)
"""What is learned from where the folder has it: the published training sets first."""


class _Known:
    """A model whose vectors of these texts are computed once, for all that is made of them."""

    def __init__(self, model: Model, texts: Sequence[str]) -> None:
        self.name = model.name
        self._rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self._vectors = model.encode(list(self._rows))

    def encode(self, texts: Sequence[str], *, progress: bool | None = None) -> Float[np.ndarray, "n dim"]:
        return self._vectors[[self._rows[text] for text in texts]]

    def embed(self, texts: Sequence[str], *, progress: bool | None = None) -> Embeddings:
        return Embeddings.from_pooled(self.encode(texts))


def label(model: Model, what: str = "") -> str:
    """The model's name without its organisation, and what was done with it."""
    name = model.name.rpartition("/")[2]
    return f"{name} {what}".strip()


def about(model: Model) -> str:
    """What sets a model apart from those of the papers."""
    made = ", ".join(model.encoder.backbone.describe().split(", ")[:2])
    trained = "what it was trained on is not known here"
    if label(model) == "all-MiniLM-L6-v2":
        trained = "its authors trained it on more than a billion pairs, SNLI and MultiNLI among them"
    if not (model.folder / "modules.json").exists():
        trained = "a plain checkpoint, not trained for sentence vectors"
    return f"{label(model)}: {made}; the papers have 12 layers of 768 (base) or 24 of 1024 (large); {trained}"


def about_words(request: Request) -> Iterator[str]:
    """What the rows of word vectors are, or why there are none."""
    if request.word_vectors is None:
        yield "no rows of word vectors: name a word2vec or GloVe text file with --word-vectors"
        return
    if not HAS_TORCH:
        yield "no row of InferSent: it needs torch, which comes with likewise[train]"
        return
    n, hidden = len(inference_pairs(request)), _INFERSENT[request.size][1]
    yield f"word vectors of {request.word_vectors.name}; the paper has GloVe"
    if n:
        yield (
            f"InferSent-GloVe (ours): trained here on {n:,} pairs, width {hidden}, one epoch, by Adam; the original "
            "saw 942,000 pairs with a width of 2048"
        )


def derived(model: Model, texts: Iterable[str], size: str) -> Iterator[tuple[str, Embedder]]:
    """("whitening", …) and ("flow", …) of a pooled model, fit on the unlabelled texts that are compared later."""
    texts = list(texts)
    known = _Known(model, texts)
    yield "whitening", Whitening.fit(known, texts)
    if not HAS_TORCH:
        return
    from likewise.evaluation.baselines import Flow

    epochs, hidden = _FLOW[size]
    yield "flow", Flow.fit(known, texts, epochs=epochs, hidden=hidden)


def with_words(request: Request, texts: Sequence[str]) -> Iterator[tuple[str, Embedder]]:
    """("Avg. GloVe", …) and ("InferSent-GloVe", …) where word vectors are given; the latter trained here on NLI."""
    if request.word_vectors is None:
        return
    pairs = inference_pairs(request) if HAS_TORCH else []
    learned = [text for pair in pairs for text in (pair.premise, pair.hypothesis)]
    words = WordVectors.load(request.word_vectors, texts=[*texts, *learned])
    yield "Avg. GloVe", words
    if pairs:
        from likewise.evaluation.baselines import InferSent

        yield "InferSent-GloVe", InferSent.train(words, pairs, hidden=_INFERSENT[request.size][1])


def inference_pairs(request: Request) -> list[LabelledPair]:
    """NLI pairs of the data folder, up to the number of the size; none where it has none."""
    most = _INFERSENT[request.size][0]
    pairs: list[LabelledPair] = []
    for name in _INFERENCE:
        path = request.folder() / Path(name)
        if path.is_file() and len(pairs) < most:
            pairs += read_nli(path)
    return pairs[:most]
