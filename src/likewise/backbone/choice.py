"""Which backbone serves a model: the native engine where it can, else torch on flat tokens, else transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from likewise.backbone.base import Backbone
from likewise.backbone.definition import Definition, define
from likewise.backbone.native import PRECISIONS, NativeBackbone, unfit
from likewise.backbone.pretrained import load_pretrained
from likewise.errors import InputError, MissingExtraError, ModelError
from likewise.kernels import native

__all__ = ["load_backbone", "read_config", "serving"]

_KNOWN = (*PRECISIONS, "fast", "float16", "float64")


def load_backbone(
    folder: Path,
    *,
    device: str | None = None,
    precision: str = "float32",
    calibration: Callable[[list[str]], tuple[np.ndarray, np.ndarray]] | None = None,
) -> Backbone:
    """Load the weights of `folder` into the backbone that serves them.

    Args:
        folder: A local checkpoint: config.json and safetensors weights; nothing else, and no code, is read.
        device: "cpu" or a torch device; by default the first GPU, else the CPU.
        precision: "float32", "bfloat16", "int8", "int8+" (second feed-forward matrix in bfloat16), "fast" (the
            quickest of these that the processor has instructions for); with torch also "float16" and "float64".
        calibration: Turns texts into packed ids and offsets; int8 uses it to find the ranges of activations.

    Raises:
        ModelError: No safetensors weights, damaged weights, or weights that do not fit the architecture.
        InputError: An unknown precision, or one that the serving backbone does not have.
        MissingExtraError: The model needs torch, which is not installed.
    """
    if precision not in _KNOWN:
        raise InputError(f"unknown precision {precision!r}; known are {', '.join(_KNOWN)}")
    config = read_config(folder)
    _require_weights(folder)
    definition = define(config)
    reason = _unserved(definition, device, precision)
    if not reason and isinstance(definition, Definition):
        return NativeBackbone(definition, folder, _on_this_processor(precision), calibration)
    chosen = "float32" if precision == "fast" else precision
    if chosen.startswith("int8"):
        raise InputError(f"precision {precision!r} needs the native engine, which does not serve this model: {reason}")
    if isinstance(definition, str):
        return load_pretrained(folder, config, device=device, precision=chosen)
    return _flat(definition, folder, device, chosen)


def serving(folder: Path) -> str:
    """Which path serves a model on the CPU, and why."""
    definition = define(read_config(folder))
    reason = _unserved(definition, "cpu", "float32")
    if isinstance(definition, str):
        return f"transformers on torch, since {reason}"
    if reason:
        return f"torch on flat tokens, since {reason}; {definition.model_type} is of the BERT family"
    return f"the native engine on {native.instruction_set()}: {definition.model_type} is of the BERT family"


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a checkpoint.

    Raises:
        ModelError: It is missing, not JSON, or asks for code from its repository.
    """
    path = folder / "config.json"
    if not path.exists():
        raise ModelError(
            f"no config.json in {folder}: it is not a transformer checkpoint; name the folder that holds one"
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not JSON ({error}); fetch it again") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} holds a {type(config).__name__} and not an object; fetch it again")
    if config.get("auto_map"):
        raise ModelError(
            f"{path} asks for code from its repository (auto_map), which is never run; use an "
            "architecture that transformers has"
        )
    return config


def _unserved(definition: Definition | str, device: str | None, precision: str) -> str:
    """Why the native engine does not serve; "" if it does."""
    if isinstance(definition, str):
        return definition
    if device not in (None, "cpu") or (device is None and _gpu_at_hand()):
        return f"the device is {device or 'a GPU'}"
    if precision in ("float16", "float64"):
        return f"the engine has no {precision}"
    return unfit(definition)


def _flat(definition: Definition, folder: Path, device: str | None, precision: str) -> Backbone:
    try:
        from likewise.backbone.flat import FlatBackbone
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("torch", "train", f"running {folder.name} outside the native engine") from error
    return FlatBackbone(definition, folder, device=device, precision=precision)


def _on_this_processor(precision: str) -> str:
    """The precision that serves: int8 where its products have an instruction, bfloat16 where its own are quicker."""
    if precision == "fast":
        return "int8" if native.instruction_set() in ("avx512", "amx") else "float32"
    return "float32" if precision == "bfloat16" and not native.quick_at_bfloat16() else precision


def _gpu_at_hand() -> bool:
    if not Path("/dev/nvidiactl").exists():  # so that torch is not imported on machines without one
        return False
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def _require_weights(folder: Path) -> None:
    if list(folder.glob("*.safetensors")):
        return
    pickles = sorted(p.name for p in folder.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".ckpt"))
    why = f"; it holds {', '.join(pickles)}, which is pickle and is never read" if pickles else ""
    raise ModelError(
        f"no safetensors weights in {folder}{why}; convert the model to safetensors, or take a revision that has them"
    )
