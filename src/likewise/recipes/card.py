"""The card of a trained model, README.md, and the recipe beside it."""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from likewise.data.catalogue import CATALOGUE
from likewise.evaluation.measures import Measure
from likewise.evaluation.tables import decimals
from likewise.files import atomic_file
from likewise.model import inspect
from likewise.recipes.outcomes import Outcome, scores
from likewise.recipes.planning import Plan
from likewise.recipes.recipe import Recipe, Stage
from likewise.recipes.toml import to_toml

__all__ = ["card_text", "recipe_text", "write_card"]

_PACKAGES = ("likewise", "torch", "transformers", "tokenizers", "numpy")


def write_card(outcome: Outcome, outcomes: Sequence[Outcome], plan: Plan) -> None:
    """Write README.md and recipe.toml into the folder of a trained model.

    Args:
        outcome: The run whose model it is.
        outcomes: All runs so far, for the mean over seeds.
        plan: What was run.

    Raises:
        InputError: The folder cannot be written.
    """
    folder = Path(outcome.folder)
    own = dataclasses.replace(plan.recipe, seeds=(outcome.seed,))
    for name, text in (("README.md", card_text(outcome, outcomes, plan)), ("recipe.toml", recipe_text(own))):
        with atomic_file(folder / name, "w") as stream:
            stream.write(text)


def recipe_text(recipe: Recipe) -> str:
    """The recipe as it ran, as TOML: `likewise train recipe.toml --size full` runs it again."""
    return to_toml(asdict(recipe))


def card_text(outcome: Outcome, outcomes: Sequence[Outcome], plan: Plan) -> str:
    """The card as Markdown with a YAML header, as model hubs read it."""
    return (
        "\n".join([*_front(plan), *_about(outcome, plan), *_data(outcome, plan), *_scores(outcomes), *_end(plan)])
        + "\n"
    )


def _front(plan: Plan) -> Iterator[str]:
    joint = plan.recipe.model.kind == "cross-encoder"
    yield from ("---", "language: en", f"license: {_quoted(plan.recipe.licence)}")
    yield f"library_name: {'transformers' if joint else 'sentence-transformers'}"
    yield f"pipeline_tag: {'text-ranking' if joint else 'sentence-similarity'}"
    yield from ("tags:", "- likewise", "- cross-encoder" if joint else "- sentence-transformers")
    yield from ("base_model:", f"- {_quoted(_public(plan.base))}")
    if names := _sets(plan):
        yield from ("datasets:", *(f"- {_quoted(name)}" for name in names))
    yield from ("---", "")


def _about(outcome: Outcome, plan: Plan) -> Iterator[str]:
    recipe = plan.recipe
    kind = "cross-encoder" if recipe.model.kind == "cross-encoder" else "sentence encoder"
    yield from (f"# {recipe.name}", "")
    yield f"A {kind} trained with likewise from `{_public(plan.base)}`."
    yield f"Recipe: {recipe.source}. Seed {outcome.seed}{f', tested on {outcome.split}' if outcome.split else ''}."
    if recipe.notes:
        yield from ("", "What differs from that source:", "", *(f"- {note}" for note in recipe.notes))
    yield ""


def _data(outcome: Outcome, plan: Plan) -> Iterator[str]:
    yield from ("## Training", "")
    yield from (f"- {line}" for line in outcome.data)
    yield from (
        "",
        f"{outcome.n_steps:,} steps in {outcome.train_s:,.0f} s. `recipe.toml` beside this file has all settings:",
    )
    yield from ("", *(f"- {_settings(stage)}" for stage in plan.recipe.stages), "")
    yield from ("## Licences", "", f"- base model `{_public(plan.base)}`: {inspect(plan.base).licence}")
    yield from (f"- {name}: {CATALOGUE[name].licence}" for name in _sets(plan) if name in CATALOGUE)
    yield from (f"- {name}: not known to likewise" for name in _sets(plan) if name not in CATALOGUE)
    yield ""


