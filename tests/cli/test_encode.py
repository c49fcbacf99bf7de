"""`likewise encode` on many rows: at constant memory, interrupted and gone on with, in every format."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from likewise.cli import main
from likewise.cli.encode import _ENDINGS
from likewise.cli.encode_formats import FORMATS
from likewise.errors import InputError
from likewise.kernels import limit_threads, n_threads
from likewise.quantise import Calibration, to_binary

N = 7_000
TEXTS = [f"A plane {n} is taking off." for n in range(N)]


@pytest.fixture(scope="module")
def texts_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


@pytest.fixture
def run(mean_folder):
    def call(*words, **more):
        return CliRunner().invoke(main, ["encode", *map(str, words), "--model", str(mean_folder)], **more)

    return call


@pytest.fixture
def whole(run, texts_file, tmp_path):
    """The bytes of an uninterrupted run."""

    def call(ending):
        target = tmp_path / f"whole{ending}"
        assert run(texts_file, "-o", target).exit_code == 0
        return target.read_bytes()

    return call


def command(mean_folder, *words):
    return [sys.executable, "-m", "likewise", "encode", "--model", str(mean_folder), *map(str, words)]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_endings_are_those_of_the_formats():
    assert tuple(FORMATS) == _ENDINGS


# ------------------------------------------------------------------------------------------ interrupted


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("ending", "end"), [(".npy", signal.SIGKILL), (".parquet", signal.SIGINT), (".arrow", signal.SIGKILL)]
)
def test_an_interrupted_run_goes_on_to_the_same_bytes(run, whole, mean_folder, tmp_path, ending, end):
    folder = tmp_path / "made"
    folder.mkdir()
    target = folder / f"out{ending}"
    journal = folder / f"out{ending}.partial.json"
    lines = "".join(text + "\n" for text in TEXTS)
    with subprocess.Popen(
        command(mean_folder, "-o", target), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        running.stdin.write(lines[: len(lines) * 2 // 3])
        running.stdin.flush()
        deadline = time.monotonic() + 60
        while not (journal.exists() and json.loads(journal.read_text())["rows"]) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)  # it waits for more lines now
        running.send_signal(end)
        error = running.stderr.read()
    rows = json.loads(journal.read_text())["rows"]
    assert 0 < rows < N
    if end == signal.SIGINT:
        assert running.returncode == 130
        assert error == (
            f"likewise: {rows} rows are kept in {target}.partial; the same call with --resume goes on from there\n"
            "likewise: interrupted\n"
        )
    done = run("-o", target, "--resume", input=lines)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == f"likewise: going on after {rows} rows\nwrote {N} vectors of 32 to {target}\n"
    assert target.read_bytes() == whole(ending)
    assert names(folder) == [target.name]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limit")
def test_a_full_disk_keeps_the_rows_done(run, whole, mean_folder, texts_file, tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    target = folder / "out.jsonl"

    def limited(blocks):  # of 512 bytes; a write beyond fails as on a full disk
        words = ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *command(mean_folder, texts_file, "-o", target)]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)

    done = limited(100)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "likewise: cannot write the output: File too large; free some space or write elsewhere\n"
    assert names(folder) == []
    done = limited(5_000)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "File too large; free some space: 2048 rows are kept" in done.stderr
    assert run(texts_file, "-o", target, "--resume").exit_code == 0
    assert target.read_bytes() == whole(".jsonl")


@pytest.fixture
def left(run, tmp_path):
    """A run that ended at a bad line, and what it wrote to."""
    source, target = tmp_path / "texts.jsonl", tmp_path / "out.npy"
    rows = [json.dumps({"text": text}) for text in TEXTS[:5000]]
    source.write_text("\n".join([*rows, "{"]) + "\n")
    done = run(source, "-o", target)
    assert done.exit_code == 2
    assert "4096 rows are kept in" in done.stderr
    assert "line 5001 is not JSON" in done.stderr
    return source, target, rows


def test_rows_done_are_not_lost_by_a_call_without_a_word(run, left, tiny):
    source, target, rows = left
    source.write_text("\n".join(rows) + "\n")
    done = run(source, "-o", target)
    assert done.exit_code == 2
    assert (
        "holds 4096 rows of an interrupted run; go on with them by --resume, or drop them by --restart" in done.stderr
    )
    done = run(source, "-o", target, "--restart")
    assert done.exit_code == 0
    assert "4096 rows in" in done.stderr
    np.testing.assert_array_equal(np.load(target), tiny.encode(TEXTS[:5000]))
    assert names(target.parent) == ["out.npy", "texts.jsonl"]


def test_resume_after_the_bad_line_is_mended(run, left, tiny):
    source, target, rows = left
    source.write_text("\n".join([*rows, json.dumps({"text": "mended"})]) + "\n")
    assert run(source, "-o", target, "--resume", "--on-truncate", "ignore").exit_code == 0
    np.testing.assert_array_equal(np.load(target), tiny.encode([*TEXTS[:5000], "mended"]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--normalize"], "was made with normalize False, and this run has True"),
        (["--truncate-dim", "8"], "was made with truncate_dim None, and this run has 8"),
        (["--to", "binary"], "was made with to 'float32', and this run has 'binary'"),
    ],
)
def test_another_setting_does_not_go_on(run, left, words, message):
    source, target, _ = left
    done = run(source, "-o", target, "--resume", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert (target.parent / "out.npy.partial").exists()


def test_another_model_or_input_does_not_go_on(run, left, sentence_folder):
    source, target, rows = left
    other = CliRunner().invoke(
        main, ["encode", str(source), "-o", str(target), "--resume", "-m", str(sentence_folder(pooling="cls"))]
    )
    assert other.exit_code == 2
    assert "was made with model " in other.stderr
    for lines in ([rows[1], rows[0], *rows[2:]], rows[:3000]):
        source.write_text("\n".join(lines) + "\n")
        done = run(source, "-o", target, "--resume")
        assert done.exit_code == 2
        assert "the input does not begin with the 4096 rows" in done.stderr


def test_resume_of_nothing_begins(run, texts_file, tmp_path, whole):
    target = tmp_path / "out.npy"
    assert run(texts_file, "-o", target, "--resume").exit_code == 0
    assert target.read_bytes() == whole(".npy")


def test_two_runs_do_not_write_one_file(run, left, mean_folder):
    source, target, _ = left
    words = command(mean_folder, "-o", target, "--restart")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert "are dropped" in running.stderr.readline()
        done = run(source, "-o", target, "--restart")
        assert done.exit_code == 2
        assert "is being written by another run; wait for its end" in done.stderr
        running.communicate("a man\n", timeout=60)
    assert np.load(target).shape == (1, 32)


def test_files_of_another_program_are_not_touched(run, tmp_path):
    mine = tmp_path / "out.npy.partial"
    mine.write_text("mine")
    for words in ([], ["--restart"]):
        done = run("-o", tmp_path / "out.npy", *words, input="x\n")
        assert done.exit_code == 2
        assert "move them away" in done.stderr
    assert mine.read_text() == "mine"
    done = run("--resume", input="x\n")
    assert done.exit_code == 2
    assert "--resume and --restart are for an --output file" in done.stderr


# ------------------------------------------------------------------------------------------ formats


@pytest.mark.parametrize("to", ["float32", "int8", "binary"])
@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".npy"])
def test_small_vectors_in_every_format(run, tiny, tmp_path, to, ending):
    pa = pytest.importorskip("pyarrow")
    target, ranges, texts = tmp_path / f"out{ending}", tmp_path / "ranges.json", TEXTS[:300]
    wanted = tiny.encode(texts, truncate_dim=20)
    more = []
    if to == "int8":
        Calibration.fit(wanted).save(ranges)
        wanted, more = Calibration.load(ranges).to_int8(wanted), ["--calibration", ranges]
    elif to == "binary":
        wanted = to_binary(wanted)
    done = run("-o", target, "--to", to, "--truncate-dim", 20, *more, input="\n".join(texts))
    assert done.exit_code == 0, done.stderr
    if ending == ".npy":
        found = np.load(target)
    else:
        from pyarrow import parquet

        table = parquet.read_table(target) if ending == ".parquet" else pa.ipc.open_file(target).read_all()
        assert table["text"].to_pylist() == texts
        assert table.schema.field("embedding").type == pa.list_(pa.from_numpy_dtype(wanted.dtype), wanted.shape[1])
        found = table["embedding"].combine_chunks().flatten().to_numpy().reshape(len(texts), -1)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_a_key_that_only_some_rows_have_is_a_column(run, tmp_path, ending):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = [{"n": n, "text": f"a man {n}"} for n in range(5_000)] + [{"text": "x", "n": 0.5, "late": ["y"]}]
    target = tmp_path / f"out{ending}"
    done = run("-o", target, "--jsonl", input="\n".join(map(json.dumps, rows)))
    assert done.exit_code == 0, done.stderr
    frame = pd.read_parquet(target) if ending == ".parquet" else pd.read_feather(target)
    assert list(frame.columns) == ["n", "text", "late", "embedding"]
    assert frame["n"].tolist() == [row["n"] for row in rows]
    assert frame["late"].isna().sum() == 5_000
    other = pl.read_parquet(target) if ending == ".parquet" else pl.read_ipc(target)
    assert other["text"].to_list() == [row["text"] for row in rows]
    assert other["embedding"].dtype == pl.Array(pl.Float32, 32)


@pytest.mark.parametrize("last", [{"n": "seven", "text": "x"}, {"n": 2**70, "text": "x"}])
def test_values_of_two_types_are_no_column(run, tmp_path, last):
    pytest.importorskip("pyarrow")
    for n in (1, 2_048):  # in one block and in two
        rows = [{"n": 7, "text": "x"}] * n + [last]
        done = run("-o", tmp_path / "out.parquet", "--jsonl", input="\n".join(map(json.dumps, rows)))
        assert done.exit_code == 2
        assert "not all of one type" in done.stderr
        for path in tmp_path.iterdir():
            path.unlink()


@pytest.mark.parametrize("ending", _ENDINGS)
def test_a_file_of_nothing(run, tmp_path, ending):
    target = tmp_path / f"out{ending}"
    assert run("-o", target, input="").exit_code == 0
    assert names(tmp_path) == [target.name]
    if ending == ".parquet":
        assert pytest.importorskip("pyarrow.parquet").read_table(target).num_rows == 0
    if ending == ".npy":
        assert np.load(target).shape == (0, 32)


def test_npy_is_what_numpy_writes(whole, tiny, tmp_path):
    np.save(tmp_path / "wanted.npy", tiny.encode(TEXTS))
    assert whole(".npy") == (tmp_path / "wanted.npy").read_bytes()


# ------------------------------------------------------------------------------------------ a stream


def test_one_warning_a_file_and_the_same_from_two_processes(run, texts_file, whole, tmp_path):
    long = "a man " * 90
    lines = "\n".join([long, *TEXTS[:5000], long])
    done = run("-o", tmp_path / "out.npy", input=lines)
    assert done.stderr.count("warning:") == 1
    assert "2 of 5002 texts" in done.stderr
    target = tmp_path / "two.npy"
    assert run(texts_file, "-o", target, "--processes", 2).exit_code == 0
    assert target.read_bytes() == whole(".npy")


@pytest.fixture
def threads(monkeypatch):
    """So that what is set for the process is set back."""
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
def test_threads_are_limited(run):
    assert run("--text", "a man", "--threads", 1).exit_code == 0
    assert (n_threads(), torch.get_num_threads()) == (1, 1)
    with pytest.raises(InputError, match="0 threads"):
        limit_threads(0)


_MEMORY = """
import resource, sys
from likewise.cli import encode_formats, main
encode_formats._ROWS_A_GROUP = 4_096  # so that a short input fills several
main(sys.argv[1:], standalone_mode=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs")
@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_memory_does_not_grow_with_the_input(mean_folder, tmp_path, ending):
    def megabytes(n):
        source = tmp_path / "texts.txt"
        source.write_text("".join(f"a man {i}\n" for i in range(n)))
        words = [
            "encode",
            str(source),
            "-o",
            str(tmp_path / f"{n}{ending}"),
            "--model",
            str(mean_folder),
            "--threads",
            "1",
        ]
        done = subprocess.run(
            [sys.executable, "-c", _MEMORY, *words], capture_output=True, text=True, check=True, timeout=200
        )
        return float(done.stdout)

    # Kept whole, 40,000 rows would be 5 MB of vectors and about 20 MB of lines.
    assert megabytes(50_000) < megabytes(10_000) + 5


@pytest.mark.skipif(os.name == "nt", reason="no such shell")
@pytest.mark.parametrize("verb", [["score", "a", "b"], ["encode", "--text", "a"], ["explain", "a", "b"]])
def test_a_closed_output_is_an_error_of_one_line(mean_folder, verb):
    words = [sys.executable, "-m", "likewise", *verb, "--model", str(mean_folder)]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "likewise: cannot write the output: standard output is closed; free some space or write elsewhere\n"
    )
