"""Encoding in worker processes: every row in its place, an error when one dies, and nothing of the caller run again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from likewise import Model
from likewise.errors import InputError, InputTypeError, ModelError, TruncationError, TruncationWarning, WorkerError
from likewise.model import processes

TEXTS = [f"A plane {n} is taking off from the park." for n in range(1003)]
LONG = "a man " * 90


def test_two_threads_with_two_workers_each_get_their_own_rows(tiny):
    found = {}

    def encode(name, texts):
        found[name] = tiny.encode(texts, n_processes=2, normalize=True, truncate_dim=9)

    both = {"there": TEXTS, "back": TEXTS[::-1]}
    threads = [threading.Thread(target=encode, args=pair) for pair in both.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    wanted = tiny.encode(TEXTS, normalize=True, truncate_dim=9)
    np.testing.assert_array_equal(found["there"], wanted)
    np.testing.assert_array_equal(found["back"], wanted[::-1])


def test_what_was_cut_is_counted_over_all_workers(tiny):
    texts = [*TEXTS, LONG, "é\ud800", LONG + "."]
    with pytest.warns(TruncationWarning, match=r"2 of 1006 texts .* the longest is text 1005 with 183") as told:
        vectors = tiny.encode(texts, n_processes=2)
    assert len(told) == 1
    with warnings.catch_warnings(action="ignore"):
        np.testing.assert_array_equal(vectors, tiny.encode(texts))
    with pytest.raises(TruncationError, match=r"is text 1003 with"):
        tiny.encode([*TEXTS, LONG], n_processes=2, on_truncate="raise")


def test_nothing_and_one_text(tiny):
    assert tiny.encode([], n_processes=2).shape == (0, 32)
    np.testing.assert_array_equal(tiny.encode("A plane.", n_processes=2), tiny.encode("A plane."))


@pytest.fixture
def started(monkeypatch):
    """The processes that are started from now on."""
    found = []

    class Popen(subprocess.Popen):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            found.append(self)

    monkeypatch.setattr(processes.subprocess, "Popen", Popen)
    return found


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals")
def test_a_worker_that_is_killed_is_an_error_within_seconds(tiny, started):
    def texts():
        for n in range(100_000):
            if n == 2_000:
                started[1].kill()
            yield f"A plane {n}."

    start = time.monotonic()
    with pytest.raises(WorkerError, match=r"worker process \d+ was ended by signal 9 before .* fewer processes"):
        for _ in tiny.stream(texts(), n_processes=2):
            pass
    assert time.monotonic() - start < 20
    assert [one.poll() is not None for one in started] == [True, True]


def test_workers_end_with_a_stream_that_is_left(tiny, started):
    blocks = tiny.stream(iter(TEXTS), n_processes=2)
    next(blocks)
    blocks.close()
    assert [one.poll() is not None for one in started] == [True, True]


def test_trouble_in_a_worker_and_before_it(tiny, mean_copy):
    with pytest.raises(InputTypeError, match="text 700 is None"):
        tiny.encode([*TEXTS[:700], None], n_processes=2)
    with pytest.raises(InputError, match="0 processes"):
        tiny.encode(TEXTS, n_processes=0)
    made = Model(tiny.encoder, tiny.similarity, tiny._spec, tiny.folder)
    with pytest.raises(InputError, match=r"not made by Model\.load"):
        made.encode(TEXTS, n_processes=2)
    model = Model.load(mean_copy)
    shutil.rmtree(mean_copy)
    with pytest.raises(ModelError, match=r"no config\.json"):
        model.encode(TEXTS, n_processes=2)


def test_a_program_without_a_main_guard(mean_folder, tmp_path):
    program = tmp_path / "numpy_.py"
    program.write_text(
        "from likewise import Model\nprint('once')\n"
        f"print(Model.load({str(mean_folder)!r}).encode(['a', 'b'] * 400, n_processes=2).shape)\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout == "once\n(800, 32)\n"
    assert done.stderr == ""