def _settings(stage: Stage) -> str:
    how, training = stage.objective, stage.training
    which = {
        "softmax": f"over {how.concatenation}",
        "regression": f"of {how.similarity}",
        "triplet": f"{how.metric}, margin {how.margin:g}",
        "contrastive": f"over {how.similarity}, temperature {how.temperature:g}",
    }
    length = f"{training.max_steps} steps at most" if training.max_steps is not None else f"{training.epochs:g} epochs"
    warm_up = f", warm-up over {training.warmup_ratio:.0%}" if training.warmup_ratio else ""
    return (
        f"{how.kind} {which.get(how.kind, '')}: batches of {training.batch_size}, {length}, learning rate "
        f"{training.learning_rate:g} ({training.schedule}{warm_up}), {training.precision}"
    )


def _scores(outcomes: Sequence[Outcome]) -> Iterator[str]:
    found = scores(outcomes)
    if not found:
        return
    seeds = [str(seed) for seed in dict.fromkeys(one.seed for one in outcomes)]
    digits = decimals([measure for one in found for measure in one.after])
    several = len(seeds) > 1
    yield from (
        "## Scores",
        "",
        "Before is the base model, after the trained one; in brackets the 95 % interval of the",
    )
    yield "bootstrap. Correlations are times 100." + (
        " The mean is over the seeds, ± their standard deviation." if several else ""
    )
    heads = ["task", "metric", "n", "before", *(f"seed {seed}" for seed in seeds), *(["mean"] if several else [])]
    yield from ("", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}")
    for one in found:
        places = digits.get(one.metric, 2)
        cells = [one.task, one.metric, f"{one.n:,}", _number(one.before, places)]
        cells += [_number(measure, places) for measure in one.after]
        if several:
            spread = "" if one.deviation is None else f" ± {one.deviation:.{places}f}"
            cells.append("–" if one.mean is None else f"{one.mean:.{places}f}{spread}")
        yield f"| {' | '.join(cells)} |"
    yield ""


def _number(measure: Measure | None, places: int) -> str:
    if measure is None or measure.value is None:
        return "–"
    if measure.low is None or measure.high is None:
        return f"{measure.value:.{places}f}"
    return f"{measure.value:.{places}f} [{measure.low:.{places}f}, {measure.high:.{places}f}]"


def _end(plan: Plan) -> Iterator[str]:
    yield from ("## Use", "", "```python")
    if plan.recipe.model.kind == "cross-encoder":
        yield from ("from likewise import CrossEncoder", "")
        yield 'CrossEncoder.load("FOLDER").score("A plane is taking off.", "An air plane is taking off.")'
    else:
        yield from ("from likewise import Model", "", 'model = Model.load("FOLDER")')
        yield 'model.score("A plane is taking off.", "An air plane is taking off.")'
        yield 'print(model.explain("A plane is taking off.", "An air plane is taking off.").to_text())'
    yield from ("```", "", "or with sentence-transformers:", "", "```python")
    if plan.recipe.model.kind == "cross-encoder":
        yield from ("from sentence_transformers import CrossEncoder", "")
        yield 'CrossEncoder("FOLDER").predict([("A plane is taking off.", "An air plane is taking off.")])'
    else:
        yield from ("from sentence_transformers import SentenceTransformer", "")
        yield 'SentenceTransformer("FOLDER").encode(["A plane is taking off."])'
    yield from ("```", "")
    if plan.recipe.model.kind != "cross-encoder" and plan.recipe.model.similarity not in ("cosine", "dot"):
        yield f"The scores above are of the similarity `{plan.recipe.model.similarity}`, which likewise computes."
        yield ""
    yield from ("## Versions", "", ", ".join([*_versions(), f"Python {platform.python_version()}"]) + ".")


def _versions() -> Iterator[str]:
    for name in _PACKAGES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue


def _sets(plan: Plan) -> list[str]:
    """Folders or files of the data, below the data folder."""
    paths = [path for stage in plan.recipe.stages for part in stage.data for path in part.paths]
    return list(dict.fromkeys(Path(path).parts[0] for path in paths))


def _public(base: str) -> str:
    """A hub name as it is; of a folder its name alone, since its place says nothing to others."""
    return Path(base).name if Path(base).is_dir() else base


def _quoted(text: str) -> str:
    """As a YAML scalar, which a JSON string is."""
    return (
        text if text.replace("-", "").replace("_", "").replace("/", "").replace(".", "").isalnum() else json.dumps(text)
    )
