"""Interpretable STS: do the contributions of a score single out the chunks that people aligned?

The protocol of CLRCMD with the gold chunks: contributions of token pairs, the mean over the block of each pair of
chunks, and those pairs chosen that are the largest of their row and of their column. Two variants:

paper    as published: the rows and columns of special tokens are cut off after scoring, and of exact ties all are
         chosen (RCMD leaves many blocks at exactly 0)
lawful   nothing is cut off: each token outside the chunks, such as [CLS], is a row of its own that can win, so that
         the table of sums adds up to the score; of exact ties the first is chosen, so each chunk is aligned once
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from likewise.data import ChunkAlignment, ChunkedPair, ChunkedText
from likewise.errors import InputError
from likewise.evaluation.ists_f1 import alignment_sums, f1_values, resampled_f1, strong_alignments
from likewise.evaluation.measures import Measure
from likewise.evaluation.pair_scores import widened
from likewise.evaluation.statistics import Comparison, compare_resamples, interval_or_reason, too_few
from likewise.evaluation.worst import WorstPair
from likewise.explain import roll_up
from likewise.model import Model
from likewise.similarity import Similarity, by_name
from likewise.types import Token

__all__ = [
    "VARIANTS",
    "ChunkTable",
    "SystemAlignments",
    "align_chunks",
    "align_ists",
    "chunk_tables",
    "evaluate_ists",
]

VARIANTS = ("paper", "lawful")
"""How chunk pairs are chosen."""

_PROMPT = ""
"""What stands in front of each sentence: nothing, whatever the model has for other work."""

_NO_GOLD = "the gold aligns no chunks"


@dataclass(frozen=True, eq=False)
class ChunkTable:
    """What each pair of tokens adds to the score of two sentences, and which tokens make up which chunk."""

    contributions: Float[np.ndarray, "source target"]
    """Every token of the left sentence with every one of the right, special tokens too; they sum to the score."""
    rows: tuple[tuple[int, ...], ...]
    """Tokens of each chunk of the left sentence; none for a chunk that the model did not read."""
    columns: tuple[tuple[int, ...], ...]
    """The same of the right sentence."""

    @property
    def means(self) -> Float[np.ndarray, "chunks_a chunks_b"]:
        """Mean contribution over the block of each pair of chunks; minus infinity where a chunk has no token."""
        return _means(self.contributions, self.rows, self.columns)

    @property
    def sums(self) -> Float[np.ndarray, "groups_a groups_b"]:
        """Sums over the same blocks, then a row or column for each other token: they add up to the score."""
        return roll_up(self.contributions, *self._groups())

    def chosen(self, variant: str = "paper") -> list[tuple[int, int]]:
        """Places of the chunk pairs that are the largest of their row and of their column, in reading order.

        Raises:
            InputError: Unknown variant.
        """
        if variant not in VARIANTS:
            raise InputError(f"unknown variant {variant!r}; known are {', '.join(VARIANTS)}")
        if not self.rows or not self.columns:
            return []
        if variant == "paper":
            table = self.means
            largest = (table == table.max(axis=1, keepdims=True)) & (table == table.max(axis=0, keepdims=True))
        else:
            table = _means(self.contributions, *self._groups())
            places = np.indices(table.shape)
            largest = (places[1] == table.argmax(axis=1)[:, None]) & (places[0] == table.argmax(axis=0)[None, :])
        largest = largest & np.isfinite(table)
        return [(int(i), int(j)) for i, j in np.argwhere(largest[: len(self.rows), : len(self.columns)])]

    def _groups(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """The chunks, then each token that is in none."""
        left, right = (
            [*groups, *((token,) for token in range(n) if not any(token in group for group in groups))]
            for groups, n in zip((self.rows, self.columns), self.contributions.shape, strict=True)
        )
        return left, right


@dataclass(frozen=True, eq=False)
class SystemAlignments:
    """What one model aligns under one similarity."""

    model: str
    """Name of the model."""
    similarity: str
    """How it compared."""
    subset: str
    """Source of the sentence pairs, such as "images"."""
    pairs: Sequence[ChunkedPair]
    """The sentence pairs with their whole gold."""
    tables: Sequence[ChunkTable]
    """Their contributions."""

    def aligned(self, variant: str = "paper") -> list[ChunkedPair]:
        """The pairs with the chosen alignments in place of the gold, ready for `write_wa`.

        Raises:
            InputError: Unknown variant.
        """
        return align_chunks(self.pairs, self.tables, variant)

    def measures(self) -> list[Measure]:
        """Alignment F1 of the paper's variant and of the lawful one, and lawful minus paper, with 95 % intervals.

        Every chosen pair is called EQUI with score 5, so the type and score F1 would say nothing and are not given.
        """
        paper, lawful = (self._f1[variant] for variant in VARIANTS)
        gain = None if paper[0] is None or lawful[0] is None else lawful[0] - paper[0]
        rows = {"alignment_f1": paper, "alignment_f1_lawful": lawful, "lawful_gain": (gain, lawful[1] - paper[1])}
        measures = []
        for metric, (value, draws) in rows.items():
            interval, reason = (None, _NO_GOLD) if value is None else interval_or_reason(draws, len(self.pairs))
            low, high = interval or (None, None)
            place = "iSTS", self.subset, self.model, self.similarity
            measures.append(Measure(*place, metric, value, len(self.pairs), low, high, reason))
        return measures

    def compare(self, first: SystemAlignments) -> Comparison:
        """Alignment F1 of this system minus that of `first` in the paper's variant, by a paired bootstrap.

        Raises:
            InputError: The two did not align the same sentence pairs.
        """
        if list(self.pairs) != list(first.pairs):
            raise InputError("the two systems did not align the same sentence pairs, so that they cannot be compared")
        names = first.similarity, self.similarity
        if self.model != first.model:
            names = f"{first.model} {first.similarity}", f"{self.model} {self.similarity}"
        (before, draws), (now, other) = first._f1["paper"], self._f1["paper"]
        place = "iSTS", self.subset, "alignment_f1", *names
        if before is None or now is None:
            return Comparison(*place, None, len(self.pairs), reason=_NO_GOLD)
        interval, p_value = compare_resamples(draws, other, n=len(self.pairs))
        low, high = interval or (None, None)
        return Comparison(*place, now - before, len(self.pairs), low, high, p_value, reason=too_few(len(self.pairs)))

    def worst(self, k: int = 3) -> list[WorstPair]:
        """The k sentence pairs of the lowest alignment F1 of the paper's variant, those with more gold links first."""
        gold, own = strong_alignments(self.pairs), self.aligned()
        values = [f1_values(row[None]).alignment for row in alignment_sums(gold, own)]
        rated = [(value, -len(gold[i].alignments), i) for i, value in enumerate(values) if value is not None]
        listed = []
        for value, _, i in sorted(rated)[:k]:
            verdict = f"alignment F1 {value:.2f} · people: {_links(gold[i])} · here: {_links(own[i])}"
            place, score = ("iSTS", self.model, self.similarity), float(self.tables[i].contributions.sum())
            left, right = self.pairs[i].left.text, self.pairs[i].right.text
            listed.append(WorstPair(*place, left, right, score, verdict, prompt=_PROMPT))
        return listed

    @cached_property
    def _f1(self) -> dict[str, tuple[float | None, Float[np.ndarray, " resamples"]]]:
        """Variant → alignment F1, and the same of resamples."""
        gold = strong_alignments(self.pairs)
        sums = {variant: alignment_sums(gold, self.aligned(variant)) for variant in VARIANTS}
        return {variant: (f1_values(own).alignment, resampled_f1(own)) for variant, own in sums.items()}


