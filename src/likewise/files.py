"""Files that are whole or absent: atomic writes, and hashes."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from likewise.errors import InputError

__all__ = ["NOT_WRITTEN", "atomic_file", "atomic_folder", "sha256"]

NOT_WRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What a full or failing disk answers (`OSError.errno`)."""

_OURS = r"\d+_\w+(/(config\.json|model\.safetensors|pytorch_model\.bin))?"
"""What a folder may lose when it is replaced: the numbered module folders of an earlier model."""


@contextmanager
def atomic_file(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary neighbour of `path` and rename it into place when the block ends well.

    A link is followed. A device or a pipe, such as /dev/stdout, is written to directly.

    Args:
        path: Target file; its folder must exist.
        mode: "w" (UTF-8, newlines as written) or "wb".

    Raises:
        InputError: The folder is missing or cannot be written. The target is untouched then.
    """
    given, target = Path(path), Path(os.path.realpath(path))
    text = "b" not in mode
    how = {"encoding": "utf-8" if text else None, "newline": "" if text else None}
    if given.exists() and not given.is_file() and not given.is_dir():  # a link to a pipe leads to no path
        with open(given, mode, **how) as stream:  # type: ignore[call-overload]
            yield stream
        return
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror or error}; choose a folder that exists and is writable"
        ) from error
    try:
        with os.fdopen(handle, mode, **how) as stream:  # type: ignore[call-overload]
            yield stream
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except IsADirectoryError as error:
        raise InputError(f"cannot write {target}: it is a folder; name a file in it") from error
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], marker: str, ours: str = _OURS) -> Iterator[Path]:
    """Fill a temporary neighbour of `path` and swap it into place when the block ends well.

    Args:
        path: Target folder. An existing one is replaced only if it is empty or holds `marker`, and nothing
            in it would be lost but what the new one holds, too, and what `ours` matches.
        marker: A file name by which an earlier folder of the same kind is known.
        ours: Pattern of paths inside the folder that an earlier one of the same kind may hold.

    Raises:
        InputError: The target holds something else, or its parent cannot be written.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise InputError(f"cannot write the folder {target}: a file of that name exists; choose another name")
    if target.is_dir() and any(target.iterdir()) and not (target / marker).exists():
        raise InputError(
            f"cannot write into {target}: it holds other files (no {marker}); choose an empty or new folder"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror or error}; choose a folder that is writable"
        ) from error
    old = new.with_name(new.name + ".old")
    try:
        yield new
        os.chmod(new, 0o777 & ~_umask())
        if target.is_dir():
            _refuse_to_lose(target, new, ours)
            os.replace(target, old)
        os.replace(new, target)
    except BaseException:
        if old.is_dir() and not target.exists():
            os.replace(old, target)
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with open(path, "rb") as stream:
        digest = hashlib.sha256()
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _refuse_to_lose(old: Path, new: Path, ours: str) -> None:
    paths = sorted(path.relative_to(old) for path in old.rglob("*"))
    lost = [path.as_posix() for path in paths if not _kept(path, old, new) and not re.fullmatch(ours, path.as_posix())]
    if lost:
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise InputError(
            f"cannot replace {old}: it also holds {', '.join(lost[:3])}{more}, which would be lost; move that away, or "
            "choose an empty or new folder"
        )


def _kept(path: Path, old: Path, new: Path) -> bool:
    return os.path.lexists(new / path) and (old / path).is_dir() == (new / path).is_dir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
