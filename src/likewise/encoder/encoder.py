"""The encoder: texts in any container to packed token embeddings, or to pooled vectors."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from likewise.backbone import Backbone
from likewise.encoder.head import Head
from likewise.encoder.texts import as_texts
from likewise.encoder.tokenizer import Tokenized, Tokenizer
from likewise.encoder.windows import WINDOW, Cuts, check_on_truncate, chunks, cuts_of, progress_bar
from likewise.errors import InputError
from likewise.types import Embeddings

__all__ = ["Coverage", "Encoder", "packed"]

_TOKENS_A_CALL = 65_536
"""Token budget of one call of the backbone; bounds the memory of token states."""


@dataclass(frozen=True)
class Coverage:
    """How much of a text the model reads."""

    n_tokens: int
    """Tokens that the model reads, special tokens included."""
    n_total: int
    """Tokens that the whole text has."""
    cut_at: int | None
    """First character that the model does not read; None if it reads the whole text."""
    n_unknown: int
    """Tokens that are not in the vocabulary."""

    @property
    def truncated(self) -> bool:
        """The model does not read the whole text."""
        return self.n_total > self.n_tokens


class Encoder:
    """Tokenizer, backbone and head as one.

    Texts are packed, so that no padding exists. With the native engine a text gives the same bytes in any batch;
    with torch the same numbers within 1e-5 in float32.
    """

    def __init__(self, tokenizer: Tokenizer, backbone: Backbone, head: Head) -> None:
        self.tokenizer = tokenizer
        self.backbone = backbone
        self.head = head
        words = head.skip.words if "document" in head.skip.tasks else ()
        found = [tokenizer.id_of(word) for word in words]
        self._skipped = [number for number in found if number is not None]

    @property
    def token_dim(self) -> int:
        """Length of a token vector."""
        return self.head.dims(self.backbone.dim)[0]

    @property
    def dim(self) -> int:
        """Length of a pooled vector; of a token vector if the model has no pooling."""
        return self.head.dims(self.backbone.dim)[1]

    def embed(
        self,
        texts: Any,
        *,
        prompt: str = "",
        special_tokens: bool = True,
        on_truncate: str = "warn",
        progress: bool | None = None,
    ) -> Embeddings:
        """Token vectors of every text, packed, with the weights that pool them.

        Args:
            texts: See `as_texts`.
            prompt: Put in front of each text.
            special_tokens: Keep the rows of tokens that the tokenizer or the prompt added.
            on_truncate: "warn" once a call, "raise", or "ignore".
            progress: Show a bar on standard error; by default only on a terminal and for long work.

        Raises:
            InputTypeError: An item is not a string.
            TruncationError: A text is too long and `on_truncate` is "raise".
        """
        self._check_special(special_tokens)
        tokens: list[np.ndarray] = []
        weights: list[np.ndarray] = []
        for window in self._windows(texts, prompt, on_truncate, progress):
            found: list[Any] = [None] * len(window)
            for row, states in enumerate(self._states(window)):
                found[row] = self.head.fold(*self._kept(window[row], states, special_tokens))
            tokens += [pair[0] for pair in found]
            weights += [pair[1] for pair in found if pair[1] is not None]
        if not tokens:
            empty = self.head.fold(np.zeros((0, self.backbone.dim), np.float32))
            return Embeddings(empty[0], np.zeros(1, np.int64), empty[1])
        offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in tokens])]).astype(np.int64)
        return Embeddings(np.concatenate(tokens), offsets, np.concatenate(weights) if weights else None)

    def pooled(self, texts: Any, **options: Any) -> Float[np.ndarray, "n dim"]:
        """Pooled vectors, in the order of the texts; the same values as `embed(texts).pooled()`. See `stream`."""
        return np.concatenate([np.zeros((0, self.dim), np.float32), *self.stream(texts, **options)])

    def stream(
        self,
        texts: Any,
        *,
        prompt: str = "",
        special_tokens: bool = True,
        on_truncate: str = "warn",
        progress: bool | None = None,
        cuts: Cuts | None = None,
    ) -> Iterator[Float[np.ndarray, "some dim"]]:
        """Pooled vectors in blocks, in the order of the texts, while later texts are still being read.

        Args:
            texts: See `as_texts`.
            prompt: Put in front of each text.
            special_tokens: Let the tokens that the tokenizer or the prompt added take part in the pooling.
            on_truncate: "warn" once a call, "raise", or "ignore".
            progress: Show a bar on standard error; by default only on a terminal and for long work.
            cuts: Counts the texts that were cut, up to the end of the block that was given last.

        Raises:
            InputError: The model has no pooling.
            InputTypeError: An item is not a string.
            TruncationError: A text is too long and `on_truncate` is "raise".
        """
        self._check_special(special_tokens)
        self.head.require_pooling()
        for window in self._windows(texts, prompt, on_truncate, progress, cuts):
            rows: dict[str, int] = {}  # equal texts are computed once
            distinct = []
            for one in window:
                if one.text not in rows:
                    rows[one.text] = len(rows)
                    distinct.append(one)
            block = self._pooled(distinct, bool(prompt), special_tokens)
            block = Embeddings.from_pooled(block).tokens  # which refuses NaN
            yield block if len(distinct) == len(window) else block[[rows[one.text] for one in window]]

    def tokenize(self, texts: Any, *, prompt: str = "", special_tokens: bool = True) -> list[Tokenized]:
        """The tokens of every text, in the order in which `embed` gives their rows, with nothing cut silently."""
        return [_keep(one, self._mask(one, special_tokens)) for one in self.tokenizer(list(as_texts(texts)), prompt)]

    def coverage(self, texts: Any, *, prompt: str = "") -> list[Coverage]:
        """For each text: tokens read, tokens in all, where it is cut, how many are unknown."""
        return [self._coverage(one) for one in self.tokenizer(list(as_texts(texts)), prompt)]

    def _coverage(self, one: Tokenized) -> Coverage:
        ends = [end - one.shift for _, end in one.encoding.offsets]
        cut_at = max(0, max(ends, default=0)) if one.truncated else None
        return Coverage(len(one.ids), one.n_total, cut_at, self.tokenizer.unknown_in(one.ids))

    def _check_special(self, special_tokens: bool) -> None:
        pooling = self.head.pooling
        if not special_tokens and pooling is not None and "cls" in pooling.modes:
            raise InputError(
                "special_tokens=False leaves out the very token that CLS pooling reads; use mean or max pooling"
            )

    def _windows(
        self, texts: Any, prompt: str, on_truncate: str, progress: bool | None, cuts: Cuts | None = None
    ) -> Iterator[list[Tokenized]]:
        check_on_truncate(on_truncate)
        cuts, tells = cuts_of(cuts)
        cuts.limit = self.tokenizer.max_length
        n_known = 1 if isinstance(texts, str) else operator.length_hint(texts, -1)
        with progress_bar(n_known, progress) as advance:
            for tokenized in _ahead(lambda window: self.tokenizer(window, prompt), chunks(as_texts(texts), WINDOW)):
                cuts.add(tokenized)
                cuts.check(on_truncate)
                yield tokenized
                advance(len(tokenized))
        if tells:
            cuts.tell(on_truncate)

    def _pooled(self, window: Sequence[Tokenized], has_prompt: bool, special_tokens: bool) -> np.ndarray:
        """Pooled vectors of one window, by the backbone itself where it can pool as the head asks."""
        head = self.head
        whole = special_tokens and not self._skipped and not head.on_tokens
        if (
            whole
            and len(head.require_pooling().modes) == 1
            and (not has_prompt or head.require_pooling().include_prompt)
        ):
            vectors = self.backbone.pooled(*packed(window), head.require_pooling().modes[0])
            if vectors is not None:
                return head.finish(vectors, np.asarray([len(one.ids) > 0 for one in window]))
        block = np.empty((len(window), self.dim), np.float32)
        for row, states in enumerate(self._states(window)):
            block[row] = head.pooled(*self._kept(window[row], states, special_tokens))
        return block

    def _states(self, window: Sequence[Tokenized]) -> Iterator[np.ndarray]:
        """Backbone states of each text in turn."""
        for some in _by_tokens(window, _TOKENS_A_CALL):
            ids, offsets = packed(some)
            states = self.backbone.states(ids, offsets)
            yield from (states[start:stop] for start, stop in itertools.pairwise(offsets.tolist()))

    def _kept(self, one: Tokenized, states: np.ndarray, special_tokens: bool) -> tuple[np.ndarray, int]:
        """The rows that are given out, and the first of them that is pooled."""
        mask = self._mask(one, special_tokens)
        pooling = self.head.pooling
        start = 0 if pooling is None or pooling.include_prompt else int(mask[: one.n_prompt].sum())
        return (states if mask.all() else states[mask]), start

    def _mask(self, one: Tokenized, special_tokens: bool) -> np.ndarray:
        mask = np.ones(len(one.ids), bool) if special_tokens else ~one.special
        return mask & ~np.isin(one.ids, self._skipped) if self._skipped else mask


def _keep(one: Tokenized, mask: np.ndarray) -> Tokenized:
    return one if mask.all() else one.only(mask)


def packed(window: Sequence[Tokenized]) -> tuple[np.ndarray, np.ndarray]:
    """Ids of the texts laid end to end, and where each starts."""
    offsets = np.concatenate([[0], np.cumsum([len(one.ids) for one in window])]).astype(np.int64)
    return np.concatenate([np.zeros(0, np.int32), *(one.ids for one in window)]), offsets


def _by_tokens(window: Sequence[Tokenized], budget: int) -> Iterator[Sequence[Tokenized]]:
    """Runs of texts of up to so many tokens, or of one text."""
    first, n_tokens = 0, 0
    for at, one in enumerate(window):
        if n_tokens and n_tokens + len(one.ids) > budget:
            yield window[first:at]
            first, n_tokens = at, 0
        n_tokens += len(one.ids)
    yield window[first:]


def _ahead(work: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
    """`work(item)` for each item, the next one on another thread while the caller is busy with this one."""
    item = next(items, None)
    if item is None:
        return
    following = next(items, None)
    if following is None:
        yield work(item)
        return
    with ThreadPoolExecutor(1) as pool:
        ready = pool.submit(work, item)
        while following is not None:
            done, ready = ready, pool.submit(work, following)
            yield done.result()
            following = next(items, None)
        yield ready.result()
