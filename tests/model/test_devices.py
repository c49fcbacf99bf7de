"""Devices, asked for before anything is loaded."""

from __future__ import annotations

import sys

import pytest

from likewise import Model
from likewise.errors import InputError, MissingExtraError


def test_another_device_needs_torch(mean_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"the device 'cuda' needs the package 'torch': pip install torch"):
        Model.load(mean_folder, device="cuda")
    assert Model.load(mean_folder, device="cpu").dim == 32


@pytest.mark.parametrize("device", ["tpu-9", "cpu:3", "meta"])
def test_a_device_that_is_not_there(mean_folder, device):
    with pytest.raises(InputError, match="this machine has cpu"):
        Model.load(mean_folder, device=device)
