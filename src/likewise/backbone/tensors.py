"""The tensors of a checkpoint, read in place: a safetensors file is a JSON header and an array, mapped into memory."""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import ModelError

__all__ = ["Tensors"]

_DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": np.uint16,  # the upper half of a float32
    "I64": np.int64,
    "I32": np.int32,
    "U8": np.uint8,
}

_BLOCK = 1 << 20
"""Values that are checked at a time."""


class Tensors:
    """All tensors of a model folder by name. Nothing is copied until a tensor is used in another precision.

    Args:
        folder: A folder with one or more `*.safetensors` files.

    Raises:
        ModelError: A file is cut short, or its header is not what the format asks for.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._memories: list[mmap.mmap] = []
        self._where: dict[str, tuple[mmap.mmap, dict[str, Any], int]] = {}
        for path in sorted(folder.glob("*.safetensors")):
            self._open(path)

    def __contains__(self, name: str) -> bool:
        return name in self._where

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor, without reading it."""
        return tuple(self._where[name][1]["shape"])

    def release(self) -> None:
        """Let the system take back the pages read so far; what is used again is read again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for memory in self._memories:
                memory.madvise(mmap.MADV_DONTNEED)

    def get(self, name: str, shape: tuple[int, ...], *, resident: bool = True) -> np.ndarray:
        """A tensor in float32, checked; a view of the file if it is stored so.

        Args:
            name: Its name in the file.
            shape: What the config asks for.
            resident: False lets the system take back the pages of a large table while it is checked.

        Raises:
            ModelError: It is missing, has another shape, or holds NaN or infinity.
        """
        if name not in self._where:
            raise ModelError(
                f"the weights in {self._folder} lack the tensor {name!r}; the file is cut short or another model's"
            )
        if self.shape(name) != shape:
            raise ModelError(
                f"the tensor {name!r} in {self._folder} has shape {self.shape(name)}, and config.json asks for "
                f"{shape}; fetch both from one place"
            )
        array = self._read(name)
        values = array.reshape(-1)
        for first in range(0, len(values), _BLOCK):
            if not _finite(values[first : first + _BLOCK]):
                raise ModelError(
                    f"the tensor {name!r} in {self._folder} holds NaN or infinity; fetch the weights again"
                )
            if not resident:
                self.release()
        return array

    def _read(self, name: str) -> np.ndarray:
        memory, entry, start = self._where[name]
        first, last = entry["data_offsets"]
        count, dtype = math.prod(entry["shape"]), entry["dtype"]
        if dtype not in _DTYPES:
            raise ModelError(
                f"the tensor {name!r} in {self._folder} has dtype {dtype}, which is not read; convert it to F32"
            )
        if last - first != count * np.dtype(_DTYPES[dtype]).itemsize:
            raise ModelError(
                f"the tensor {name!r} in {self._folder} has {last - first} bytes, which is not its shape "
                f"{self.shape(name)} in {dtype}; fetch the weights again"
            )
        stored = np.frombuffer(memory, _DTYPES[dtype], count, start + first).reshape(entry["shape"])
        if dtype == "BF16":
            return (stored.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(over="ignore"):  # F64 out of range turns to infinity, which is refused
            return stored.astype(np.float32, copy=False)

    def _open(self, path: Path) -> None:
        broken = ModelError(f"the weight file {path} is damaged: its header and its size do not fit; fetch it again")
        try:
            with path.open("rb") as stream:
                memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            size = int.from_bytes(memory[:8], "little")
            header = json.loads(memory[8 : 8 + size])
            entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
            ends = [_end(entry) for entry in entries.values()]
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise broken from error
        if max(ends, default=0) + 8 + size != len(memory):
            raise broken
        self._memories.append(memory)
        self._where.update({name: (memory, entry, 8 + size) for name, entry in entries.items()})


def _finite(values: np.ndarray) -> bool:
    with np.errstate(all="ignore"):  # a sum may pass the range, or meet infinities of both signs
        total = values.sum()
    return bool(np.isfinite(total) or np.isfinite(values).all())


def _end(entry: dict[str, Any]) -> int:
    """Where a tensor ends behind the header, once its entry is one."""
    first, last = entry["data_offsets"]
    sizes = [first, last - first, *entry["shape"]]
    if not all(type(size) is int and size >= 0 for size in sizes) or not isinstance(entry["dtype"], str):
        raise ValueError(f"not the entry of a tensor: {entry}")
    return int(last)
