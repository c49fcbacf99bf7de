"""likewise encode"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli.options import TEXT, batches, json_object, load, model_options, print_json, text_in
from likewise.errors import InputError, MissingExtraError

_EXAMPLE = """\b
Examples:
  likewise encode texts.txt -o vectors.npy
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
    help="File .npy, .jsonl or .parquet; JSON lines on standard output if it is - or left out.",
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
@model_options
def encode(
    *,
    source: Iterable[bytes] | None,
    text: str | None,
    output: Path | None,
    jsonl: bool,
    key: str,
    normalize: bool,
    truncate_dim: int | None,
    prompt_name: str | None,
    on_truncate: str,
    to: str,
    calibration: Path | None,
    **options: Any,
) -> None:
    """Turn texts into vectors, one text a line of SOURCE (standard input by default).

    Prints JSON lines with an "embedding" each, or writes the --output file, whole or not at all.
    """
    if source is not None and text is not None:
        raise click.UsageError("give SOURCE or --text, not both")
    output = None if output == Path("-") else output
    kind = output.suffix if output else ".jsonl"
    if kind not in _WRITERS:
        raise InputError(f"cannot tell the format of {output}; known endings are {', '.join(_WRITERS)}")
    coded = _coder(to, calibration)
    rows = iter([{key: text}]) if text is not None else _rows(source, jsonl, key)
    model = load(**options)
    settings: dict[str, Any] = {
        "normalize": normalize,
        "truncate_dim": truncate_dim,
        "prompt_name": prompt_name,
        "on_truncate": on_truncate,
    }
    blocks = (
        list(zip(batch, coded(model.encode([row[key] for row in batch], **settings)), strict=True))
        for batch in batches(rows, 4096)
    )
    if output is None:
        _print(blocks)
    else:
        import numpy as np

        dim = truncate_dim or model.dim
        empty = coded(np.zeros((0, dim), np.float32))
        _WRITERS[kind](output, itertools.chain.from_iterable(blocks), empty)


def _coder(to: str, calibration: Path | None) -> Callable[[Any], Any]:
    """What is done to the vectors of each batch."""
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


def _print(blocks: Iterable[list[tuple[dict[str, Any], Any]]]) -> None:
    for block in blocks:
        for row, vector in block:
            print_json({**row, "embedding": vector.tolist()})
        sys.stdout.flush()


def _rows(source: Iterable[bytes] | None, jsonl: bool, key: str) -> Iterator[dict[str, Any]]:
    from likewise.data import read_lines

    source = sys.stdin.buffer if source is None else source
    jsonl = jsonl or str(getattr(source, "name", "")).endswith(".jsonl")
    for number, line in read_lines(source):
        if not jsonl:
            yield {key: line}
        elif line.strip():
            row = json_object(line, number)
            text_in(row, key, number, "name the right key with --key")
            yield row


def _write_npy(path: Path, rows: Iterator[tuple[dict[str, Any], Any]], empty: Any) -> None:
    import numpy as np

    from likewise.files import atomic_file

    vectors = [vector for _, vector in rows]
    with atomic_file(path) as stream:
        np.save(stream, np.stack(vectors) if vectors else empty, allow_pickle=False)
    click.echo(f"wrote {len(vectors)} vectors of {empty.shape[1]} to {path}", err=True)


def _write_jsonl(path: Path, rows: Iterator[tuple[dict[str, Any], Any]], empty: Any) -> None:
    import json

    from likewise.files import atomic_file

    n = 0
    with atomic_file(path) as stream:
        for row, vector in rows:
            stream.write(json.dumps({**row, "embedding": vector.tolist()}).encode() + b"\n")
            n += 1
    click.echo(f"wrote {n} vectors of {empty.shape[1]} to {path}", err=True)


def _write_parquet(path: Path, rows: Iterator[tuple[dict[str, Any], Any]], empty: Any) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", "writing .parquet") from error
    from likewise.files import atomic_file

    kept = list(rows)
    columns = list(dict.fromkeys(name for row, _ in kept for name in row))
    table = {name: [row.get(name) for row, _ in kept] for name in columns}
    values = pa.array([value for _, vector in kept for value in vector.tolist()], pa.from_numpy_dtype(empty.dtype))
    embedding = pa.FixedSizeListArray.from_arrays(values, empty.shape[1])
    with atomic_file(path) as stream:
        parquet.write_table(pa.table({**table, "embedding": embedding}), stream)
    click.echo(f"wrote {len(kept)} vectors of {empty.shape[1]} to {path}", err=True)


_WRITERS: dict[str, Callable[[Path, Iterator[tuple[dict[str, Any], Any]], Any], None]] = {
    ".npy": _write_npy,
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
}
