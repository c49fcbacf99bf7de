"""The classifier on pairs: every concatenation, its head, its labels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from likewise.errors import InputError
from likewise.objectives import CONCATENATIONS, Softmax

WIDTHS = {
    "u,v": 2,
    "|u-v|": 1,
    "u*v": 1,
    "|u-v|,u*v": 2,
    "u,v,u*v": 3,
    "u,v,|u-v|": 3,
    "u,v,|u-v|,u*v": 4,
}


def test_the_rows_of_table_6() -> None:
    assert set(WIDTHS) == set(CONCATENATIONS)


@pytest.mark.parametrize("concatenation", CONCATENATIONS)
def test_a_plain_loop(concatenation: str, columns: Callable) -> None:
    torch.manual_seed(1)
    objective = Softmax(3, 4, concatenation, bias=True).double()
    assert objective.classifier.weight.shape == (4, 3 * WIDTHS[concatenation])
    a, b = columns(2)
    labels = [3, 0, 1, 2]
    wanted = 0.0
    for i, label in enumerate(labels):
        u, v = a.text(i).mean(0), b.text(i).mean(0)
        row = []
        for part in concatenation.split(","):
            row += [{"u": x, "v": y, "|u-v|": abs(x - y), "u*v": x * y}[part] for x, y in zip(u, v, strict=True)]
        logits = objective.classifier.weight @ torch.stack(row) + objective.classifier.bias
        wanted -= logits.softmax(0)[label].log().item() / len(labels)
    assert objective([a, b], torch.tensor(labels)).item() == pytest.approx(wanted, abs=1e-12)


def test_the_head_is_saved_and_loaded(columns: Callable) -> None:
    first, second = Softmax(3, 3).double(), Softmax(3, 3).double()
    sides, labels = columns(2), torch.tensor([0, 1, 2, 0])
    assert first(sides, labels) != second(sides, labels)
    second.load_state_dict(first.state_dict())
    assert first(sides, labels) == second(sides, labels)
    assert list(first.state_dict()) == ["classifier.weight"]


def test_the_head_learns(columns: Callable) -> None:
    objective = Softmax(3, 2).double()
    sides, labels = columns(2), torch.tensor([0, 1, 1, 0])
    step = torch.optim.SGD(objective.parameters(), 0.5)
    losses = []
    for _ in range(20):
        step.zero_grad()
        losses.append(objective(sides, labels))
        losses[-1].backward()
        step.step()
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("label", [-1, 3, 1.5])
def test_labels_that_are_no_class(label: float) -> None:
    with pytest.raises(InputError, match=rf"label {label:g} of row 1 is no class: 3 classes are numbered 0 to 2"):
        Softmax(3, 3).check([0, label, 2])


def test_bad_sizes(columns: Callable) -> None:
    with pytest.raises(InputError, match=r"unknown concatenation 'u-v'; known are u,v · \|u-v\|"):
        Softmax(3, 3, "u-v")
    with pytest.raises(InputError, match="a classifier of 1 classes"):
        Softmax(3, 1)
    with pytest.raises(InputError, match=r"vectors of 3 and 3 for a layer made for 5; make Softmax\(3, …\)"):
        Softmax(5, 3)(columns(2), torch.tensor([0, 1, 2, 0]))
