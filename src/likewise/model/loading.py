"""From a model folder to an encoder: tokenizer, backbone and head that fit together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from likewise.backbone import Backbone, load_backbone, read_config, tokenizer_json
from likewise.encoder import Encoder, Head, Tokenizer, packed, with_markers
from likewise.errors import InputError, ModelError
from likewise.model.folder import FolderSpec, read_folder, tokenizer_limit, unknown_token
from likewise.pooling import MODES, Pooling

__all__ = ["folder_spec", "load_encoder", "one_precision"]


def load_encoder(
    folder: Path, *, pooling: str | None, device: str | None, precision: str
) -> tuple[Encoder, FolderSpec]:
    """Load everything of a folder but the similarity.

    Args:
        folder: A model folder or a plain checkpoint.
        pooling: For a checkpoint that does not say.
        device: As in `load_backbone`.
        precision: As in `load_backbone`.

    Raises:
        ModelError: The folder is damaged, holds an unknown module, needs `pooling`, or its parts do not fit.
    """
    spec = folder_spec(folder, pooling=pooling)
    definition = with_markers(tokenizer_json(folder), spec.markers)

    def calibration(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        return packed(Tokenizer(definition, spec.max_length, lower_case=spec.lower_case)(texts))

    backbone = load_backbone(folder, device=device, precision=precision, calibration=calibration)
    spec = replace(spec, max_length=_max_length(spec, backbone))
    tokenizer = Tokenizer(definition, spec.max_length, lower_case=spec.lower_case, unknown=spec.unknown_token)
    spec.head.dims(backbone.dim)
    known = backbone.vocabulary
    if known is not None and tokenizer.size > known:
        raise ModelError(
            f"the tokenizer of {folder} has {tokenizer.size} ids and its backbone only {known}: they belong to "
            "different models; fetch both from one place"
        )
    return Encoder(tokenizer, backbone, spec.head), spec


def folder_spec(folder: Path, *, pooling: str | None) -> FolderSpec:
    """All that a folder says beside its weights, or a plain checkpoint with the pooling that is named for it.

    Raises:
        ModelError: It is no model folder, holds an unknown module, or does not say how it is pooled.
        InputError: It says so, and `pooling` does, too.
    """
    spec = read_folder(folder)
    if spec is not None:
        if pooling is not None:
            raise InputError(f"{folder} says how it is pooled; pooling= (--pooling) is for plain checkpoints")
        return spec
    if pooling is None:
        architectures = read_config(folder).get("architectures") or ()
        if any(str(name).endswith("ForSequenceClassification") for name in architectures):
            raise ModelError(
                f"{folder} is a cross-encoder, which scores pairs: use CrossEncoder.load; to take its backbone for an "
                "encoder of single texts, name a pooling"
            )
        raise ModelError(
            f"{folder} is a plain checkpoint that does not say how it is pooled; name it: pooling='mean' (or "
            f"{', '.join(mode for mode in MODES if mode != 'mean')}), or pooling='none' for token vectors only; "
            "--pooling mean on the command line"
        )
    head = Head(None if pooling == "none" else Pooling(tuple(pooling.split("+"))))
    return FolderSpec(head, max_length=tokenizer_limit(folder), unknown_token=unknown_token(folder))


def one_precision(dtype: str | None, precision: str | None) -> str:
    """What `dtype` and `precision` ask for together.

    Raises:
        InputError: They contradict one another.
    """
    if dtype is not None and precision is not None and dtype != precision:
        raise InputError(f"dtype {dtype!r} and precision {precision!r} contradict one another; give one of them")
    return precision or dtype or "float32"


def _max_length(spec: FolderSpec, backbone: Backbone) -> int | None:
    known = [limit for limit in (spec.max_length, backbone.max_length) if limit]
    return min(known) if known else None
