"""`likewise train` and `likewise negatives` as a user meets them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from likewise import Model
from likewise.cli import main
from tests.recipes.conftest import RECIPE, data, recipe_path  # noqa: F401  (fixtures)


def call(*words, **more):
    return CliRunner().invoke(main, [str(word) for word in words], **more)


def test_a_recipe_is_trained_and_shown_before_and_after(recipe_path, data, tmp_path):  # noqa: F811
    done = call("train", recipe_path, "--data", data, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "size smoke: the base model, then after training" in done.stdout
    assert "seed 3" in done.stdout
    assert "note: size smoke: a small-scale check, not a reproduction" in done.stderr
    assert f"wrote {tmp_path / 'out' / 'seed-3' / 'model'}" in done.stderr
    assert "small-scale" in (tmp_path / "out" / "seed-3" / "model" / "README.md").read_text()
    assert Model.load(tmp_path / "out" / "seed-3" / "model").dim == 32
    again = call("train", recipe_path, "--data", data, "-o", tmp_path / "out")
    assert again.exit_code == 2
    assert "go on with them: --resume" in again.stderr
    more = call("train", recipe_path, "--data", data, "-o", tmp_path / "out", "--resume", "--seed", 3, "--seed", 5)
    assert more.exit_code == 0, more.output
    assert "seed-3: finished before" in more.stderr
    assert "seed-5: training" in more.stderr
    assert "mean of 2 seeds" in more.stdout


def test_a_dry_run_trains_nothing(recipe_path, data, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIKEWISE_DATA", str(data))
    done = call("train", recipe_path, "--dry-run", "--size", "full")
    assert done.exit_code == 0, done.output
    for words in (
        "2 runs of",
        "contrastive: 3 steps of 8 rows",
        "40 rows read, 0 overlap",
        "40 used",
        "tokens a row",
        "GB",
    ):
        assert words in done.stdout
    found = json.loads(call("train", recipe_path, "--dry-run", "--json").stdout)
    assert (found["n_runs"], found["stages"][0]["n_steps"], found["stages"][0]["data"][0]["n_used"]) == (1, 2, 24)
    assert found["notes"] == ["size smoke: a small-scale check, not a reproduction"]
    assert not (tmp_path / "runs").exists()


def test_what_is_missing_is_said_in_one_line(recipe_path, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    done = call("train", recipe_path)
    assert done.exit_code == 2
    assert done.stderr.startswith("likewise: no data folder data; name the one")
    recipe_path.write_text(recipe_path.read_text().replace("batch_size", "batchsize"))
    done = call("train", recipe_path, "--data", tmp_path)
    assert done.exit_code == 2
    assert "unknown key 'stages[0].training.batchsize'; did you mean 'batch_size'?" in done.stderr


def test_scores_that_cannot_be_written_are_known_before_anything_is_trained(recipe_path, data, tmp_path):  # noqa: F811
    words = ["train", recipe_path, "--data", data, "-o", tmp_path / "out", "--json"]
    for target in (tmp_path / "absent" / "x.json", recipe_path):
        done = call(*words, target)
        assert done.exit_code == 2, done.output
        assert str(target) in done.stderr
        assert not (tmp_path / "out").exists()


def test_neither_the_program_nor_its_other_verbs_import_torch(tmp_path):
    text = (
        "import sys; from likewise.cli import main; from click.testing import CliRunner\n"
        "for words in (['train', '--help'], ['negatives', '--help'], ['models']): CliRunner().invoke(main, words)\n"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


def test_mined_negatives_are_what_a_recipe_reads(mean_folder, tmp_path, data):  # noqa: F811
    words = ["a plane", "the cat", "a man plays", "the green park", "a woman", "three children", "the guitar", "a dog"]
    pairs = [{"anchor": word, "positive": f"{word} is large"} for word in words]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    done = call("negatives", tmp_path / "pairs.jsonl", "--margin", 0, "-o", tmp_path / "t.jsonl", "-m", mean_folder)
    assert done.exit_code == 0, done.output
    triplets = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert f"wrote {len(triplets)} triplets of 8 pairs" in done.stderr
    assert triplets
    assert all(one["negative"] in {f"{word} is large" for word in words} - {one["positive"]} for one in triplets)
    recipe = RECIPE.format(base=mean_folder, similarity="cosine").replace("mine/triplets.jsonl", "t.jsonl")
    (tmp_path / "own.toml").write_text(recipe.replace("batch_size = 8", "batch_size = 2"))
    (tmp_path / "stsbenchmark").symlink_to(data / "stsbenchmark")
    done = call("train", tmp_path / "own.toml", "--data", tmp_path, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("line", "message"),
    [('{"anchor": "x"}', 'line 1: "positive" is missing'), ('{"anchor": 1, "positive": ""}', 'line 1: "anchor" is 1')],
)
def test_a_bad_pair_is_named(tmp_path, mean_folder, line, message):
    (tmp_path / "pairs.jsonl").write_text(line)
    done = call("negatives", tmp_path / "pairs.jsonl", "-o", tmp_path / "t.jsonl", "-m", mean_folder)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "t.jsonl").exists()
