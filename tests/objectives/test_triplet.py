"""The triplet objective and its metrics."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from likewise.errors import InputError
from likewise.objectives import Triplet
from likewise.types import Embeddings


@pytest.mark.parametrize(("metric", "order"), [("euclidean", 2), ("manhattan", 1)])
def test_a_plain_loop(metric: str, order: int, columns: Callable) -> None:
    anchor, positive, negative = columns(3)
    wanted = 0.0
    for i in range(4):
        a, p, n = (side.text(i).mean(0) for side in (anchor, positive, negative))
        wanted += max(0.0, ((a - p).norm(order) - (a - n).norm(order)).item() + 0.5) / 4
    assert Triplet(0.5, metric)([anchor, positive, negative]).item() == pytest.approx(wanted)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_the_gradient_of_equal_vectors_is_finite(metric: str) -> None:
    vectors = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    side = Embeddings.from_pooled(vectors)
    loss = Triplet(1.0, metric)([side, side, side])
    loss.backward()
    assert loss == 1
    assert vectors.grad.abs().max() == 0
    other = Embeddings.from_pooled(vectors.detach() + torch.tensor([1.0, 0, 0]))
    Triplet(2.0, metric)([side, side, other]).backward()
    assert vectors.grad.isfinite().all()
    assert vectors.grad[:, 0].tolist() == [0.5, 0.5]  # away from the negative; nothing from the positive


def test_bad_settings() -> None:
    with pytest.raises(InputError, match=r"a margin of -1.0 would reward"):
        Triplet(-1.0)
    with pytest.raises(InputError, match="unknown similarity 'l2'"):
        Triplet(metric="l2")
