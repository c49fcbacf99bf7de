from __future__ import annotations

import functools
import hashlib
import http.server
import io
import json
import tarfile
import threading
import zipfile

import pytest

from likewise.data.dataset import DataSet, Download, check
from likewise.data.fetch import RECORD, fetch
from likewise.errors import DataError, InputError

LINES = b"one\ntwo\n"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(LINES)
        else:
            super().do_GET()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A folder and its address on this machine."""
    folder = tmp_path_factory.mktemp("served")
    handler = functools.partial(_Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def offer(served):
    """Serve bytes under a name and describe them as a set."""
    folder, address = served

    def make(name="x.txt", content=LINES, checksum="right", to=None):
        (folder / name).write_bytes(content)
        if checksum == "right":
            checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
        return DataSet("set", "a set", "free", "a page", {}, (Download(f"{address}/{name}", to or name, checksum),))

    return make


def archive(files, kind="zip"):
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as out:
            for name, content in files.items():
                out.writestr(name, content)
    else:
        with tarfile.open(fileobj=stream, mode="w:gz") as out:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                out.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_file_comes_whole_with_a_record_of_its_origin(offer, tmp_path):
    dataset = offer(to="inner/y.txt")
    came = []
    target = fetch(dataset, tmp_path, progress=lambda url, n: came.append((url, n)))
    assert target == tmp_path / "set"
    assert names(tmp_path) == [f"set/{RECORD}", "set/inner/y.txt"]
    assert (target / "inner" / "y.txt").read_bytes() == LINES
    record = json.loads((target / RECORD).read_text("utf-8"))
    assert record["files"] == [
        {"url": dataset.downloads[0].url, "sha256": dataset.downloads[0].checksum.removeprefix("sha256:")}
    ]
    assert came == [(dataset.downloads[0].url, len(LINES))]


def test_a_wrong_checksum_leaves_nothing_behind(offer, tmp_path):
    with pytest.raises(DataError, match=r"has the sha256 .*, not 00; the source has changed"):
        fetch(offer(checksum="sha256:00"), tmp_path)
    with pytest.raises(DataError, match="has the md5"):
        fetch(offer(checksum="md5:00"), tmp_path, unverified=True)
    assert not list(tmp_path.iterdir())


def test_an_md5_is_a_checksum_too(offer, tmp_path):
    fetch(offer(checksum=f"md5:{hashlib.md5(LINES, usedforsecurity=False).hexdigest()}"), tmp_path)
    assert (tmp_path / "set" / "x.txt").is_file()


def test_what_nobody_can_verify_must_be_asked_for(offer, tmp_path):
    with pytest.raises(DataError, match=r"no checksum is known of x\.txt"):
        fetch(offer(checksum=None), tmp_path)
    assert not list(tmp_path.iterdir())
    target = fetch(offer(checksum=None), tmp_path, unverified=True)
    record = json.loads((target / RECORD).read_text("utf-8"))
    assert record["files"][0]["sha256"] == hashlib.sha256(LINES).hexdigest()


def test_a_set_without_an_address_says_where_it_is_told(tmp_path):
    with pytest.raises(DataError, match="set has no download address that is certain; get it from a page"):
        fetch(DataSet("set", "a set", "free", "a page", {}), tmp_path, unverified=True)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_archives_are_unpacked_without_their_outer_folder(offer, tmp_path, kind):
    content = archive({"top/a.txt": LINES, "top/in/b.txt": b"b", "__MACOSX/._a": b"", "top/.hidden": b""}, kind)
    fetch(offer(f"x.{kind}", content), tmp_path)
    assert names(tmp_path / "set") == [RECORD, "a.txt", "in/b.txt"]
    flat = archive({"a.txt": LINES, "in/b.txt": b"b"}, kind)
    fetch(offer(f"x.{kind}", flat), tmp_path / "flat")
    assert names(tmp_path / "flat" / "set") == [RECORD, "a.txt", "in/b.txt"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("name", ["../out.txt", "/out.txt", "a/../../out.txt", "a\\..\\out.txt"])
def test_an_archive_cannot_write_outside_its_folder(offer, tmp_path, kind, name):
    with pytest.raises(DataError, match="outside its folder"):
        fetch(offer(f"x.{kind}", archive({"a.txt": b"", name: b"bad"}, kind)), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_damaged_archive_is_refused(offer, tmp_path, kind):
    whole = archive({"a.txt": bytes(range(256)) * 40}, kind)
    for content in (b"<html>moved</html>", whole[: len(whole) // 2]):
        with pytest.raises(DataError, match="is not the archive it is called"):
            fetch(offer(f"x.{kind}", content), tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_archive_that_does_not_fit_its_own_checksum_is_refused(offer, tmp_path):
    whole = bytearray(archive({"a.txt": bytes(range(256)) * 40}, "tar.gz"))
    whole[-8] ^= 1  # of the CRC, which stands before the length
    with pytest.raises(DataError, match="is not the archive it is called"):
        fetch(offer("x.tar.gz", bytes(whole)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_source_that_is_gone_or_stops_early(served, tmp_path):
    for path, message in (("gone", "404"), ("short", "after 8 of 100 bytes|IncompleteRead")):
        download = Download(f"{served[1]}/{path}", "x.txt")
        with pytest.raises(DataError, match=message):
            fetch(DataSet("set", "", "", "", {}, (download,)), tmp_path, unverified=True)
    with pytest.raises(DataError, match=r"cannot download http://127\.0\.0\.1:9/x"):
        fetch(DataSet("set", "", "", "", {}, (Download("http://127.0.0.1:9/x", "x"),)), tmp_path, unverified=True)
    assert not list(tmp_path.iterdir())


def test_an_earlier_copy_is_replaced_and_nothing_else(offer, tmp_path):
    fetch(offer(), tmp_path)
    fetch(offer(content=b"new\n"), tmp_path)
    assert (tmp_path / "set" / "x.txt").read_bytes() == b"new\n"
    (tmp_path / "set" / "mine.txt").touch()
    with pytest.raises(InputError, match=r"it also holds mine\.txt"):
        fetch(offer(), tmp_path)
    assert (tmp_path / "set" / "x.txt").read_bytes() == b"new\n"
    (tmp_path / "other" / "set").mkdir(parents=True)
    (tmp_path / "other" / "set" / "mine.txt").touch()
    with pytest.raises(InputError, match="it holds other files"):
        fetch(offer(), tmp_path / "other")


def test_what_was_fetched_is_found_by_the_readers(shared, offer, tmp_path):
    """A year of STS and SICK in archives laid out like the released ones."""
    from likewise.data.catalogue import known

    for name, source, top in (("sts13", "sts13/raw", "test-gs"), ("sick", "sick", "SICK")):
        files = {f"{top}/{path.name}": path.read_bytes() for path in (shared / "data" / source).glob("*.txt")}
        packed = offer("x.zip", archive(files))
        fetch(DataSet(name, "", "", "", {}, packed.downloads), tmp_path)
        assert check(known(name), tmp_path).state == "complete"
