"""The backbone as transformers computes it: GPUs, and architectures that the native engine does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from likewise.backbone.base import Backbone
from likewise.errors import InputError, MissingExtraError, ModelError

__all__ = ["load_pretrained", "tokenizer_json"]

_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "mpnet", "camembert", "xlm-roberta-xl", "longformer"}
"""Model types whose position table starts behind the padding index."""

_OWN_HEAD = (
    "pooler.",
    "lm_head.",
    "cls.",
    "classifier.",
    "embeddings.position_ids",
    "discriminator_predictions.",
)
"""Weights of a checkpoint's pretraining head, which no token state depends on."""

_TOKENS_AT_ONCE = 4_096
"""Token budget of one call of the module."""

_VOCABULARIES = ("vocab.*", "*.model", "*.tiktoken")
"""Files that hold a vocabulary; without one, transformers would make up an empty tokenizer."""


class PretrainedBackbone(Backbone):
    """A transformers `AutoModel` in evaluation mode."""

    def __init__(self, module: Any, config: Mapping[str, Any]) -> None:
        self._module = module
        self._config = config

    @property
    def module(self) -> Any:
        """The transformers model itself."""
        return self._module

    @property
    def dim(self) -> int:
        """Length of a token state."""
        return int(self._module.config.hidden_size)

    @property
    def max_length(self) -> int | None:
        """Tokens that the position table holds; None for models without one."""
        positions = self._config.get("max_position_embeddings")
        if not isinstance(positions, int) or positions <= 0:
            return None
        if self._config.get("model_type") in _OFFSET_POSITIONS:
            return positions - int(self._config.get("pad_token_id") or 1) - 1
        return positions

    @property
    def vocabulary(self) -> int | None:
        """Rows of the word embedding table."""
        return int(self._module.get_input_embeddings().num_embeddings)

    def states(
        self, ids: Int[np.ndarray, " total"], offsets: Int[np.ndarray, " ends"]
    ) -> Float[np.ndarray, "total dim"]:
        """Last hidden states in float32, in groups of equally long texts: nothing is padded, so nothing is masked."""
        out = np.empty((len(ids), self.dim), np.float32)
        lengths = np.diff(offsets)
        for length in np.unique(lengths[lengths > 0]).tolist():
            starts = offsets[:-1][lengths == length]
            at_once = max(1, _TOKENS_AT_ONCE // length)
            for first in range(0, len(starts), at_once):
                rows = starts[first : first + at_once, None] + np.arange(length)
                out[rows] = self._hidden(ids[rows])
        return out

    def pooled(
        self, ids: Int[np.ndarray, " total"], offsets: Int[np.ndarray, " ends"], mode: str
    ) -> Float[np.ndarray, "n dim"] | None:
        """Always None: the states come out of the library whole."""
        return None

    def _hidden(self, ids: np.ndarray) -> np.ndarray:
        import torch

        with torch.inference_mode():
            tokens = torch.as_tensor(ids, dtype=torch.long, device=self._module.device)
            hidden = self._module(input_ids=tokens, return_dict=True).last_hidden_state
            return hidden.to("cpu", torch.float32).numpy()

    def describe(self) -> str:
        """One line: architecture, size, device, precision."""
        millions = sum(p.numel() for p in self._module.parameters()) / 1e6
        dtype = str(self._module.dtype).removeprefix("torch.")
        name = type(self._module).__name__
        return f"{name}, {millions:.1f} M parameters, {dtype} on {self._module.device}, by transformers"


def load_pretrained(
    folder: Path, config: Mapping[str, Any], *, device: str | None, precision: str
) -> PretrainedBackbone:
    """Build the module from the safetensors weights of `folder`; no code of it is run.

    Args:
        folder: A local checkpoint.
        config: Its config.json.
        device: A torch device; by default the first GPU, else the CPU.
        precision: "float32", "bfloat16", "float16" or "float64".

    Raises:
        InputError: An unknown precision.
        MissingExtraError: torch or transformers is absent.
        ModelError: The weights are damaged or do not fit the architecture.
    """
    try:
        import torch
        from transformers import AutoModel
    except ImportError as error:
        raise MissingExtraError("transformers", "train", f"running {folder.name} outside the native engine") from error
    dtype, place = _dtype(precision), device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        with _quiet():
            module, info = AutoModel.from_pretrained(
                folder,
                dtype=dtype,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
                **_without_pooler(folder, config),
            )
        module = module.to(place).eval()
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        raise ModelError(
            f"cannot load the backbone in {folder}: {_first_line(error)}; check that the files are "
            "whole (compare their SHA-256)"
        ) from error
    except Exception as error:  # safetensors raises its own type, which has no public base class
        if type(error).__name__ != "SafetensorError":
            raise
        raise ModelError(f"the weight file in {folder} is damaged: {_first_line(error)}; fetch it again") from error
    missing = [name for name in info["missing_keys"] if not name.startswith(_OWN_HEAD)]
    if missing:
        raise ModelError(
            f"{len(missing)} tensors of the architecture are not in the weight file of {folder}, the first "
            f"{sorted(missing)[0]!r}; the file is cut short or belongs to another model"
        )
    if any(".distance_embedding." in name for name in info["unexpected_keys"]):
        raise ModelError(
            f"the attention of {folder} has relative positions (relative_key), which this version of transformers "
            "leaves out; install an older one"
        )
    return PretrainedBackbone(module, config)


def tokenizer_json(folder: Path) -> str:
    """The fast tokenizer of a checkpoint as JSON; built by transformers if only a vocabulary is stored.

    Raises:
        ModelError: No tokenizer can be read from the folder.
    """
    stored = folder / "tokenizer.json"
    if stored.exists():
        return stored.read_text(encoding="utf-8")
    if not any(path for pattern in _VOCABULARIES for path in folder.glob(pattern)):
        raise ModelError(f"no tokenizer in {folder}: neither tokenizer.json nor a vocabulary; fetch tokenizer.json")
    from transformers import AutoTokenizer

    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        return str(tokenizer.backend_tokenizer.to_str())
    except (OSError, ValueError, AttributeError, ImportError, KeyError) as error:
        raise ModelError(f"no tokenizer in {folder}: {_first_line(error)}; add tokenizer.json") from error


def _dtype(precision: str) -> Any:
    import torch

    names = {
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
        "float16": torch.float16,
        "float64": torch.float64,
    }
    if precision not in names:
        raise InputError(f"precision {precision!r} needs the native engine; with torch known are {', '.join(names)}")
    return names[precision]


def _without_pooler(folder: Path, config: Mapping[str, Any]) -> dict[str, bool]:
    """Build no pooler that the checkpoint does not hold, so that no random weight is ever made or saved."""
    from safetensors import safe_open

    if config.get("model_type") not in {"bert", "roberta", "xlm-roberta", "mpnet", "camembert", "electra"}:
        return {}
    if config["model_type"] == "electra":
        return {}
    names: list[str] = []
    for path in folder.glob("*.safetensors"):
        with safe_open(path, framework="numpy") as stored:
            names += stored.keys()
    return {} if any("pooler." in name for name in names) else {"add_pooling_layer": False}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' bars and notices off the caller's standard error while it loads."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
