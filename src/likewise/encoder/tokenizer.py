"""Texts to token ids, with every token's place in the original text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.errors import InputError, ModelError
from likewise.types import TextTokens, Token

__all__ = ["Tokenized", "Tokenizer", "with_markers"]

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Tokenized:
    """One text as the backbone reads it."""

    text: str
    """The original text, without the prompt."""
    ids: np.ndarray
    """[length] vocabulary ids."""
    special: np.ndarray
    """[length] booleans: added by the tokenizer or by the prompt."""
    n_read: int
    """Tokens that the backbone reads, those among them that `only` leaves out."""
    n_total: int
    """Tokens that the whole text has; more than `n_read` if it was cut."""
    n_prompt: int
    """Leading tokens up to the end of the prompt, the opening special token included; 0 without prompt."""
    encoding: Any
    """The tokenizer library's own record of every token read."""
    shift: int
    """Characters of the prompt in front of the text."""
    rows: np.ndarray | None = None
    """[length] which tokens of the record these are; None for all."""

    @property
    def truncated(self) -> bool:
        """The text was longer than the model reads."""
        return self.n_total > self.n_read

    def text_tokens(self) -> TextTokens:
        """Every token with its characters in the original text."""
        pieces, offsets = self.encoding.tokens, self.encoding.offsets
        tokens = []
        for row, special in zip(
            range(len(pieces)) if self.rows is None else self.rows.tolist(), self.special, strict=True
        ):
            start, end = (0, 0) if special else (max(offset - self.shift, 0) for offset in offsets[row])
            tokens.append(Token(pieces[row], start, end, bool(special)))
        return TextTokens(self.text, tuple(tokens))

    def only(self, mask: np.ndarray) -> Tokenized:
        """The same text with the tokens that `mask` leaves out."""
        rows = np.flatnonzero(mask) if self.rows is None else self.rows[mask]
        return replace(self, ids=self.ids[mask], special=self.special[mask], rows=rows)


class Tokenizer:
    """A fast tokenizer (package tokenizers) that never pads and always says what it cut.

    Args:
        definition: The tokenizer as JSON, as in `tokenizer.json`.
        max_length: Longest text in tokens, special tokens included; None for no limit.
        lower_case: Lower-case the text first, even if the definition does not.
        unknown: The unknown token, if the vocabulary has one.
    """

    def __init__(
        self, definition: str, max_length: int | None, *, lower_case: bool = False, unknown: str | None = None
    ) -> None:
        from tokenizers import Tokenizer as FastTokenizer
        from tokenizers import normalizers

        try:
            self._fast = FastTokenizer.from_str(definition)
        except Exception as error:  # the library raises bare Exception
            raise ModelError(f"the tokenizer definition cannot be read: {error}; fetch tokenizer.json again") from error
        self.definition = definition
        self.lower_case = lower_case
        self._fast.no_padding()
        if lower_case and not _lowers(json.loads(definition).get("normalizer")):
            first = [normalizers.Lowercase()]
            self._fast.normalizer = normalizers.Sequence(
                first + ([self._fast.normalizer] if self._fast.normalizer else [])
            )
        self._unknown = self._fast.token_to_id(unknown) if unknown else None
        self._n_added = self._fast.num_special_tokens_to_add(False)
        self.max_length = max_length
        if max_length is None:
            self._fast.no_truncation()
        elif max_length <= self._n_added:
            raise InputError(
                f"max_length {max_length} leaves no room beside the {self._n_added} special tokens; use a larger one"
            )
        else:
            self._fast.enable_truncation(max_length)

    @property
    def size(self) -> int:
        """Number of ids, added tokens included."""
        return int(self._fast.get_vocab_size(with_added_tokens=True))

    def to_json(self) -> str:
        """The definition as it is applied: with the lower-casing and the cut that the model asks for."""
        return str(self._fast.to_str())

    def id_of(self, piece: str) -> int | None:
        """Vocabulary id of a piece, or None."""
        found = self._fast.token_to_id(piece)
        return None if found is None else int(found)

    def unknown_in(self, ids: np.ndarray) -> int:
        """How many of the ids are the unknown token."""
        return 0 if self._unknown is None else int(np.count_nonzero(ids == self._unknown))

    def __call__(self, texts: Sequence[str], prompt: str = "") -> list[Tokenized]:
        """Tokenize texts, each behind the prompt.

        Lone surrogates, which no encoding has, are read as U+FFFD; offsets stay those of the original.
        """
        encodings = self._fast.encode_batch([_SURROGATES.sub("\ufffd", prompt + text) for text in texts])
        n_prompt = self._prompt_tokens(prompt)
        return [
            self._tokenized(text, encoding, prompt, n_prompt) for text, encoding in zip(texts, encodings, strict=True)
        ]

    def _tokenized(self, text: str, encoding: Any, prompt: str, n_prompt: int) -> Tokenized:
        special = np.asarray(encoding.special_tokens_mask, dtype=bool)
        if prompt:
            ends = np.asarray([end for _, end in encoding.offsets], dtype=np.int64)
            special |= ends <= len(prompt)
        cut = sum(len(piece.ids) - self._n_added for piece in encoding.overflowing)
        ids = np.asarray(encoding.ids, dtype=np.int32)
        n = len(ids)
        return Tokenized(text, ids, special, n, n + cut, min(n_prompt, n), encoding, len(prompt))

    def _prompt_tokens(self, prompt: str) -> int:
        if not prompt:
            return 0
        alone = self._fast.encode(_SURROGATES.sub("\ufffd", prompt))
        return len(alone.ids) - int(bool(alone.special_tokens_mask and alone.special_tokens_mask[-1]))


def with_markers(definition: str, prompts: Sequence[str]) -> str:
    """The definition, in which each prompt, or its first word, is one token if the vocabulary has it.

    A ColBERT model was trained with its marker put in by id; an ordinary reading of `[D] ` would fall apart.

    Args:
        definition: The tokenizer as JSON.
        prompts: Prompts that begin with a marker.
    """
    from tokenizers import Tokenizer as FastTokenizer

    if not prompts:
        return definition
    fast = FastTokenizer.from_str(definition)
    content = json.loads(definition)
    for prompt in prompts:
        marker = next((one for one in (prompt, *prompt.split()[:1]) if fast.token_to_id(one) is not None), None)
        if marker is None or fast.encode(marker, add_special_tokens=False).tokens == [marker]:
            continue
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        others = [token for token in content["added_tokens"] if token["content"] != marker]
        added = [*others, {"id": fast.token_to_id(marker), "content": marker, **flags}]
        content["added_tokens"] = sorted(added, key=lambda token: int(token["id"]))
    return json.dumps(content, ensure_ascii=False)


def _lowers(normalizer: dict[str, Any] | None) -> bool:
    if not normalizer:
        return False
    if normalizer.get("type") == "Sequence":
        return any(_lowers(part) for part in normalizer.get("normalizers", []))
    return normalizer.get("type") == "Lowercase" or bool(normalizer.get("lowercase"))
