"""Recipes: rows of the papers' tables as TOML files to run, from data to a trained model with its card. Needs torch.

recipe     a TOML file, checked        planning   base model, sizes, `--dry-run`      data, measuring   sets by name
running    trains and measures         outcomes   what runs leave                     card              README.md
"""

from likewise.recipes.outcomes import Outcome, Score, read_outcome, scores, table
from likewise.recipes.planning import Plan, Preview, plan, preview
from likewise.recipes.recipe import SIZES, Recipe, read_recipe, sized
from likewise.recipes.running import is_first_process, run

__all__ = [
    "SIZES",
    "Outcome",
    "Plan",
    "Preview",
    "Recipe",
    "Score",
    "is_first_process",
    "plan",
    "preview",
    "read_outcome",
    "read_recipe",
    "run",
    "scores",
    "sized",
    "table",
]
