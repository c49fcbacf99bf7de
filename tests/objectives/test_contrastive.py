"""InfoNCE over any similarity."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from likewise.errors import InputError
from likewise.objectives import Contrastive
from likewise.similarity import by_name
from likewise.types import Embeddings


@pytest.mark.parametrize("name", ["cosine", "rcmd", "transport", "euclidean", "dot"])
@pytest.mark.parametrize("n_columns", [2, 3, 4])
def test_a_plain_loop(name: str, n_columns: int, columns: Callable) -> None:
    anchors, *others = columns(n_columns)
    similarity = by_name(name)
    wanted = 0.0
    for i in range(4):
        scores = [[similarity.score(anchors.select([i]), side.select([j])).item() for j in range(4)] for side in others]
        bottom = math.log(sum(math.exp(score / 0.5) for side in scores for score in side))
        wanted += (bottom - scores[0][i] / 0.5) / 4
    assert Contrastive(name, 0.5)([anchors, *others]).item() == pytest.approx(wanted, abs=1e-9)


def test_the_lower_the_temperature_the_harder(columns: Callable) -> None:
    side = columns(1)[0]
    assert Contrastive(temperature=0.01)([side, side]) < Contrastive(temperature=1.0)([side, side])


def test_dropout_makes_two_sides_of_one_text(columns: Callable) -> None:
    """Unsupervised SimCSE: the trainer gives the same texts twice."""
    side, dropout = columns(1)[0], nn.Dropout(0.3)
    torch.manual_seed(0)
    sides = [Embeddings(dropout(side.tokens), side.offsets, side.weights) for _ in range(2)]
    assert Contrastive()(sides) > 100 * Contrastive()([side, side])


@pytest.mark.parametrize("name", ["cosine", "rcmd"])
def test_zero_vectors_and_texts_without_tokens(name: str, columns: Callable) -> None:
    tokens = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    empty = Embeddings(tokens, torch.tensor([0, 1, 1, 2, 3]).numpy(), torch.ones(3))
    other = columns(1)[0]
    with pytest.warns(UserWarning, match="no token") if name == "rcmd" else _quiet():
        loss = Contrastive(name)([other, empty])
    loss.backward()
    assert loss.item() == pytest.approx(math.log(4))
    assert tokens.grad.isfinite().all()


def _quiet():
    from contextlib import nullcontext

    return nullcontext()


def test_bad_settings() -> None:
    with pytest.raises(InputError, match=r"temperature 0.0 is not above 0"):
        Contrastive(temperature=0.0)
    with pytest.raises(InputError, match="unknown similarity"):
        Contrastive("rmcd")
