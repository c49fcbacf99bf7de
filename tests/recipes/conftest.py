"""A data folder and recipes small enough to be trained in a second."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

WORDS = "plane cat man woman child dog guitar flute park green large small is was runs plays takes off".split()

RECIPE = """
name = "tiny"
source = "made for a test"
seeds = [3, 4]
licence = "apache-2.0"

[model]
base = ["{base}"]
similarity = "{similarity}"

[[stages]]
[stages.objective]
kind = "contrastive"
similarity = "{similarity}"

[[stages.data]]
kind = "triplets"
paths = ["mine/triplets.jsonl"]

[stages.training]
batch_size = 8
learning_rate = 1e-3
max_steps = 3

[evaluation]
dev = "stsb-dev"
report = ["stsb-dev"]
limit = 30

[smoke]
limit = 24
max_steps = 2
n_seeds = 1
"""


def sentence(number: int) -> str:
    """A sentence of its own for every number."""
    return " ".join(["the", *(WORDS[number // len(WORDS) ** place % len(WORDS)] for place in range(4)), "."])


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """STS-b dev with as many rows as published, own triplets, own scored pairs, arguments on three topics."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("mine", "stsbenchmark"):
        (folder / name).mkdir()
    dev = (f"x\tx\tx\tx\t{row % 6}\t{sentence(row)}\t{sentence(row * (1 + row % 6))}" for row in range(1500))
    (folder / "stsbenchmark" / "sts-dev.csv").write_text("\n".join(dev) + "\n")
    triplets = (
        {"anchor": f"a {sentence(row)}", "positive": f"b {sentence(row)}", "negative": f"c {sentence(7 * row + 1)}"}
        for row in range(40)
    )
    (folder / "mine" / "triplets.jsonl").write_text("\n".join(map(json.dumps, triplets)) + "\n")
    scored = ({"a": sentence(row), "b": sentence(row + row % 3), "score": (row % 5) / 4} for row in range(40))
    (folder / "mine" / "scored.jsonl").write_text("\n".join(map(json.dumps, scored)) + "\n")
    arguments = (f"{'abc'[row % 3]},{sentence(row)},{sentence(row + row % 4)},{row % 5 / 4}" for row in range(60))
    (folder / "mine" / "arguments.csv").write_text(
        "\n".join(["topic,sentence_1,sentence_2,regression_label", *arguments]) + "\n"
    )
    return folder


@pytest.fixture
def recipe_path(mean_folder: Path, tmp_path: Path) -> Path:
    """The tiny recipe, for the cosine."""
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE.format(base=mean_folder, similarity="cosine"))
    return path
