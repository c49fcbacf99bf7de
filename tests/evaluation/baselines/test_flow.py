from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.errors import InputError
from likewise.evaluation.baselines import Flow, WordVectors
from likewise.evaluation.baselines.flow import InvertibleFlow


def skewed(n, dim=4):
    random = np.random.default_rng(0)
    x = random.standard_normal((n, dim))
    x[:, 1] = 0.3 * x[:, 1] + x[:, 0] ** 2  # bent: no linear map makes this Gaussian
    return (3 + x @ random.standard_normal((dim, dim))).astype(np.float32)


def perturbed(dim, seed=3):
    flow = InvertibleFlow(dim, n_steps=3, hidden=7)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return flow.double()


@pytest.mark.parametrize("dim", [2, 5])
def test_the_inverse_gives_back_the_vectors(dim):
    flow, x = perturbed(dim), torch.randn(20, dim, dtype=torch.float64)
    assert torch.allclose(flow.inverse(flow(x)[0]), x, atol=1e-5)  # the rotations are float32
    assert not torch.allclose(flow(x)[0], x, atol=0.1)


def test_the_volume_change_is_that_of_the_jacobian():
    flow, x = perturbed(4), torch.randn(4, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda one: flow(one[None])[0][0], x)
    assert flow(x[None])[1].item() == pytest.approx(torch.linalg.slogdet(jacobian).logabsdet.item(), abs=1e-5)


def test_the_loss_is_the_likelihood_of_a_normal_distribution():
    flow, x = InvertibleFlow(3, n_steps=1), torch.randn(5, 3)
    expected = -torch.distributions.Normal(0, 1).log_prob(x @ flow.rotations[0]).sum(1).mean() / 3
    assert flow.loss(x).item() == pytest.approx(expected.item(), abs=1e-5)


def test_fitting_makes_vectors_more_gaussian_than_a_linear_map_can():
    vectors = skewed(400)
    base = WordVectors([f"w{i}" for i in range(400)], vectors)
    texts = list(base.rows)
    start = InvertibleFlow(4, n_steps=4, hidden=32)
    start.initialise(torch.from_numpy(vectors))
    fitted = Flow.fit(base, texts, hidden=32, epochs=25, learning_rate=3e-3)
    x = torch.from_numpy(vectors)
    gaussian = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * np.cov(vectors.T, bias=True))[1] / 4  # best linear map
    assert fitted.flow.loss(x).item() < min(gaussian, start.loss(x).item()) - 0.05


def test_the_same_seed_gives_the_same_flow(tiny):
    texts = ["A plane is taking off.", "The cats don't like the dog.", "A man plays a flute."]
    one, same, other = (Flow.fit(tiny, texts, epochs=2, hidden=8, seed=seed).encode(texts) for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)


def test_what_cannot_be_learned(tiny):
    with pytest.raises(InputError, match="1 distinct texts have none"):
        Flow.fit(tiny, ["a", "a"])
    with pytest.raises(InputError, match="splits a vector in two"):
        InvertibleFlow(1)
