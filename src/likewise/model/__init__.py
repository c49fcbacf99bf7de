"""Model = Encoder + Similarity: score, matrix, explain, save, load, inspect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.model.folder import FolderSpec
from likewise.model.model import Model
from likewise.model.report import Report, inspect
from likewise.model.sources import DEFAULT, Found, at_hand, find

if TYPE_CHECKING:
    from likewise.model.cross_encoder import CrossEncoder

__all__ = ["DEFAULT", "CrossEncoder", "FolderSpec", "Found", "Model", "Report", "at_hand", "find", "inspect"]


def __getattr__(name: str) -> Any:
    if name != "CrossEncoder":  # which needs torch, so that it is imported where it is used
        raise AttributeError(f"module 'likewise.model' has no attribute {name!r}")
    from likewise.model.cross_encoder import CrossEncoder

    return CrossEncoder
