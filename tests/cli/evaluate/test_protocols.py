"""The verbs of protocols that compare with gold: what each reads, prints, writes and refuses."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner

from likewise.cli import main
from likewise.data import read_wa, write_wa


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


def test_ists_of_two_models_compares_them_under_the_same_similarity_and_keeps_both_files(
    run, shared, tmp_path, mean_folder
):
    models = [shutil.copytree(mean_folder, tmp_path / name) for name in ("a b", "a_b")]
    done = run(
        "ists", "--data", shared / "data", "--set", "images", "-s", "cosine", "-s", "rcmd", "--wa", tmp_path / "wa",
        "--json", tmp_path / "out.json", "-m", models[0], "-m", models[1], model=False,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    told = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    compared = [(one["first"], one["second"]) for one in told["comparisons"]]
    assert compared == [("a b cosine", "a_b cosine"), ("a b rcmd", "a_b rcmd")]
    assert len(list((tmp_path / "wa").iterdir())) == 8
    assert "images.a_b.rcmd.paper.2.wa, what a_b, rcmd aligned" in done.stderr


def test_wa_prints_the_official_values(run, shared, tmp_path):
    cases = json.loads((shared / "oracle" / "ists_f1_cases.json").read_text(encoding="utf-8"))["cases"]
    case = next(case for case in cases if case["name"] == "type_and_score_differ")
    for side in ("gold", "system"):
        (tmp_path / f"{side}.wa").write_text(case[f"{side}_wa"], encoding="utf-8")
    done = run("wa", tmp_path / "gold.wa", tmp_path / "system.wa", model=False)
    assert done.stdout.split() == "alignment 1.0000 kind 0.0000 score 0.6500 joint 0.0000".split()
    assert run("wa", tmp_path / "gold.wa", tmp_path / "absent.wa", model=False).exit_code == 2


def test_wa_tells_of_pairs_that_the_system_lacks(run, shared, tmp_path):
    gold = shared / "data" / "ists2016" / "test" / "STSint.testinput.images.wa"
    people = read_wa(gold)
    for n in (0, 100, len(people)):
        write_wa(tmp_path / "cut.wa", people[:n])
        done = run("wa", gold, tmp_path / "cut.wa", "--json", model=False)
        (found,) = records(done)
        assert found["n_missing"] == len(people) - n
        assert (f"lacks {len(people) - n} of the 375 sentence pairs" in done.stderr) == (n < len(people))


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
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td3\t1\n", encoding="utf-8")
    (found,) = records(run("retrieval", "--data", tmp_path, "--json"))
    assert (found["similarity"], found["n"], found["recall@10"]) == ("cosine", 2, 100)
    (found,) = records(run("retrieval", "--data", tmp_path, "--rerank", "rcmd", "--depth", "2", "--json"))
    assert found["similarity"] == "cosine, rcmd of the first 2"
    prompts = ("--query-prompt", "query: ", "--document-prompt", "passage: ")
    done = run(
        "retrieval", "--data", tmp_path, "--rerank", "rcmd", "--depth", "1", *prompts, "--json", tmp_path / "out"
    )
    assert done.exit_code == 0, done.stderr
    listed = json.loads((tmp_path / "out").read_text(encoding="utf-8"))["worst"]
    for pair in listed:
        assert pair["a"].startswith("query: ")
        assert pair["explanation"]["score"] == pytest.approx(pair["score"], abs=1e-5)
    assert {pair["compared_by"] for pair in listed} == {"cosine"}
    found = records(run("reranking", "--data", tmp_path, "--negatives", "2", "--json"))
    assert [(one["similarity"], one["n"]) for one in found] == [("cosine", 2), ("rcmd", 2)]
    with (tmp_path / "qrels" / "test.tsv").open("a", encoding="utf-8") as stream:
        stream.write("q1\td9\t1\n")
    for verb in ("retrieval", "reranking"):
        assert "--partial" in run(verb, "--data", tmp_path).stderr
        done = run(verb, "--data", tmp_path, "-s", "cosine", "--partial", "--json")
        assert "1 of 3 judgements" in done.stderr
        assert json.loads(done.stdout.splitlines()[0])["n"] == 2


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
    path.write_text(json.dumps({**row, "negative": ["dogs", "A plane."]}), encoding="utf-8")
    done = run("reranking", "--data", path)
    assert done.exit_code == 2
    assert "line 1: 'A plane.' is both positive and negative for 'a plane'" in done.stderr


def test_reranking_tells_once_what_it_leaves_out_and_calls_one_list_no_proof(run, tmp_path, mean_folder):
    path = tmp_path / "lists.jsonl"
    rows = [
        {"query": "a plane", "positive": ["cats", "a plane"], "negative": ["dogs"]},
        {"query": "q", "positive": [], "negative": ["x"]},
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    other = shutil.copytree(mean_folder, tmp_path / "other")
    done = run("reranking", "--data", path, "-s", "cosine", "-s", "rcmd", "-m", other)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("1 of 2 lists were left out") == 1
    assert done.stdout.startswith("Reranking, 1 list (× 100)")
    assert "n = 1" in done.stdout
    assert "p=" not in done.stdout
    assert "±0.00" not in done.stdout


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
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join(map(json.dumps, files["binary"][:-1])), encoding="utf-8")
    (found,) = records(run("binary", "--data", same, "--choose-on", other, "-s", "rcmd", "--json"))
    assert (found["task"], found["n"], found["ap"], found["accuracy"]) == ("binary", 25, 100, 100)
    (found,) = records(run("binary", "--data", same, "-s", "rcmd", "--json"))
    assert "accuracy" not in found
    assert found["best_accuracy"] == 100
    columns = "\n".join("\t".join(row) for row in (files["triplets"][0], *(one.values() for one in files["triplets"])))
    (tmp_path / "columns.tsv").write_text(columns, encoding="utf-8")
    (found,) = records(run("triplets", "--data", tmp_path / "columns.tsv", "-s", "rcmd", "--json"))
    assert (found["task"], found["n"]) == ("columns", 20)
    (found,) = records(run("triplets", "--data", tmp_path / "triplets.jsonl", "-s", "rcmd", "--json"))
    assert (found["task"], found["n"], found["accuracy"]) == ("triplets", 20, 1)


def test_what_binary_cannot_know(run, tmp_path):
    assert "say which set it holds: --set mrpc or --set qqp" in run("binary", "--data", tmp_path).stderr
    wrong = run("binary", "--data", tmp_path, "--set", "mrpc", "--choose-on", "validation")
    assert "a set has the splits train, dev, test" in wrong.stderr
    (tmp_path / "none.jsonl").write_text("")
    done = run("binary", "--data", tmp_path / "none.jsonl", "-s", "rcmd", "--json")
    assert done.exit_code == 2
    assert "holds no pair" in done.stderr


def test_mining_of_the_first_questions(run, shared):
    (found,) = records(run("mining", "--data", shared / "data" / "qqp", "--texts", "300", "--json"))
    assert (found["task"], found["n"]) == ("QQP mining", 300)
    assert 0 < found["f1"] <= 100
    assert found["average_precision"] <= 100


def test_mining_of_ones_own_pairs(run, tmp_path):
    path = tmp_path / "own.jsonl"
    pairs = [
        ("a plane", "A plane", True),
        ("the cats", "a  plane", True),
        ("a  plane", "A plane", True),
        ("dogs", "it rains", False),
    ]
    path.write_text("\n".join(json.dumps({"a": a, "b": b, "same": same}) for a, b, same in pairs), encoding="utf-8")
    options = ("--data", path, "-s", "cosine", "--max-pairs", "3", "--json")
    (found,) = records(run("mining", *options))
    assert (found["task"], found["n"], found["precision"]) == ("own mining", 6, 100)
    (cut,) = records(run("mining", *options, "--texts", "3"))  # what joins "the cats" with the others is left out
    assert (cut["n"], cut["average_precision"], cut["recall"]) == (3, 100, 100)
    assert run("mining", "--data", tmp_path / "absent.jsonl").exit_code == 2


@pytest.mark.parametrize("verb", ["ists", "senteval", "retrieval", "mining", "reranking", "arguments"])
def test_an_absent_folder_is_one_line_and_exit_code_2(run, tmp_path, verb):
    done = run(verb, "--data", tmp_path / "absent")
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert "absent" in done.stderr
