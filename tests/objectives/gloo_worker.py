"""One of two processes that train on their halves of a batch; `test_sides` starts it and compares.

    python gloo_worker.py RANK FOLDER

FOLDER holds the rendezvous file; loss and gradients are written to `RANK.safetensors`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from likewise.objectives import Contrastive
from likewise.types import Embeddings

N, IN, DIM = 7, 6, 5
SPLIT = (4, 3)
"""Rows of each process."""
CASES = {
    "simcse": ("cosine", 2),
    "simcse, hard negatives": ("cosine", 3),
    "clrcmd": ("rcmd", 2),
    "clrcmd, two hard negatives": ("rcmd", 4),
}
"""Similarity and number of columns."""


class Encoder(nn.Module):
    """The smallest thing with tokens and parameters."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer = nn.Linear(IN, DIM)

    def forward(self, columns: list[tuple[torch.Tensor, np.ndarray]]) -> list[torch.Tensor]:
        return [torch.tanh(self.layer(tokens)) for tokens, _ in columns]


def batch(n_columns: int, rows: range) -> list[tuple[torch.Tensor, np.ndarray]]:
    """Tokens and offsets of each column, for the rows asked for; texts of 1 to 8 tokens."""
    draw = np.random.default_rng(n_columns)
    columns = []
    for _ in range(n_columns):
        offsets = np.concatenate([[0], np.cumsum(draw.integers(1, 9, N))])
        tokens = torch.from_numpy(draw.normal(size=(offsets[-1], IN))).float()
        ends = offsets[rows.start : rows.stop + 1]
        columns.append((tokens[ends[0] : ends[-1]], ends - ends[0]))
    return columns


def loss_of(encoder: Any, columns: list[tuple[torch.Tensor, np.ndarray]], similarity: str) -> torch.Tensor:
    """The contrastive loss of a batch; pooled by the mean."""
    tokens = encoder(columns)
    sides = []
    for x, (_, offsets) in zip(tokens, columns, strict=True):
        weights = np.repeat(1 / np.diff(offsets), np.diff(offsets))
        sides.append(Embeddings(x, offsets, torch.from_numpy(weights).float()))
    loss: torch.Tensor = Contrastive(similarity)(sides)
    return loss


def main(rank: int, folder: Path) -> None:
    """Every case, through DistributedDataParallel."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    rows = range(0, SPLIT[0]) if rank == 0 else range(SPLIT[0], N)
    found = {}
    for name, (similarity, n_columns) in CASES.items():
        encoder = DistributedDataParallel(Encoder())
        loss = loss_of(encoder, batch(n_columns, rows), similarity)
        loss.backward()
        found[f"{name}/loss"] = loss.detach()
        for key, parameter in encoder.module.named_parameters():
            found[f"{name}/{key}"] = parameter.grad
    save_file(found, folder / f"{rank}.safetensors")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
