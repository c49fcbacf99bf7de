"""Recipe files: those of the project, and broken ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from likewise.data.catalogue import CATALOGUE
from likewise.errors import InputError
from likewise.recipes.card import recipe_text
from likewise.recipes.recipe import (
    DEV_SETS,
    EVALUATION_SETS,
    KINDS,
    OBJECTIVES,
    REPORTS,
    SIZES,
    SPLITS,
    DataPart,
    EvaluationPart,
    ObjectivePart,
    Recipe,
    read_recipe,
    sized,
)

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "reproduce").glob("*.toml"))

PLAIN = """
name = "x"
source = "y"
[model]
base = ["z"]
[[stages]]
objective = {kind = "contrastive"}
data = [{kind = "triplets", paths = ["t.jsonl"]}]
"""

DATA = {"paths", "limit"}
STEPS = {"max_steps", "eval_steps"}


def read(tmp_path: Path, text: str) -> Recipe:
    path = tmp_path / "r.toml"
    path.write_text(text)
    return read_recipe(path)


def without_data_and_steps(recipe: Recipe) -> Recipe:
    """What no size may change."""
    stages = tuple(
        dataclasses.replace(
            stage,
            data=tuple(dataclasses.replace(one, paths=(), small_paths=(), limit=None) for one in stage.data),
            training=dataclasses.replace(stage.training, max_steps=None, eval_steps=None),
        )
        for stage in recipe.stages
    )
    evaluation = dataclasses.replace(recipe.evaluation, limit=None, n_splits=None)
    return dataclasses.replace(
        recipe, stages=stages, evaluation=evaluation, seeds=(0,), smoke=type(recipe.smoke)(), small=type(recipe.small)()
    )


def test_the_papers_have_their_recipes():
    names = {path.stem for path in RECIPES}
    assert {"sbert-nli", "sbert-stsb", "sbert-nli-stsb", "sbert-afs", "sbert-afs-cross-topic"} <= names
    assert {"sbert-wikipedia-sections", "bert-stsb", "clrcmd", "clrcmd-roberta"} <= names
    assert {"simcse-unsup-cls", "simcse-unsup-avg", "simcse-sup-cls", "simcse-sup-avg"} <= names


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_size_changes_data_and_steps_only(path):
    recipe = read_recipe(path)
    for size in SIZES:
        changed = sized(recipe, size)
        assert without_data_and_steps(changed) == without_data_and_steps(recipe)
        if size == "full":
            assert dataclasses.replace(changed, smoke=recipe.smoke, small=recipe.small) == recipe
        else:
            assert all(one.limit for stage in changed.stages for one in stage.data)
            assert changed.evaluation.limit
    assert all(stage.training.max_steps for stage in sized(recipe, "smoke").stages)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_data_of_recipes_is_in_the_catalogue(path):
    parts = [one for stage in read_recipe(path).stages for one in stage.data]
    folders = {Path(name).parts[0] for one in parts for name in (*one.paths, *one.small_paths)}
    assert folders <= {*CATALOGUE, "wiki1m_for_simcse.txt"}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_survives_being_written(path, tmp_path):
    recipe = read_recipe(path)
    assert read(tmp_path, recipe_text(recipe)) == recipe
    small = sized(recipe, "small")
    assert read(tmp_path, recipe_text(small)) == small


def test_hyper_parameters_are_those_of_the_papers():
    sbert, clrcmd = (read_recipe(ROOT / "reproduce" / f"{name}.toml") for name in ("sbert-stsb", "clrcmd"))
    training = sbert.stages[0].training
    assert (training.batch_size, training.learning_rate, training.warmup_ratio) == (16, 2e-5, 0.1)
    assert (training.epochs, len(sbert.seeds)) == (4, 10)
    training, objective = clrcmd.stages[0].training, clrcmd.stages[0].objective
    assert (training.batch_size, training.learning_rate, training.schedule) == (128, 5e-5, "linear")
    assert (training.epochs, training.eval_steps, training.precision) == (3, 250, "float16")
    assert (objective.similarity, objective.temperature, len(clrcmd.seeds)) == ("rcmd", 0.05, 4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "x"', 'naem = "x"', r"unknown key 'naem'; did you mean 'name'\?"),
        (
            'kind = "contrastive"',
            'kind = "contrastive", temperatur = 1',
            r"'stages\[0\].objective.temperatur'.*temperature",
        ),
        ('source = "y"', "", "'source' is missing"),
        ('source = "y"', "source = 5", "'source' is 5; give a value of type str"),
        ('source = "y"', 'source = "y"\nseeds = [1, "2"]', r"'seeds\[1\]' is '2'; give a value of type int"),
        ('source = "y"', 'source = "y"\nseeds = [true]', r"'seeds\[0\]' is True"),
        ('source = "y"', 'source = "y"\nseeds = []', "has no stage, no seed"),
        ('source = "y"', 'source = "y"\nseeds = [3, 3]', "give different ones"),
        ('source = "y"', 'source = "y"\nseeds = [-1]', "give different ones, 0 to 4294967295"),
        ('"t.jsonl"]', '"t.jsonl"], limit = -1', "data limit is -1; give 1 or more"),
        ('source = "y"', 'source = "y"\nevaluation = {limit = 0}', "evaluation limit is 0"),
        ('source = "y"', 'source = "y"\nsmoke = {n_seeds = 0}', "n_seeds is 0"),
        ('base = ["z"]', "base = []", "names no base model"),
        ('base = ["z"]', 'base = ["z"]\nkind = "encoder"', "unknown model.kind 'encoder'"),
        ('"contrastive"', '"contrastiv"', r"unknown objective.kind 'contrastiv'; did you mean 'contrastive'\?"),
        ('"triplets"', '"tripletts"', r"unknown data.kind 'tripletts'; did you mean 'triplets'\?"),
        ('"t.jsonl"]', '"t.jsonl"], without = ["sicks"]', r"unknown data.without 'sicks'; did you mean 'sick'\?"),
        ('source = "y"', 'source = "y"\nevaluation = {report = ["sts-dev"]}', r"did you mean 'stsb-dev'\?"),
        ('source = "y"', 'source = "y"\nevaluation = {dev = "x"}', "unknown evaluation.dev 'x'; known are stsb-dev"),
        ('source = "y"', 'source = "y"\nevaluation = {splits = "fold"}', r"did you mean 'folds'\?"),
        ('source = "y"', "source = ", "is not TOML"),
    ],
)
def test_a_bad_recipe_is_refused_by_name(tmp_path, old, new, message):
    assert old in PLAIN
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, PLAIN.replace(old, new))
    assert "r.toml" in str(caught.value)


def test_a_missing_file_and_an_unknown_size(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_recipe(tmp_path / "absent.toml")
    with pytest.raises(InputError, match="unknown size 'tiny'; known are smoke, small, full"):
        sized(read(tmp_path, PLAIN), "tiny")


def test_whole_numbers_serve_where_others_are_wanted(tmp_path):
    recipe = read(tmp_path, PLAIN.replace('kind = "contrastive"', 'kind = "contrastive", temperature = 1'))
    assert isinstance(recipe.stages[0].objective.temperature, float)


def test_every_documented_name_is_accepted():
    for kind in OBJECTIVES:
        ObjectivePart(kind)
    for kind in KINDS:
        DataPart(kind, ("x",), without=EVALUATION_SETS)
    for dev in (*DEV_SETS, None):
        for splits in (*SPLITS, None):
            EvaluationPart(dev, REPORTS, splits=splits)
