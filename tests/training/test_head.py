"""The trainable head against the head that serves a saved model, text by text."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.encoder import Dense, Head, Normalize
from likewise.errors import InputError
from likewise.pooling import MODES, Pooling
from likewise.training.head import TrainableHead

DIM = 6
OFFSETS = np.array([0, 4, 5, 5, 8])


def states(seed: int = 0) -> torch.Tensor:
    return torch.randn(OFFSETS[-1], DIM, generator=torch.Generator().manual_seed(seed))


def dense(activation: str = "identity", out: int = DIM, into: int = DIM, *, bias: bool = True, residual: bool = False):
    draw = np.random.default_rng(out + into)
    weight = draw.normal(size=(out, into)).astype(np.float32)
    skip = np.eye(into, dtype=np.float32) if out == into else draw.normal(size=(out, into)).astype(np.float32)
    return Dense(
        weight, draw.normal(size=out).astype(np.float32) if bias else None, activation, skip if residual else None
    )


HEADS = {
    **{mode: Head(Pooling((mode,))) for mode in MODES},
    "mean+max": Head(Pooling(("max", "mean"))),
    "none": Head(None, (dense(),)),
    "normalize": Head(Pooling(), (), (Normalize(),)),
    "dense": Head(Pooling(), (), (dense("tanh", 4), Normalize())),
    "dense, max": Head(Pooling(("max",)), (), (dense("identity", 4),)),
    "residual": Head(Pooling(), (), (dense(residual=True), dense("relu", 3))),
    "on tokens": Head(Pooling(("cls",)), (dense("gelu", 4, bias=False), Normalize())),
}


@pytest.mark.parametrize("name", HEADS)
def test_it_is_the_head_that_serves(name):
    head = HEADS[name]
    found = TrainableHead(head, DIM).eval()(states(), OFFSETS)
    for at in range(len(OFFSETS) - 1):
        rows = slice(OFFSETS[at], OFFSETS[at + 1])
        tokens, weights = head.fold(states().numpy()[rows])
        np.testing.assert_allclose(found.tokens[rows].detach(), tokens, atol=1e-5)
        if weights is None:
            assert found.weights is None
        else:
            np.testing.assert_allclose(found.weights[rows].detach(), weights, atol=1e-5)


@pytest.mark.parametrize("name", HEADS)
def test_it_comes_back_as_it_was(name):
    head, back = HEADS[name], TrainableHead(HEADS[name], DIM).frozen()
    assert back.pooling == head.pooling
    one, other = (form.fold(states().numpy()[:4]) for form in (head, back))
    np.testing.assert_array_equal(one[0], other[0])


@pytest.mark.parametrize("name", [name for name in HEADS if name != "none"])
def test_gradients_reach_states_and_parameters(name):
    head = TrainableHead(HEADS[name], DIM).double()
    x = states().double().requires_grad_()
    found = head(x, OFFSETS)
    assert torch.autograd.gradcheck(lambda y: head(y, OFFSETS).pooled(), (x,), atol=1e-6)
    found.pooled().square().sum().backward()
    assert all(parameter.grad is not None for parameter in head.parameters())


def test_a_head_that_is_no_sum_gives_pooled_vectors():
    head = Head(Pooling(), (), (dense("sigmoid", 4),))
    found = TrainableHead(head, DIM).eval()(states(), OFFSETS)
    assert len(found.tokens) == len(OFFSETS) - 1
    np.testing.assert_allclose(found.pooled()[0].detach(), head.pooled(states().numpy()[:4]), atol=1e-6)
    assert not found.pooled()[2].any()


@pytest.mark.parametrize(("projection", "pooling"), [("linear", "mean"), ("mlp", "cls")])
@pytest.mark.parametrize("keep", [True, False])
def test_a_projection_is_kept_or_dropped(projection, pooling, keep):
    source = Head(Pooling((pooling,)), (), (Normalize(),))
    head = TrainableHead(source, DIM, projection=projection, keep=keep, seed=3)
    trained = head.train()(states(), OFFSETS).pooled()
    bare = TrainableHead(source, DIM).eval()(states(), OFFSETS).pooled()
    assert not torch.allclose(trained, bare, atol=1e-3)
    served = head.eval()(states(), OFFSETS).pooled()
    assert torch.allclose(served, trained if keep else bare, atol=1e-6)
    chain = head.frozen().on_tokens if projection == "linear" else head.frozen().on_pooled
    assert [type(one) for one in chain if isinstance(one, Dense)] == [Dense] * keep
    assert isinstance(head.frozen().on_pooled[-1], Normalize)


def test_a_new_projection_follows_from_the_seed():
    made = [TrainableHead(Head(), DIM, projection="linear", seed=seed).on_tokens[0].weight for seed in (0, 0, 1)]
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"projection": "mpl"}, "unknown projection 'mpl'"), ({"projection": "mlp"}, "no pooling")],
)
def test_projections_that_cannot_be(options, message):
    with pytest.raises(InputError, match=message):
        TrainableHead(Head(None), DIM, **options)
