"""likewise: sentence similarity that shows its work.

Every name here is imported on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.errors import LikewiseError
    from likewise.explain import Explanation
    from likewise.model import Model, inspect
    from likewise.model.cross_encoder import CrossEncoder
    from likewise.similarity import RCMD, Cosine, Dot, Euclidean, Manhattan, Similarity, Transport
    from likewise.types import Embeddings

__all__ = [
    "RCMD",
    "Cosine",
    "CrossEncoder",
    "Dot",
    "Embeddings",
    "Euclidean",
    "Explanation",
    "LikewiseError",
    "Manhattan",
    "Model",
    "Similarity",
    "Transport",
    "inspect",
]

__version__ = "0.1.0"

_ROOMS = {
    "CrossEncoder": "model.cross_encoder",
    "Embeddings": "types",
    "Explanation": "explain",
    "LikewiseError": "errors",
    "Model": "model",
    "inspect": "model",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    return getattr(importlib.import_module(f"likewise.{_ROOMS.get(name, 'similarity')}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
