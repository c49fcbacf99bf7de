"""A model as an ONNX graph that other runtimes can load, with a report of how closely it agrees."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import logging
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.backbone import read_config
from likewise.backbone.pretrained import load_pretrained
from likewise.encoder import Tokenized
from likewise.errors import MissingExtraError, ModelError
from likewise.files import atomic_folder
from likewise.model.graph import sentence_module
from likewise.model.model import Model

if TYPE_CHECKING:
    import torch

__all__ = ["Difference", "Parity", "export"]

_PACKAGES = ("torch", "transformers", "onnx", "onnxruntime", "onnxscript")
_OPSET = 18
_BATCH = 16
_ONE_FILE_BYTES = 1 << 30
"""Weights above this lie in a file of their own, since a graph cannot hold 2 GiB."""

_KEPT = (
    "config.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "README.md",
    "LICENSE",
)
"""Files of the model's folder that go along byte by byte."""

_OURS = "|".join(map(re.escape, ("model.onnx", "model.onnx.data", "tokenizer.json", *_KEPT)))


@dataclass(frozen=True)
class Difference:
    """How far the values of one output are from the model's own."""

    max: float
    """Largest absolute difference."""
    mean: float
    """Mean absolute difference."""


@dataclass(frozen=True)
class Parity:
    """What was compared, and how far apart it is; also the content of parity.json."""

    model: str
    """The folder that was exported."""
    n_texts: int
    """Texts on which the outputs were compared."""
    limit: float
    """Largest difference that was allowed."""
    differences: Mapping[str, Difference]
    """By output and manner, such as "sentence_embedding, padded"."""
    opset: int
    """Version of the ONNX operators that the graph uses."""
    versions: Mapping[str, str]
    """Packages that took part."""

    @property
    def worst(self) -> float:
        """Largest difference of all; NaN if any value is."""
        return float(np.max([one.max for one in self.differences.values()]))

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


def export(
    model_or_folder: Model | str | os.PathLike[str], target_folder: str | os.PathLike[str], *, limit: float = 1e-4
) -> Parity:
    """Write model.onnx, its tokenizer and config, and parity.json: whole, and in agreement, or not at all.

    The graph takes `input_ids`, `attention_mask` and, where the architecture has it, `token_type_ids`, each
    [batch, length] int64 and padded on the right. It gives `last_hidden_state` [batch, length, dim] and
    `sentence_embedding` [batch, dim], pooled and transformed as the model's head says; for a token-level model
    `token_embeddings` instead. tokenizer.json cuts and lower-cases as the model does. A prompt is part of the
    text: put it in front.

    Args:
        model_or_folder: A model in float32, or what `Model.load` takes.
        target_folder: New or empty, or an earlier export, which is replaced.
        limit: Largest absolute difference from the model's own values that is accepted.

    Raises:
        ModelError: The graph differs by more than `limit`, or the model cannot be exported.
        MissingExtraError: torch, transformers, onnx, onnxruntime or onnxscript is absent.
        InputError: The target holds other files, or cannot be written.
    """
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "onnx", "the ONNX export")
    model = model_or_folder if isinstance(model_or_folder, Model) else Model.load(model_or_folder, device="cpu")
    with atomic_folder(target_folder, marker="parity.json", ours=_OURS) as target:
        _write_graph(model, target / "model.onnx")
        _write_companions(model, target)
        parity = _compare(model, target / "model.onnx", limit)
        if not parity.worst <= limit:
            raise ModelError(
                f"the exported graph differs from {model.folder.name} by up to {parity.worst:.3g}, above the limit of "
                f"{limit:g}, and was not kept; export a model that was loaded in float32, or raise the limit"
            )
        (target / "parity.json").write_text(json.dumps(parity.to_dict(), indent=2) + "\n", encoding="utf-8")
    return parity


def _write_graph(model: Model, path: Path) -> None:
    import torch

    config = read_config(model.folder)
    if model.pooled and model.encoder.head.skip.words:
        raise ModelError(
            f"{model.folder.name} leaves out tokens by their words before it pools, which a graph over ids does not "
            "do; it cannot be exported"
        )
    backbone = load_pretrained(model.folder, config, device="cpu", precision="float32").module
    with contextlib.suppress(AttributeError, ValueError):  # architectures with a single form of attention
        backbone.set_attn_implementation("eager")
    module = sentence_module(backbone, model.encoder.head)
    names = _inputs(backbone)
    example = _example(names, int(backbone.get_input_embeddings().num_embeddings))
    outputs = ["last_hidden_state", "sentence_embedding" if model.pooled else "token_embeddings"]
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    n_bytes = sum(p.numel() * p.element_size() for p in module.parameters())
    try:
        with _quiet(), torch.inference_mode():
            torch.onnx.export(
                module,
                tuple(example.values()),
                path,
                input_names=names,
                output_names=outputs,
                dynamic_shapes={"inputs": tuple(axes for _ in names)},
                opset_version=_OPSET,
                external_data=n_bytes > _ONE_FILE_BYTES,
                verbose=False,
            )
    except Exception as error:  # the exporter raises errors of many types, none of them public
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(
            f"torch cannot export {type(backbone).__name__} to ONNX ({reason}); another release of torch or of "
            "transformers may"
        ) from error