def chunk_tables(
    model: Model,
    pairs: Sequence[ChunkedPair],
    similarities: Sequence[str | Similarity],
    *,
    special_tokens: bool = True,
    progress: bool | None = None,
) -> list[list[ChunkTable]]:
    """Contributions of each sentence pair in float64, with the tokens of its gold chunks.

    Every distinct sentence is encoded once, without prompt.

    Args:
        model: A model with a tokenizer that says where its tokens stand.
        pairs: Sentences with their chunks.
        similarities: Such as are sums over token pairs: cosine, dot, rcmd, transport.
        special_tokens: Score with [CLS], [SEP] and the like.
        progress: Show a bar on standard error while encoding.

    Returns:
        For each similarity one table a sentence pair, in the order given.

    Raises:
        InputError: A similarity has no contributions, or the model gives NaN.

    Source:
        Lee et al. 2022 (CLRCMD), sections 3 and 4.3.
    """
    place: dict[str, int] = {}
    for side in (side for pair in pairs for side in (pair.left, pair.right)):
        place.setdefault(side.text, len(place))
    embeddings = widened(model.embed(list(place), prompt=_PROMPT, special_tokens=special_tokens, progress=progress))
    tokenized = model.encoder.tokenize(list(place), prompt=_PROMPT, special_tokens=special_tokens)
    tokens = [one.text_tokens().tokens for one in tokenized]
    rows = [place[pair.left.text] for pair in pairs], [place[pair.right.text] for pair in pairs]
    left, right = (embeddings.select(side) for side in rows)
    chunks = [
        (_chunks(pair.left, tokens[i]), _chunks(pair.right, tokens[j])) for pair, i, j in zip(pairs, *rows, strict=True)
    ]
    return [
        [
            ChunkTable(np.asarray(table), *groups)
            for table, groups in zip(by_name(similarity).contributions(left, right), chunks, strict=True)
        ]
        for similarity in similarities
    ]


