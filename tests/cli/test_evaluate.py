"""`likewise evaluate`: the shared frame and the verbs sts, stsb, sick, binary, triplets."""

from __future__ import annotations

import csv
import json
import re
import shutil

import pytest
from click.testing import CliRunner

from likewise.cli import main


@pytest.fixture
def run(mean_folder):
    def call(*words, models=(mean_folder,), **more):
        chosen = [word for model in models for word in ("--model", str(model))]
        return CliRunner().invoke(main, ["evaluate", *map(str, words), *chosen], **more)

    return call


@pytest.fixture
def sick(shared):
    """The smallest real set."""
    return ["sick", "--data", str(shared / "data"), "--split", "dev", "--resamples", "50"]


def test_the_table_is_plain_and_the_same_every_time(run, sick):
    first, second = (run(*sick, "-s", "cosine", "-s", "rcmd") for _ in range(2))
    assert first.exit_code == 0, first.stderr
    assert first.stdout == second.stdout
    lines = first.stdout.splitlines()
    assert lines[0] == "SICK relatedness, dev"
    assert lines[3].split() == ["model", "similarity", "spearman", "pearson"]
    assert re.search(r"rcmd +-?\d+\.\d\d ±\d+\.\d\d", first.stdout)
    assert re.search(r"rcmd − cosine +[+-]\d", first.stdout)


def test_every_file_is_written(run, sick, tmp_path, mean_copy):
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "csv", "latex", "html")}
    options = [word for kind, path in files.items() for word in (f"--{kind}", path)]
    done = run(
        *sick, "-s", "rcmd", *options, "--worst", "1",
        models=(mean_copy, shutil.copytree(mean_copy, tmp_path / "other")),
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("wrote ") == 4
    told = json.loads(files["json"].read_text(encoding="utf-8"))
    assert [one["model"] for one in told["measures"]] == ["model"] * 2 + ["other"] * 2
    assert told["measures"][0]["low"] < told["measures"][0]["value"] < told["measures"][0]["high"]
    assert told["comparisons"][0]["difference"] == 0  # the same weights
    assert told["comparisons"][0]["p_value"] == 1
    assert {one["model"] for one in told["worst"]} == {"model", "other"}
    assert told["worst"][0]["explanation"]["similarity"] == "rcmd"
    assert any(one["subset"] == "negation: in one" for one in told["slices"])
    rows = list(csv.DictReader(files["csv"].read_text(encoding="utf-8").splitlines()))
    assert [(row["model"], row["metric"]) for row in rows] == [
        (model, metric) for model in ("model", "other") for metric in ("spearman", "pearson")
    ]
    assert r"\toprule" in files["latex"].read_text(encoding="utf-8")
    assert files["html"].read_text(encoding="utf-8").startswith("<!doctype html>")


def test_folders_of_one_name_are_told_apart(run, sick, tmp_path, mean_folder):
    models = [shutil.copytree(mean_folder, tmp_path / name / "final") for name in "ab"]
    done = run(*sick, "-s", "cosine", "--json", models=models)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["model"] for one in told] == [str(model) for model in models]


def test_a_model_is_not_compared_with_itself(run, sick, mean_folder):
    done = run(*sick, models=(mean_folder, mean_folder))
    assert done.exit_code == 2
    assert "the same model twice" in done.stderr


def test_details_show_sources_slices_and_worst_pairs(run, shared):
    done = run("sts", "--data", shared / "data", "--tasks", "sts16", "-s", "rcmd", "--details", "--resamples", 0)
    assert done.exit_code == 0, done.stderr
    assert "STS16, spearman" in done.stdout
    assert "plagiarism" in done.stdout
    assert "length: below 8 words" in done.stdout
    assert "What weighs most against each system" in done.stdout


def test_tasks_are_chosen_by_name(run, shared):
    done = run("sts", "--data", shared / "data", "--tasks", "sts-16", "--text", "moses", "--json", "--resamples", 0)
    assert done.exit_code == 0, done.stderr
    told = {json.loads(line)["task"] for line in done.stdout.splitlines()}
    assert told == {"STS16"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tasks", "STS12,STS99"], "unknown task 'STS99'; known are STS12"),
        (["--tasks", " , "], "--tasks names no task"),
        (["--similarity", "jaccard"], "jaccard"),
    ],
)
def test_bad_options_are_named(run, tmp_path, words, message):
    done = run("sts", "--data", tmp_path, *words)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("verb", ["sts", "stsb", "sick"])
def test_missing_data_is_one_line(run, tmp_path, verb):
    done = run(verb, "--data", tmp_path)
    assert done.exit_code == 2
    assert done.stderr.startswith("likewise: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_sick(run, sick):
    told = json.loads(run(*sick, "--json", "-s", "cosine").stdout)
    assert (told["task"], told["n"]) == ("sick-dev", 500)
    assert len(told["intervals"]["spearman"]) == 2


def test_binary(run, shared):
    words = ["binary", "--data", shared / "data", "--set", "mrpc", "-s", "cosine", "--resamples", 50, "--json"]
    told = json.loads(run(*words, "--choose-on", "test").stdout)
    assert (told["task"], told["n"]) == ("mrpc-test", 1725)
    assert 50 < told["best_accuracy"] <= 100
    assert "accuracy" not in told


def test_triplets(run, tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("Sentence1,Sentence2,Sentence3\nA plane.,An air plane.,The cats\n", encoding="utf-8")
    told = json.loads(run("triplets", "--data", path, "--json", "-s", "rcmd").stdout)
    assert (told["task"], told["n"]) == ("sections", 1)
    path = tmp_path / "some.txt"
    section = "\n\n".join(["One two three four five . Six seven eight nine ten ."] * 2)
    path.write_text(f"\n = A = \n\n = = B = = \n\n{section}\n\n = = C = = \n\n{section}\n", encoding="utf-8")
    done = run("triplets", "--data", path, "--seed", 1, "-s", "cosine")
    assert done.exit_code == 0, done.stderr
    assert "made with seed 1" in done.stdout


@pytest.mark.parametrize("verb", ["sts", "sick", "binary", "triplets"])
def test_every_help_has_an_example(verb):
    done = CliRunner().invoke(main, ["evaluate", verb, "--help"])
    assert re.search(rf"^ *Examples?:\n *likewise evaluate {verb}", done.stdout, re.MULTILINE)