def _inputs(backbone: torch.nn.Module) -> list[str]:
    segments = getattr(backbone.config, "type_vocab_size", 0) or 0
    known = inspect.signature(backbone.forward).parameters
    with_types = segments > 1 and "token_type_ids" in known
    return ["input_ids", "attention_mask", *(["token_type_ids"] if with_types else [])]


def _example(names: list[str], n_ids: int) -> dict[str, torch.Tensor]:
    import torch

    ids = torch.arange(3 * 11).reshape(3, 11) % (n_ids - 5) + 5
    mask = (torch.arange(11)[None, :] < torch.tensor([[11], [8], [5]])).long()
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    return {name: values[name] for name in names}


def _write_companions(model: Model, target: Path) -> None:
    for name in _KEPT:
        if (model.folder / name).is_file():
            shutil.copyfile(model.folder / name, target / name)
    (target / "tokenizer.json").write_text(model.encoder.tokenizer.to_json(), encoding="utf-8")


def _compare(model: Model, path: Path, limit: float) -> Parity:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    texts = _texts()
    tokenized = model.encoder.tokenizer(texts)
    padding = read_config(model.folder).get("pad_token_id") or 0
    states, finals = _own_values(model, texts, tokenized)
    differences: dict[str, Difference] = {}
    for manner, size in (("padded", _BATCH), ("unpadded", 1)):
        found_states: list[np.ndarray] = []
        found_finals: list[np.ndarray] = []
        for first in range(0, len(texts), size):
            batch = tokenized[first : first + size]
            hidden, final = session.run(None, _feed(session, batch, padding))
            lengths = [len(one.ids) for one in batch]
            found_states += [rows[:n] for rows, n in zip(hidden, lengths, strict=True)]
            found_finals += list(final) if model.pooled else [rows[:n] for rows, n in zip(final, lengths, strict=True)]
        names = [output.name for output in session.get_outputs()]
        differences[f"{names[0]}, {manner}"] = _difference(states, np.concatenate(found_states))
        differences[f"{names[1]}, {manner}"] = _difference(
            finals, np.stack(found_finals) if model.pooled else np.concatenate(found_finals)
        )
    versions = {package: metadata.version(package) for package in ("likewise", *_PACKAGES)}
    return Parity(model.folder.name, len(texts), limit, differences, _OPSET, versions)


def _own_values(model: Model, texts: list[str], tokenized: list[Tokenized]) -> tuple[np.ndarray, np.ndarray]:
    """Token states, and what the model gives out in the end, of all texts."""
    offsets = np.cumsum([0, *(len(one.ids) for one in tokenized)]).astype(np.int64)
    states = model.encoder.backbone.states(np.concatenate([one.ids for one in tokenized]), offsets)
    if model.pooled:
        return states, model.encode(texts, prompt="", on_truncate="ignore")
    return states, model.encoder.head.tokens(states)


def _texts() -> list[str]:
    """The calibration texts whole, in halves, and all together as one that is cut: lengths of every kind."""
    stored = resources.files("likewise.backbone").joinpath("calibration.txt").read_text("utf-8").splitlines()
    return [*stored, *(text[: len(text) // 2] for text in stored), "a", " ".join(stored)]


def _feed(session: Any, batch: list[Tokenized], padding: int) -> dict[str, np.ndarray]:
    lengths = np.asarray([len(one.ids) for one in batch])
    mask = (np.arange(lengths.max())[None, :] < lengths[:, None]).astype(np.int64)
    ids = np.full(mask.shape, padding, np.int64)
    ids[mask == 1] = np.concatenate([one.ids for one in batch])
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return {one.name: values[one.name] for one in session.get_inputs()}


def _difference(ours: np.ndarray, theirs: np.ndarray) -> Difference:
    apart = np.abs(ours.astype(np.float64) - theirs)
    return Difference(float(apart.max()), float(apart.mean()))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's notices about itself off the caller's terminal."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), open(os.devnull, "w", encoding="utf-8") as nowhere:
            warnings.simplefilter("ignore")
            with contextlib.redirect_stdout(nowhere):
                yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)
