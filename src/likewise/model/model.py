"""The model: one encoder, one similarity, and everything that a score can be asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.backbone import Backbone, load_backbone, tokenizer_json
from likewise.encoder import Coverage, Encoder, Head, Normalize, Tokenizer, as_texts, with_markers
from likewise.errors import InputError, ModelError
from likewise.explain import Explanation, Side, explain_pair
from likewise.kernels import unit
from likewise.model.folder import FolderSpec, read_folder, tokenizer_limit, unknown_token
from likewise.model.sources import DEFAULT, find
from likewise.model.writing import write_folder
from likewise.pooling import MODES, Pooling
from likewise.similarity import RCMD, Similarity, by_name
from likewise.types import Embeddings

__all__ = ["Model"]


class Model:
    """Texts in; vectors, scores and their reasons out.

    Example:
        >>> model = Model.load()                                              # doctest: +SKIP
        >>> model.score("A plane is taking off.", "An air plane is taking off.")   # doctest: +SKIP
        >>> print(model.explain("A plane is taking off.", "An air plane is taking off.").to_text())  # doctest: +SKIP
    """

    def __init__(self, encoder: Encoder, similarity: Similarity, spec: FolderSpec, source: Path) -> None:
        self.encoder = encoder
        self.similarity = similarity
        self._spec = spec
        self._source = source

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str] = DEFAULT,
        *,
        revision: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        similarity: str | Similarity | None = None,
        pooling: str | None = None,
    ) -> Model:
        """Load a model from a folder, from the default model's package, or by its hub name.

        Only safetensors weights and JSON are read; no code of the folder is run. The network is used
        only for a hub name that is not on this machine.

        Args:
            name_or_path: A Sentence-Transformers folder (versions 2 to 6, PyLate), a plain transformers
                checkpoint, or a hub name.
            revision: Branch, tag or commit on the hub.
            device: Such as "cpu" or "cuda:0"; by default the first GPU if there is one.
            dtype: "float32" (default), "bfloat16" or "float16" for the backbone.
            similarity: A name or an object; by default what the folder says, else cosine, else (without
                pooling) RCMD.
            pooling: For a plain checkpoint, which does not say: "mean", "cls", "max", …, or "none" for a
                token-level model.

        Raises:
            ModelNotFoundError: Nothing of that name is at hand.
            ModelError: The folder is damaged, holds an unknown module, or needs `pooling`.
            InputError: The similarity needs pooled vectors and the model has none.
        """
        found = find(name_or_path, revision=revision)
        spec = _with_pooling(read_folder(found.folder), pooling, found.folder)
        backbone = load_backbone(found.folder, device=device, dtype=dtype)
        definition = with_markers(tokenizer_json(found.folder), spec.markers)
        spec = replace(spec, max_length=_max_length(spec, backbone))
        tokenizer = Tokenizer(definition, spec.max_length, lower_case=spec.lower_case, unknown=spec.unknown_token)
        chosen = by_name(similarity or spec.similarity or ("rcmd" if spec.head.pooling is None else "cosine"))
        _check(chosen, spec.head, tokenizer, backbone, found.folder)
        return cls(Encoder(tokenizer, backbone, spec.head), chosen, spec, found.folder)

    @property
    def dim(self) -> int:
        """Length of a pooled vector; of a token vector for a token-level model."""
        return self.encoder.dim

    @property
    def pooled(self) -> bool:
        """It has pooled vectors; a token-level model has none."""
        return self._spec.head.pooling is not None

    @property
    def max_length(self) -> int | None:
        """Longest text in tokens, special tokens included."""
        return self.encoder.tokenizer.max_length

    @property
    def prompts(self) -> Mapping[str, str]:
        """Prompt texts by name."""
        return self._spec.prompts

    def encode(
        self,
        texts: Any,
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        normalize: bool = False,
        truncate_dim: int | None = None,
        dtype: str = "float32",
        to: str = "numpy",
        special_tokens: bool = True,
        on_truncate: str = "warn",
        progress: bool | None = None,
    ) -> Any:
        """Pooled vectors, in the order of the texts.

        Args:
            texts: A string, or a list, generator, array, pandas, polars or dataset column of strings.
            prompt: Put in front of each text.
            prompt_name: Name of a stored prompt to use instead; the model's default prompt otherwise.
            normalize: Scale to length 1 (after `truncate_dim`).
            truncate_dim: Keep the first dimensions only; a vector of a model that normalises is scaled
                to length 1 again.
            dtype: "float32", "float16" or "float64".
            to: "numpy" or "torch".
            special_tokens: Let [CLS], [SEP] and the prompt take part in the pooling.
            on_truncate: "warn" once a call, "raise", or "ignore".
            progress: Show a bar on standard error; by default only on a terminal and for long work.

        Returns:
            [n, dim]; [dim] for a single string; [0, dim] for an empty list.

        Raises:
            InputTypeError: An item is not a string; position and type are named.
            InputError: An unknown option, or a token-level model.
            TruncationError: A text is too long and `on_truncate` is "raise".
        """
        vectors = self.encoder.pooled(
            texts,
            prompt=self._prompt(prompt, prompt_name),
            special_tokens=special_tokens,
            on_truncate=on_truncate,
            progress=progress,
        )
        if truncate_dim is not None:
            if not 0 < truncate_dim <= self.dim:
                raise InputError(f"truncate_dim {truncate_dim} is not between 1 and the model's {self.dim} dimensions")
            vectors = vectors[:, :truncate_dim]
            normalize = normalize or Normalize in [type(module) for module in self._spec.head.on_pooled[-1:]]
        vectors = _as_output(unit(vectors) if normalize else vectors, dtype, to)
        return vectors[0] if isinstance(texts, str) else vectors

    def embed(
        self,
        texts: Any,
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        special_tokens: bool = True,
        on_truncate: str = "warn",
        progress: bool | None = None,
    ) -> Embeddings:
        """Token vectors, packed, with the weights that pool them: what every similarity works on.

        Args:
            texts: As in `encode`.
            prompt: Put in front of each text.
            prompt_name: Name of a stored prompt.
            special_tokens: Keep the rows of [CLS], [SEP] and the prompt.
            on_truncate: "warn" once a call, "raise", or "ignore".
            progress: Show a bar on standard error.

        Raises:
            InputTypeError: An item is not a string.
            TruncationError: A text is too long and `on_truncate` is "raise".
        """
        return self.encoder.embed(
            texts,
            prompt=self._prompt(prompt, prompt_name),
            special_tokens=special_tokens,
            on_truncate=on_truncate,
            progress=progress,
        )

    def coverage(self, texts: Any) -> list[Coverage]:
        """For each text how many tokens are read, how many it has, where it is cut, how many are unknown."""
        return self.encoder.coverage(texts, prompt=self._prompt(None, None))

    def score(self, a: Any, b: Any, *, special_tokens: bool = True) -> Any:
        """Similarity row by row: text i of `a` with text i of `b`.

        Returns:
            [n] float32 or better; a float if both are single strings.

        Raises:
            InputError: Unequal numbers of texts.
        """
        left, right = list(as_texts(a)), list(as_texts(b))
        if len(left) != len(right):
            raise InputError(
                f"{len(left)} texts cannot be scored row by row with {len(right)}; use matrix() for all against all"
            )
        both = self._comparable(left + right, special_tokens)
        n = len(left)
        scores = self.similarity.score(both.select(range(n)), both.select(range(n, 2 * n)))
        return float(scores[0]) if isinstance(a, str) and isinstance(b, str) else scores

    def matrix(self, a: Any, b: Any = None, *, special_tokens: bool = True) -> Float[Any, "rows columns"]:
        """Similarity of every text of `a` with every text of `b` (of `a` itself if `b` is None), [n, m]."""
        left = list(as_texts(a))
        if b is None:
            embeddings = self._comparable(left, special_tokens)
            return self.similarity.matrix(embeddings, embeddings)
        right = list(as_texts(b))
        both = self._comparable(left + right, special_tokens)
        rows, columns = range(len(left)), range(len(left), len(left) + len(right))
        return self.similarity.matrix(both.select(rows), both.select(columns))

    def explain(
        self, a: str, b: str, *, similarity: str | Similarity | None = None, special_tokens: bool = True
    ) -> Explanation:
        """A score and its parts, computed in float64: what each pair of tokens and of words adds.

        Args:
            a: Left text, the rows of the tables.
            b: Right text, the columns.
            similarity: Another similarity than the model's own.
            special_tokens: Let [CLS], [SEP] and the prompt take part; they are rows of their own.

        Raises:
            InputTypeError: A side is not one string.
            InputError: The similarity is a distance and has no contributions.
        """
        chosen = self.similarity if similarity is None else by_name(similarity)
        texts = [*as_texts([a]), *as_texts([b])]
        prompt = self._prompt(None, None)
        embeddings = _widened(self.encoder.embed(texts, prompt=prompt, special_tokens=special_tokens))
        left, right = embeddings.select([0]), embeddings.select([1])
        tokenized = self.encoder.tokenize(texts, prompt=prompt, special_tokens=special_tokens)
        sides = [Side(one.text, one.text_tokens().tokens, one.truncated) for one in tokenized]
        parts = chosen.decompose(left, right)[0]
        details: dict[str, float] = {}
        if isinstance(chosen, RCMD):
            forward, backward = chosen.directions(left, right)
            details = {"a→b": float(forward[0]), "b→a": float(backward[0])}
        return explain_pair(chosen.name, (sides[0], sides[1]), parts.cosines, parts.plan, details)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Sentence-Transformers folder (a multi-vector one for a token-level model), whole or not at all.

        Raises:
            InputError: The target holds other files, or cannot be written.
        """
        write_folder(
            path,
            spec=self._spec,
            source=self._source,
            weights=self.encoder.backbone.weights(),
            tokenizer=self.encoder.tokenizer.definition,
            similarity=self.similarity.name,
            backbone_dim=self.encoder.backbone.dim,
        )

    def __repr__(self) -> str:
        return f"Model({self._source.name}: {self.encoder.backbone.describe()}; similarity {self.similarity.name})"

    def _comparable(self, texts: list[str], special_tokens: bool) -> Embeddings:
        """The embeddings that this model's similarity needs: pooled ones where tokens would not be looked at."""
        prompt = self._prompt(None, None)
        if self.similarity.needs_tokens:
            return self.encoder.embed(texts, prompt=prompt, special_tokens=special_tokens)
        return Embeddings.from_pooled(self.encoder.pooled(texts, prompt=prompt, special_tokens=special_tokens))

    def _prompt(self, prompt: str | None, prompt_name: str | None) -> str:
        if prompt is not None:
            return prompt
        name = prompt_name if prompt_name is not None else self._spec.default_prompt
        if name is None:
            return ""
        if name not in self._spec.prompts:
            raise InputError(f"no prompt is called {name!r}; the model has {sorted(self._spec.prompts) or 'none'}")
        return self._spec.prompts[name]


