"""Which devices there are, asked before anything is loaded."""

from __future__ import annotations

from typing import Any

from likewise.errors import InputError, MissingExtraError

__all__ = ["check_device"]


def check_device(device: Any) -> None:
    """The device is at hand. Torch is imported only if one other than the CPU is asked for.

    Args:
        device: As in `Model.load`.

    Raises:
        InputError: There is no such device here.
        MissingExtraError: Another device than the CPU needs torch, which is not installed.
    """
    if device is None or device == "cpu":
        return
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError("torch", "train", f"the device {str(device)!r}") from error
    here = _here()
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError):
        found = False
    else:
        found = any(one.type == wanted.type and wanted.index in (None, one.index or 0) for one in here)
    if not found:
        raise InputError(
            f"no device {str(device)!r} here; this machine has {', '.join(map(str, here))}; name one of them, or leave "
            "the device out"
        )


def _here() -> list[Any]:
    import torch

    found = [torch.device("cpu")]
    for kind in ("cuda", "xpu"):
        library = getattr(torch, kind, None)
        if library is not None and library.is_available():
            found += [torch.device(kind, index) for index in range(library.device_count())]
    return found + ([torch.device("mps")] if torch.backends.mps.is_available() else [])
