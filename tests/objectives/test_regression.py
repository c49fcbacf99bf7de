"""Regression on gold scores, which must be on the scale of the similarity."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from likewise.errors import InputError
from likewise.objectives import Regression
from likewise.similarity import RCMD


def test_a_plain_loop(columns: Callable) -> None:
    a, b = columns(2)
    gold = [0.2, 1.0, -0.4, 0.0]
    wanted = sum((score.item() - y) ** 2 for score, y in zip(RCMD().score(a, b), gold, strict=True)) / 4
    assert Regression(RCMD())([a, b], torch.tensor(gold, dtype=torch.float64)).item() == pytest.approx(wanted)


@pytest.mark.parametrize("label", [3.8, -1.01])
def test_labels_on_another_scale(label: float, columns: Callable) -> None:
    said = rf"label {label:g} of row 1 is outside \[-1, 1\]; scores on another scale, such as 0 to 5"
    with pytest.raises(InputError, match=said):
        Regression().check([0.76, label])
    with pytest.raises(InputError, match=said):
        Regression()(columns(2, 2), torch.tensor([0.76, label]))
    Regression().check([0.76, 1, -1])


def test_the_range_may_be_narrower() -> None:
    with pytest.raises(InputError, match=r"label -0.1 of row 0 is outside \[0, 1\]"):
        Regression(low=0.0).check([-0.1])
    with pytest.raises(InputError, match=r"cannot run from 1.0 to 1.0; low must be below high"):
        Regression(low=1.0)
    with pytest.raises(InputError, match="unknown similarity 'cosinus'"):
        Regression("cosinus")
