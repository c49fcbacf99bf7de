"""Downloading a data set from its original source: only when asked, checked, and whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import lzma
import os
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from likewise.data.dataset import DataSet, Download
from likewise.errors import DataError
from likewise.files import atomic_folder

__all__ = ["RECORD", "fetch"]

RECORD = "FETCHED.json"
"""File beside the data that says where it came from, with the SHA-256 of what was downloaded."""

_BLOCK = 1 << 16
_TIMEOUT_S = 60.0


def fetch(
    dataset: DataSet,
    folder: str | os.PathLike[str],
    *,
    unverified: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Path:
    """Download a set into `folder/NAME`, unpacked, with `RECORD` beside it.

    Args:
        dataset: An entry of the catalogue.
        folder: Where the folder of the set is made.
        unverified: Take files of which no checksum is known. Their SHA-256 is recorded, so that a later copy can
            be compared with it.
        progress: Called with the address and the number of bytes of each block that came.

    Returns:
        The folder of the set. An earlier one that `fetch` made is replaced, unless files in it would be lost.

    Raises:
        DataError: The set has no download address, a checksum is unknown (without `unverified`) or another one, the
            source cannot be reached, or an archive is broken or would write outside its folder. Nothing is left
            behind then.
        InputError: The target holds other files, or cannot be written.
    """
    if not dataset.downloads:
        raise DataError(f"{dataset.name} has no download address that is certain; get it from {dataset.source}")
    unknown = [download.name for download in dataset.downloads if download.checksum is None]
    if unknown and not unverified:
        raise DataError(
            f"no checksum is known of {', '.join(unknown)}, so nobody can tell whether the copy is the published one; "
            "look at the source, then fetch with --unverified (unverified=True)"
        )
    target = Path(folder) / dataset.name
    with atomic_folder(target, RECORD, ours="(?!)") as new:
        record = [_take(download, new, progress) for download in dataset.downloads]
        text = json.dumps({"name": dataset.name, "licence": dataset.licence, "files": record}, indent=2)
        (new / RECORD).write_text(text + "\n", encoding="utf-8")
    return target


def _take(download: Download, new: Path, progress: Callable[[str, int], None] | None) -> dict[str, str]:
    path = new / download.name
    path.parent.mkdir(parents=True, exist_ok=True)
    digests = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}
    with path.open("wb") as stream:
        for block in _blocks(download.url):
            stream.write(block)
            for digest in digests.values():
                digest.update(block)
            if progress is not None:
                progress(download.url, len(block))
    if download.checksum is not None:
        kind, _, expected = download.checksum.partition(":")
        found = digests[kind].hexdigest()
        if found != expected:
            raise DataError(
                f"{download.url} has the {kind} {found}, not {expected}; the source has changed or the copy is "
                "damaged; nothing was kept"
            )
    if path.suffix in (".zip", ".gz"):
        _unpack(path, new)
        path.unlink()
    return {"url": download.url, "sha256": digests["sha256"].hexdigest()}


def _blocks(url: str) -> Iterator[bytes]:
    n_bytes = 0
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
            expected = response.headers.get("Content-Length")
            while block := response.read(_BLOCK):
                n_bytes += len(block)
                yield block
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DataError(f"cannot download {url}: {error}; check the connection, or get the file by hand") from error
    if expected is not None and n_bytes != int(expected):
        raise DataError(f"{url} ended after {n_bytes} of {expected} bytes; try again")


_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    FileExistsError,  # one entry is a file where another wants a folder
    IndexError,  # an entry without a name
    RuntimeError,  # an encrypted one, or an unknown method
)
"""What damaged or strange archives raise."""


def _unpack(path: Path, target: Path) -> None:
    """Write an archive's files below `target`; one folder that holds them all is left out of their names."""
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                files = [(info.filename, info) for info in archive.infolist() if not info.is_dir()]
                _write(files, archive.open, target)
        else:
            with gzip.open(path) as whole:  # to its end, where the checksum stands that tarfile does not look at
                while whole.read(_BLOCK):
                    pass
            with tarfile.open(path) as tar:
                members = [(member.name, member) for member in tar.getmembers() if member.isfile()]
                _write(members, tar.extractfile, target)
    except _BROKEN as error:
        raise DataError(f"{path.name} is not the archive it is called ({error}); the copy is damaged") from error


def _write(files: list[tuple[str, Any]], opened: Callable[[Any], IO[bytes] | None], target: Path) -> None:
    named = [(PurePosixPath(name), member) for name, member in files]
    for name, _ in named:
        if name.is_absolute() or ".." in name.parts or "\\" in str(name):
            raise DataError(f"the archive would write {name}, outside its folder; do not trust it")
    wanted = [(name, member) for name, member in named if not (name.parts[0] == "__MACOSX" or name.name[0] == ".")]
    tops = {name.parts[0] if len(name.parts) > 1 else None for name, _ in wanted}
    strip = 1 if len(tops) == 1 and None not in tops else 0
    for name, member in wanted:
        path = target.joinpath(*name.parts[strip:])
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = opened(member)
        if stream is not None:
            with stream, path.open("wb") as out:
                while block := stream.read(_BLOCK):
                    out.write(block)
