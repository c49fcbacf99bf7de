"""The state of a run in safetensors and JSON: written whole or not at all, read without running anything.

model.safetensors       encoder and objective       optimizer.safetensors   its tensors
optimizer.json          its groups and numbers      scheduler.json          the learning rate
scaler.json             of float16                  run.json                configuration, data, best score
trainer_state.json      step and history, by transformers

Random numbers need no state: those of a step follow from seed, step and process (see `trainer`).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import InputError

__all__ = ["MARKER", "clear_remains", "forget_old", "last_checkpoint", "read_json", "write_json"]

MARKER = "trainer_state.json"
"""The file by which a checkpoint is known."""


def write_json(path: Path, content: Any) -> None:
    """Plain values; floating-point numbers come back bit for bit."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """What `write_json` wrote.

    Raises:
        InputError: It is missing or damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"the checkpoint file {path} cannot be read ({error}); remove its folder to go on from the one before"
        ) from error


def write_optimizer(folder: Path, state: Mapping[str, Any]) -> None:
    """The state dict of a torch optimizer."""
    tensors = {f"{number}.{name}": value for number, name, value in _entries(state) if isinstance(value, Tensor)}
    numbers = [[number, name, value] for number, name, value in _entries(state) if not isinstance(value, Tensor)]
    write_tensors(folder / "optimizer.safetensors", tensors)
    write_json(folder / "optimizer.json", {"groups": state["param_groups"], "numbers": numbers})


def read_optimizer(folder: Path) -> dict[str, Any]:
    """What `write_optimizer` wrote."""
    content, state = read_json(folder / "optimizer.json"), dict[int, dict[str, Any]]()
    for number, name, value in content["numbers"]:
        state.setdefault(int(number), {})[name] = value
    for key, value in read_tensors(folder / "optimizer.safetensors").items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = value
    return {"state": state, "param_groups": content["groups"]}


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Tensors by name.

    Raises:
        InputError: The disk is full.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        raise InputError(
            f"cannot write the checkpoint {path} ({error}); free some space and resume: the one before is whole"
        ) from error


def read_tensors(path: Path) -> dict[str, Tensor]:
    """What `write_tensors` wrote.

    Raises:
        InputError: It is missing or damaged.
    """
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:  # safetensors raises its own type, which has no public base class
        raise InputError(
            f"the checkpoint file {path} cannot be read ({error}); remove its folder to go on from the one before"
        ) from error


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint of a run, if there is one."""
    found = _checkpoints(folder)
    return found[-1] if found else None


def forget_old(folder: Path, n_kept: int) -> None:
    """Remove all but the newest checkpoints."""
    for old in _checkpoints(folder)[:-n_kept]:
        shutil.rmtree(old)


def clear_remains(folder: Path) -> None:
    """Remove what a killed process left of a checkpoint that it was writing."""
    for remains in folder.glob(".checkpoint-*"):
        shutil.rmtree(remains, ignore_errors=True)


def finite(module: nn.Module) -> bool:
    """No parameter holds NaN or infinity."""
    tensors = [parameter.detach() for parameter in module.parameters()]
    # A sum is quick; it may overflow where no value does.
    return all(bool(torch.isfinite(one.sum())) or bool(torch.isfinite(one).all()) for one in tensors)


def _checkpoints(folder: Path) -> list[Path]:
    """Whole ones, oldest first."""
    named = [path for path in folder.glob("checkpoint-*") if re.fullmatch(r"checkpoint-\d+", path.name)]
    return sorted((path for path in named if (path / MARKER).is_file()), key=lambda path: int(path.name[11:]))


def _entries(state: Mapping[str, Any]) -> list[tuple[int, str, Any]]:
    return [(number, name, value) for number, entry in state["state"].items() for name, value in entry.items()]
