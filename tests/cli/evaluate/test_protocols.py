"""The verbs of protocols that compare with gold: what each reads, prints, writes and refuses."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from likewise.cli import main
from likewise.data import read_wa


@pytest.fixture
def run(mean_folder):
    def call(*words, model=True):
        chosen = ["--model", str(mean_folder)] if model else []
        return CliRunner().invoke(main, ["evaluate", *map(str, words), *chosen])

    return call


def records(done):
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_ists_prints_f1_and_writes_what_was_aligned(run, shared, tmp_path):
    (found,) = records(
        run("ists", "--data", shared / "data", "--set", "images", "-s", "rcmd", "--wa", tmp_path, "--json")
    )
    assert (found["task"], found["subset"], found["n"]) == ("iSTS", "images", 375)
    assert found["lawful_gain"] == found["alignment_f1_lawful"] - found["alignment_f1"]
    paper, lawful = sorted(tmp_path.iterdir(), reverse=True)
    assert paper.name.endswith(".rcmd.paper.wa")
    assert lawful.name.endswith(".rcmd.lawful.wa")
    aligned = read_wa(paper)
    assert len(aligned) == 375
    assert {one.kind for pair in aligned for one in pair.alignments} == {"EQUI"}
    gold = shared / "data" / "ists2016" / "test" / "STSint.testinput.images.wa"
    (again,) = records(run("wa", gold, paper, "--strong", "--json", model=False))
    assert again["alignment"] == pytest.approx(found["alignment_f1"], abs=1e-12)


def test_wa_prints_the_official_values(run, shared, tmp_path):
    cases = json.loads((shared / "oracle" / "ists_f1_cases.json").read_text(encoding="utf-8"))["cases"]
    case = next(case for case in cases if case["name"] == "type_and_score_differ")
    for side in ("gold", "system"):
        (tmp_path / f"{side}.wa").write_text(case[f"{side}_wa"], encoding="utf-8")
    done = run("wa", tmp_path / "gold.wa", tmp_path / "system.wa", model=False)
    assert done.stdout.split() == "alignment 1.0000 kind 0.0000 score 0.6500 joint 0.0000".split()
    assert run("wa", tmp_path / "gold.wa", tmp_path / "absent.wa", model=False).exit_code == 2


def test_senteval_gives_an_accuracy(run, shared):
    folder = shared / "data" / "senteval_transfer"
    (found,) = records(run("senteval", "--data", folder, "--task", "CR", "--folds", "2", "--json"))
    assert (found["task"], found["n"]) == ("CR", 3771)
    assert 60 < found["accuracy"] < 90


def test_arguments_by_topic_within_and_across(run, tmp_path):
    rows = [f"{topic},{topic} {i},{topic} {i * 7 % 5},{i / 10}" for topic in ("cats", "dogs") for i in range(10)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["topic,sentence_1,sentence_2,regression_label", *rows]), encoding="utf-8")
    settings = ("--setting", "frozen", "--setting", "folds", "--setting", "cross-topic")
    found = records(run("arguments", "--data", path, *settings, "--folds", "4", "-s", "cosine", "--json"))
    places = [(one["task"], one["subset"]) for one in found]
    assert places[:4] == [("own", "cats"), ("own", "dogs"), ("own", "all"), ("own", "mean")]
    assert places[4:9] == [("own folds", name) for name in ("fold 1", "fold 2", "fold 3", "fold 4", "all")]
    assert places[9:] == [("own cross-topic", name) for name in ("cats", "dogs", "all")]
    assert found[-1]["model"].endswith(" + ridge")


def test_retrieval_of_a_folder_and_reranking_of_its_shortlists(run, tmp_path):
    corpus = {"d1": "A plane is taking off.", "d2": "The cats don't like the dog.", "d3": "A man plays the flute."}
    queries = {"q1": "the plane", "q2": "the dog and the cats"}
    for name, texts in (("corpus", corpus), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in texts.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n", encoding="utf-8")
    (found,) = records(run("retrieval", "--data", tmp_path, "--json"))
    assert (found["similarity"], found["n"], found["recall@10"]) == ("cosine", 2, 100)
    (found,) = records(run("retrieval", "--data", tmp_path, "--rerank", "rcmd", "--depth", "2", "--json"))
    assert found["similarity"] == "cosine, rcmd of the first 2"
    found = records(run("reranking", "--data", tmp_path, "--negatives", "2", "--json"))
    assert [(one["similarity"], one["n"]) for one in found] == [("cosine", 2), ("rcmd", 2)]


def test_reranking_of_a_file_and_its_bad_lines(run, tmp_path):
    path = tmp_path / "lists.jsonl"
    row = {"query": "a plane", "positive": ["A plane."], "negative": ["the cats"]}
    path.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    (found,) = records(run("reranking", "--data", path, "-s", "rcmd", "--json"))
    assert (found["task"], found["n"]) == ("lists", 1)
    path.write_text(json.dumps({**row, "negative": "the cats"}), encoding="utf-8")
    done = run("reranking", "--data", path)
    assert done.exit_code == 2
    assert 'line 1: "negative" is "the cats", not a list of texts' in done.stderr


def test_ones_own_pairs_duplicates_and_triplets(run, tmp_path):
    texts = ["a man plays", "the man", "a plane", "a small black dog", "two dogs"]
    both = [(a, b) for a in texts for b in texts]
    files = {
        "pairs": [{"a": a, "b": b, "score": len({*a.split()} & {*b.split()})} for a, b in both],
        "binary": [{"a": a, "b": b, "same": a == b} for a, b in both],
        "triplets": [{"anchor": a, "positive": a, "negative": b} for a, b in both if a != b],
    }
    for verb, rows in files.items():
        (tmp_path / f"{verb}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (found,) = records(run("pairs", "--data", tmp_path / "pairs.jsonl", "-s", "rcmd", "--json"))
    assert (found["task"], found["n"]) == ("pairs", 25)
    assert found["spearman"] > 30
    same = tmp_path / "binary.jsonl"
    (found,) = records(run("binary", "--data", same, "--choose-on", same, "-s", "rcmd", "--json"))
    assert (found["task"], found["n"], found["ap"], found["accuracy"]) == ("binary", 25, 100, 100)
    (found,) = records(run("binary", "--data", same, "-s", "rcmd", "--json"))
    assert "accuracy" not in found
    assert found["best_accuracy"] == 100
    (found,) = records(run("triplets", "--data", tmp_path / "triplets.jsonl", "-s", "rcmd", "--json"))
    assert (found["task"], found["n"], found["accuracy"]) == ("triplets", 20, 1)


def test_what_binary_cannot_know(run, tmp_path):
    assert "say which set it holds: --set mrpc or --set qqp" in run("binary", "--data", tmp_path).stderr
    wrong = run("binary", "--data", tmp_path, "--set", "mrpc", "--choose-on", "validation")
    assert "a set has the splits train, dev, test" in wrong.stderr
    (tmp_path / "none.jsonl").write_text("")
    (found,) = records(run("binary", "--data", tmp_path / "none.jsonl", "-s", "rcmd", "--json"))
    assert found["n"] == 0


def test_mining_of_the_first_questions(run, shared):
    (found,) = records(run("mining", "--data", shared / "data" / "qqp", "--texts", "300", "--json"))
    assert (found["task"], found["n"]) == ("QQP mining", 300)
    assert 0 < found["f1"] <= 100
    assert found["average_precision"] <= 100


@pytest.mark.parametrize("verb", ["ists", "senteval", "retrieval", "mining", "reranking", "arguments"])
def test_an_absent_folder_is_one_line_and_exit_code_2(run, tmp_path, verb):
    done = run(verb, "--data", tmp_path / "absent")
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert "absent" in done.stderr
