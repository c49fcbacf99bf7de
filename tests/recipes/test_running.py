"""A recipe from its file to a model with scores and a card."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from likewise import CrossEncoder, Model, inspect
from likewise.errors import DataError, InputError
from likewise.evaluation.measures import Measure
from likewise.recipes import Outcome, plan, preview, read_outcome, read_recipe, run, scores, sized, table
from likewise.recipes.outcomes import write_outcome
from tests.recipes.conftest import RECIPE


@pytest.fixture(scope="module")
def finished(mean_folder, data, tmp_path_factory):
    """(plan, output, outcomes, what was said) of two seeds at full size."""
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "tiny.toml"
    path.write_text(RECIPE.format(base=mean_folder, similarity="rcmd"))
    made, said = plan(read_recipe(path), data, size="full"), []
    return made, folder / "out", run(made, folder / "out", say=said.append), said


def test_every_seed_leaves_a_model_with_its_scores(finished):
    made, output, outcomes, said = finished
    assert [outcome.seed for outcome in outcomes] == [3, 4]
    assert said == [f"seed-3: training {made.base}", f"seed-4: training {made.base}"]
    for outcome in outcomes:
        folder = output / f"seed-{outcome.seed}"
        assert {path.name for path in folder.iterdir()} == {"model", "scores.json"}
        assert read_outcome(folder / "scores.json") == outcome
        assert outcome.n_steps == 3
        assert outcome.data == ("40 rows of triplets of mine/triplets.jsonl (40 read)",)
        model = Model.load(outcome.folder)
        assert model.similarity.name == "rcmd"
        assert not np.allclose(model.encode(["a plane"]), Model.load(made.base).encode(["a plane"]))
        (before,), (after,) = outcome.before, outcome.after
        assert (before.task, before.metric, before.n, after.n) == ("STS-b dev", "spearman", 30, 30)
        assert -100 <= after.low <= after.value <= after.high <= 100
        assert before.value != after.value


def test_the_card_says_what_the_model_is(finished):
    _, _, outcomes, _ = finished
    folder = Path(outcomes[0].folder)
    card = (folder / "README.md").read_text()
    header = card.split("---\n")[1]
    assert "license: apache-2.0\n" in header
    assert "library_name: sentence-transformers\n" in header
    assert "base_model:\n" in header
    assert "datasets:\n- mine\n" in header
    assert inspect(folder).licence == "apache-2.0"
    assert "40 rows of triplets of mine/triplets.jsonl" in card
    assert "contrastive over rcmd, temperature 0.05: batches of 8, 3 steps at most" in card
    after = [outcome.after[0] for outcome in outcomes]
    assert all(f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]" in card for one in after)
    mean, spread = np.mean([one.value for one in after]), np.std([one.value for one in after], ddof=1)
    assert f"{mean:.2f} ± {spread:.2f}" in card
    for word in ("Model.load(", "SentenceTransformer(", "torch ", "transformers ", "Python ", "Seed 3"):
        assert word in card
    assert str(folder.parents[2]) not in card  # no path of this machine
    assert "small-scale" not in card


def test_the_recipe_beside_the_model_gives_the_same_model_again(finished, data, tmp_path):
    _, _, outcomes, _ = finished
    kept = read_recipe(Path(outcomes[1].folder) / "recipe.toml")
    again = run(plan(kept, data, size="full"), tmp_path / "again")
    assert [outcome.seed for outcome in again] == [4]
    assert again[0].after == outcomes[1].after
    texts = ["a plane", "the cat runs"]
    assert np.array_equal(Model.load(again[0].folder).encode(texts), Model.load(outcomes[1].folder).encode(texts))


def test_finished_runs_are_not_repeated(finished, data):
    made, output, outcomes, _ = finished
    weights = Path(outcomes[0].folder) / "model.safetensors"
    written, said = weights.stat().st_mtime_ns, list[str]()
    assert run(made, output, resume=True, say=said.append) == outcomes
    assert said == ["seed-3: finished before", "seed-4: finished before"]
    assert weights.stat().st_mtime_ns == written
    with pytest.raises(InputError, match="holds runs already"):
        run(made, output)
    other = dataclasses.replace(made.recipe, model=dataclasses.replace(made.recipe.model, similarity="cosine"))
    with pytest.raises(InputError, match="another recipe, size or base model"):
        run(dataclasses.replace(made, recipe=other), output, resume=True)


def test_a_finished_run_is_told_from_one_whose_model_or_data_is_gone(finished, data, tmp_path):
    made, output, outcomes, _ = finished
    moved, other = tmp_path / "moved", tmp_path / "data"
    shutil.copytree(output, moved)
    shutil.copytree(data, other)
    again = run(made, moved, resume=True)
    assert [one.after for one in again] == [one.after for one in outcomes]
    assert Path(again[1].folder) == moved / "seed-4" / "model"  # as seen from where the run lies now
    assert str(output) not in (moved / "seed-4" / "scores.json").read_text()
    triplets = other / "mine" / "triplets.jsonl"
    triplets.write_text("\n".join(triplets.read_text().splitlines()[::-1]))
    with pytest.raises(InputError, match="has changed since"):
        run(dataclasses.replace(made, data=other), moved, resume=True)
    weights = moved / "seed-4" / "model" / "model.safetensors"
    whole = weights.read_bytes()
    for damaged in (whole[:100], whole[:-1], b""):
        weights.write_bytes(damaged)
        with pytest.raises(InputError, match=r"seed-4 has scores, but .*model\.safetensors is damaged.*; remove"):
            run(made, moved, resume=True)
    (moved / "seed-3" / "model" / "model.safetensors").unlink()
    with pytest.raises(InputError, match="seed-3 has scores, but its model is gone; remove"):
        run(made, moved, resume=True)


def test_files_of_others_are_left_alone(finished, tmp_path):
    made, _, _, _ = finished
    kept = tmp_path / "out" / "seed-3" / "checkpoints" / "precious"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    with pytest.raises(InputError, match="holds other things than runs"):
        run(made, tmp_path / "out")
    with pytest.raises(InputError, match="holds other things than runs"):
        run(made, kept)
    assert kept.read_text() == "mine"


def test_a_run_that_cannot_begin_claims_no_folder(finished, tmp_path):
    made, _, _, _ = finished
    part = dataclasses.replace(made.recipe.stages[0].data[0], paths=("misspelt.jsonl",))
    stage = dataclasses.replace(made.recipe.stages[0], data=(part,))
    broken = dataclasses.replace(made, recipe=dataclasses.replace(made.recipe, stages=(stage,)))
    with pytest.raises(DataError):
        run(broken, tmp_path / "new" / "out")
    assert not (tmp_path / "new").exists()
    (tmp_path / "mine").mkdir()
    for target in (tmp_path / "mine", tmp_path / "mine" / "out"):  # a folder that was there before stays
        with pytest.raises(DataError):
            run(broken, target)
        assert list((tmp_path / "mine").iterdir()) == []


def test_an_interrupted_recipe_goes_on_and_ends_the_same(finished, tmp_path, monkeypatch):
    """Stopped between training and scores, so that the second call finds checkpoints, but no scores."""
    made, _, outcomes, _ = finished

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("likewise.recipes.running.write_card", stop)
        with pytest.raises(KeyboardInterrupt):
            run(made, tmp_path / "out")
    again = run(made, tmp_path / "out", resume=True)
    assert [outcome.after for outcome in again] == [outcome.after for outcome in outcomes]


def test_stages_follow_one_another(recipe_path, data, tmp_path):
    recipe = sized(read_recipe(recipe_path), "smoke")
    (stage,) = recipe.stages
    scored = dataclasses.replace(stage.data[0], kind="scored-pairs", paths=("mine/scored.jsonl",))
    second = dataclasses.replace(
        stage, objective=dataclasses.replace(stage.objective, kind="regression"), data=(scored,)
    )
    made = plan(dataclasses.replace(recipe, stages=(stage, second)), data)
    (outcome,) = run(made, tmp_path / "out")
    assert outcome.n_steps == 4
    assert [line.split(" of ")[1].split(" ")[0] for line in outcome.data] == ["triplets", "scored-pairs"]
    assert {path.name for path in (tmp_path / "out" / "seed-3").iterdir()} == {"model", "scores.json"}


@pytest.mark.parametrize(("kind", "names"), [("folds", ["fold 1", "fold 2"]), ("cross-topic", ["a", "b"])])
def test_splits_train_a_model_each(recipe_path, data, tmp_path, kind, names):
    recipe = sized(read_recipe(recipe_path), "smoke")
    (stage,) = recipe.stages
    part = dataclasses.replace(stage.data[0], kind="arguments", paths=("mine/arguments.csv",), limit=None)
    stage = dataclasses.replace(stage, objective=dataclasses.replace(stage.objective, kind="regression"), data=(part,))
    evaluation = dataclasses.replace(recipe.evaluation, dev=None, report=(), splits=kind, n_splits=2, limit=None)
    made = plan(dataclasses.replace(recipe, stages=(stage,), evaluation=evaluation), data)
    outcomes = run(made, tmp_path / "out")
    assert [outcome.split for outcome in outcomes] == names
    tested = 6 if kind == "folds" else 20
    assert [outcome.after[0].n for outcome in outcomes] == [tested, tested]
    assert f"{60 - tested} rows of arguments of mine/arguments.csv without {names[0]}" in outcomes[0].data[0]
    found = {one.metric: one for one in scores(outcomes)}
    values = [one.value for outcome in outcomes for one in outcome.after if one.metric == "pearson"]
    assert found["pearson"].after[0].value == pytest.approx(np.mean(values))
    assert found["pearson"].n == 2 * tested


def test_a_cross_encoder_is_trained_by_a_recipe(checkpoint, recipe_path, data, tmp_path):
    recipe = sized(read_recipe(recipe_path), "smoke")
    (stage,) = recipe.stages
    scored = dataclasses.replace(stage.data[0], kind="scored-pairs", paths=("mine/scored.jsonl",))
    stage = dataclasses.replace(
        stage, objective=dataclasses.replace(stage.objective, kind="regression"), data=(scored,)
    )
    model = dataclasses.replace(recipe.model, kind="cross-encoder")
    made = plan(dataclasses.replace(recipe, model=model, stages=(stage,)), data, base=str(checkpoint("bert")))
    assert preview(made).stages[0].data[0].tokens_a_row > 10
    (outcome,) = run(made, tmp_path / "out")
    assert outcome.before == ()
    assert outcome.after[0].task == "STS-b dev"
    assert CrossEncoder.load(outcome.folder).n_labels == 1
    assert "CrossEncoder.load(" in (Path(outcome.folder) / "README.md").read_text()


def test_the_plan_notes_what_differs(recipe_path, data, mean_folder, checkpoint):
    recipe = read_recipe(recipe_path)
    assert plan(recipe, data, size="full").recipe.notes == ()
    smoke = plan(recipe, data, size="smoke", base=str(checkpoint("bert")), seeds=(9, 9, 8))
    assert smoke.recipe.seeds == (9, 8)
    assert smoke.recipe.notes[0] == "size smoke: a small-scale check, not a reproduction"
    assert smoke.recipe.notes[1].startswith(f"base model {checkpoint('bert')} in place of")
    small = plan(recipe, data, size="small")
    assert small.recipe.notes == ()  # this recipe has no size small, so that nothing is smaller
    asks = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, projection="linear"))
    made = plan(asks, data, size="full")
    assert made.recipe.notes == (
        "the base is a sentence model: it keeps its pooling and its head, and gets no new head",
    )
    assert made.recipe.model.projection == "none"


def test_small_sizes_take_a_base_at_hand_and_full_the_first(recipe_path, data, mean_folder):
    recipe = read_recipe(recipe_path)
    model = dataclasses.replace(recipe.model, base=("nobody/has-this", str(mean_folder)))
    recipe = dataclasses.replace(recipe, model=model)
    assert plan(recipe, data, size="smoke").base == str(mean_folder)
    with pytest.raises(Exception, match="nobody/has-this"):
        plan(recipe, data, size="full")


def test_bad_plans(recipe_path, data, tmp_path):
    recipe = read_recipe(recipe_path)
    with pytest.raises(InputError, match="no data folder"):
        plan(recipe, tmp_path / "absent")
    (stage,) = recipe.stages
    wild = dataclasses.replace(stage, training=dataclasses.replace(stage.training, batch_size=0))
    with pytest.raises(InputError, match="batch_size is 0"):
        plan(dataclasses.replace(recipe, stages=(wild,)), data)
    split = dataclasses.replace(recipe, evaluation=dataclasses.replace(recipe.evaluation, splits="folds"))
    with pytest.raises(InputError, match="splits are for one stage"):
        run(plan(split, data), tmp_path / "out")
    absent = dataclasses.replace(stage, data=(dataclasses.replace(stage.data[0], paths=("absent.jsonl",)),))
    with pytest.raises(DataError, match=r"absent\.jsonl"):
        preview(plan(dataclasses.replace(recipe, stages=(absent,)), data))


def test_a_preview_counts_what_a_run_does(finished):
    made, _, outcomes, _ = finished
    found = preview(made)
    (stage,) = found.stages
    assert (found.n_runs, stage.n_steps, stage.batch_size) == (2, outcomes[0].n_steps, 8)
    (part,) = stage.data
    assert (part.n_read, part.n_overlapping, part.n_used) == (40, 0, 40)
    tokens = Model.load(made.base).coverage(["a the plane cat man woman ."])[0]
    assert 2 * tokens.n_tokens < part.tokens_a_row < 5 * tokens.n_tokens
    assert found.n_parameters < 100_000
    assert stage.memory_bytes > 16 * found.n_parameters
    whole = dataclasses.replace(
        made.recipe.stages[0], training=dataclasses.replace(made.recipe.stages[0].training, max_steps=None, epochs=2.0)
    )
    longer = dataclasses.replace(made, recipe=dataclasses.replace(made.recipe, stages=(whole,)))
    assert preview(longer).stages[0].n_steps == 10


def test_scores_over_seeds_and_what_is_missing():
    def outcome(seed, value):
        after = Measure(
            "t", "all", f"seed {seed}", "cosine", "spearman", value, 5, reason=None if value else "constant"
        )
        before = Measure("t", "all", "base", "cosine", "spearman", 50.0, 5)
        return Outcome(seed, None, "x", 1, 1.0, (), "", (before,), (after,))

    (found,) = scores([outcome(1, 60.0), outcome(2, 70.0), outcome(3, 80.0)])
    assert (found.before.value, found.mean, found.deviation) == (50, 70, 10)
    assert [row.model for row in table([outcome(1, 60.0), outcome(2, 70.0)])] == [
        "base",
        "seed 1",
        "seed 2",
        "mean of 2 seeds",
    ]
    assert [row.model for row in table([outcome(1, 60.0)])] == ["base", "seed 1"]
    (found,) = scores([outcome(1, 60.0), outcome(2, None)])
    assert found.mean is None
    assert found.deviation is None
    assert scores([]) == []


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("after", 0, "value"), "high", "'after[0].value' is 'high'"),
        (("after", 0, "value"), math.nan, "NaN is no JSON number"),
        (("after", 0, "colour"), "red", "unknown key 'after[0].colour'"),
        (("before",), None, "'before' is None"),
        (("data",), "abc", "'data' is 'abc'"),
        (("n_steps",), None, "'n_steps' is None"),
        (("seed",), True, "'seed' is True"),
        (("train_s",), 10**400, "'train_s' is 1000"),
    ],
)
def test_damaged_scores_are_named(tmp_path, place, value, reason):
    measure = Measure("t", "all", "m", "cosine", "spearman", None, 5, reason="constant")
    path = tmp_path / "scores.json"
    outcome = Outcome(1, None, str(tmp_path / "model"), 1, 1.0, ("x",), "d", (measure,), (measure,))
    write_outcome(outcome, path)
    assert read_outcome(path) == outcome
    stored = json.loads(path.read_text())
    part = stored
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path.write_text(json.dumps(stored))
    with pytest.raises(DataError, match=rf"{re.escape(reason)}.*; remove the folder to train it again"):
        read_outcome(path)


@pytest.mark.parametrize("text", ['{"seed": 1', "[" * 100_000, '{"seed": 1}', "[]", "\ud800"])
def test_scores_that_are_none_are_named(tmp_path, text):
    (tmp_path / "scores.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(DataError, match="remove the folder to train it again"):
        read_outcome(tmp_path / "scores.json")


def test_two_processes_train_and_the_first_one_writes(recipe_path, data, tmp_path):
    words = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "0", "--standalone"]
    verb = ["-m", "likewise", "train", str(recipe_path), "--data", str(data), "-o", str(tmp_path / "out"), "--json"]
    done = subprocess.run(
        [sys.executable, *words, *verb],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["model"] for row in rows][1:] == ["seed 3"]
    assert all(math.isfinite(row["spearman"]) for row in rows)
    outcome = read_outcome(tmp_path / "out" / "seed-3" / "scores.json")
    assert outcome.n_steps == 2
    assert Model.load(outcome.folder).name
