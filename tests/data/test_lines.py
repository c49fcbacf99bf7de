from __future__ import annotations

import io

import pytest

from likewise.data import read_lines
from likewise.errors import DataError, DataNotFoundError


def test_only_newlines_end_a_line():
    data = "\ufeffa\x0b\x0c\x1c\x85\u2028b\r\nc\rd\n\n\ufeffe".encode()
    assert list(read_lines(io.BytesIO(data))) == [
        (1, "a\x0b\x0c\x1c\x85\u2028b"),
        (2, "c\rd"),
        (3, ""),
        (4, "\ufeffe"),
    ]


def test_invalid_utf8_is_named():
    with pytest.raises(DataError, match="line 2: byte 1 is not UTF-8"):
        list(read_lines(io.BytesIO(b"good\nb\xffd\n")))


def test_another_encoding_is_taken_when_named(tmp_path):
    path = tmp_path / "old.txt"
    path.write_bytes("café\n".encode("latin-1"))
    assert list(read_lines(path, "latin-1")) == [(1, "café")]
    with pytest.raises(DataError, match=r"old\.txt, line 1: byte 3 is not UTF-8"):
        list(read_lines(path))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"cannot read .*gone\.txt"):
        list(read_lines(tmp_path / "gone.txt"))
    with pytest.raises(DataNotFoundError, match="it is a folder; name a file in it"):
        list(read_lines(tmp_path))
