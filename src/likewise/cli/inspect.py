"""likewise inspect"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from likewise.model import Report


_EXAMPLE = """\b
Example:
  likewise inspect ./my-model
"""


@click.command(short_help="Say what is in a model folder; runs nothing of it.", epilog=_EXAMPLE)
@click.argument("name", metavar="MODEL", required=False)
@click.option("--revision", help="Branch, tag or commit on the hub.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a page.")
def inspect(name: str | None, revision: str | None, as_json: bool) -> None:
    """Say what is in a model folder and what loading it would run (nothing).

    Exit code 2 if it does not load.
    """
    from likewise.model import DEFAULT
    from likewise.model import inspect as report_on

    report = report_on(name or DEFAULT, revision=revision)
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        _print(report)
    if report.loadable.startswith("no"):
        click.get_current_context().exit(2)


def _print(report: Report) -> None:
    chainless = "not known" if report.loadable.startswith("no") else "a plain checkpoint"
    lines = {
        "model": report.name,
        "source": report.source,
        "folder": report.folder,
        "architecture": report.architecture,
        "modules": " → ".join(report.modules) or chainless,
        "pooling": report.pooling,
        "similarity": report.similarity,
        "max length": f"{report.max_length} tokens" if report.max_length else "not limited by the folder",
        "prompts": ", ".join(f"{key}: {text!r}" for key, text in report.prompts.items()) or "none",
        "licence": report.licence,
        "served by": report.served_by,
        "would run": report.would_run,
        "loadable": report.loadable,
    }
    for label, value in lines.items():
        click.echo(f"{label:<13}{value}")
    click.echo()
    width = max((len(file.name) for file in report.files), default=0)
    for file in report.files:
        click.echo(f"{file.name:<{width}}  {file.n_bytes:>12,} bytes  {file.sha256}  {file.format}")
