"""How an evaluation was measured: what a reader needs to measure it again, and to tell why two runs differ."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from likewise import __version__
from likewise.files import sha256
from likewise.kernels import instruction_set
from likewise.model import Model

__all__ = ["MeasuredModel", "Provenance", "command_line", "measured", "measured_model"]


@dataclass(frozen=True)
class MeasuredModel:
    """A model as it was measured; where its folder lies is not said."""

    name: str
    """Its name in the tables."""
    precision: str
    """Of its products, as asked for."""
    engine: str
    """What computed it, in one line, with the precision that served."""
    weights: Mapping[str, str]
    """Each file of weights in its folder → SHA-256."""


@dataclass(frozen=True)
class Provenance:
    """How the numbers of one evaluation came about."""

    command: str
    """The command line; an absolute path is cut to its last part."""
    date: str
    """Day of the evaluation, in UTC, as 2026-11-30."""
    models: Sequence[MeasuredModel]
    """In the order of the tables."""
    similarities: Sequence[str]
    """How texts were compared."""
    resamples: int | None
    """Of the intervals; None where nothing was resampled."""
    seed: int | None
    """Of the resamples."""
    likewise: str = __version__
    """Version of this package."""
    instruction_set: str = ""
    """What the compiled kernels run on this machine's processor, such as "avx512"."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and strings."""
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """(what, value) for a reader."""
        draws = "none" if self.resamples is None else f"{self.resamples:,}, seed {self.seed}"
        found = [("command", self.command), ("date", self.date), ("likewise", self.likewise)]
        for one in self.models:
            found.append(("model", f"{one.name}: {one.engine}; precision asked for: {one.precision}"))
            found += [(f"SHA-256 of {name}", digest) for name, digest in one.weights.items()]
        named = ", ".join(filter(None, self.similarities)) or "none"
        return [
            *found,
            ("similarities", named),
            ("bootstrap resamples", draws),
            ("kernels", self.instruction_set),
        ]


def measured_model(model: Model, precision: str | None = None) -> MeasuredModel:
    """What is to be said about a model; its weights are read once for their hashes (about a second a GB)."""
    paths = sorted(path for path in model.folder.rglob("*.safetensors") if path.is_file())
    weights = {path.relative_to(model.folder).as_posix(): sha256(path) for path in paths}
    return MeasuredModel(model.name, precision or "float32", model.encoder.backbone.describe(), weights)


def command_line(words: Sequence[str | os.PathLike[str]]) -> str:
    """The words as a shell reads them, without the places of this machine: an absolute path is … and its last part."""
    return " ".join(_word(os.fspath(word)) for word in words)


def measured(
    command: str, models: Sequence[MeasuredModel], similarities: Sequence[str], resamples: int | None
) -> Provenance:
    """What is measured now, on this machine, with the resamples that every protocol draws (seed 0)."""
    date = datetime.now(timezone.utc).date().isoformat()
    seed = None if resamples is None else 0
    return Provenance(command, date, models, similarities, resamples, seed, instruction_set=instruction_set())


def _word(word: str) -> str:
    return f"…/{shlex.quote(Path(word).name)}" if Path(word).is_absolute() else shlex.quote(word)
