"""A backbone that reads two texts at once, and the classifier on its first token, as one torch module.

    BERT                     first token → pooler (dense, tanh) → dropout → classifier
    RoBERTa, MPNet, ELECTRA  first token → dropout → dense, tanh (ELECTRA: gelu) → dropout → out_proj
    DistilBERT               first token → dense, relu → dropout → classifier

Names and order are those of transformers' `…ForSequenceClassification`, so that checkpoints interchange.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.backbone import read_config
from likewise.backbone.definition import Definition, define
from likewise.backbone.flat import FlatEncoder, dropouts
from likewise.backbone.native import Named
from likewise.backbone.tensors import Tensors
from likewise.errors import InputError, ModelError

__all__ = ["PairClassifier", "Pairs", "read_classifier"]


@dataclass(frozen=True)
class _Layout:
    architecture: str
    dense: str
    out: str = "classifier.out_proj"
    activation: str = "tanh"
    drops_first: bool = True


_LAYOUTS = {
    "bert": _Layout("BertForSequenceClassification", "bert.pooler.dense", "classifier", drops_first=False),
    "roberta": _Layout("RobertaForSequenceClassification", "classifier.dense"),
    "xlm-roberta": _Layout("XLMRobertaForSequenceClassification", "classifier.dense"),
    "camembert": _Layout("CamembertForSequenceClassification", "classifier.dense"),
    "mpnet": _Layout("MPNetForSequenceClassification", "classifier.dense"),
    "electra": _Layout("ElectraForSequenceClassification", "classifier.dense", activation="gelu"),
    "distilbert": _Layout(
        "DistilBertForSequenceClassification", "pre_classifier", "classifier", activation="relu", drops_first=False
    ),
}
"""Model type → names and order of its head."""

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "gelu": F.gelu, "relu": F.relu}


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of texts as the backbone reads them, laid end to end."""

    ids: Int[np.ndarray, " total"]
    """[total] vocabulary ids."""
    types: Int[np.ndarray, " total"]
    """[total] 0 for a token of the first text, 1 of the second, where the tokenizer says so."""
    offsets: Int[np.ndarray, " ends"]
    """[n + 1] pair i owns the tokens offsets[i] to offsets[i + 1]."""

    def __len__(self) -> int:
        return len(self.offsets) - 1


class PairClassifier(nn.Module):
    """Pairs of texts to logits. Differentiable; in evaluation mode at first. Make one with `read_classifier`.

    Args:
        encoder: The backbone on flat tokens.
        dense: Its dense layer's weight and bias.
        out: The last layer's.
        dropout: Probability of dropping a component in the head, in training mode.
        untrained: The last layer is new.
    """

    def __init__(
        self,
        encoder: FlatEncoder,
        dense: tuple[Tensor, Tensor],
        out: tuple[Tensor, Tensor],
        *,
        dropout: float,
        untrained: bool,
    ) -> None:
        super().__init__()
        self.encoder, self._layout, self._dropout = encoder, _LAYOUTS[encoder.definition.model_type], dropout
        self.dense, self.out = _linear(*dense), _linear(*out)
        self.untrained = untrained
        """The last layer is new."""
        self.eval()

    @property
    def n_labels(self) -> int:
        """Length of a row of logits."""
        return self.out.out_features

    @property
    def architecture(self) -> str:
        """Its class in transformers."""
        return self._layout.architecture

    def forward(
        self, ids: Int[Tensor, " total"], types: Int[Tensor, " total"], offsets: Int[np.ndarray, " ends"]
    ) -> Float[Tensor, "n labels"]:
        """Logits of each pair.

        Args:
            ids: Vocabulary ids of all pairs, laid end to end, on the module's device.
            types: Token types, laid out alike; not looked at by a backbone with fewer than two of them.
            offsets: [n + 1] where each pair starts; no pair is empty.

        Raises:
            InputError: A pair is longer than the position table.
        """
        states = self.encoder(ids, offsets, types if self.encoder.n_types > 1 else None)
        first = states[torch.from_numpy(offsets[:-1]).to(states.device)]
        if self._layout.drops_first:
            first = F.dropout(first, self._dropout, self.training)
        hidden = _ACTIVATIONS[self._layout.activation](self.dense(first))
        logits: Tensor = self.out(F.dropout(hidden, self._dropout, self.training))
        return logits

    def checkpoint(self) -> dict[str, Tensor]:
        """Its weights by the names that transformers gives them."""
        prefix = self.encoder.definition.prefix
        named = {prefix + name: tensor for name, tensor in self.encoder.checkpoint().items()}
        for name, layer in ((self._layout.dense, self.dense), (self._layout.out, self.out)):
            named |= {f"{name}.weight": layer.weight.detach(), f"{name}.bias": layer.bias.detach()}
        return named


