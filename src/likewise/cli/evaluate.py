"""likewise evaluate"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from likewise.cli.options import load, model_options, print_json, similarity_option

_EXAMPLE = """\b
Example:
  likewise evaluate stsb --data stsbenchmark --similarity cosine --similarity rcmd
"""


@click.group(epilog=_EXAMPLE)
def evaluate() -> None:
    """Compare scores with what people said."""


@evaluate.command(short_help="STS benchmark: how well scores agree with people.", epilog=_EXAMPLE)
@click.option(
    "--data",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder with sts-test.csv and its kin.",
)
@click.option("--split", type=click.Choice(["train", "dev", "test"]), default="test", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="JSON lines, one a similarity.")
@click.option("--no-special", is_flag=True, help="Leave out [CLS], [SEP] and the like.")
@similarity_option(multiple=True)
@model_options
def stsb(
    folder: Path, split: str, as_json: bool, no_special: bool, similarity: tuple[str, ...], **options: Any
) -> None:
    """STS benchmark: Spearman and Pearson correlation, times 100, of scores and gold."""
    from likewise.data import read_stsb
    from likewise.evaluation import evaluate_pairs

    pairs = read_stsb(folder, split)
    model = load(**options)
    names = similarity or (("cosine", "rcmd") if model.pooled else ("rcmd",))
    results = evaluate_pairs(model, pairs, names, special_tokens=not no_special)
    if as_json:
        for name, result in results.items():
            print_json({"task": f"stsb-{split}", "similarity": name, **asdict(result)})
        return
    click.echo(f"STS benchmark, {split}, {len(pairs)} pairs")
    click.echo(f"{'similarity':<12}{'Spearman':>10}{'Pearson':>10}")
    for name, result in results.items():
        values = [f"{'none':>10}" if value is None else f"{value:10.2f}" for value in (result.spearman, result.pearson)]
        click.echo(f"{name:<12}{''.join(values)}{f'  ({result.reason})' if result.reason else ''}")
