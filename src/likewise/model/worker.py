"""One worker process: loads an encoder by itself, then answers windows of texts with their vectors.

Run by `likewise.model.processes`, as a program of its own. It talks over its standard input and output in frames:
eight bytes that say how long the frame is, then JSON, or the bytes of a float32 array. So nothing is pickled, and no
module of the program that asked is imported again.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from likewise.encoder import Cuts
from likewise.errors import LikewiseError
from likewise.model.loading import load_encoder

__all__ = ["main", "read_frame", "write_frame"]

_LENGTH = struct.Struct("<Q")


def main() -> None:
    """Answer on standard output what is asked on standard input, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks decides when to end
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints must not get among the answers
        try:
            for answer in _answers(sys.stdin.buffer):
                write_frame(answers, answer)
        except LikewiseError as error:
            write_frame(answers, json.dumps({"error": type(error).__name__, "message": str(error)}).encode())
        except BrokenPipeError:  # nobody asks any more
            pass


def read_frame(stream: IO[bytes]) -> bytes:
    """The next frame.

    Raises:
        EOFError: The stream ends before it does.
    """
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return _exactly(stream, length)


def write_frame(stream: IO[bytes], content: bytes) -> None:
    """One frame, sent off."""
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def _exactly(stream: IO[bytes], length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


def _answers(questions: IO[bytes]) -> Iterator[bytes]:
    settings = _asked(questions)
    if settings is None:
        return
    folder = Path(settings.pop("folder"))
    encoder, _ = load_encoder(folder, **settings)
    options = _asked(questions)
    while (texts := _asked(questions)) is not None:
        cuts = Cuts()
        vectors = np.concatenate(
            list(encoder.stream(texts, **options, on_truncate="ignore", progress=False, cuts=cuts))
        )
        yield json.dumps({"shape": vectors.shape, "cuts": asdict(cuts)}).encode()
        yield np.ascontiguousarray(vectors, np.float32).tobytes()


def _asked(questions: IO[bytes]) -> Any:
    try:
        return json.loads(read_frame(questions))
    except EOFError:
        return None