def read_classifier(folder: Path, *, n_labels: int | None = None, seed: int = 0) -> PairClassifier:
    """Build the module from a folder. What it lacks of a head is drawn from `seed`.

    Args:
        folder: A sequence classifier, a plain checkpoint, or the folder of a sentence model.
        n_labels: Length of a row of logits; a stored last layer of another length is replaced. By default the
            stored one.
        seed: Decides the weights that are new.

    Raises:
        ModelError: The model is of another family, its weights are damaged, or it has no classifier and
            `n_labels` does not say how large a new one is to be.
        InputError: `n_labels` is below 1.
    """
    config = read_config(folder)
    definition = define(config)
    if not isinstance(definition, Definition):
        raise ModelError(
            f"{folder} cannot be a cross-encoder here: {definition}; take a model of the BERT family (BERT, RoBERTa, "
            "XLM-RoBERTa, CamemBERT, MPNet, DistilBERT, ELECTRA)"
        )
    if n_labels is not None and n_labels < 1:
        raise InputError(f"a cross-encoder with {n_labels} labels; give 1 for a score, or the number of classes")
    layout, stored = _LAYOUTS[definition.model_type], Tensors(folder)
    in_file = stored.shape(f"{layout.out}.weight")[0] if f"{layout.out}.weight" in stored else None
    n_labels = n_labels or in_file
    if n_labels is None:
        raise ModelError(
            f"{folder} has no classifier; say how large a new one is to be (n_labels=1 for a score, 3 for the classes "
            "of NLI) and train it"
        )
    draw = torch.Generator().manual_seed(seed)
    scale = float(config.get("initializer_range", 0.02))
    hidden = definition.hidden
    dense = _read(stored, _as_stored(stored, layout.dense, definition.prefix), hidden, hidden)
    out = _read(stored, layout.out, n_labels, hidden) if n_labels == in_file else None
    encoder = FlatEncoder(definition, Named(stored, definition), dropout=dropouts(config))
    return PairClassifier(
        encoder,
        dense or _drawn(hidden, hidden, scale, draw),
        out or _drawn(n_labels, hidden, scale, draw),
        dropout=_head_dropout(config),
        untrained=out is None,
    )


def _as_stored(stored: Tensors, name: str, prefix: str) -> str:
    """The name of a layer; in a checkpoint without a head it lacks the prefix."""
    return name if f"{name}.weight" in stored else name.removeprefix(prefix)


def _read(stored: Tensors, name: str, n_out: int, n_in: int) -> tuple[Tensor, Tensor] | None:
    if f"{name}.weight" not in stored:
        return None
    # Copies, since the file is mapped read-only and a parameter is written to.
    return torch.tensor(stored.get(f"{name}.weight", (n_out, n_in))), torch.tensor(stored.get(f"{name}.bias", (n_out,)))


def _drawn(n_out: int, n_in: int, scale: float, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    return torch.randn(n_out, n_in, generator=draw) * scale, torch.zeros(n_out)


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    with torch.device("meta"):
        layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": bias}, assign=True)
    return layer


def _head_dropout(config: Mapping[str, Any]) -> float:
    if config.get("model_type") == "distilbert":
        return float(config.get("seq_classif_dropout", 0.2))
    own = config.get("classifier_dropout")
    return float(config.get("hidden_dropout_prob", 0.1) if own is None else own)
