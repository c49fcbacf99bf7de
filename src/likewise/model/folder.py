"""Model folders in the Sentence-Transformers format, versions 2 to 6, read and written without running any of it.

modules.json                        the chain of modules: type name and sub-folder of each
config.json, *.safetensors          the backbone
tokenizer.json, …                   the tokenizer
sentence_bert_config.json           max_seq_length, do_lower_case; in version 2 also sentence_roberta_config.json, …
config_sentence_transformers.json   prompts, similarity name; our own keys under "likewise"
N_Pooling, N_Dense, N_Normalize     one config each; Dense has weights
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from likewise.encoder import Dense, Head, Normalize, SkipTokens
from likewise.errors import ModelError
from likewise.pooling import MODES, Pooling

__all__ = ["FolderSpec", "check_is_model", "read_folder", "read_json"]

_LEGACY_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

_ACTIVATIONS = {
    "Identity": "identity",
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "SiLU": "silu",
    "Sigmoid": "sigmoid",
}

_TOKENS, _POOLED = "token_embeddings", "sentence_embedding"

_TRANSFORMER_SETTINGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Names under which version 2 kept the transformer's settings; later ones use the first."""

_MULTI_VECTOR_SETTINGS = ("query_length", "document_length", "query_expansion")
"""Settings of multi-vector models; only the length of a document matters here, all are kept for a save."""


_SIGNS = ("config.json", "modules.json")
"""Either makes a folder a model."""

_DEPTHS = ("model", "*/model")
"""Where `likewise train` leaves models below its output."""


@dataclass(frozen=True, eq=False)
class FolderSpec:
    """All that a folder says beside its weights; what a save must give back."""

    head: Head
    """The modules behind the backbone."""
    max_length: int | None = None
    """Longest text in tokens; None leaves it to tokenizer and backbone."""
    lower_case: bool = False
    """Lower-case texts before the tokenizer."""
    similarity: str | None = None
    """Name of the stored similarity, if it is one of ours."""
    stored_similarity: str | None = None
    """The name under which the folder keeps a similarity, whether it is one of ours or not."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Prompt texts by name."""
    default_prompt: str | None = None
    """Name of the prompt that is used unless another is asked for."""
    unknown_token: str | None = None
    """The tokenizer's unknown token."""
    markers: tuple[str, ...] = ()
    """Prompts that begin with a token of their own, such as `[D] ` in ColBERT models."""
    multi_vector: Mapping[str, Any] = field(default_factory=dict)
    """How a multi-vector model cuts and expands queries and documents."""
    module_types: tuple[str, ...] = ()
    """Type names as stored, for reports."""


def read_folder(folder: Path) -> FolderSpec | None:
    """Read everything but the backbone's weights; None if the folder is a plain checkpoint (no modules.json).

    Raises:
        ModelError: It is no model folder; a module, an order of modules, an activation or a pooling that is not known.
    """
    check_is_model(folder)
    if not (folder / "modules.json").exists():
        return None
    settings = _optional_json(folder / "config_sentence_transformers.json")
    own = settings.get("likewise") or {}
    is_colbert = settings.get("model_type") == "ColBERT"
    token_level = is_colbert or settings.get("model_type") == "MultiVectorEncoder"
    entries = read_json(folder / "modules.json")
    if not (isinstance(entries, list) and entries and all(isinstance(one, dict) and "type" in one for one in entries)):
        raise ModelError(f"{folder / 'modules.json'} is not a list of modules with a type each; fetch it again")
    chain = _Chain(folder, token_level)
    transformer: dict[str, Any] = {}
    for position, entry in enumerate(entries):
        name = str(entry["type"]).rpartition(".")[2]
        where = folder / str(entry.get("path") or "")
        if position == 0:
            transformer = _transformer(name, where, folder)
        else:
            chain.add(name, where)
    if is_colbert:  # PyLate 3 lists Transformer and Dense only; it skips punctuation and normalises by itself
        words = settings.get("skiplist_words")
        chain.skip = SkipTokens(tuple(string.punctuation if words is None else words))
        chain.on_tokens.append(Normalize())
    multi_vector = _multi_vector(transformer, settings if is_colbert else {})
    return FolderSpec(
        head=chain.head(),
        max_length=(token_level and multi_vector.get("document_length")) or transformer.get("max_seq_length"),
        lower_case=bool(transformer.get("do_lower_case", False)),
        similarity=own.get("similarity") or _similarity(settings.get("similarity_fn_name")),
        stored_similarity=settings.get("similarity_fn_name"),
        prompts=_prompts(settings),
        default_prompt=settings.get("default_prompt_name"),
        unknown_token=unknown_token(folder),
        markers=tuple(settings[key] for key in ("query_prefix", "document_prefix") if settings.get(key)),
        multi_vector=multi_vector,
        module_types=tuple(str(entry["type"]) for entry in entries),
    )


