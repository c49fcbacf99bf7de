"""Recorded losses and gradients of independent implementations, in float64."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from likewise.objectives import Contrastive, Objective, Regression, Softmax, Triplet
from likewise.similarity import RCMD
from likewise.types import Embeddings

CLOSE = {"atol": 1e-6, "rtol": 0}


@pytest.fixture(scope="module")
def recorded(shared) -> Any:
    return json.loads((shared / "oracle" / "losses.json").read_text())


def _leaf(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def _agrees(objective: Objective, case: dict[str, Any], sides: list[str], labels: Any = None) -> None:
    """Loss, and gradient of each side, equal what was recorded; a side is pooled vectors, or tokens with a mask."""
    given = {side: _leaf(case[side]) for side in sides if case[side] is not None}
    columns = [_column(tokens, case.get(f"mask_{side}")) for side, tokens in given.items()]
    loss = objective(columns, labels)
    loss.backward()
    assert loss.dtype == torch.float64
    torch.testing.assert_close(loss.item(), case["loss"], **CLOSE)
    for side, tokens in given.items():
        wanted = torch.tensor(case[f"grad_{side}"], dtype=torch.float64)
        assert (wanted.abs().max() > 1e-5) == (case["loss"] > 1e-3), "a test must be able to fail"
        torch.testing.assert_close(tokens.grad, wanted, **CLOSE)


def _column(tokens: torch.Tensor, mask: Any) -> Embeddings:
    if mask is None:
        return Embeddings.from_pooled(tokens)
    real = torch.tensor(mask, dtype=torch.bool)
    return Embeddings(tokens[real], np.concatenate([[0], np.cumsum(real.sum(1).numpy())]))


@pytest.mark.parametrize("number", range(4))
def test_softmax(recorded: Any, number: int) -> None:
    case = recorded["sbert_softmax"][number]
    parts = [part for part in ("weight", "bias") if case[part] is not None]
    objective = Softmax(len(case["u"][0]), len(case["weight"]), bias="bias" in parts).double()
    objective.load_state_dict({f"classifier.{part}": torch.tensor(case[part], dtype=torch.float64) for part in parts})
    _agrees(objective, case, ["u", "v"], torch.tensor(case["labels"]))
    for part in parts:
        wanted = torch.tensor(case[f"grad_{part}"], dtype=torch.float64)
        torch.testing.assert_close(objective.get_parameter(f"classifier.{part}").grad, wanted, **CLOSE)


@pytest.mark.parametrize("number", range(2))
def test_regression(recorded: Any, number: int) -> None:
    case = recorded["sbert_cosine_mse"][number]
    _agrees(Regression(), case, ["u", "v"], torch.tensor(case["labels"], dtype=torch.float64))


@pytest.mark.parametrize("number", range(3))
def test_triplet(recorded: Any, number: int) -> None:
    _agrees(Triplet(), recorded["sbert_triplet_euclidean_margin1"][number], ["anchor", "positive", "negative"])


@pytest.mark.parametrize("number", range(4))
def test_contrastive_over_cosine(recorded: Any, number: int) -> None:
    case = recorded["simcse_infonce"][number]
    _agrees(Contrastive(temperature=case["temp"]), case, ["anchor", "positive", "negative"])


@pytest.mark.parametrize("number", range(5))
def test_contrastive_over_rcmd(recorded: Any, number: int) -> None:
    case = recorded["clrcmd"][number]
    _agrees(Contrastive(RCMD(), case["temp"]), case, ["anchor", "positive", "negative"])
