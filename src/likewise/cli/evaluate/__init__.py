"""likewise evaluate"""

from __future__ import annotations

import click

from likewise.cli.evaluate.arguments import arguments
from likewise.cli.evaluate.binary import binary
from likewise.cli.evaluate.ists import ists, wa
from likewise.cli.evaluate.mining import mining
from likewise.cli.evaluate.reranking import reranking
from likewise.cli.evaluate.retrieval import retrieval
from likewise.cli.evaluate.senteval import senteval
from likewise.cli.evaluate.sts import pairs, sick, sts, stsb
from likewise.cli.evaluate.triplets import triplets

__all__ = ["evaluate"]

_EXAMPLE = """\b
Examples:
  likewise evaluate sts --data DATA --similarity cosine --similarity rcmd
  likewise evaluate stsb --data DATA --model MODEL_A --model MODEL_B --html table.html
"""


@click.group(epilog=_EXAMPLE)
def evaluate() -> None:
    """Compare what a model says with what people said, and models with one another."""


for verb in (sts, stsb, sick, pairs, binary, triplets, ists, wa, senteval, arguments, retrieval, mining, reranking):
    evaluate.add_command(verb)
