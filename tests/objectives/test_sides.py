"""Columns put together: inside a process, and across two that meet over gloo."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from likewise.objectives.sides import joined, process_count
from likewise.types import Embeddings

WORKER = Path(__file__).with_name("gloo_worker.py")


@pytest.fixture(scope="module")
def worker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gloo_worker", WORKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, torch.Tensor]]:
    """What each of two processes found."""
    folder = tmp_path_factory.mktemp("gloo")
    asked = [[sys.executable, "-W", "ignore", str(WORKER), str(rank), str(folder)] for rank in range(2)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in asked]
    for process in running:
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0, said
    return [load_file(folder / f"{rank}.safetensors") for rank in range(2)]


@pytest.mark.parametrize("name", ["simcse", "simcse, hard negatives", "clrcmd", "clrcmd, two hard negatives"])
def test_two_processes_equal_one_on_the_joined_batch(
    name: str, worker: ModuleType, halves: list[dict[str, torch.Tensor]]
) -> None:
    similarity, n_columns = worker.CASES[name]
    encoder = worker.Encoder()
    columns = worker.batch(n_columns, range(worker.N))
    loss = worker.loss_of(encoder, columns, similarity)
    loss.backward()
    assert loss > 0.1
    mean = torch.stack([half[f"{name}/loss"] for half in halves]).mean()
    torch.testing.assert_close(mean, loss.detach(), atol=1e-5, rtol=0)
    for key, parameter in encoder.named_parameters():
        assert parameter.grad.abs().max() > 1e-2
        for half in halves:
            torch.testing.assert_close(half[f"{name}/{key}"], parameter.grad, atol=1e-5, rtol=0)


def test_without_the_others_candidates_the_loss_is_another(
    worker: ModuleType, halves: list[dict[str, torch.Tensor]]
) -> None:
    """So that the equality above means something."""
    own = [worker.loss_of(worker.Encoder(), worker.batch(3, rows), "cosine") for rows in (range(4), range(4, 7))]
    for half, loss in zip(halves, own, strict=True):
        assert abs(half["simcse, hard negatives/loss"] - loss.detach()) > 1e-2


def test_joined() -> None:
    a = Embeddings(torch.arange(6.0).view(3, 2), np.array([0, 1, 1, 3]), torch.ones(3))
    b = Embeddings(torch.arange(4.0).view(2, 2), np.array([0, 2]))
    both = joined([a, b])
    assert both.offsets.tolist() == [0, 1, 1, 3, 5]
    assert both.tokens.tolist() == [*a.tokens.tolist(), *b.tokens.tolist()]
    assert joined([a]) is a


def test_one_process_is_one() -> None:
    assert process_count() == 1
