"""The folder of a cross-encoder: a sequence classifier as transformers and sentence-transformers write it.

config.json             id2label: a name for each row of the classifier; how logits become scores, under
                        "sentence_transformers" or, from version 6 on, in config_sentence_transformers.json
tokenizer.json, …       the tokenizer; tokenizer_config.json has the longest pair
model.safetensors       backbone and classifier
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.backbone import read_config, tokenizer_json
from likewise.encoder import Tokenizer
from likewise.errors import InputError, ModelError
from likewise.files import atomic_folder
from likewise.model.folder import read_json

if TYPE_CHECKING:
    from likewise.model.cross_encoder_module import PairClassifier

__all__ = [
    "ACTIVATIONS",
    "chosen_activation",
    "model_inputs",
    "stored_labels",
    "stored_tokenizer",
    "write_cross_encoder",
]

ACTIVATIONS = ("sigmoid", "identity", "softmax")
"""What turns logits into scores."""

_TORCH_NAMES = {
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
    "identity": "torch.nn.modules.linear.Identity",
    "softmax": "torch.nn.modules.linear.Identity",  # sentence-transformers leaves the softmax to the caller
}

_KEPT = (
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "LICENSE",
)
"""Files of the source that a saved folder holds, too, beside what is written anew."""


def chosen_activation(asked: str | None, folder: Path, n_labels: int, *, stored: bool) -> str:
    """What is asked for, else what the folder says, else what is usual.

    Args:
        asked: One of `ACTIVATIONS`, or None.
        folder: Where the model is.
        n_labels: 1 for a score, else the number of classes.
        stored: The folder's own classifier is used, so that what it says holds.

    Raises:
        InputError: What is asked for does not go with so many labels.
        ModelError: The folder says something that is not known.
    """
    known = ("sigmoid", "identity") if n_labels == 1 else ("softmax", "sigmoid")
    if asked is not None and asked not in known:
        raise InputError(f"activation {asked!r} for {n_labels} labels; known are {', '.join(known)}")
    found = _stored_activation(folder) if asked is None and stored else asked
    return found if found in known else known[0]  # others store the logits of classes as they are


def stored_labels(folder: Path, n_labels: int) -> list[str]:
    """The name of each class; LABEL_0, LABEL_1, … where the folder has no names for so many."""
    stored = read_config(folder).get("id2label") or {}
    names = [str(stored.get(str(i))) for i in range(n_labels)]
    fits = len(stored) == len(set(names)) == n_labels
    return names if fits else [f"LABEL_{i}" for i in range(n_labels)]


def stored_tokenizer(folder: Path) -> str:
    """The tokenizer as JSON, with the lower-casing that the folder of a sentence model asks for."""
    definition, path = tokenizer_json(folder), folder / "sentence_bert_config.json"
    lower_case = path.exists() and bool(read_json(path).get("do_lower_case"))
    return Tokenizer(definition, None, lower_case=True).to_json() if lower_case else definition


def model_inputs(folder: Path, n_types: int) -> list[str]:
    """What the tokenizer gives the model: token types, too, if there are some and its settings do not drop them."""
    usual = ["input_ids", "token_type_ids", "attention_mask"]
    stored = _tokenizer_settings(folder).get("model_input_names", usual)
    return [name for name in usual if name in stored and (name != "token_type_ids" or n_types > 1)]


def write_cross_encoder(
    path: str | os.PathLike[str],
    *,
    module: PairClassifier,
    source: Path,
    tokenizer: str,
    inputs: Sequence[str],
    activation: str,
    labels: Sequence[str],
    max_length: int,
) -> None:
    """Write the folder under a temporary name, then rename it.

    Args:
        path: Target; an older folder of the same kind there is replaced.
        module: Backbone and classifier.
        source: The folder that the model came from; its config and tokenizer files are kept.
        tokenizer: The tokenizer's definition as JSON.
        inputs: What the tokenizer gives the model.
        activation: One of `ACTIVATIONS`.
        labels: A name for each class.
        max_length: Longest pair in tokens.

    Raises:
        InputError: The target holds other files, or cannot be written.
    """
    from safetensors.torch import save_file

    weights = {name: tensor.detach().float().cpu().contiguous() for name, tensor in module.checkpoint().items()}
    settings = {"model_max_length": max_length, "model_input_names": list(inputs)}
    with atomic_folder(path, marker="config.json") as target:
        for name in _KEPT:
            if (source / name).is_file():
                shutil.copyfile(source / name, target / name)
        (target / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        _write_json(target / "tokenizer_config.json", _tokenizer_settings(source) | settings)
        _write_json(target / "config.json", _config(read_config(source), module.architecture, activation, labels))
        save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
        shutil.copymode(target / "config.json", target / "model.safetensors")  # which the library makes private


def _config(source: Mapping[str, Any], architecture: str, activation: str, labels: Sequence[str]) -> dict[str, Any]:
    from likewise import __version__

    config = {**source, **{key: "float32" for key in ("dtype", "torch_dtype") if key in source}}
    if len(config.get("id2label") or "01") != len(labels):  # transformers leaves two labels unsaid
        config.pop("problem_type", None)
    return config | {
        "architectures": [architecture],
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
        "sentence_transformers": {"activation_fn": _TORCH_NAMES[activation], "version": f"likewise {__version__}"},
    }


def _stored_activation(folder: Path) -> str | None:
    """What sentence-transformers keeps, in version 6 and before, as one of our names."""
    path, config = folder / "config_sentence_transformers.json", read_config(folder)
    stored = (
        (read_json(path).get("activation_fn") if path.exists() else None)
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
    )
    name = str(stored or "").rpartition(".")[2].lower()
    if stored and name not in ACTIVATIONS:
        raise ModelError(f"{folder} turns logits into scores by {stored}, which is not known; pass activation=")
    return name or None


def _tokenizer_settings(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    return read_json(path) if path.exists() else {"tokenizer_class": "PreTrainedTokenizerFast"}


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
