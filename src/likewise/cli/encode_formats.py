"""How rows and vectors stand in a file: .npy, .jsonl, .parquet, .arrow.

Each format says which bytes a block of rows adds to the partial file of a run, so that a run can go on after any block,
and how the whole file is made of them in the end.
"""

from __future__ import annotations

import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import DataError, MissingExtraError
from likewise.files import atomic_file

__all__ = ["FORMATS", "Format"]

Row = dict[str, Any]

_ROWS_A_GROUP = 16_384
"""Rows of a row group of Parquet, and of a batch of Arrow."""


class Format(ABC):
    """One file format.

    Args:
        empty: [0, dim], of the type that the vectors have.
    """

    def __init__(self, empty: np.ndarray) -> None:
        self._empty = empty

    @abstractmethod
    def head(self, n: int) -> bytes:
        """What a partial file of `n` rows begins with; as long for any `n`."""

    @abstractmethod
    def body(self, rows: Sequence[Row], vectors: np.ndarray) -> bytes:
        """What a block of rows adds to the partial file.

        Raises:
            DataError: The rows do not fit the format.
        """

    @abstractmethod
    def finish(self, partial: Path, target: Path) -> None:
        """Make the target of a partial file that holds all rows, with its head for that many."""

    @abstractmethod
    def recall(self, partial: Path) -> None:
        """Learn from the rows of a partial file what a later block has to fit."""


class _Plain(Format):
    """A format whose whole file is the partial one, renamed."""

    def finish(self, partial: Path, target: Path) -> None:
        os.replace(partial, target)

    def recall(self, partial: Path) -> None:
        pass


class _Npy(_Plain):
    """The vectors alone. numpy leaves room in the head for any number of rows."""

    def head(self, n: int) -> bytes:
        said = {**np.lib.format.header_data_from_array_1_0(self._empty), "shape": (n, self._empty.shape[1])}
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, said)
        return stream.getvalue()

    def body(self, rows: Sequence[Row], vectors: np.ndarray) -> bytes:
        return np.ascontiguousarray(vectors, self._empty.dtype).tobytes()


class _Jsonl(_Plain):
    """A JSON object a line: the row, and its vector as "embedding"."""

    def head(self, n: int) -> bytes:
        return b""

    def body(self, rows: Sequence[Row], vectors: np.ndarray) -> bytes:
        lines = (json.dumps({**row, "embedding": vector}) for row, vector in zip(rows, vectors.tolist(), strict=True))
        return "".join(line + "\n" for line in lines).encode()


class _Table(Format):
    """A column for each key, and "embedding", a list of fixed length.

    Which keys there are is known when all rows are. Each block of the partial file is an Arrow stream with columns of
    its own, and in the end a missing value becomes null.
    """

    def __init__(self, empty: np.ndarray) -> None:
        super().__init__(empty)
        try:
            import pyarrow
        except ImportError as error:
            raise MissingExtraError("pyarrow", "parquet", "writing .parquet and .arrow") from error
        self._pa = pyarrow
        self._schema = pyarrow.schema([])

    def head(self, n: int) -> bytes:
        return b""

    def body(self, rows: Sequence[Row], vectors: np.ndarray) -> bytes:
        pa = self._pa
        values = pa.array(np.ascontiguousarray(vectors, self._empty.dtype).reshape(-1))
        try:
            batch = pa.RecordBatch.from_pydict({name: [row.get(name) for row in rows] for name in _names(rows)})
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
            raise _mixed(error) from error
        batch = batch.append_column("embedding", pa.FixedSizeListArray.from_arrays(values, vectors.shape[1]))
        self._join(batch.schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()

    def recall(self, partial: Path) -> None:
        for block in self._blocks(partial):
            self._join(block.schema)

    def finish(self, partial: Path, target: Path) -> None:
        if not self._schema.names:
            empty = self._pa.FixedSizeListArray.from_arrays(self._pa.array(self._empty[:, 0]), self._empty.shape[1])
            self._join(self._pa.schema([("embedding", empty.type)]))
        names = [name for name in self._schema.names if name != "embedding"]
        schema = self._pa.schema([self._schema.field(name) for name in [*names, "embedding"]])
        with atomic_file(target) as sink, self._writer(sink, schema) as writer:
            for group in _grouped(self._blocks(partial)):
                whole = self._pa.concat_tables([schema.empty_table(), *group], promote_options="permissive")
                writer.write_table(whole.combine_chunks(), _ROWS_A_GROUP)
        partial.unlink()

    @abstractmethod
    def _writer(self, sink: Any, schema: Any) -> Any:
        """What writes tables into an open file."""

    def _blocks(self, partial: Path) -> Iterator[Any]:
        with self._pa.OSFile(str(partial)) as source:
            size = source.size()
            while source.tell() < size:
                with self._pa.ipc.open_stream(source) as reader:
                    yield reader.read_all()

    def _join(self, schema: Any) -> None:
        try:
            self._schema = self._pa.unify_schemas([self._schema, schema], promote_options="permissive")
        except (self._pa.ArrowInvalid, self._pa.ArrowTypeError) as error:
            raise _mixed(error) from error


class _Parquet(_Table):
    """Apache Parquet."""

    def _writer(self, sink: Any, schema: Any) -> Any:
        from pyarrow import parquet

        return parquet.ParquetWriter(sink, schema)


class _Arrow(_Table):
    """An Arrow file, which is also Feather of version 2."""

    def _writer(self, sink: Any, schema: Any) -> Any:
        return self._pa.ipc.new_file(sink, schema)


FORMATS: dict[str, type[Format]] = {".npy": _Npy, ".jsonl": _Jsonl, ".parquet": _Parquet, ".arrow": _Arrow}
"""Formats by the ending of a file's name."""


def _names(rows: Sequence[Row]) -> list[str]:
    return [name for name in dict.fromkeys(name for row in rows for name in row) if name != "embedding"]


def _grouped(blocks: Iterator[Any]) -> Iterator[list[Any]]:
    """Tables of up to `_ROWS_A_GROUP` rows together, or one."""
    group: list[Any] = []
    for block in blocks:
        if group and sum(map(len, group)) + len(block) > _ROWS_A_GROUP:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _mixed(error: Exception) -> DataError:
    return DataError(
        f"the values of a key are not all of one type ({error}), as a column must be; mend the input, or write .jsonl"
    )
