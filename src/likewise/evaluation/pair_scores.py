"""Scores of many pairs under many similarities, each distinct text encoded once and held no longer than needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from likewise.encoder import told_once
from likewise.errors import InputError
from likewise.evaluation.measures import Embedder
from likewise.model import Model
from likewise.similarity import Similarity, by_name
from likewise.types import Embeddings

__all__ = ["rounded", "score_pairs", "widened"]

_WINDOW_TEXTS, _WINDOW_CHARACTERS = 4_096, 400_000
"""Most new texts, and characters of them, that are encoded before their pairs are scored."""

_STEPS = np.float32(2**20)

_PAIRS = 512
"""Pairs scored in one call, which bounds the copies of their tokens."""


def score_pairs(
    model: Embedder,
    pairs: Sequence[tuple[str, str]],
    similarities: Sequence[str | Similarity],
    *,
    special_tokens: bool = True,
    normalised: bool = True,
    progress: bool | None = None,
) -> list[Float[np.ndarray, " n"]]:
    """Every pair's score under each similarity; each distinct text is encoded once.

    Texts are encoded in the order in which the pairs need them, some thousands at a time, and each is held until
    its last pair is scored; so memory does not grow with the number of pairs.

    Args:
        model: What turns texts into vectors.
        pairs: Texts to compare, row by row.
        similarities: Names or objects.
        special_tokens: Let [CLS], [SEP] and the like take part.
        normalised: Compare the pooled vectors as the model gives them. False undoes a final scaling to length 1: the
            pooling weights of each text (in each dimension) are scaled to sum 1. Cosine does not notice; the dot
            product and the distances do.
        progress: Show a bar on standard error while encoding.

    Returns:
        One array [n] for each similarity, in the order given; larger means more alike. Scores are rounded to 20
        significant bits (six digits), which is what sums of float32 in another order agree on: pairs that are equal
        in truth, such as those of a sentence with itself, then tie on every machine.

    Raises:
        InputError: An unknown similarity, one that needs pooled vectors of a token-level model, a baseline without
            special tokens to leave out, or a model that gives NaN.
    """
    chosen = [by_name(similarity) for similarity in similarities]
    embed = _embedder(model, any(one.needs_tokens for one in chosen), special_tokens, normalised, progress)
    last = {text: at for at, pair in enumerate(pairs) for text in pair}
    scores = [np.empty(len(pairs), np.float32) for _ in chosen]
    rows: dict[str, int] = {}
    held: Embeddings | None = None
    with told_once():
        for start, stop, new in _windows(pairs):
            fresh = embed(new)
            rows.update(zip(new, range(len(rows), len(rows) + len(new)), strict=True))
            held = fresh if held is None else _joined(held, fresh)
            _score_window(chosen, held, rows, pairs[start:stop], [out[start:stop] for out in scores])
            kept = [text for text in rows if last[text] >= stop]
            held = held.select([rows[text] for text in kept])
            rows = {text: row for row, text in enumerate(kept)}
    return [rounded(out) for out in scores]


def _embedder(
    model: Embedder, tokens: bool, special_tokens: bool, normalised: bool, progress: bool | None
) -> Callable[[list[str]], Embeddings]:
    if not special_tokens and not isinstance(model, Model):
        raise InputError(f"{model.name} has no special tokens that could be left out; evaluate it with them")

    def embed(texts: list[str]) -> Embeddings:
        if tokens or not normalised:
            if special_tokens:
                found = model.embed(texts, progress=progress)
            else:
                assert isinstance(model, Model)
                found = model.embed(texts, special_tokens=False, progress=progress)
            return found if normalised else _unnormalised(found)
        if special_tokens:
            return Embeddings.from_pooled(model.encode(texts, progress=progress))
        assert isinstance(model, Model)
        return Embeddings.from_pooled(model.encode(texts, special_tokens=False, progress=progress))

    return embed


def _windows(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int, list[str]]]:
    """Runs of pairs (start, stop) and the texts in them that no earlier run has."""
    seen: set[str] = set()
    start, size = 0, 0
    new: list[str] = []
    for at, pair in enumerate(pairs):
        if len(new) >= _WINDOW_TEXTS or size >= _WINDOW_CHARACTERS:
            yield start, at, new
            start, new, size = at, [], 0
        for text in pair:
            if text not in seen:
                seen.add(text)
                new.append(text)
                size += len(text)
    if start < len(pairs):
        yield start, len(pairs), new


def _score_window(
    similarities: Sequence[Similarity],
    held: Embeddings,
    rows: dict[str, int],
    pairs: Sequence[tuple[str, str]],
    out: Sequence[Float[np.ndarray, " some"]],
) -> None:
    pooled = None
    if any(not similarity.needs_tokens for similarity in similarities):
        pooled = Embeddings.from_pooled(held.pooled())
    for start in range(0, len(pairs), _PAIRS):
        some = pairs[start : start + _PAIRS]
        left, right = [rows[a] for a, _ in some], [rows[b] for _, b in some]
        tokens = None
        for similarity, scores in zip(similarities, out, strict=True):
            if similarity.needs_tokens:
                tokens = tokens or (held.select(left), held.select(right))
                scores[start : start + len(some)] = similarity.score(*tokens)
            elif pooled is not None:
                scores[start : start + len(some)] = similarity.score(pooled.select(left), pooled.select(right))


def rounded(scores: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """The scores with 20 significant bits; see `score_pairs`."""
    mantissa, exponent = np.frexp(scores)
    return np.ldexp(np.round(mantissa * _STEPS) / _STEPS, exponent)


def widened(embeddings: Embeddings) -> Embeddings:
    """The same in float64."""
    weights = None if embeddings.weights is None else embeddings.weights.astype(np.float64)
    return Embeddings(embeddings.tokens.astype(np.float64), embeddings.offsets, weights)


def _joined(first: Embeddings, second: Embeddings) -> Embeddings:
    weights = None
    if first.weights is not None and second.weights is not None:
        weights = np.concatenate([first.weights, second.weights])
    offsets = np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]])
    return Embeddings(np.concatenate([first.tokens, second.tokens]), offsets, weights)


def _unnormalised(embeddings: Embeddings) -> Embeddings:
    """The same tokens with pooling weights that sum to 1 for each text (in each dimension)."""
    if embeddings.weights is None or not len(embeddings.tokens):
        return embeddings
    lengths = embeddings.lengths[embeddings.lengths > 0]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    sums = np.repeat(np.add.reduceat(embeddings.weights, starts, axis=0), lengths, axis=0)
    weights = np.divide(embeddings.weights, sums, out=np.zeros_like(embeddings.weights), where=sums != 0)
    return Embeddings(embeddings.tokens, embeddings.offsets, weights)
