"""likewise export"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import load

if TYPE_CHECKING:
    from likewise.model.onnx import Parity

_EXAMPLE = """\b
Example:
  likewise export ./my-model --onnx ./my-model-onnx
"""


@click.command(short_help="Write a model as an ONNX graph, and prove that it agrees.", epilog=_EXAMPLE)
@click.argument("name", metavar="MODEL")
@click.option("--onnx", "target", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@click.option("--limit", type=float, default=1e-4, show_default=True, help="Largest difference that is accepted.")
@click.option("--pooling", help="For a checkpoint that does not say: mean, cls, max … or none.")
@click.option("--revision", help="Branch, tag or commit on the hub.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a page.")
def export(*, name: str, target: Path, limit: float, pooling: str | None, revision: str | None, as_json: bool) -> None:
    """Write model.onnx, tokenizer, config and parity.json of MODEL into a folder, or nothing if they disagree."""
    from likewise.model.onnx import export as write

    parity = write(load(name, pooling=pooling, revision=revision, device="cpu"), target, limit=limit)
    if as_json:
        click.echo(json.dumps(parity.to_dict(), indent=2))
    else:
        _print(parity, target)


def _print(parity: Parity, target: Path) -> None:
    click.echo(f"{parity.model} → {target}, opset {parity.opset}, {parity.n_texts} texts compared\n")
    click.echo(f"{'output':<32}{'largest':>12}{'mean':>12}")
    for name, one in parity.differences.items():
        click.echo(f"{name:<32}{one.max:>12.2e}{one.mean:>12.2e}")
    click.echo(f"\nwithin the limit of {parity.limit:g}; " + ", ".join(map(" ".join, parity.versions.items())))
