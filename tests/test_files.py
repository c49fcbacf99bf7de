"""Files and folders are whole or absent, whatever happens while they are written."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from likewise.errors import InputError
from likewise.files import atomic_file, atomic_folder, sha256

MARKER = "modules.json"


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("mode", "content", "stored"), [("w", "é\r\n\n", b"\xc3\xa9\r\n\n"), ("wb", b"\x00\xff", b"\x00\xff")]
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_file(mode: str, content: Any, stored: bytes, exists: bool, tmp_path: Path) -> None:
    target = tmp_path / "out"
    if exists:
        target.write_text("old")
    with atomic_file(target, mode) as stream:
        stream.write(content)
        assert target.exists() == exists
    assert target.read_bytes() == stored
    assert _names(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_file_that_fails_half_way(error: BaseException, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("old")

    def write() -> None:
        with atomic_file(target, "w") as stream:
            stream.write("half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert target.read_text() == "old"
    assert _names(tmp_path) == ["out"]


@pytest.mark.parametrize("path", ["missing/out", "file/out"])
def test_a_file_in_no_folder(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"cannot write .*choose a folder"), atomic_file(tmp_path / path):
        pytest.fail("the block must not run")
    assert _names(tmp_path) == ["file"]


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="it is a folder; name a file in it"), atomic_file(tmp_path / "out") as stream:
        stream.write(b"x")
    assert _names(tmp_path) == ["out"]


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_others_may_read_what_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_file(tmp_path / "out") as stream:
            stream.write(b"x")
        with atomic_folder(tmp_path / "folder", MARKER):
            pass
        assert (_mode(tmp_path / "out"), _mode(tmp_path / "folder")) == (0o640, 0o750)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def _fill(target: Path, text: str) -> None:
    with atomic_folder(target, MARKER) as new:
        (new / MARKER).write_text(text)
        (new / "inner").mkdir()
        (new / "inner" / "file").write_text(text)


@pytest.mark.parametrize("before", ["nothing", "an empty folder", "an older one"])
def test_a_folder(before: str, tmp_path: Path) -> None:
    target = tmp_path / "a" / "model"
    if before != "nothing":
        target.mkdir(parents=True)
    if before == "an older one":
        _fill(target, "old")
        (target / "3_Dense").mkdir()
        (target / "3_Dense" / "config.json").write_text("old")
    _fill(target, "new")
    assert _names(target) == ["inner", MARKER]
    assert (target / "inner" / "file").read_text() == "new"
    assert _names(target.parent) == ["model"]


@pytest.mark.parametrize(
    ("foreign", "named"),
    [
        (["notes.txt"], r"also holds notes\.txt, which would be lost; move that away"),
        (["1_Pooling/thesis.tex"], r"also holds 1_Pooling/thesis\.tex, which"),
        (["2024_notes/d.txt", "c.txt", "b.txt", ".a"], r"also holds \.a, 2024_notes/d\.txt, b\.txt and 1 more, which"),
        (["inner/file/mine.txt"], r"also holds inner/file, inner/file/mine\.txt, which"),
    ],
)
def test_a_folder_with_files_of_others(foreign: list[str], named: str, tmp_path: Path) -> None:
    target = tmp_path / "model"
    for name in (MARKER, *foreign):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text("mine")
    with pytest.raises(InputError, match=named):
        _fill(target, "new")
    assert [(target / name).read_text() for name in (MARKER, *foreign)] == ["mine"] * (len(foreign) + 1)
    assert _names(tmp_path) == ["model"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_that_fails_half_way(error: BaseException, exists: bool, tmp_path: Path) -> None:
    target = tmp_path / "model"
    if exists:
        _fill(target, "old")

    def write() -> None:
        with atomic_folder(target, MARKER) as new:
            (new / MARKER).write_text("half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert _names(tmp_path) == (["model"] if exists else [])
    assert not exists or (target / MARKER).read_text() == "old"


def test_a_swap_that_fails_puts_the_old_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "model"
    _fill(target, "old")
    replace = os.replace

    def fail_second(source: Any, to: Any) -> None:
        if Path(to) == target and Path(source).suffix != ".old":
            raise OSError("the disk went away")
        replace(source, to)

    monkeypatch.setattr(os, "replace", fail_second)
    with pytest.raises(OSError, match="went away"):
        _fill(target, "new")
    assert (target / MARKER).read_text() == "old"
    assert _names(tmp_path) == ["model"]


def test_what_a_folder_does_not_replace(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    for name, said in (
        ("file", "a file of that name exists; choose another name"),
        ("full", r"holds other files \(no modules\.json\); choose an empty or new folder"),
        ("file/model", "choose a folder that is writable"),
    ):
        with pytest.raises(InputError, match=said), atomic_folder(tmp_path / name, MARKER):
            pytest.fail("the block must not run")
    assert (tmp_path / "full" / "thesis.tex").read_text() == "mine"
    assert _names(tmp_path) == ["file", "full"]


@pytest.mark.parametrize("size", [0, 1, (1 << 20) + 1])
def test_sha256(size: int, tmp_path: Path) -> None:
    content = bytes(i % 251 for i in range(size))
    (tmp_path / "file").write_bytes(content)
    assert sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_a_link_stays_and_what_it_names_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "real", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with atomic_file(link, "w") as stream:
        stream.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_file(pipe, "w") as stream:
        stream.write("seen")
    assert os.read(reader, 10) == b"seen"
    os.close(reader)
    assert pipe.is_fifo()
