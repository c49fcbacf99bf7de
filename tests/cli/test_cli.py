"""The command line as a user meets it: real processes for what a process does, the runner for the rest."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from likewise.cli import main


@pytest.fixture
def run(mean_folder):
    def call(*words, model=True, **more):
        return CliRunner().invoke(main, [*words, *(["--model", str(mean_folder)] if model else [])], **more)

    return call


def process(*words, **more):
    return subprocess.run(
        [sys.executable, "-m", "likewise", *words], capture_output=True, text=True, check=False, **more
    )


def test_score_prints_one_json_line(run, tiny):
    done = run("score", "A plane.", "a man plays", "--similarity", "rcmd")
    assert done.exit_code == 0
    line = json.loads(done.stdout)
    assert line["similarity"] == "rcmd"
    assert line["score"] == pytest.approx(tiny.explain("A plane.", "a man plays", similarity="rcmd").score, abs=1e-5)


def test_score_keeps_other_keys_and_reads_standard_input(run):
    rows = [{"id": 7, "a": "x", "b": "x"}, {"id": 8, "a": "", "b": "é\ud800"}]
    done = run("score", "--input", "-", input="\n".join(map(json.dumps, rows)) + "\n\n")
    assert done.exit_code == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in told] == [7, 8]
    assert told[0]["score"] == pytest.approx(1, abs=1e-6)
    assert told[1]["b"] == "é\ud800"


@pytest.mark.parametrize(
    ("line", "message"),
    [("{", "line 3 is not JSON"), ("[1]", "line 3 is a JSON list"), ('{"a": "x", "b": null}', '"b" is None')],
)
def test_a_bad_line_exits_2_after_the_good_ones_were_scored(run, line, message):
    good = json.dumps({"a": "x", "b": "y"})
    done = run("score", "--input", "-", input=f"{good}\n{good}\n{line}\n{good}\n")
    assert done.exit_code == 2
    assert len(done.stdout.splitlines()) == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [["score"], ["score", "a"], ["explain", "a"], ["score", "a", "b", "--input", "-"]])
def test_missing_texts_exit_2(run, words):
    assert run(*words).exit_code == 2


@pytest.mark.parametrize("similarity", ["rcmd", "cosine", "transport"])
def test_explain_prints_a_table_and_json_that_add_up(run, similarity):
    pair = ("A plane is taking off.", "An air plane is taking off.")
    table = run("explain", *pair, "--similarity", similarity)
    told = json.loads(run("explain", *pair, "--similarity", similarity, "--json").stdout)
    assert f"{similarity} {told['score']:.4f}" in table.stdout
    assert sum(map(sum, told["contributions"])) == pytest.approx(told["score"], abs=1e-12)


def test_explain_writes_a_page_or_nothing(run, tmp_path):
    page = tmp_path / "why.html"
    assert run("explain", "a man", "a plane", "--html", str(page)).exit_code == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    done = run("explain", "a man", "a plane", "--html", str(tmp_path / "absent" / "why.html"))
    assert done.exit_code == 2
    assert "choose a folder that exists" in done.stderr


def test_explain_without_special_tokens(run):
    told = json.loads(run("explain", "a man", "a plane", "--json", "--no-special").stdout)
    assert not any(token["special"] for token in told["a"]["tokens"])


@pytest.mark.parametrize("suffix", ["npy", "jsonl", "parquet"])
def test_encode_to_each_format(run, tiny, tmp_path, suffix):
    texts = ["A plane.", "", "a man plays"]
    target = tmp_path / f"vectors.{suffix}"
    done = run("encode", "--output", str(target), input="\n".join(texts) + "\n")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    if suffix == "npy":
        vectors = np.load(target)
    elif suffix == "jsonl":
        vectors = [json.loads(line)["embedding"] for line in target.read_text().splitlines()]
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table(target).to_pydict()
        assert table["text"] == texts
        vectors = table["embedding"]
    assert np.allclose(vectors, tiny.encode(texts), atol=1e-5)


def test_encode_prints_json_lines_and_reads_a_key(run, tmp_path):
    source = tmp_path / "texts.jsonl"
    source.write_text('{"body": "a man", "id": 1}\n')
    done = run("encode", str(source), "--key", "body", "--normalize", "--truncate-dim", "8")
    row = json.loads(done.stdout)
    assert row["id"] == 1
    assert np.linalg.norm(row["embedding"]) == pytest.approx(1, abs=1e-6)
    assert len(row["embedding"]) == 8


def test_encode_of_nothing_and_of_an_unknown_format(run, tmp_path):
    target = tmp_path / "none.npy"
    assert run("encode", "--output", str(target), input="").exit_code == 0
    assert np.load(target).shape == (0, 32)
    done = run("encode", "--output", "vectors.csv", input="x")
    assert done.exit_code == 2
    assert ".npy" in done.stderr


def test_a_bad_text_leaves_no_half_written_file(run, tmp_path):
    target = tmp_path / "vectors.jsonl"
    target.write_text("old")
    source = tmp_path / "bad.jsonl"
    source.write_text('{"text": "x"}\n{"text": 3}\n')
    assert run("encode", str(source), "--output", str(target)).exit_code == 2
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl", "vectors.jsonl"]


def test_truncation_is_announced_on_standard_error(mean_folder):
    done = process("encode", "--text", "a man " * 90, "--model", str(mean_folder))
    assert done.returncode == 0
    assert "longer than" in done.stderr
    assert len(json.loads(done.stdout)["embedding"]) == 32


def test_inspect_tells_what_would_run(mean_folder):
    done = CliRunner().invoke(main, ["inspect", str(mean_folder)])
    assert done.exit_code == 0
    assert "nothing: no pickle is read and no code of the folder is run" in done.stdout
    assert "Pooling mean" in done.stdout
    told = json.loads(CliRunner().invoke(main, ["inspect", str(mean_folder), "--json"]).stdout)
    assert told["pooling"] == "mean"
    assert {file["name"] for file in told["files"]} >= {"modules.json", "model.safetensors"}


def test_a_missing_model_exits_2_with_one_line():
    done = process("score", "a", "b", "--model", "no/such/model/here")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("likewise: no model folder")
    assert len(done.stderr.splitlines()) == 1


def test_evaluate_stsb(run, shared):
    done = run("evaluate", "stsb", "--data", str(shared / "data" / "stsbenchmark"), "--json", "-s", "cosine")
    told = json.loads(done.stdout)
    assert told["task"] == "stsb-test"
    assert told["n"] == 1379
    assert done.stderr.startswith("likewise: warning: 239 of")
    assert -100 <= told["spearman"] <= 100


def test_demo_runs_on_any_model(run):
    done = run("demo", "--top", "2")
    assert done.exit_code == 0, done.stderr
    assert "by cosine" in done.stdout
    assert "by rcmd" in done.stdout
    assert "explanations" in done.stdout


def test_models_lists_the_default():
    done = CliRunner().invoke(main, ["models", "--json"])
    assert done.exit_code == 0


HEAVY = {"torch", "transformers", "numpy", "rich", "scipy", "huggingface_hub", "tokenizers", "ot"}


@pytest.mark.parametrize("code", ["import likewise", "from likewise.cli import main; main(['--help'])"])
def test_start_up_loads_nothing_heavy(code):
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint('\\n' + ' '.join(sorted(sys.modules)))"
    loaded = (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        .stdout.splitlines()[-1]
        .split()
    )
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    assert len(loaded) < 400
