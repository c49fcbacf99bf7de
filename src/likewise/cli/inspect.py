"""likewise inspect"""

from __future__ import annotations

import json

import click


@click.command(short_help="Say what is in a model folder; runs nothing of it.")
@click.argument("name", metavar="MODEL", required=False)
@click.option("--revision", help="Branch, tag or commit on the hub.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a page.")
def inspect(name: str | None, revision: str | None, as_json: bool) -> None:
    """Say what is in a model folder and what loading it would run (nothing)."""
    from likewise.model import DEFAULT
    from likewise.model import inspect as report_on

    report = report_on(name or DEFAULT, revision=revision)
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
        return
    lines = {
        "model": report.name,
        "source": report.source,
        "folder": report.folder,
        "architecture": report.architecture,
        "modules": " → ".join(report.modules) or "a plain checkpoint",
        "pooling": report.pooling,
        "similarity": report.similarity,
        "max length": f"{report.max_length} tokens" if report.max_length else "not limited by the folder",
        "prompts": ", ".join(f"{key}: {text!r}" for key, text in report.prompts.items()) or "none",
        "licence": report.licence,
        "would run": report.would_run,
        "loadable": report.loadable,
    }
    for label, value in lines.items():
        click.echo(f"{label:<13}{value}")
    click.echo()
    width = max((len(file.name) for file in report.files), default=0)
    for file in report.files:
        click.echo(f"{file.name:<{width}}  {file.n_bytes:>12,} bytes  {file.sha256}  {file.format}")
