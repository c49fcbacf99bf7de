"""The command line as a user meets it: real processes for what a process does, the runner for the rest."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from likewise.cli import main
from likewise.cli.options import batches


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
    [
        ("{", "line 3 is not JSON"),
        ('{"a": "x", "b": "y", "z": NaN}', "line 3 is not JSON (NaN is no JSON number)"),
        ('{"a": "x", "b": "y", "z": 1e999}', "line 3 is not JSON (1e999 is no JSON number)"),
        ("[1]", "line 3 is a JSON list"),
        ('{"a": "x", "b": null}', 'line 3: "b" is null, not a text'),
        ('{"a": "x"}', 'line 3: "b" is missing; give {"a": "…", "b": "…"} a line'),
        ('{"a": ["x"], "b": "x"}', 'line 3: "a" is ["x"], not a text'),
    ],
)
def test_a_bad_line_exits_2_after_the_good_ones_were_scored(run, line, message):
    good = json.dumps({"a": "x", "b": "y"})
    done = run("score", "--input", "-", input=f"{good}\n{good}\n{line}\n{good}\n")
    assert done.exit_code == 2
    assert len(done.stdout.splitlines()) == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--help >&-", "cannot write the output: standard output is closed"),
        ("data list >&-", "cannot write the output: standard output is closed"),
        ("encode <&-", "standard input is closed"),
        ("score --input - <&-", "standard input is closed"),
    ],
)
def test_a_stream_that_is_closed_is_one_line(mean_folder, words, message):
    model = "" if words.startswith(("--help", "data")) else f"--model '{mean_folder}'"
    command = f"'{sys.executable}' -m likewise {words} {model}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("likewise: ")
    assert message in line


def test_score_replaces_nothing_that_came_in(run):
    rows = [{"a": "a man", "b": "a plane"}, {"a": "a man", "b": "a plane", "score": 4.2}]
    source = "\n\n\n".join(map(json.dumps, rows))
    done = run("score", "--input", "-", input=source)
    assert done.exit_code == 2
    assert 'line 4 has "score" already' in done.stderr
    assert "--into" in done.stderr
    assert len(done.stdout.splitlines()) == 1
    done = run("score", "--input", "-", "--into", "ours", input=source)
    assert [set(json.loads(line)) for line in done.stdout.splitlines()] == [
        {"a", "b", "ours"},
        {"a", "b", "score", "ours"},
    ]


@pytest.mark.parametrize(("key", "message"), [("a", 'the texts have the key "a"'), ("", "the key is empty")])
@pytest.mark.parametrize("words", [["a man", "a plane"], ["--input", "-"]])
def test_a_score_needs_a_key_of_its_own(run, words, key, message):
    done = run("score", *words, "--into", key, input='{"a": "a man", "b": "a plane"}\n')
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"--into: {message}" in done.stderr


def test_score_gives_out_letter_for_letter_what_came_in(run):
    lines = [
        '{"n": 12345678901234567890123456789.5, "x": 0.10, "y": 1E5, "a": "caf\\u00e9", "b": "é"}',
        '  { "a": "x" , "b": "y", "deep": {"z": [1.50]} }  ',
    ]
    done = run("score", "--input", "-", "--into", "ours", input="\n".join(lines))
    assert done.exit_code == 0, done.stderr
    for line, told in zip(lines, done.stdout.splitlines(), strict=True):
        assert told.startswith(line.strip().removesuffix("}").rstrip() + ', "ours": ')
        assert set(json.loads(told)) == {*json.loads(line), "ours"}


def test_score_refuses_a_key_that_stands_twice(run):
    done = run("score", "--input", "-", input='{"a": "plane", "b": "cat", "a": "dog"}\n')
    assert (done.exit_code, done.stdout) == (2, "")
    assert 'line 1: the key "a" stands twice' in done.stderr


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


def test_inspect_of_what_does_not_load_exits_2_after_printing(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    done = CliRunner().invoke(main, ["inspect", str(tmp_path)])
    assert done.exit_code == 2
    assert re.search(r"^loadable +no: no config\.json in .*: it is not a model folder", done.stdout, re.MULTILINE)
    assert "plain checkpoint" not in done.stdout
    assert "notes.txt" in done.stdout
    done = CliRunner().invoke(main, ["inspect", str(tmp_path), "--json"])
    assert done.exit_code == 2
    assert json.loads(done.stdout)["pooling"] == "not known"


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
    assert re.match(r"likewise: warning: \d+ of 2552 texts", done.stderr)
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


def test_demo_needs_questions_and_a_place_for_them(run, tmp_path):
    empty = tmp_path / "questions.txt"
    empty.write_text("\n \n")
    done = run("demo", "--questions", str(empty))
    assert done.exit_code == 2
    assert done.stderr == f"likewise: {empty} is empty; give one text a line\n"
    assert "Invalid value for '--top'" in run("demo", "--top", "0").stderr


def test_score_without_special_tokens(run, tiny):
    done = run("score", "a man", "a plane", "--no-special", "--similarity", "rcmd")
    wanted = tiny.explain("a man", "a plane", similarity="rcmd", special_tokens=False).score
    assert json.loads(done.stdout)["score"] == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("source", ["-", __file__])
def test_encode_takes_a_file_or_a_text(run, source):
    done = run("encode", source, "--text", "a man", input="a plane\n")
    assert done.exit_code == 2
    assert "give SOURCE or --text, not both" in done.stderr


def test_a_dash_is_standard_output(run):
    done = run("encode", "--text", "a man", "--output", "-")
    assert done.exit_code == 0, done.stderr
    assert len(json.loads(done.stdout)["embedding"]) == 32


def test_an_unknown_device_exits_2(run):
    done = run("score", "a", "b", "--device", "foo")
    assert done.exit_code == 2
    assert done.stderr.startswith("likewise: no device 'foo' here; this machine has cpu")


def test_batches_grow():
    assert [len(batch) for batch in batches(iter(range(300)), 100)] == [32, 64, 100, 100, 4]
    assert [len(batch) for batch in batches(iter(range(5)), 4)] == [4, 1]
    assert list(batches(iter([]))) == []


def test_the_first_scores_come_before_the_last_pairs(mean_folder):
    words = ["score", "--input", "-", "--model", str(mean_folder)]
    with subprocess.Popen(
        [sys.executable, "-m", "likewise", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        running.stdin.write(b'{"a": "x", "b": "y"}\n' * 32)
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["a"] == "x"
        running.stdin.close()
        assert running.stdout.read().count(b"\n") == 31
    assert running.returncode == 0


# A locale in which Python reads arguments and writes streams as something else than UTF-8.
OLD_LOCALE = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}


def test_texts_are_utf_8_in_every_locale(mean_folder, tiny):
    pair = ("naïve café", "niño 東京")
    done = process("score", *pair, "--model", str(mean_folder), env=OLD_LOCALE, encoding="utf-8")
    row = json.loads(done.stdout)
    assert (row["a"], row["b"]) == pair
    assert row["score"] == pytest.approx(tiny.score(*pair), abs=1e-5)
    table = process("explain", *pair, "--model", str(mean_folder), env=OLD_LOCALE, encoding="utf-8")
    assert "naïve" in table.stdout
    (row,) = map(
        json.loads, process("encode", "--text", pair[0], "-m", str(mean_folder), env=OLD_LOCALE).stdout.splitlines()
    )
    assert np.allclose(row["embedding"], tiny.encode(pair[0]), atol=1e-5)


def test_bytes_that_are_not_utf_8_are_refused():
    done = process("score", b"caf\xe9", "b")
    assert done.returncode == 2
    assert "it is not UTF-8" in done.stderr
    assert "Usage:" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("verb", [["score"], ["explain"], ["explain", "--json"]])
def test_a_full_disk_exits_2_with_one_line(verb, mean_folder):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "likewise", *verb, "a", "b", "--model", str(mean_folder)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == (
        "likewise: cannot write the output: No space left on device; free some space or write elsewhere\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_an_interrupt_exits_130_with_one_line(mean_folder):
    words = ["score", "--input", "-", "--model", str(mean_folder)]
    with subprocess.Popen(
        [sys.executable, "-m", "likewise", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        running.stdin.write(b'{"a": "x", "b": "y"}\n' * 32)
        running.stdin.flush()
        assert len([running.stdout.readline() for _ in range(32)]) == 32
        time.sleep(0.2)  # it waits for more pairs now
        running.send_signal(signal.SIGINT)
        output, error = running.communicate(timeout=60)
    assert running.returncode == 130
    assert error == b"likewise: interrupted\n"
    assert output == b""


@pytest.mark.parametrize("verb", [(name,) for name in main.commands] + [("evaluate", "stsb")], ids=" ".join)
def test_every_help_has_an_example(verb):
    done = CliRunner().invoke(main, [*verb, "--help"])
    assert re.search(rf"^ *Examples?:\n *likewise {' '.join(verb)}", done.stdout, re.MULTILINE)


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