def _with_pooling(spec: FolderSpec | None, pooling: str | None, folder: Path) -> FolderSpec:
    if spec is not None:
        if pooling is not None:
            raise InputError(f"{folder} says how it is pooled; pooling= is for plain checkpoints")
        return spec
    if pooling is None:
        raise ModelError(
            f"{folder} is a plain checkpoint that does not say how it is pooled; name it: pooling='mean' (or "
            f"{', '.join(mode for mode in MODES if mode != 'mean')}), or pooling='none' for token vectors only"
        )
    head = Head(None if pooling == "none" else Pooling(tuple(pooling.split("+"))))
    return FolderSpec(head, max_length=tokenizer_limit(folder), unknown_token=unknown_token(folder))


def _max_length(spec: FolderSpec, backbone: Backbone) -> int | None:
    known = [limit for limit in (spec.max_length, backbone.max_length) if limit]
    return min(known) if known else None


def _check(similarity: Similarity, head: Head, tokenizer: Tokenizer, backbone: Backbone, folder: Path) -> None:
    if head.pooling is None and not similarity.needs_tokens:
        raise InputError(
            f"similarity '{similarity.name}' compares pooled vectors, and {folder.name} is a token-level model without "
            "pooling; use similarity='rcmd' or 'transport'"
        )
    head.dims(backbone.dim)
    known = backbone.vocabulary
    if known is not None and tokenizer.size > known:
        raise ModelError(
            f"the tokenizer of {folder} has {tokenizer.size} ids and its backbone only {known}: they belong to "
            "different models; fetch both from one place"
        )


def _widened(embeddings: Embeddings) -> Embeddings:
    weights = None if embeddings.weights is None else embeddings.weights.astype(np.float64)
    return Embeddings(embeddings.tokens.astype(np.float64), embeddings.offsets, weights)


def _as_output(vectors: np.ndarray, dtype: str, to: str) -> Any:
    if dtype not in ("float32", "float16", "float64"):
        raise InputError(f"unknown dtype {dtype!r}; known are float32, float16, float64")
    vectors = vectors.astype(dtype, copy=False)
    if to == "numpy":
        return vectors
    if to == "torch":
        import torch

        return torch.from_numpy(vectors)
    raise InputError(f"unknown output {to!r}; known are numpy, torch")
