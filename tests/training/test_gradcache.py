"""Chunks without a graph give the gradients of chunks with one, dropout and all."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.objectives import Contrastive, Softmax
from likewise.similarity import RCMD, Cosine
from likewise.training import TrainableEncoder
from likewise.training.gradcache import embed_in_chunks
from likewise.training.trainer import Step
from likewise.types import Embeddings
from tests.conftest import CORPUS

TEXTS = [*CORPUS[:8], *CORPUS[1:9]]


def gradients(step: torch.nn.Module, run) -> list[torch.Tensor]:
    torch.manual_seed(5)
    step.zero_grad(set_to_none=True)
    loss = run()
    loss.backward()
    return [loss.detach(), *(parameter.grad for parameter in step.parameters())]


def chunks_with_graph(encoder: TrainableEncoder, ids: torch.Tensor, offsets: np.ndarray, n_texts: int) -> Embeddings:
    """The plain form: every chunk keeps its graph."""
    found = []
    for first in range(0, len(offsets) - 1, n_texts):
        ends = offsets[first : first + n_texts + 1]
        found.append(encoder(ids[ends[0] : ends[-1]], ends - ends[0]))
    weights = torch.cat([one.weights for one in found])
    return Embeddings(torch.cat([one.tokens for one in found]), offsets, weights)


@pytest.mark.parametrize("objective", [Contrastive(Cosine()), Contrastive(RCMD()), Softmax(32, 3)])
def test_gradients_are_the_plain_ones_with_dropout_on(objective, mean_folder):
    encoder = TrainableEncoder.from_folder(mean_folder)
    ids, offsets = encoder.tokenize(TEXTS)
    tokens, labels = torch.from_numpy(ids), torch.arange(8) % 3
    step = Step(encoder, objective, chunk=3).train()

    def plain():
        found = chunks_with_graph(encoder, tokens, offsets, 3)
        return objective([found.select(range(8)), found.select(range(8, 16))], labels)

    cached = gradients(step, lambda: step(tokens, offsets, 2, labels))
    for one, other in zip(cached, gradients(step, plain), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_the_whole_batch_as_one_chunk_is_no_chunk(mean_folder):
    encoder = TrainableEncoder.from_folder(mean_folder)
    ids, offsets = encoder.tokenize(TEXTS)
    given = (torch.from_numpy(ids), offsets, 2, None)
    whole, cached = (Step(encoder, Contrastive(), chunk).train() for chunk in (None, 100))
    for one, other in zip(
        gradients(whole, lambda: whole(*given)), gradients(cached, lambda: cached(*given)), strict=True
    ):
        assert torch.equal(one, other)


def test_only_one_chunk_has_a_graph_at_a_time(mean_folder):
    encoder = TrainableEncoder.from_folder(mean_folder).train()
    ids, offsets = encoder.tokenize(TEXTS * 8)
    tokens = torch.from_numpy(ids)

    def saved_bytes(run) -> int:
        kept: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.nbytes) or x, lambda x: x):
            run()
        return sum(kept)

    plain = saved_bytes(lambda: encoder(tokens, offsets))
    assert saved_bytes(lambda: embed_in_chunks(encoder, tokens, offsets, 4)) < plain / 20
