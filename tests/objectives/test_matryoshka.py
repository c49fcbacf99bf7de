"""One objective at several lengths."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from likewise.errors import InputError
from likewise.objectives import Contrastive, Matryoshka, Regression, Softmax
from likewise.types import Embeddings


@pytest.mark.parametrize("name", ["cosine", "rcmd"])
def test_the_sum_of_the_losses_of_cut_tokens(name: str, columns: Callable) -> None:
    sides = columns(3, dim=6)
    cut = [Embeddings(side.tokens[:, :2], side.offsets, side.weights) for side in sides]
    objective = Contrastive(name)
    wanted = 0.5 * objective(cut) + 2 * objective(sides)
    assert Matryoshka(objective, [2, 6], [0.5, 2.0])(sides).item() == pytest.approx(wanted.item())


def test_weights_by_component_are_cut_too(columns: Callable) -> None:
    side = columns(1)[0]
    by_component = Embeddings(side.tokens, side.offsets, torch.ones(side.tokens.shape, dtype=torch.float64))
    labels = torch.zeros(4, dtype=torch.float64)
    assert Matryoshka(Regression(), [2])([by_component] * 2, labels).item() == pytest.approx(1)


def test_it_takes_what_the_objective_takes() -> None:
    wrapped = Matryoshka(Regression(), [2])
    assert (wrapped.n_sides, wrapped.needs_labels) == ((2, 2), True)
    with pytest.raises(InputError, match="outside"):
        wrapped.check([3.8])


def test_bad_settings(columns: Callable) -> None:
    with pytest.raises(InputError, match="Softmax has a head made for vectors of one length"):
        Matryoshka(Softmax(3, 3), [2])
    for dims, weights in (([], None), ([0, 2], None), ([2, 3], [1.0])):
        with pytest.raises(InputError, match="give lengths from 1 up, and a weight for each"):
            Matryoshka(Contrastive(), dims, weights)
    with pytest.raises(InputError, match=r"dims \[2, 4\] for vectors of 3"):
        Matryoshka(Contrastive(), [2, 4])(columns(2))
