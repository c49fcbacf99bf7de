"""Which path serves a model."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from likewise.backbone import Backbone, choice, load_backbone, read_config, serving
from likewise.backbone.flat import FlatBackbone
from likewise.backbone.native import NativeBackbone
from likewise.backbone.pretrained import PretrainedBackbone
from likewise.errors import InputError, MissingExtraError, ModelError
from likewise.kernels import native
from tests.conftest import ARCHITECTURES

Folders = Callable[[str], Path]

compiled = pytest.mark.skipif(native.library() is None, reason="the compiled extension is not in use")


@pytest.fixture
def copy(checkpoint: Folders, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint("bert"), tmp_path / "bert"))


@pytest.fixture(scope="module")
def albert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that only transformers knows."""
    from transformers import AlbertConfig, AlbertModel

    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "embedding_size": 16}
    folder = tmp_path_factory.mktemp("albert")
    AlbertModel(AlbertConfig(vocab_size=50, **sizes)).save_pretrained(folder)
    return folder


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Ask for an instruction set, until the test ends."""
    yield lambda name: monkeypatch.setenv("LIKEWISE_KERNELS", name)
    if native._native is not None:
        native._native.use("")


def _cpu(folder: Path, precision: str = "float32") -> Backbone:
    return load_backbone(folder, device="cpu", precision=precision)


@compiled
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_engine_serves_every_type_of_the_family(name: str, checkpoint: Folders) -> None:
    backbone = _cpu(checkpoint(name))
    assert isinstance(backbone, NativeBackbone)
    kind = name.removesuffix("-cased")
    assert serving(checkpoint(name)) == (
        f"the native engine on {native.instruction_set()}: {kind} is of the BERT family"
    )
    assert backbone.describe() == (
        f"{kind}, 2 layers of 32, float32, 0 MB packed, native engine on {native.instruction_set()}"
    )


@compiled
@pytest.mark.parametrize("precision", ["float32", "int8", "int8+"])
def test_the_engine_serves_its_precisions(precision: str, checkpoint: Folders) -> None:
    backbone = _cpu(checkpoint("bert"), precision)
    assert isinstance(backbone, NativeBackbone)
    assert f", {precision}, " in backbone.describe()


@compiled
@pytest.mark.parametrize(
    ("kernel", "asked", "given"),
    [
        ("amx", "fast", "int8"),
        ("amx", "bfloat16", "bfloat16"),
        ("avx512", "fast", "int8"),
        ("avx2", "fast", "float32"),
        ("avx2", "bfloat16", "float32"),
        ("avx2", "int8", "int8"),
        ("portable", "fast", "float32"),
        ("portable", "bfloat16", "float32"),
    ],
)
def test_what_the_processor_is_quick_at(
    kernel: str, asked: str, given: str, checkpoint: Folders, kernels: Callable[[str], None]
) -> None:
    if kernel not in native.available():
        pytest.skip(f"this processor has no {kernel}")
    kernels(kernel)
    backbone = _cpu(checkpoint("bert"), asked)
    assert f", {given}, " in backbone.describe()
    assert backbone.describe().endswith(f"native engine on {kernel}")
    assert f"native engine on {kernel}:" in serving(checkpoint("bert"))


@compiled
def test_bfloat16_is_served_where_it_is_quicker(checkpoint: Folders, kernels: Callable[[str], None]) -> None:
    """With AVX-512 alone that depends on the processor."""
    if "avx512" not in native.available():
        pytest.skip("this processor has no avx512")
    kernels("avx512")
    rates = {p: max(native.required().peak(native.PRECISIONS[p], 0.002) for _ in range(5)) for p in native.PRECISIONS}
    given = "bfloat16" if rates["bfloat16"] > rates["float32"] else "float32"
    assert f", {given}, " in _cpu(checkpoint("bert"), "bfloat16").describe()


@pytest.mark.parametrize("precision", ["float16", "float64"])
def test_a_precision_that_only_torch_has(precision: str, checkpoint: Folders) -> None:
    backbone = _cpu(checkpoint("bert"), precision)
    assert isinstance(backbone, FlatBackbone)
    assert f"{precision} on cpu" in backbone.describe()


@pytest.mark.parametrize("precision", ["float32", "fast", "bfloat16"])
def test_without_the_extension_torch_serves(
    precision: str, checkpoint: Folders, kernels: Callable[[str], None]
) -> None:
    kernels("plain")
    backbone = _cpu(checkpoint("bert"), precision)
    assert isinstance(backbone, FlatBackbone)
    assert f"{'float32' if precision == 'fast' else precision} on cpu" in backbone.describe()
    assert serving(checkpoint("bert")) == (
        "torch on flat tokens, since the compiled extension is not in use; bert is of the BERT family"
    )
    for refused in ("int8", "int8+"):
        with pytest.raises(InputError, match=r"needs the native engine.*: the compiled extension is not in use"):
            _cpu(checkpoint("bert"), refused)


@pytest.fixture
def on_torch(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, str]]:
    """Device and precision that torch was asked for; it gets the CPU."""
    asked: list[tuple[str | None, str]] = []

    def on_cpu(definition: Any, folder: Path, *, device: str | None, precision: str) -> Backbone:
        asked.append((device, precision))
        return FlatBackbone(definition, folder, device="cpu", precision=precision)

    monkeypatch.setattr("likewise.backbone.flat.FlatBackbone", on_cpu)
    return asked


def test_a_gpu_that_is_asked_for(checkpoint: Folders, on_torch: list[Any]) -> None:
    load_backbone(checkpoint("bert"), device="cuda:0", precision="fast")
    load_backbone(checkpoint("bert"), device="mps", precision="bfloat16")
    assert on_torch == [("cuda:0", "float32"), ("mps", "bfloat16")]
    with pytest.raises(InputError, match="the device is cuda:0"):
        load_backbone(checkpoint("bert"), device="cuda:0", precision="int8")


@compiled
def test_a_gpu_that_is_at_hand(checkpoint: Folders, on_torch: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for found in (False, True):
        monkeypatch.setattr(choice, "_gpu_at_hand", lambda found=found: found)
        load_backbone(checkpoint("bert"))
        assert on_torch == ([(None, "float32")] if found else [])
    with pytest.raises(InputError, match="the device is a GPU"):
        load_backbone(checkpoint("bert"), precision="int8")
    assert isinstance(_cpu(checkpoint("bert")), NativeBackbone)
    assert "native engine" in serving(checkpoint("bert"))


def test_a_gpu_is_looked_for_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == "/dev/nvidiactl")
    assert not choice._gpu_at_hand()
    fake = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True))
    monkeypatch.setitem(sys.modules, "torch", fake)
    assert choice._gpu_at_hand()
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert not choice._gpu_at_hand()


def test_an_unknown_type_is_served_by_transformers(albert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "model type 'albert' is not of the BERT family"
    assert serving(albert) == f"transformers on torch, since {reason}"
    for precision in ("float32", "fast", "bfloat16"):
        backbone = _cpu(albert, precision)
        assert isinstance(backbone, PretrainedBackbone)
        assert f"{'float32' if precision == 'fast' else precision} on cpu, by transformers" in backbone.describe()
    with pytest.raises(InputError, match=f"precision 'int8' needs the native engine, .*: {reason}"):
        _cpu(albert, "int8")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install transformers \(it comes with likewise\[train\]\)"):
        _cpu(albert)


@compiled
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hidden_act": "silu"}, "activation 'silu' is not known"),
        ({"position_embedding_type": "relative_key"}, "position type 'relative_key' is not known"),
        ({"is_decoder": True}, "it is a decoder"),
    ],
)
def test_a_variant_is_served_by_transformers(
    changes: dict[str, Any], reason: str, copy: Path, edit_json: Callable[..., None]
) -> None:
    edit_json(copy / "config.json", **changes)
    assert serving(copy) == f"transformers on torch, since {reason}"
    with pytest.raises(InputError, match=reason):
        _cpu(copy, "int8+")


@compiled
@pytest.mark.parametrize(("heads", "feed"), [(4, 64), (2, 40)])
def test_widths_that_fill_no_register(heads: int, feed: int, tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 32, "num_attention_heads": heads, "intermediate_size": feed, "num_hidden_layers": 1}
    BertModel(BertConfig(vocab_size=50, max_position_embeddings=20, **sizes)).save_pretrained(tmp_path)
    assert serving(tmp_path) == (
        f"torch on flat tokens, since widths (32, {feed}, 32, {32 // heads}) are not multiples of 16; "
        "bert is of the BERT family"
    )
    backbone = _cpu(tmp_path)
    assert isinstance(backbone, FlatBackbone)
    assert backbone.states(np.arange(5, dtype=np.int32), np.asarray([0, 5])).shape == (5, 32)


def test_an_unknown_precision(checkpoint: Folders) -> None:
    with pytest.raises(InputError, match=r"unknown precision 'int4'; known are float32, .*int8\+, fast, float16"):
        _cpu(checkpoint("bert"), "int4")


@compiled
def test_only_int8_looks_at_calibration_texts(checkpoint: Folders) -> None:
    ids = np.random.default_rng(0).integers(5, 200, 60).astype(np.int32)
    seen: list[list[str]] = []

    def calibration(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        seen.append(texts)
        return ids, np.asarray([0, 20, 20, 60])

    for precision in ("float32", "bfloat16"):
        load_backbone(checkpoint("bert"), device="cpu", precision=precision, calibration=calibration)
    assert not seen
    found = [
        load_backbone(checkpoint("bert"), device="cpu", precision="int8", calibration=given)
        for given in (calibration, None)
    ]
    assert len(seen) == 1
    assert len(seen[0]) > 20
    assert all(text.strip() for text in seen[0])
    states = [backbone.states(ids, np.asarray([0, 60])) for backbone in found]
    assert 0 < np.abs(states[0] - states[1]).max() < 0.2


def test_a_folder_without_readable_weights(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"it holds pytorch_model\.bin, which is pickle and is never read"):
        _cpu(copy)
    (copy / "pytorch_model.bin").unlink()
    with pytest.raises(ModelError, match=r"no safetensors weights in [^;]*; convert"):
        _cpu(copy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"no config\.json"),
        ("{", r"config\.json is not JSON"),
        (json.dumps({"model_type": "bert", "auto_map": {"AutoModel": "evil.Model"}}), "never run"),
    ],
)
def test_a_config_that_cannot_be_used(text: str | None, message: str, copy: Path) -> None:
    (copy / "config.json").unlink()
    if text is not None:
        (copy / "config.json").write_text(text)
    for call in (read_config, serving, load_backbone):
        with pytest.raises(ModelError, match=message):
            call(copy)


@pytest.mark.parametrize("text", ["[1]", "null", '"bert"'])
def test_a_config_that_is_no_object(text: str, copy: Path) -> None:
    (copy / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        read_config(copy)
