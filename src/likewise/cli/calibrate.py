"""likewise calibrate"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from likewise.cli.options import load, model_options

_EXAMPLE = """\b
Example:
  likewise calibrate texts.txt -o calibration.json
  likewise encode texts.txt --to int8 --calibration calibration.json -o codes.npy
"""


@click.command(short_help="Find the ranges that int8 vectors need.", epilog=_EXAMPLE)
@click.argument("source", type=click.File("rb"), metavar="FILE")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="JSON file to write.")
@click.option("--normalize", is_flag=True, help="Scale vectors to length 1.")
@click.option("--truncate-dim", type=int, help="Keep the first dimensions only.")
@click.option("--prompt-name", help="Name of a prompt that the model stores.")
@model_options
def calibrate(*, source: Iterable[bytes], output: Path, **options: Any) -> None:
    """Find the range of each dimension on the texts of FILE, one a line, at least 100; empty lines are passed over.

    Take texts like those to be encoded, and give the same options to `likewise encode --to int8`.
    """
    from likewise.data import read_lines
    from likewise.quantise import Calibration

    settings = {name: options.pop(name) for name in ("normalize", "truncate_dim", "prompt_name")}
    texts = [line for _, line in read_lines(source) if line.strip()]
    calibration = Calibration.fit(load(**options).encode(texts, **settings))
    calibration.save(output)
    click.echo(f"wrote the ranges of {calibration.dim} dimensions over {calibration.n} texts to {output}", err=True)
