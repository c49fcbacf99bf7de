"""The model: one encoder, one similarity, and everything that a score can be asked for."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.encoder import Coverage, Encoder, Normalize, as_texts
from likewise.errors import EmptyTextWarning, InputError
from likewise.explain import Explanation, Side, explain_pair
from likewise.kernels import unit
from likewise.model.devices import check_device
from likewise.model.folder import FolderSpec
from likewise.model.loading import load_encoder, one_precision
from likewise.model.processes import stream_in_processes
from likewise.model.sources import DEFAULT, find
from likewise.model.writing import write_folder
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

    def __init__(
        self,
        encoder: Encoder,
        similarity: Similarity,
        spec: FolderSpec,
        source: Path,
        name: str | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.encoder = encoder
        self.similarity = similarity
        self._spec = spec
        self._source = source
        self._name = name or source.name
        self._settings = settings  # with which `load_encoder` would give the same encoder again

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str] = DEFAULT,
        *,
        revision: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        precision: str | None = None,
        similarity: str | Similarity | None = None,
        pooling: str | None = None,
        name: str | None = None,
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
            precision: In place of `dtype`, and more: "int8", "int8+" (more exact, slower) or "fast" (the quickest that
                the processor has instructions for) in the native engine.
            similarity: A name or an object; by default what the folder says, else cosine, else (without
                pooling) RCMD.
            pooling: For a plain checkpoint, which does not say: "mean", "cls", "max", …, or "none" for a
                token-level model.
            name: Its name in tables; by default the hub name, or the folder's.

        Raises:
            ModelNotFoundError: Nothing of that name is at hand.
            ModelError: The folder is damaged, holds an unknown module, or needs `pooling`.
            InputError: There is no such device; the similarity needs pooled vectors and the model has none.
        """
        check_device(device)
        folder = find(name_or_path, revision=revision).folder
        settings: dict[str, Any] = {
            "pooling": pooling,
            "device": device,
            "precision": one_precision(dtype, precision),
        }
        encoder, spec = load_encoder(folder, **settings)
        chosen = by_name(similarity or spec.similarity or ("rcmd" if spec.head.pooling is None else "cosine"))
        if spec.head.pooling is None and not chosen.needs_tokens:
            raise InputError(
                f"similarity '{chosen.name}' compares pooled vectors, and {folder.name} is a token-level model without "
                "pooling; use similarity='rcmd' or 'transport'"
            )
        called = name or (None if Path(name_or_path).is_dir() else str(name_or_path))
        return cls(encoder, chosen, spec, folder, called, settings={"folder": str(folder.resolve()), **settings})

    @property
    def dim(self) -> int:
        """Length of a pooled vector; of a token vector for a token-level model."""
        return self.encoder.dim

    @property
    def name(self) -> str:
        """A short name for tables: the hub name if it was loaded by one, else the folder's."""
        return self._name

    @property
    def folder(self) -> Path:
        """Where its files were read from."""
        return self._source

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
        n_processes: int = 1,
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
            n_processes: Worker processes that share the work; see `stream`.

        Returns:
            [n, dim]; [dim] for a single string; [0, dim] for an empty list.

        Raises:
            InputTypeError: An item is not a string; position and type are named.
            InputError: An unknown option, or a token-level model.
            TruncationError: A text is too long and `on_truncate` is "raise".
            WorkerError: A worker process ended before its work was done.
        """
        blocks = self.stream(
            texts,
            prompt=prompt,
            prompt_name=prompt_name,
            normalize=normalize,
            truncate_dim=truncate_dim,
            dtype=dtype,
            special_tokens=special_tokens,
            on_truncate=on_truncate,
            progress=progress,
            n_processes=n_processes,
        )
        vectors = np.concatenate([np.zeros((0, truncate_dim or self.dim), dtype), *blocks])
        vectors = _as_output(vectors, to)
        return vectors[0] if isinstance(texts, str) else vectors

    def stream(
        self,
        texts: Any,
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        normalize: bool = False,
        truncate_dim: int | None = None,
        dtype: str = "float32",
        special_tokens: bool = True,
        on_truncate: str = "warn",
        progress: bool | None = None,
        n_processes: int = 1,
    ) -> Iterator[Float[np.ndarray, "some dim"]]:
        """The vectors of `encode` in blocks, in the order of the texts: any number of texts at constant memory.

        Texts are tokenized on another thread while the vectors before them are computed.

        Args:
            texts: As in `encode`; a generator is read as far as needed for the next block.
            prompt: Put in front of each text.
            prompt_name: Name of a stored prompt.
            normalize: Scale to length 1.
            truncate_dim: Keep the first dimensions only.
            dtype: "float32", "float16" or "float64".
            special_tokens: Let [CLS], [SEP] and the prompt take part in the pooling.
            on_truncate: "warn" once, at the end; "raise", or "ignore".
            progress: Show a bar on standard error.
            n_processes: Worker processes that share the work, for machines whose processors do not share their memory
                evenly; on others threads do as well. Each loads the model (so it must come from `load`), takes its
                share of this process's threads, and ends with the call; nothing of the main program is run again.

        Raises:
            InputError: As `encode`, before the first block.
            WorkerError: A worker process ended before its work was done.
        """
        if dtype not in ("float32", "float16", "float64"):
            raise InputError(f"unknown dtype {dtype!r}; known are float32, float16, float64")
        if truncate_dim is not None:
            if not 0 < truncate_dim <= self.dim:
                raise InputError(f"truncate_dim {truncate_dim} is not between 1 and the model's {self.dim} dimensions")
            normalize = normalize or Normalize in [type(module) for module in self._spec.head.on_pooled[-1:]]
        options: dict[str, Any] = {"prompt": self._prompt(prompt, prompt_name), "special_tokens": special_tokens}
        more: dict[str, Any] = {"on_truncate": on_truncate, "progress": progress}
        if n_processes == 1:
            blocks = self.encoder.stream(texts, **options, **more)
        else:
            limit = self.max_length
            blocks = stream_in_processes(texts, self._settings, options, n_processes, max_length=limit, **more)
        cut = (block[:, :truncate_dim] for block in blocks)
        return ((unit(block) if normalize else block).astype(dtype, copy=False) for block in cut)

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
        self,
        a: str,
        b: str,
        *,
        similarity: str | Similarity | None = None,
        special_tokens: bool = True,
        prompt: str | None = None,
    ) -> Explanation:
        """A score and its parts, computed in float64: what each pair of tokens and of words adds.

        Args:
            a: Left text, the rows of the tables.
            b: Right text, the columns.
            similarity: Another similarity than the model's own.
            special_tokens: Let [CLS], [SEP] and the prompt take part; they are rows of their own.
            prompt: Put in front of both texts; by default the model's own.

        Raises:
            InputTypeError: A side is not one string.
            InputError: The similarity is a distance and has no contributions.
        """
        chosen = self.similarity if similarity is None else by_name(similarity)
        texts = [*as_texts([a]), *as_texts([b])]
        prompt = self._prompt(prompt, None)
        embeddings = _widened(self.encoder.embed(texts, prompt=prompt, special_tokens=special_tokens))
        left, right = embeddings.select([0]), embeddings.select([1])
        tokenized = self.encoder.tokenize(texts, prompt=prompt, special_tokens=special_tokens)
        sides = [Side(one.text, one.text_tokens().tokens, one.truncated) for one in tokenized]
        parts = chosen.decompose(left, right)[0]
        details: dict[str, float] = {}
        if isinstance(chosen, RCMD):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EmptyTextWarning)  # decompose has said it
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


def _widened(embeddings: Embeddings) -> Embeddings:
    weights = None if embeddings.weights is None else embeddings.weights.astype(np.float64)
    return Embeddings(embeddings.tokens.astype(np.float64), embeddings.offsets, weights)


def _as_output(vectors: np.ndarray, to: str) -> Any:
    if to == "numpy":
        return vectors
    if to == "torch":
        import torch

        return torch.from_numpy(vectors)
    raise InputError(f"unknown output {to!r}; known are numpy, torch")
