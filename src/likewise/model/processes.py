"""Encoding in several processes at once, for machines whose processors do not share their memory evenly."""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise import errors
from likewise.encoder import Cuts, as_texts, check_on_truncate, chunks, progress_bar
from likewise.errors import InputError, LikewiseError, WorkerError
from likewise.kernels import n_threads
from likewise.model.worker import read_frame, write_frame

__all__ = ["stream_in_processes"]

_CHUNK = 256
"""Texts that a worker gets at a time: few, so that all workers have something to do until the end."""

_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from likewise.model.worker import main; main()"


def stream_in_processes(
    texts: Any,
    settings: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    n_processes: int,
    *,
    max_length: int | None,
    on_truncate: str,
    progress: bool | None,
) -> Iterator[Float[np.ndarray, "some dim"]]:
    """Pooled vectors in blocks, in the order of the texts, computed by worker processes that each load the model.

    The workers are started for this call and end with it, so that calls of several threads cannot mix.

    Args:
        texts: See `as_texts`.
        settings: What `load_encoder` takes, as JSON can say it; None if nobody knows.
        options: prompt and special_tokens of `Encoder.stream`.
        n_processes: How many workers; each gets its share of this process's threads.
        max_length: Longest text in tokens, for the warning.
        on_truncate: "warn" once, at the end; "raise", or "ignore".
        progress: Show a bar on standard error.

    Raises:
        WorkerError: A worker ended before its work was done.
        InputError: No processes, no settings, or as `Encoder.stream`.
    """
    check_on_truncate(on_truncate)
    if n_processes < 1:
        raise InputError(f"{n_processes} processes cannot compute anything; give 1 or more")
    if settings is None:
        raise InputError(
            "this model was not made by Model.load, so that no worker process can load it; save it and load the "
            "folder, or leave n_processes out"
        )
    cuts = Cuts(limit=max_length)
    with progress_bar(operator.length_hint(texts, -1), progress) as advance, _Workers(n_processes) as workers:
        workers.start(settings, options)
        for block, more in workers.over(chunks(as_texts(texts), _CHUNK)):
            cuts.join(more)
            cuts.check(on_truncate)
            yield block
            advance(len(block))
    cuts.tell(on_truncate)


class _Workers:
    """Worker processes, and a thread for each that waits for its answers."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._all: list[_Worker] = []
        self._free: SimpleQueue[_Worker] = SimpleQueue()
        self._trouble: list[LikewiseError] = []

    def __enter__(self) -> _Workers:
        self._pool = ThreadPoolExecutor(self._n)
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        for worker in self._all:
            worker.end(kill=kind is not None)
        self._pool.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.close()

    def start(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        share = max(1, n_threads() // self._n)
        for _ in range(self._n):
            self._all.append(_Worker(share))
        for worker in self._all:
            worker.tell(settings)
            worker.tell(options)
            self._free.put(worker)

    def over(self, windows: Iterator[list[str]]) -> Iterator[tuple[np.ndarray, Cuts]]:
        """The answers to all windows, in their order; twice as many are under way as there are workers."""
        waiting: deque[Future[tuple[np.ndarray, Cuts]]] = deque()
        for window in windows:
            waiting.append(self._pool.submit(self._answer, window))
            if len(waiting) > 2 * self._n:
                yield self._first(waiting)
        while waiting:
            yield self._first(waiting)

    def _answer(self, window: list[str]) -> tuple[np.ndarray, Cuts]:
        worker = self._free.get()
        try:
            return worker.ask(window)
        except LikewiseError as error:
            self._trouble.append(error)
            for other in self._all:  # so that nobody waits for the rest of them
                other.end(kill=True)
            raise
        finally:
            self._free.put(worker)

    def _first(self, waiting: deque[Future[tuple[np.ndarray, Cuts]]]) -> tuple[np.ndarray, Cuts]:
        try:
            return waiting.popleft().result()
        except LikewiseError:
            raise self._trouble[0] from None


class _Worker:
    """One process, and the two pipes to it."""

    def __init__(self, n_threads: int) -> None:
        # The first is read by likewise and torch, the second by the tokenizer.
        threads = {"OMP_NUM_THREADS": str(n_threads), "RAYON_NUM_THREADS": str(n_threads)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **threads},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout

    def tell(self, what: Any) -> None:
        """Send what JSON can say."""
        try:
            write_frame(self._questions, json.dumps(what).encode())
        except OSError as error:
            raise self._ended() from error

    def ask(self, window: list[str]) -> tuple[np.ndarray, Cuts]:
        """Vectors of a window, and what was cut in it."""
        self.tell(window)
        try:
            answer = json.loads(read_frame(self._answers))
            if "error" not in answer:
                vectors = np.frombuffer(read_frame(self._answers), np.float32).reshape(answer["shape"])
                return vectors, Cuts(**answer["cuts"])
        except EOFError as error:
            raise self._ended() from error
        kind = getattr(errors, answer["error"])
        raise (WorkerError if kind is errors.MissingExtraError else kind)(answer["message"])

    def end(self, *, kill: bool) -> None:
        """Ask it to end, or make it."""
        if kill:
            self._process.kill()
        else:
            self._questions.close()

    def close(self) -> None:
        """Wait for its end."""
        self._process.wait()
        for pipe in (self._questions, self._answers):
            with suppress(BrokenPipeError):  # it held what the worker did not read
                pipe.close()

    def _ended(self) -> WorkerError:
        code = self._process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return WorkerError(
            f"worker process {self._process.pid} {how} before its work was done; if the system ran out of memory, take "
            "fewer processes"
        )
