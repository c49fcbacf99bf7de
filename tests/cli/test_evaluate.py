"""`likewise evaluate`: the shared frame and the verbs sts, stsb, sick, binary, triplets."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil

import pytest
from click.testing import CliRunner

from likewise.cli import main
from likewise.errors import InputError
from likewise.files import sha256
from likewise.model import Model


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
    assert lines[0] == "SICK relatedness, dev (correlations × 100)"
    assert lines[3].split() == ["model", "similarity", "spearman", "pearson"]
    assert re.search(r"rcmd +−?\d+\.\d\d (±\d+\.\d\d|\[−?\d+\.\d\d, −?\d+\.\d\d\])", first.stdout)
    assert re.search(r"rcmd − cosine +[+−]\d", first.stdout)


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
    how = told["how"]
    assert (how["similarities"], how["resamples"], how["seed"]) == (["rcmd"], 50, 0)
    assert [one["name"] for one in how["models"]] == ["model", "other"]
    assert how["models"][0]["weights"] == how["models"][1]["weights"] == {
        "model.safetensors": sha256(mean_copy / "model.safetensors")
    }  # fmt: skip
    assert how["command"].startswith("likewise evaluate sick --data …/data --split dev --similarity rcmd")
    assert "--worst 1" in how["command"]
    assert str(tmp_path) not in json.dumps(how)
    page = files["html"].read_text(encoding="utf-8")
    assert "How this was measured" in page
    assert str(tmp_path) not in page
    rows = list(csv.DictReader(files["csv"].read_text(encoding="utf-8").splitlines()))
    assert [(row["model"], row["metric"]) for row in rows] == [
        (model, metric) for model in ("model", "other") for metric in ("spearman", "pearson")
    ]
    assert r"\toprule" in files["latex"].read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")


def test_folders_of_one_name_are_told_apart(run, sick, tmp_path, mean_folder):
    models = [shutil.copytree(mean_folder, tmp_path / name / "final") for name in "ab"]
    done = run(*sick, "-s", "cosine", "--json", models=models)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["model"] for one in told] == ["a/final", "b/final"]


def test_a_folder_named_by_a_dot_has_a_name(run, sick, mean_copy, monkeypatch):
    monkeypatch.chdir(mean_copy)
    done = run(*sick, "-s", "cosine", "--json", models=(".",))
    assert json.loads(done.stdout)["model"] == mean_copy.name


def test_a_model_is_not_compared_with_itself(run, sick, mean_folder):
    for second in (mean_folder, f"{mean_folder}/", mean_folder / ".." / mean_folder.name):
        done = run(*sick, models=(mean_folder, second))
        assert done.exit_code == 2
        assert "the same model twice" in done.stderr


def test_a_similarity_named_twice_is_one(run, own):
    told = [json.loads(line) for line in run("pairs", *own, "-s", "rcmd", "-s", "rcmd", "--json").stdout.splitlines()]
    assert [one["similarity"] for one in told] == ["rcmd"]


@pytest.fixture
def own(tmp_path):
    """Pairs of one's own, and texts that cannot be printed as they are."""
    path = tmp_path / "own.jsonl"
    texts = ["A plane is taking off.", "An air plane", "half \ud800 a pair", "NUL \x00", "The cats", "\x1b[2J"]
    rows = [{"a": a, "b": b, "score": float(a == b) + i / 9} for i, a in enumerate(texts) for b in texts]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return ["--data", path]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--json", "nodir/x.json", "--csv", "ok.csv"], "cannot write nodir/x.json: there is no folder nodir"),
        (["--html", "folder"], "folder"),
        (["--json", "folder"], "cannot write folder: it is a folder"),
        (["--csv", "same", "--latex", "./same"], "--latex and --csv both name same"),
        (["--csv", "own.jsonl"], "--csv and --data both name own.jsonl"),
        (["--json", ""], "--json names no file"),
        (["--csv", ""], "--csv names no file"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is_computed(run, own, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Model, "load", lambda *_, **__: pytest.fail("a model was loaded"))
    (tmp_path / "folder").mkdir()
    before = own[1].read_bytes()
    done = run("pairs", *own, *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert own[1].read_bytes() == before


def test_a_folder_that_cannot_be_written_is_named(run, own, tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.cli.evaluate.outputs.os.access", lambda _, mode: mode != os.W_OK)  # root may
    done = run("pairs", *own, "--csv", tmp_path / "x.csv")
    assert done.exit_code == 2
    assert "x.csv: permission denied" in done.stderr


def test_one_output_that_fails_does_not_lose_the_others(run, own, tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.evaluation.latex.to_latex", lambda _: refuse())

    def refuse():
        raise InputError("no LaTeX today")

    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "latex", "csv", "html")}
    done = run("pairs", *own, "-s", "rcmd", *(word for kind, path in files.items() for word in (f"--{kind}", path)))
    assert done.exit_code == 2
    assert "no LaTeX today" in done.stderr
    assert [kind for kind, path in files.items() if path.exists()] == ["json", "csv", "html"]
    assert "spearman" in done.stdout


def test_files_are_written_where_printing_fails(run, own, tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.cli.evaluate.common._print_tables", lambda *_: 1 / 0)
    done = run("pairs", *own, "-s", "rcmd", "--csv", tmp_path / "out.csv")
    assert isinstance(done.exception, ZeroDivisionError)
    assert (tmp_path / "out.csv").exists()


def test_texts_that_cannot_be_printed_are_measured_and_printed_all_the_same(run, own, tmp_path):
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "html")}
    words = [word for kind, path in files.items() for word in (f"--{kind}", path)]
    done = run("pairs", *own, "-s", "rcmd", "--details", "--worst", "99", *words)
    assert done.exit_code == 0, done.stderr
    assert "half � a pair" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\x00" not in files["html"].read_text(encoding="utf-8")
    assert any("\ud800" in one["a"] for one in json.loads(files["json"].read_text(encoding="utf-8"))["worst"])


@pytest.mark.parametrize(("name", "message"), [("absent", "absent"), ("nothing", "it is not a model folder")])
def test_a_bad_second_model_costs_no_time(run, own, mean_folder, monkeypatch, name, message):
    monkeypatch.setattr(Model, "load", lambda *_, **__: pytest.fail("a model was loaded"))
    folder = own[1].parent
    (folder / "nothing").mkdir()
    done = run("pairs", *own, "-s", "cosine", models=(mean_folder, folder / name))
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_similarity_that_a_model_cannot_have_costs_no_time(run, own, checkpoint, monkeypatch):
    monkeypatch.setattr(Model, "load", lambda *_, **__: pytest.fail("a model was loaded"))
    done = run("pairs", *own, "--pooling", "none", "-s", "rcmd", "-s", "cosine", models=(checkpoint(),))
    assert done.exit_code == 2
    assert "a token-level model without pooling" in done.stderr


def test_details_show_sources_slices_and_worst_pairs(run, shared):
    done = run("sts", "--data", shared / "data", "--tasks", "sts16", "-s", "rcmd", "--details", "--resamples", 0)
    assert done.exit_code == 0, done.stderr
    assert "STS16, spearman" in done.stdout
    assert "plagiarism" in done.stdout
    assert "length: below 8 words (n = " in done.stdout
    assert "Worst errors" in done.stdout
    without = run("sts", "--data", shared / "data", "--tasks", "sts16", "-s", "rcmd", "--details", "--worst", 0)
    assert "Worst errors" not in without.stdout


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
    words = ["binary", "--data", shared / "data", "--set", "mrpc", "-s", "cosine", "--resamples", 50]
    told = json.loads(run(*words, "--json").stdout)
    assert (told["task"], told["n"]) == ("mrpc-test", 1725)
    assert told["best_accuracy"] >= told["accuracy"] > 50
    done = run(*words, "--choose-on", "test")
    assert done.exit_code == 2
    assert "--choose-on is test, the split that is measured" in done.stderr


def test_binary_says_what_its_thresholds_are_worth(run, tmp_path):
    texts = ["A plane is taking off.", "An air plane", "The cats", "the dog", "a small flute"]
    rows = [{"a": a, "b": b, "same": a == b} for a in texts for b in texts]
    path, other, empty = (tmp_path / f"{name}.jsonl" for name in ("some", "other", "empty"))
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    other.write_text("\n".join(map(json.dumps, rows[:7])), encoding="utf-8")
    empty.write_text("", encoding="utf-8")
    words = ["binary", "--data", path, "-s", "rcmd", "--details"]
    done = run(*words)
    assert done.stdout.startswith("Duplicates, some (× 100, but for thresholds)\n")
    assert "so optimistic; --choose-on with other pairs gives accuracy and f1" in done.stdout
    assert "none: no example counts as wrong" in done.stdout
    assert "accuracy and f1: at thresholds chosen on other pairs" in run(*words, "--choose-on", other).stdout
    copied = tmp_path / "copied.jsonl"
    copied.write_bytes(path.read_bytes())
    for given, message in ((path, "the very pairs"), (copied, "the very pairs"), (empty, "empty.jsonl"), ("", "")):
        done = run(*words, "--choose-on", given)
        assert done.exit_code == 2
        assert message in done.stderr


@pytest.mark.parametrize(
    ("verb", "file", "task"),
    [("stsb", "stsbenchmark/raw/sts-dev.csv", "stsb-dev"), ("sick", "sick/SICK_trial.txt", "sick-dev")],
)
def test_a_set_can_be_named_by_a_file_of_it(run, shared, tmp_path, verb, file, task):
    path = shared / "data" / file
    told = json.loads(run(verb, "--data", path, "-s", "cosine", "--resamples", 0, "--json").stdout)
    assert told["task"] == task
    done = run(verb, "--data", path, "--split", "test")
    assert f"{path.name}, which holds the split dev, and --split is test" in done.stderr
    (tmp_path / "own.csv").write_text("x", encoding="utf-8")
    done = run(verb, "--data", tmp_path / "own.csv")
    assert done.exit_code == 2
    assert "--data names the file own.csv, and this set has" in done.stderr


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
    assert "made with seed 1 (accuracy from 0 to 1)" in done.stdout


@pytest.mark.parametrize("verb", ["sts", "sick", "binary", "triplets"])
def test_every_help_has_an_example(verb):
    done = CliRunner().invoke(main, ["evaluate", verb, "--help"])
    assert re.search(rf"^ *Examples?:\n *likewise evaluate {verb}", done.stdout, re.MULTILINE)
    assert "[default: cosine and rcmd; of a token-level model rcmd]" in " ".join(done.stdout.split())
