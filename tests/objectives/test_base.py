"""What all objectives have in common: one list, one set of laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from likewise.errors import InputError
from likewise.objectives import (
    Contrastive,
    MarginDistillation,
    Matryoshka,
    Objective,
    Regression,
    Softmax,
    Triplet,
    VectorDistillation,
)
from likewise.types import Embeddings

Columns = Callable[..., list[Embeddings]]

CLASSES, SCORES, MARGINS = torch.tensor([0, 2, 1, 0]), torch.tensor([0.5, -1, 0.9, 0]), torch.tensor([0.3, -2, 5, 0.0])
VECTORS = torch.linspace(-1, 1, 12).view(4, 3)

ALL: list[tuple[Callable[[], Objective], int, Any]] = [
    (lambda: Softmax(3, 3), 2, CLASSES),
    (lambda: Softmax(3, 3, "|u-v|,u*v", bias=True), 2, CLASSES),
    (Regression, 2, SCORES),
    (lambda: Regression("rcmd"), 2, SCORES),
    (Triplet, 3, None),
    (lambda: Triplet(0.2, "cosine"), 3, None),
    (lambda: Triplet(0.2, "rcmd"), 3, None),
    (lambda: Triplet(2.0, "manhattan"), 3, None),
    (Contrastive, 2, None),
    (lambda: Contrastive("rcmd"), 3, None),
    (lambda: Contrastive("transport"), 2, None),
    (lambda: Contrastive("euclidean", 1.0), 4, None),
    (lambda: Contrastive("dot", 1.0), 2, None),
    (lambda: Matryoshka(Contrastive("rcmd"), [1, 3], [0.5, 1.0]), 2, None),
    (lambda: Matryoshka(Regression(), [2]), 2, SCORES),
    (VectorDistillation, 1, VECTORS),
    (VectorDistillation, 2, VECTORS),
    (MarginDistillation, 3, MARGINS),
    (lambda: MarginDistillation("rcmd"), 3, MARGINS),
]
"""Objective, columns, labels of four rows. A new objective joins here."""


@pytest.fixture(params=range(len(ALL)), ids=lambda number: f"{type(ALL[number][0]()).__name__}-{number}")
def case(request: pytest.FixtureRequest) -> tuple[Objective, int, Any]:
    torch.manual_seed(0)
    made, n_columns, labels = ALL[request.param]
    return made().double(), n_columns, labels


def test_the_gradient_is_that_of_finite_differences(case: tuple[Objective, int, Any], columns: Columns) -> None:
    objective, n_columns, labels = case
    sides = columns(n_columns)

    def loss(*tokens: torch.Tensor) -> torch.Tensor:
        return objective([Embeddings(x, s.offsets, s.weights) for x, s in zip(tokens, sides, strict=True)], labels)

    value = loss(*(side.tokens for side in sides))
    assert value.shape == ()
    assert value.dtype == torch.float64
    assert value > 1e-3
    assert torch.autograd.gradcheck(loss, tuple(side.tokens for side in sides), eps=1e-6, atol=1e-6, fast_mode=True)


def test_the_loss_is_computed_in_float32_under_autocast(case: tuple[Objective, int, Any], columns: Columns) -> None:
    objective, n_columns, labels = case
    sides = [Embeddings(s.tokens.detach().float(), s.offsets, s.weights) for s in columns(n_columns)]
    objective = objective.float()
    plain = objective(sides, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(objective(sides, labels), plain)


def test_columns_that_do_not_fit(case: tuple[Objective, int, Any], columns: Columns) -> None:
    objective, n_columns, labels = case
    sides = columns(n_columns)
    with pytest.raises(InputError, match=r"columns of texts and got 0"):
        objective([], labels)
    if objective.n_sides[1] < 10:
        with pytest.raises(InputError, match=f"takes {n_columns} columns of texts and got {n_columns + 1}"):
            objective(columns(n_columns + 1), labels)
    if n_columns > 1:
        with pytest.raises(InputError, match=r"columns of a batch differ: .*3 texts of dim 3.*from one encoder"):
            objective([*sides[:-1], sides[-1].select(range(3))], labels)
        with pytest.raises(InputError, match=r"4 texts of dim 2"):
            objective([*sides[:-1], *columns(1, dim=2)], labels)


def test_labels_that_do_not_fit(case: tuple[Objective, int, Any], columns: Columns) -> None:
    objective, n_columns, labels = case
    if not objective.needs_labels:
        objective.check(None)
        return
    objective.check(labels)
    with pytest.raises(InputError, match="needs a label for each row and the data set has none"):
        objective.check(None)
    with pytest.raises(InputError, match="needs a label for each row"):
        objective(columns(n_columns))
    with pytest.raises(InputError, match="3 labels for 4 rows"):
        objective(columns(n_columns), labels[:3])
    bad = labels.double().numpy()
    bad[2] = np.nan
    with pytest.raises(InputError, match="of row 2 is not finite"):
        objective.check(bad)
    with pytest.raises(InputError, match="labels are not numbers"):
        objective.check(["entailment", "neutral"])
    with pytest.raises(InputError, match=r"labels have shape"):
        objective.check(np.zeros((2, 2, 2)))


def test_the_same_value_twice(case: tuple[Objective, int, Any], columns: Columns) -> None:
    objective, n_columns, labels = case
    assert torch.equal(objective(columns(n_columns), labels), objective(columns(n_columns), labels))