def align_chunks(
    pairs: Sequence[ChunkedPair], tables: Sequence[ChunkTable], variant: str = "paper"
) -> list[ChunkedPair]:
    """The pairs with the chosen chunk pairs as their alignments, each EQUI with score 5, ready for `write_wa`.

    Raises:
        InputError: Unknown variant.
    """
    return [
        replace(
            pair,
            alignments=tuple(
                ChunkAlignment(pair.left.chunks[i], pair.right.chunks[j], "EQUI", 5.0) for i, j in table.chosen(variant)
            ),
        )
        for pair, table in zip(pairs, tables, strict=True)
    ]


def evaluate_ists(
    model: Model,
    pairs: Sequence[ChunkedPair],
    similarities: Sequence[str | Similarity] = ("cosine", "rcmd"),
    *,
    subset: str = "images",
    special_tokens: bool = True,
    progress: bool | None = None,
) -> list[Measure]:
    """Alignment F1, 0 to 1, of both variants and what the lawful one gains: see `align_ists` for the arguments."""
    systems = align_ists(model, pairs, similarities, subset=subset, special_tokens=special_tokens, progress=progress)
    return [measure for system in systems for measure in system.measures()]


def align_ists(
    model: Model,
    pairs: Sequence[ChunkedPair],
    similarities: Sequence[str | Similarity] = ("cosine", "rcmd"),
    *,
    subset: str = "images",
    special_tokens: bool = True,
    progress: bool | None = None,
) -> list[SystemAlignments]:
    """What a model aligns under each similarity; see `chunk_tables`.

    Args:
        model: The model to evaluate.
        pairs: Sentence pairs with the whole gold; NOALI and scores below 3 are dropped here.
        similarities: Names or objects.
        subset: What the rows of the table say about the source of the pairs.
        special_tokens: Score with [CLS], [SEP] and the like.
        progress: Show a bar on standard error while encoding.

    Raises:
        InputError: A similarity has no contributions, or the model gives NaN.

    Source:
        Lee et al. 2022 (CLRCMD), section 4.3; Agirre et al. 2016, SemEval-2016 task 2.
    """
    found = chunk_tables(model, pairs, similarities, special_tokens=special_tokens, progress=progress)
    names = [by_name(similarity).name for similarity in similarities]
    if not special_tokens:
        names = [f"{name} (no special tokens)" for name in names]
    return [SystemAlignments(model.name, name, subset, pairs, own) for name, own in zip(names, found, strict=True)]


def _chunks(side: ChunkedText, tokens: Sequence[Token]) -> tuple[tuple[int, ...], ...]:
    """The tokens whose characters each chunk covers, or covers most of."""
    found: list[list[int]] = [[] for _ in side.chunks]
    spans = side.chunk_spans
    for row, token in enumerate(tokens):
        shared = [min(token.end, end) - max(token.start, start) for start, end in spans]
        if not token.special and shared and max(shared) > 0:
            found[int(np.argmax(shared))].append(row)
    return tuple(map(tuple, found))


def _means(table: np.ndarray, rows: Sequence[Sequence[int]], columns: Sequence[Sequence[int]]) -> np.ndarray:
    sizes = np.outer([len(group) for group in rows], [len(group) for group in columns])
    sums = roll_up(table, rows, columns).reshape(sizes.shape)
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), -np.inf)


def _links(pair: ChunkedPair) -> str:
    """The alignments of a pair in words."""

    def words(side: ChunkedText, ids: Sequence[int]) -> str:
        return " ".join(side.words[number - 1] for number in ids)

    links = [f"{words(pair.left, one.left)} ~ {words(pair.right, one.right)}" for one in pair.alignments]
    return ", ".join(links) or "nothing"
