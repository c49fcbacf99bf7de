"""Write a model as a Sentence-Transformers folder: whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from likewise.encoder import Dense, Normalize
from likewise.files import atomic_folder
from likewise.model.folder import FolderSpec
from likewise.pooling import MODES, Pooling

__all__ = ["write_folder"]

_KEPT = (
    "config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "generation_config.json",
    "README.md",
    "LICENSE",
)
"""Files that go into the new folder byte by byte."""

_WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
"""The backbone's weights, byte by byte too, in one file or many."""

_LEGACY_KEYS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}

_TORCH_NAMES = {
    "identity": "torch.nn.modules.linear.Identity",
    "tanh": "torch.nn.modules.activation.Tanh",
    "relu": "torch.nn.modules.activation.ReLU",
    "gelu": "torch.nn.modules.activation.GELU",
    "silu": "torch.nn.modules.activation.SiLU",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
}

_POOLED_TYPES = {
    "Transformer": "sentence_transformers.models.Transformer",
    "Pooling": "sentence_transformers.models.Pooling",
    "Dense": "sentence_transformers.models.Dense",
    "Normalize": "sentence_transformers.models.Normalize",
}
"""Names that every version from 2 to 6 reads."""

_TOKEN_TYPES = {
    "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
    "Dense": "sentence_transformers.base.modules.dense.Dense",
    "MultiVectorMask": "sentence_transformers.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask",
    "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
}
"""Names of version 6, the first with multi-vector models."""


def write_folder(
    path: str | os.PathLike[str],
    *,
    spec: FolderSpec,
    source: Path,
    tokenizer: str,
    similarity: str,
    backbone_dim: int,
    weights: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write the folder under a temporary name, then rename it.

    Args:
        path: Target; an older model folder there is replaced.
        spec: Modules, prompts, lengths.
        source: The folder that the model came from; its weights, tokenizer files, config and card are kept.
        tokenizer: The tokenizer's definition as JSON.
        similarity: Name of the similarity to keep.
        backbone_dim: Length of a token state.
        weights: The backbone's tensors in float32 by their names in a checkpoint, in place of the source's files.

    Raises:
        InputError: The target holds other files, or cannot be written.
    """
    with atomic_folder(path, marker="modules.json") as target:
        stored = [path.name for pattern in _WEIGHTS for path in source.glob(pattern)] if weights is None else []
        for name in (*_KEPT, *stored):
            if (source / name).is_file():
                shutil.copyfile(source / name, target / name)
        if weights is not None:
            _write_weights(target, weights)
        (target / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        _write_json(
            target / "sentence_bert_config.json",
            {"max_seq_length": spec.max_length, "do_lower_case": spec.lower_case, **spec.multi_vector},
        )
        _write_json(target / "config_sentence_transformers.json", _settings(spec, similarity))
        _write_modules(target, spec, backbone_dim)


def _write_weights(target: Path, weights: Mapping[str, np.ndarray]) -> None:
    from safetensors.numpy import save_file

    save_file(dict(weights), target / "model.safetensors", metadata={"format": "pt"})
    shutil.copymode(target / "config.json", target / "model.safetensors")  # which the library makes private
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    said = {key: "float32" for key in ("dtype", "torch_dtype") if key in config}
    _write_json(target / "config.json", {**config, **said})


def _settings(spec: FolderSpec, similarity: str) -> dict[str, Any]:
    from likewise import __version__

    token_level = spec.head.pooling is None
    theirs = spec.stored_similarity
    if not token_level:
        theirs = similarity if similarity in ("cosine", "dot", "euclidean", "manhattan") else "cosine"
    return {
        "__version__": {"likewise": __version__},
        "model_type": "MultiVectorEncoder" if token_level else "SentenceTransformer",
        "prompts": dict(spec.prompts),
        "default_prompt_name": spec.default_prompt,
        "similarity_fn_name": theirs,
        "likewise": {"similarity": similarity},
    }


def _write_modules(target: Path, spec: FolderSpec, backbone_dim: int) -> None:
    head = spec.head
    types = _TOKEN_TYPES if head.pooling is None else _POOLED_TYPES
    chain: list[tuple[str, dict[str, Any], dict[str, np.ndarray]]] = []
    dim = backbone_dim
    for module in head.on_tokens:
        chain.append(_module(module, "token_embeddings"))
        dim = module.weight.shape[0] if isinstance(module, Dense) else dim
    if head.pooling is None:
        chain.insert(
            _mask_position(chain),
            (
                "MultiVectorMask",
                {
                    "skiplist_words": list(head.skip.words),
                    "skiplist_tasks": list(head.skip.tasks),
                    "keep_only_token_ids": None,
                },
                {},
            ),
        )
    else:
        chain.append(("Pooling", _pooling(head.pooling, dim), {}))
    chain += [_module(module, "sentence_embedding") for module in head.on_pooled]
    entries = [{"idx": 0, "name": "0", "path": "", "type": types["Transformer"]}]
    for position, (name, config, tensors) in enumerate(chain, start=1):
        folder = target / f"{position}_{name}"
        folder.mkdir()
        _write_json(folder / "config.json", config)
        if tensors:
            from safetensors.numpy import save_file

            save_file(tensors, folder / "model.safetensors")
        entries.append({"idx": position, "name": str(position), "path": folder.name, "type": types[name]})
    _write_json(target / "modules.json", entries)


def _pooling(pooling: Pooling, dim: int) -> dict[str, Any]:
    flags: dict[str, Any] = {key: mode in pooling.modes for mode, key in _LEGACY_KEYS.items()}
    if list(pooling.modes) != [mode for mode in MODES if mode in pooling.modes]:
        flags = {"pooling_mode": list(pooling.modes)}  # an order that the flags of old versions cannot say
    return {"word_embedding_dimension": dim, **flags, "include_prompt": pooling.include_prompt}


def _mask_position(chain: list[tuple[str, dict[str, Any], dict[str, np.ndarray]]]) -> int:
    """Before a closing Normalize, as version 6 orders them."""
    return len(chain) - 1 if chain and chain[-1][0] == "Normalize" else len(chain)


def _module(module: Dense | Normalize, level: str) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    names = {"module_input_name": level, "module_output_name": level}
    if isinstance(module, Normalize):
        return "Normalize", names, {}
    config: dict[str, Any] = {
        "in_features": int(module.weight.shape[1]),
        "out_features": int(module.weight.shape[0]),
        "bias": module.bias is not None,
        "activation_function": _TORCH_NAMES[module.activation],
        **names,
    }
    tensors = {"linear.weight": np.ascontiguousarray(module.weight)}
    if module.bias is not None:
        tensors["linear.bias"] = np.ascontiguousarray(module.bias)
    if module.residual is not None:
        config["use_residual"] = True
        if config["in_features"] != config["out_features"]:
            tensors["residual.weight"] = np.ascontiguousarray(module.residual)
    return "Dense", config, tensors


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
