"""The safe-load report: what is in a model folder, and what loading it would run."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from likewise.backbone import serving
from likewise.encoder import Dense
from likewise.errors import ModelError
from likewise.files import sha256
from likewise.model.folder import FolderSpec, check_is_model, read_folder, read_json, tokenizer_limit
from likewise.model.sources import DEFAULT, find

__all__ = ["File", "Report", "inspect"]

_FORMATS = {
    ".safetensors": "safetensors",
    ".json": "json",
    ".txt": "text",
    ".md": "text",
    ".model": "sentencepiece",
    ".bin": "pickle, never read",
    ".pt": "pickle, never read",
    ".pth": "pickle, never read",
    ".pkl": "pickle, never read",
    ".ckpt": "pickle, never read",
    ".h5": "never read",
    ".onnx": "never read",
    ".py": "code, never run",
    ".so": "code, never run",
}


@dataclass(frozen=True)
class File:
    """One file of a model folder."""

    name: str
    """Path inside the folder."""
    n_bytes: int
    """Its size."""
    sha256: str
    """Its hash."""
    format: str
    """What it is, and whether it is ever read."""


@dataclass(frozen=True)
class Report:
    """What a model folder holds. Nothing of it was run, and the backbone was not built."""

    name: str
    """As asked for."""
    folder: str
    """Where it lies."""
    source: str
    """How it was found."""
    architecture: str
    """Class and type that config.json names."""
    modules: tuple[str, ...]
    """The chain behind the backbone, in words; empty for a plain checkpoint, and where it cannot be read."""
    pooling: str
    """Its pooling, or what is missing."""
    similarity: str
    """Similarity that it asks for."""
    max_length: int | None
    """Longest text in tokens that the folder allows."""
    prompts: dict[str, str]
    """Prompts by name."""
    licence: str
    """As the model card states it."""
    served_by: str
    """What would compute it on this machine's CPU, and why."""
    would_run: str
    """Code that loading would run."""
    loadable: str
    """"yes", or why not."""
    files: tuple[File, ...]
    """Every file."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and strings."""
        return asdict(self)


def inspect(name_or_path: str | os.PathLike[str] = DEFAULT, *, revision: str | None = None) -> Report:
    """Describe a model without loading it.

    Raises:
        ModelNotFoundError: Nothing of that name is at hand.
    """
    found = find(name_or_path, revision=revision)
    folder = found.folder
    config, spec, problem = _read(folder)
    return Report(
        name=found.name,
        folder=str(folder),
        source=found.source,
        architecture=f"{', '.join(config.get('architectures') or ['unknown'])} ({config.get('model_type', 'unknown')})",
        modules=_chain(spec),
        pooling=_pooling(spec, problem),
        similarity=(spec and spec.similarity) or ("rcmd" if spec and spec.head.pooling is None else "cosine"),
        max_length=spec.max_length if spec else tokenizer_limit(folder) or config.get("max_position_embeddings"),
        prompts=dict(spec.prompts) if spec else {},
        licence=_licence(folder),
        served_by="nothing" if problem.startswith("no") else serving(folder),
        would_run="nothing: no pickle is read and no code of the folder is run",
        loadable=problem or "yes",
        files=tuple(_file(folder, path) for path in sorted(folder.rglob("*")) if path.is_file()),
    )


def _read(folder: Path) -> tuple[dict[str, Any], FolderSpec | None, str]:
    """config.json, the modules, and why the folder does not load ("" if it does)."""
    config: dict[str, Any] = {}
    try:
        check_is_model(folder)
        config = read_json(folder / "config.json")
        spec = read_folder(folder)
    except ModelError as error:
        return config, None, f"no: {error}"
    if config.get("auto_map"):
        return config, spec, "no: config.json asks for code from its repository, which is never run"
    if not any(folder.glob("*.safetensors")):
        return config, spec, "no: there are no safetensors weights"
    return config, spec, "" if spec else "yes, if a pooling is named: it is a plain checkpoint"


def _chain(spec: FolderSpec | None) -> tuple[str, ...]:
    if spec is None:
        return ()

    def words(module: Any, level: str) -> str:
        if isinstance(module, Dense):
            out, into = module.weight.shape
            return f"Dense {into} → {out}, {module.activation}, on {level}"
        return f"Normalize {level}"

    chain = [words(module, "tokens") for module in spec.head.on_tokens]
    chain += [f"Pooling {'+'.join(spec.head.pooling.modes)}"] if spec.head.pooling else []
    return ("Transformer", *chain, *(words(module, "the pooled vector") for module in spec.head.on_pooled))


def _pooling(spec: FolderSpec | None, problem: str) -> str:
    if spec is None and problem.startswith("no"):
        return "not known"
    if spec is None:
        return "not stored: name one when loading, such as pooling='mean' (--pooling mean on the command line)"
    return "+".join(spec.head.pooling.modes) if spec.head.pooling else "none: a token-level model"


def _licence(folder: Path) -> str:
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.exists() else ""
    front = re.match(r"---\n(.*?)\n---", text, re.DOTALL)
    stated = re.search(r"^license:\s*(\S+)", front.group(1), re.MULTILINE) if front else None
    return stated.group(1) if stated else "not stated in the model card"


def _file(folder: Path, path: Path) -> File:
    return File(
        name=path.relative_to(folder).as_posix(),
        n_bytes=path.stat().st_size,
        sha256=sha256(path),
        format=_FORMATS.get(path.suffix, "never read"),
    )
