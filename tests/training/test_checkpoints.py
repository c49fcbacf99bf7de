"""Checkpoints: no pickle, whole or not there, and exact."""

from __future__ import annotations

import pytest
import torch

from likewise.errors import InputError
from likewise.training import checkpoints


def trained(optimizer_class, **options):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = optimizer_class(model.parameters(), lr=0.1, **options)
    for _ in range(3):
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
    return optimizer


@pytest.mark.parametrize(
    ("optimizer_class", "options"),
    [(torch.optim.AdamW, {"fused": True}), (torch.optim.AdamW, {}), (torch.optim.SGD, {"momentum": 0.9})],
)
def test_an_optimizer_comes_back_bit_for_bit(optimizer_class, options, tmp_path):
    optimizer = trained(optimizer_class, **options)
    checkpoints.write_optimizer(tmp_path, optimizer.state_dict())
    other = optimizer_class(torch.nn.Linear(3, 2).parameters(), lr=0.1, **options)
    other.load_state_dict(checkpoints.read_optimizer(tmp_path))
    before, after = optimizer.state_dict()["state"], other.state_dict()["state"]
    assert before.keys() == after.keys()
    for number in before:
        assert before[number].keys() == after[number].keys()
        assert all(
            torch.equal(torch.as_tensor(before[number][k]), torch.as_tensor(after[number][k])) for k in before[number]
        )
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors", ".json"}


def test_the_newest_whole_checkpoint_is_the_last(tmp_path):
    assert checkpoints.last_checkpoint(tmp_path / "none") is None
    for step in (9, 10, 100):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if step != 100:
            (tmp_path / f"checkpoint-{step}" / checkpoints.MARKER).touch()
    (tmp_path / ".checkpoint-100.x1").mkdir()
    assert checkpoints.last_checkpoint(tmp_path) == tmp_path / "checkpoint-10"
    checkpoints.forget_old(tmp_path, 1)
    checkpoints.clear_remains(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-10", "checkpoint-100"}


def test_damaged_files_are_named(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"\x10")
    with pytest.raises(InputError, match=r"model\.safetensors cannot be read"):
        checkpoints.read_tensors(tmp_path / "model.safetensors")
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json cannot be read"):
        checkpoints.read_json(tmp_path / "run.json")


def test_weights_that_are_not_finite_are_seen():
    model = torch.nn.Linear(3, 2)
    assert checkpoints.finite(model)
    with torch.no_grad():
        model.weight[1, 1] = torch.nan
    assert not checkpoints.finite(model)
