"""Reading safetensors in place: the values of the library's own reader, and damage named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from likewise.backbone.tensors import Tensors
from likewise.errors import ModelError

RANDOM = np.random.default_rng(0).standard_normal((5, 7))


def _one(folder: Path, array: np.ndarray, name: str = "a") -> Tensors:
    save_file({name: array}, folder / "model.safetensors")
    return Tensors(folder)


def _written(folder: Path, header: Any, data: bytes = bytes(16), size: int | None = None) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(text) if size is None else size
    (folder / "model.safetensors").write_bytes(length.to_bytes(8, "little") + text + data)


def _entry(dtype: Any = "F32", shape: Any = (4,), offsets: Any = (0, 16)) -> dict[str, Any]:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "uint8"])
def test_values_are_those_of_safetensors(dtype: str, tmp_path: Path) -> None:
    array = np.round(100 * np.abs(RANDOM)).astype(dtype) if "int" in dtype else RANDOM.astype(dtype)
    found = _one(tmp_path, array).get("a", (5, 7))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, load_file(tmp_path / "model.safetensors")["a"].astype(np.float32))


def test_bfloat16_is_read_as_torch_reads_it(tmp_path: Path) -> None:
    from safetensors.torch import save_file as save_torch

    stored = torch.from_numpy(RANDOM).to(torch.bfloat16)
    save_torch({"a": stored}, tmp_path / "model.safetensors")
    found = Tensors(tmp_path).get("a", (5, 7))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, stored.float().numpy())


def test_float32_is_a_view_of_the_file(tmp_path: Path) -> None:
    tensors = _one(tmp_path, RANDOM.astype(np.float32))
    found = tensors.get("a", (5, 7))
    assert not found.flags.owndata
    assert not found.flags.writeable
    assert np.shares_memory(found, tensors.get("a", (5, 7)))
    copied = _one(tmp_path, RANDOM.astype(np.float16)).get("a", (5, 7))
    assert copied.flags.writeable


def test_a_view_outlives_its_reader_and_released_pages(tmp_path: Path) -> None:
    tensors = _one(tmp_path, RANDOM.astype(np.float32))
    found = tensors.get("a", (5, 7))
    tensors.release()
    del tensors
    np.testing.assert_array_equal(found, RANDOM.astype(np.float32))


def test_several_files_are_one_set(tmp_path: Path) -> None:
    save_file({"a": np.zeros(2, np.float32)}, tmp_path / "model-00001-of-00002.safetensors")
    save_file({"b": np.ones((3, 1), np.float32)}, tmp_path / "model-00002-of-00002.safetensors", metadata={"by": "me"})
    tensors = Tensors(tmp_path)
    assert sorted(tensors) == ["a", "b"]
    assert "a" in tensors
    assert "__metadata__" not in tensors
    assert tensors.shape("b") == (3, 1)
    np.testing.assert_array_equal(tensors.get("b", (3, 1)), np.ones((3, 1)))


@pytest.mark.parametrize("padding", range(8))
def test_data_may_start_anywhere(padding: int, tmp_path: Path) -> None:
    text = json.dumps(_entry()).encode()
    _written(tmp_path, text + b" " * padding, np.arange(4, dtype="<f4").tobytes())
    np.testing.assert_array_equal(Tensors(tmp_path).get("a", (4,)), [0, 1, 2, 3])


def test_a_tensor_without_elements_and_one_without_axes(tmp_path: Path) -> None:
    save_file({"none": np.zeros((0, 7), np.float32), "one": np.full((), 3, np.float32)}, tmp_path / "m.safetensors")
    assert Tensors(tmp_path).get("none", (0, 7)).shape == (0, 7)
    assert Tensors(tmp_path).get("one", ()) == 3


def test_a_missing_tensor(tmp_path: Path) -> None:
    tensors = _one(tmp_path, RANDOM.astype(np.float32))
    assert "b" not in tensors
    with pytest.raises(ModelError, match="lack the tensor 'b'"):
        tensors.get("b", (5, 7))


def test_another_shape(tmp_path: Path) -> None:
    tensors = _one(tmp_path, RANDOM.astype(np.float32))
    for shape in ((7, 5), (35,), (5, 7, 1)):
        with pytest.raises(ModelError, match=r"'a' .*has shape \(5, 7\), and config\.json asks for"):
            tensors.get("a", shape)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("values", [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf]])
def test_values_that_are_no_numbers(dtype: str, values: list[float], tmp_path: Path) -> None:
    array = RANDOM.astype(dtype)
    array[2, : len(values)] = values
    tensors = _one(tmp_path, array)
    for resident in (True, False):
        with pytest.raises(ModelError, match=r"'a' .*holds NaN or infinity"):
            tensors.get("a", (5, 7), resident=resident)


@pytest.mark.parametrize("place", [0, 99, 100, 149])
def test_every_block_of_a_table_is_checked(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.backbone.tensors._BLOCK", 100)
    array = np.arange(150, dtype=np.float32)
    np.testing.assert_array_equal(_one(tmp_path, array).get("a", (150,), resident=False), array)
    array[place] = np.nan
    with pytest.raises(ModelError, match=r"'a' .*holds NaN or infinity"):
        _one(tmp_path, array).get("a", (150,), resident=False)


def test_large_numbers_are_numbers(tmp_path: Path) -> None:
    """Even where their sum passes the range of float32."""
    array = np.full(8, 3e38, np.float32)
    np.testing.assert_array_equal(_one(tmp_path, array).get("a", (8,)), array)
    with pytest.raises(ModelError, match="NaN or infinity"):
        _one(tmp_path, np.full(8, 1e39)).get("a", (8,))


@pytest.mark.parametrize("kept", [0, 4, 8, 40, 200, -4, -1])
def test_a_file_that_is_cut_short(kept: int, tmp_path: Path) -> None:
    _one(tmp_path, RANDOM.astype(np.float32))
    content = (tmp_path / "model.safetensors").read_bytes()
    assert len(content) > 200
    (tmp_path / "model.safetensors").write_bytes(content[:kept])
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged"):
        Tensors(tmp_path)


def test_a_file_with_more_than_its_header_says(tmp_path: Path) -> None:
    _written(tmp_path, _entry(), bytes(20))
    with pytest.raises(ModelError, match="is damaged"):
        Tensors(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        b"\xff\xfe garbage",
        b"{",
        b"[1, 2]",
        b"3",
        b'"text"',
        {"a": 3},
        {"a": {"dtype": "F32", "shape": [4]}},
        {"a": {"dtype": "F32", "data_offsets": [0, 16]}},
        {"a": {"shape": [4], "data_offsets": [0, 16]}},
        _entry(offsets=[]),
        _entry(offsets=[16]),
        _entry(offsets=[0, 8, 16]),
        _entry(offsets=["0", "16"]),
        _entry(offsets=[0.0, 16.0]),
        _entry(offsets=[-4, 16]),
        _entry(offsets=[32, 16]),
        _entry(offsets=None),
        _entry(shape=[-4]),
        _entry(shape=["4"]),
        _entry(shape=None),
        _entry(dtype=3),
        _entry(dtype=["F32"]),
    ],
)
def test_a_header_that_is_none(header: Any, tmp_path: Path) -> None:
    _written(tmp_path, header)
    with pytest.raises(ModelError, match="is damaged"):
        Tensors(tmp_path)


@pytest.mark.parametrize("size", [0, 2**31, 2**63, 2**64 - 1])
def test_a_header_of_impossible_size(size: int, tmp_path: Path) -> None:
    _written(tmp_path, _entry(), size=size)
    with pytest.raises(ModelError, match="is damaged"):
        Tensors(tmp_path)


@pytest.mark.parametrize("dtype", ["F32", "F64", "BF16", "U8"])
def test_bytes_that_are_not_the_shape(dtype: str, tmp_path: Path) -> None:
    _written(tmp_path, _entry(dtype, [3]))
    with pytest.raises(ModelError, match=rf"'a' .*has 16 bytes, which is not its shape \(3,\) in {dtype}"):
        Tensors(tmp_path).get("a", (3,))


@pytest.mark.parametrize("dtype", ["F8_E4M3", "BOOL", "nonsense"])
def test_a_dtype_that_is_not_read(dtype: str, tmp_path: Path) -> None:
    _written(tmp_path, {**_entry(dtype, [16]), "b": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})
    tensors = Tensors(tmp_path)
    with pytest.raises(ModelError, match=rf"'a' .*has dtype {dtype}, which is not read; convert it"):
        tensors.get("a", (16,))
    np.testing.assert_array_equal(tensors.get("b", (4,)), np.zeros(4))
