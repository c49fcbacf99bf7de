"""likewise encode"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli.options import TEXT, load, model_options, print_json
from likewise.errors import InputError, LikewiseError

_ENDINGS = (".npy", ".jsonl", ".parquet", ".arrow")

_EXAMPLE = """\b
Examples:
  likewise encode texts.txt -o vectors.npy
  likewise encode texts.txt -o vectors.npy --resume
  likewise encode --text "A plane is taking off."
  likewise encode texts.txt --to int8 --calibration calibration.json -o codes.npy
"""


@click.command(short_help="Turn texts into vectors.", epilog=_EXAMPLE)
@click.argument("source", type=click.File("rb"), required=False)
@click.option("--text", type=TEXT, help="One text instead of SOURCE.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File .npy, .jsonl, .parquet or .arrow; JSON lines on standard output if it is - or left out.",
)
@click.option(
    "--resume/--restart",
    default=None,
    help="Go on with an interrupted run of the same OUTPUT if there is one, or drop it.  [default: refuse]",
)
@click.option("--jsonl", is_flag=True, help="The input is JSON lines (known from the name .jsonl).")
@click.option("--key", default="text", show_default=True, help="Key of the text in JSON lines.")
@click.option("--normalize", is_flag=True, help="Scale vectors to length 1.")
@click.option("--truncate-dim", type=int, help="Keep the first dimensions only.")
@click.option("--prompt-name", help="Name of a prompt that the model stores.")
@click.option("--on-truncate", type=click.Choice(["warn", "raise", "ignore"]), default="warn", show_default=True)
@click.option(
    "--to",
    type=click.Choice(["float32", "int8", "binary"]),
    default="float32",
    show_default=True,
    help="Numbers, codes of a byte a dimension, or of a bit.",
)
@click.option("--calibration", type=click.Path(path_type=Path), help="For int8: what `likewise calibrate` wrote.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads to use at most.  [default: one a processor]")
@click.option(
    "--processes",
    "n_processes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Worker processes that share the threads, for machines with several memories (NUMA).",
)
@model_options
def encode(
    *,
    source: Iterable[bytes] | None,
    text: str | None,
    output: Path | None,
    resume: bool | None,
    jsonl: bool,
    key: str,
    normalize: bool,
    truncate_dim: int | None,
    prompt_name: str | None,
    on_truncate: str,
    to: str,
    calibration: Path | None,
    threads: int | None,
    n_processes: int,
    **options: Any,
) -> None:
    """Turn texts into vectors, one text a line of SOURCE (standard input by default), any number of them.

    Prints JSON lines with an "embedding" each, or writes the --output file, whole or not at all.

    An interrupted run leaves the rows done in OUTPUT.partial and OUTPUT.partial.json; the same call with --resume
    checks model, settings and input, goes on from there, and makes the same file as one run would have.
    """
    output = None if output == Path("-") else output
    _refuse(source, text, output, resume)
    coded = _coder(to, calibration)
    lines = iter([(text, {key: text})]) if text is not None else _lines(source, jsonl, key)
    if threads is not None:
        from likewise.kernels import limit_threads

        limit_threads(threads)
    model = load(**options)
    settings: dict[str, Any] = {"normalize": normalize, "truncate_dim": truncate_dim, "prompt_name": prompt_name}
    more: dict[str, Any] = {"on_truncate": on_truncate, "n_processes": n_processes}
    if text is not None or (output is None and sys.stdout.isatty()):
        more["progress"] = False
    blocks = _blocks(lines, key, lambda texts: map(coded, model.stream(texts, **settings, **more)))
    if output is None:
        _print(blocks)
        return
    import numpy as np

    from likewise.cli.encode_files import same_run, write_file

    other = {"to": to, "calibration": calibration, "key": key, "jsonl": _is_jsonl(source, jsonl)}
    run = same_run(model, {**settings, **other, "pooling": options["pooling"]})
    empty = coded(np.zeros((0, truncate_dim or model.dim), np.float32))
    write_file(output, empty, run, lines, blocks, resume=resume)


def _refuse(source: Any, text: str | None, output: Path | None, resume: bool | None) -> None:
    """What cannot be meant."""
    if source is not None and text is not None:
        raise click.UsageError("give SOURCE or --text, not both")
    if output is None and resume is not None:
        raise click.UsageError("--resume and --restart are for an --output file")
    if output is not None and output.suffix not in _ENDINGS:
        raise InputError(f"cannot tell the format of {output}; known endings are {', '.join(_ENDINGS)}")


def _coder(to: str, calibration: Path | None) -> Callable[[Any], Any]:
    """What is done to the vectors of each block."""
    if (to == "int8") != (calibration is not None):
        raise click.UsageError(
            "--to int8 needs --calibration, since the ranges of one batch do not fit another; make a file with "
            "`likewise calibrate`"
            if to == "int8"
            else "--calibration is for --to int8"
        )
    if to == "float32":
        return lambda vectors: vectors
    from likewise.quantise import Calibration, to_binary

    return Calibration.load(calibration).to_int8 if calibration else to_binary


def _lines(source: Iterable[bytes] | None, jsonl: bool, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line with a text, and the row that it stands for."""
    from likewise.data import object_in, read_lines, text_at

    jsonl = _is_jsonl(source, jsonl)
    for number, line in read_lines(sys.stdin.buffer if source is None else source):
        if not jsonl:
            yield line, {key: line}
        elif line.strip():
            row = object_in(line, f"line {number}")
            text_at(row, key, f"line {number}", "name the right key with --key")
            yield line, row


def _is_jsonl(source: Any, jsonl: bool) -> bool:
    return jsonl or str(getattr(source, "name", "")).endswith(".jsonl")


def _blocks(
    lines: Iterator[tuple[str, dict[str, Any]]], key: str, encode: Callable[[Iterator[str]], Iterator[Any]]
) -> Iterator[tuple[list[tuple[str, dict[str, Any]]], Any]]:
    """Lines with their vectors, a block at a time; a bad line ends them only after those before it were given out."""
    waiting: deque[tuple[str, dict[str, Any]]] = deque()
    trouble: list[LikewiseError] = []

    def texts() -> Iterator[str]:
        try:
            for line, row in lines:
                waiting.append((line, row))
                yield row[key]
        except LikewiseError as error:
            trouble.append(error)

    for vectors in encode(texts()):
        yield [waiting.popleft() for _ in range(len(vectors))], vectors
    if trouble:
        raise trouble[0]


def _print(blocks: Iterable[tuple[list[tuple[str, dict[str, Any]]], Any]]) -> None:
    for lines, vectors in blocks:
        for (_, row), vector in zip(lines, vectors.tolist(), strict=True):
            print_json({**row, "embedding": vector})
        sys.stdout.flush()