def check_is_model(folder: Path) -> None:
    """It holds config.json or modules.json.

    Raises:
        ModelError: It holds neither.
    """
    if not any((folder / name).exists() for name in _SIGNS):
        inner = next((one for depth in _DEPTHS for one in sorted(folder.glob(depth)) if one.is_dir()), None)
        hint = f", such as {inner}" if inner else ""
        raise ModelError(
            f"no config.json in {folder}: it is not a model folder; name the folder that holds config.json and the "
            f"weights{hint}"
        )


def unknown_token(folder: Path) -> str | None:
    """The unknown token that the tokenizer's settings name."""
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        token = _optional_json(folder / file).get("unk_token")
        if token:
            return str(token["content"] if isinstance(token, dict) else token)
    return None


def tokenizer_limit(folder: Path) -> int | None:
    """The longest text that the tokenizer's settings name; transformers writes a huge number for none."""
    limit = _optional_json(folder / "tokenizer_config.json").get("model_max_length")
    return int(limit) if isinstance(limit, (int, float)) and 0 < limit < 1e9 else None


def read_json(path: Path) -> Any:
    """A JSON file of a model folder.

    Raises:
        ModelError: It is missing or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path} is missing; the folder was copied in part; fetch it again") from error
    except ValueError as error:
        raise ModelError(f"{path} is not JSON ({error}); fetch it again") from error


class _Chain:
    """The modules behind the transformer, as they are met."""

    def __init__(self, folder: Path, token_level: bool) -> None:
        self.folder = folder
        self.token_level = token_level
        self.pooling: Pooling | None = None
        self.on_tokens: list[Dense | Normalize] = []
        self.on_pooled: list[Dense | Normalize] = []
        self.skip = SkipTokens()

    def add(self, name: str, where: Path) -> None:
        readers = {
            "Pooling": self._pooling,
            "Dense": self._dense,
            "Normalize": self._normalize,
            "MultiVectorMask": self._mask,
        }
        if name not in readers:
            raise ModelError(
                f"module {name!r} in {self.folder} is not known, and what it computes is not guessed; known are "
                f"Transformer, {', '.join(readers)}"
            )
        readers[name](where)

    def head(self) -> Head:
        if self.pooling is None and self.on_pooled:
            raise ModelError(f"{self.folder} transforms a pooled vector but has no Pooling module; fetch it again")
        return Head(self.pooling, tuple(self.on_tokens), tuple(self.on_pooled), self.skip)

    def _pooling(self, where: Path) -> None:
        if self.pooling is not None:
            raise ModelError(f"{self.folder} pools twice, which is not supported")
        self.pooling = _read_pooling(where / "config.json")

    def _dense(self, where: Path) -> None:
        config = read_json(where / "config.json")
        self._place(_read_dense(where, config), config, where)

    def _normalize(self, where: Path) -> None:
        self._place(Normalize(), _optional_json(where / "config.json"), where)

    def _mask(self, where: Path) -> None:
        config = _optional_json(where / "config.json")
        if config.get("keep_only_token_ids"):
            raise ModelError(f"{where} keeps image tokens only; this package compares texts")
        tasks = tuple(config.get("skiplist_tasks", ["document"]))
        self.skip = SkipTokens(tuple(config.get("skiplist_words") or ()), tasks)

    def _place(self, module: Dense | Normalize, config: Mapping[str, Any], where: Path) -> None:
        source = config.get("module_input_name") or (_TOKENS if self.token_level else _POOLED)
        if (config.get("module_output_name") or source) != source or source not in (_TOKENS, _POOLED):
            raise ModelError(
                f"{where} reads {source!r} and writes {config.get('module_output_name')!r}, which is not supported"
            )
        if source == _TOKENS and self.pooling is not None:
            raise ModelError(f"{where} changes tokens after they were pooled, which no score would see; not supported")
        (self.on_tokens if source == _TOKENS else self.on_pooled).append(module)


def _transformer(name: str, where: Path, folder: Path) -> dict[str, Any]:
    if name != "Transformer":
        raise ModelError(f"{folder} starts with module {name!r}; only Transformer models are read")
    if where.resolve() != folder.resolve():
        raise ModelError(f"{folder} keeps its transformer in {where.name}; move those files up, beside modules.json")
    config = next(filter(None, (_optional_json(folder / file) for file in _TRANSFORMER_SETTINGS)), {})
    if not config.get("max_seq_length"):
        config["max_seq_length"] = tokenizer_limit(folder)
    return config


def _multi_vector(transformer: Mapping[str, Any], pylate: Mapping[str, Any]) -> dict[str, Any]:
    """As version 6 names them; PyLate 3 expands queries to one length unless it says otherwise."""
    found = {key: pylate[key] for key in _MULTI_VECTOR_SETTINGS if pylate.get(key)}
    if pylate and "query_expansion" not in pylate and pylate.get("do_query_expansion") is not False:
        attend = bool(pylate.get("attend_to_expansion_tokens"))
        length = found.pop("query_length", 32)
        found["query_expansion"] = {"strategy": "fixed", "attend": attend, "length": length}
    return {**found, **{key: transformer[key] for key in _MULTI_VECTOR_SETTINGS if transformer.get(key)}}


def _read_pooling(path: Path) -> Pooling:
    config = read_json(path)
    include_prompt = bool(config.get("include_prompt", True))
    if "pooling_mode" in config:
        stored = config["pooling_mode"]
        modes = tuple(str(mode) for mode in (stored if isinstance(stored, list) else [stored]))
        return Pooling(modes, include_prompt)
    unknown = [key for key in config if key.startswith("pooling_mode_") and key not in _LEGACY_MODES]
    if unknown:
        raise ModelError(f"{path} has the unknown pooling {unknown[0]!r}; known are {', '.join(MODES)}")
    modes = tuple(mode for key, mode in _LEGACY_MODES.items() if config.get(key))
    if not modes:
        raise ModelError(f'{path} names no pooling; add "pooling_mode": one of {", ".join(MODES)}')
    return Pooling(modes, include_prompt)


def _read_dense(where: Path, config: Mapping[str, Any]) -> Dense:
    from safetensors.numpy import load_file

    path = where / "model.safetensors"
    if not path.exists():
        pickle = (
            " (its pytorch_model.bin is pickle and is never read)" if (where / "pytorch_model.bin").exists() else ""
        )
        raise ModelError(f"{path} is missing{pickle}; convert the module to safetensors")
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    name = activation.rpartition(".")[2]
    if not activation.startswith("torch.nn.") or name not in _ACTIVATIONS:
        raise ModelError(
            f"{where} ends in {activation!r}, which is not known; known are {', '.join(_ACTIVATIONS)} of torch.nn"
        )
    try:
        tensors = load_file(path)
    except Exception as error:  # safetensors raises its own type, which has no public base class
        raise ModelError(f"{path} is damaged ({error}); fetch it again") from error
    wanted = (config.get("out_features"), config.get("in_features"))
    weight, bias = tensors.get("linear.weight"), tensors.get("linear.bias")
    if weight is None or weight.shape != wanted or (bias is None) == bool(config.get("bias", True)):
        raise ModelError(
            f"{path} does not hold the {wanted[0]} by {wanted[1]} layer that its config.json promises; fetch it again"
        )
    residual = None
    if config.get("use_residual"):
        square = weight.shape[0] == weight.shape[1]
        residual = np.eye(len(weight), dtype=weight.dtype) if square else tensors.get("residual.weight")
        if residual is None:
            raise ModelError(f"{path} lacks the residual layer that its config.json promises; fetch it again")
    return Dense(weight, bias, _ACTIVATIONS[name], residual)


def _prompts(settings: Mapping[str, Any]) -> dict[str, str]:
    prompts = {name: str(text or "") for name, text in (settings.get("prompts") or {}).items()}
    for key, name in (("query_prefix", "query"), ("document_prefix", "document")):
        prefix = settings.get(key)
        if prefix:
            prompts[name] = prefix + prompts.get(name, "").removeprefix(prefix)
    return prompts


def _similarity(stored: str | None) -> str | None:
    return {"cosine": "cosine", "dot": "dot", "euclidean": "euclidean", "manhattan": "manhattan"}.get(stored or "")


def _optional_json(path: Path) -> dict[str, Any]:
    content = read_json(path) if path.exists() else {}
    if not isinstance(content, dict):
        raise ModelError(f"{path} should hold one JSON object; fetch it again")
    return content
