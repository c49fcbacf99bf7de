"""The tables of time and memory, measured on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from likewise.data import read_stsb
from likewise.evaluation.baselines import WordVectors, words_of
from likewise.evaluation.measures import Embedder
from likewise.evaluation.papers import TABLES
from likewise.evaluation.reproduce.memory import FORMS, extra_gb
from likewise.evaluation.reproduce.result import OurRow, Request
from likewise.evaluation.reproduce.systems import label
from likewise.model import Model
from likewise.similarity import by_name
from likewise.types import Embeddings

__all__ = ["clrcmd_figure3", "clrcmd_table3", "sbert_table7", "speed_systems", "texts_of_length"]

Found = Iterator[OurRow | str]

_SENTENCES = {"smoke": 40, "small": 1000, "full": 2500}
_REPEATS = {"smoke": 1, "small": 3, "full": 7}
_GLOVE_DIM, _INFERSENT_HIDDEN = 300, 2048
"""As published: speed does not depend on what the weights are."""

_FASTER = ("smart batching", "packed, float32", "packed, int8")

_WORDS = "a man dog red car runs over the green hill and sees two birds near his old house by water".split()

_ONE_MACHINE = (
    "times are of this machine and of its present load; the paper's are of others, so compare ratios, not seconds"
)


def sbert_table7(request: Request) -> Found:
    """Sentences a second: word vectors, InferSent's size, padded batches, smart batching, ours."""
    pairs = read_stsb(request.folder(), "train")
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.a, pair.b)))[: _SENTENCES[request.size]]
    for model in request.models:
        systems = speed_systems(model, texts)
        jobs = {name: partial(system.encode, texts, progress=False) for name, system in systems.items()}
        times = _medians(jobs, _REPEATS[request.size])
        for name, spent in times.items():
            yield OurRow(name, (len(texts) / spent, None))
        plain = times[label(model, "padded")]
        faster = [f"{what} {100 * (plain / times[label(model, what)] - 1):+.0f} %" for what in _FASTER]
        yield f"{label(model)}, beside padded batches: {'; '.join(faster)} (paper: smart batching +89 % on its CPU)"
    yield f"{len(texts):,} sentences of STS-b train; word vectors and LSTM have random values in the published sizes"
    yield "the papers' models have 12 or 24 layers of 768 or 1024; a smaller one is quicker for that alone"
    yield _ONE_MACHINE


def speed_systems(model: Model, texts: Sequence[str], *, hidden: int = _INFERSENT_HIDDEN) -> dict[str, Embedder]:
    """What Table 7 compares, by name, in the paper's order and then ours.

    Args:
        model: Mean-pooled; it runs in padded batches, too, and packed in float32 and int8.
        texts: Their words get random vectors of GloVe's size.
        hidden: Width of the LSTM.
    """
    from likewise.evaluation.baselines import InferSent, PaddedBatches

    known = sorted({word for text in texts for word in words_of(text)})
    random = np.random.default_rng(0)
    words = WordVectors(known, random.standard_normal((len(known), _GLOVE_DIM), dtype=np.float32))
    return {
        "word vectors": words,
        "InferSent-style": InferSent.untrained(words, hidden=hidden),
        label(model, "padded"): PaddedBatches(model),
        label(model, "smart batching"): PaddedBatches(model, smart=True),
        label(model, "packed, float32"): Model.load(model.folder, precision="float32"),
        label(model, "packed, int8"): Model.load(model.folder, precision="int8"),
    }


def clrcmd_figure3(request: Request) -> Found:
    """Seconds for 512 pairs from text to score, average pooling and RCMD."""
    lengths = [int(length) for length in TABLES["clrcmd-figure3"].columns]
    n = 512 if request.size != "smoke" else 8
    lengths_measured = lengths if request.size != "smoke" else lengths[:2]
    for model in request.models:
        times: dict[str, list[float | None]] = {"average pooling": [], "RCMD": []}
        for length in lengths:
            a, b = (texts_of_length(model, n, length, seed) for seed in (1, 2))
            if length not in lengths_measured or a is None or b is None:
                for values in times.values():
                    values.append(None)
                continue
            found = _medians(_scoring(model, a, b), _REPEATS[request.size])
            for name, values in times.items():
                values.append(found.get(name))
        for name, values in times.items():
            yield OurRow(f"{label(model)}, {name}", tuple(values))
        ratios = [b / a for a, b in zip(times["average pooling"], times["RCMD"], strict=True) if a and b]
        if ratios:
            yield f"{label(model)}: RCMD takes {min(ratios):.2f} to {max(ratios):.2f} times as long as average pooling"
    yield f"{n} pairs of common words, one token each; from text to score"
    yield _ONE_MACHINE


def clrcmd_table3(request: Request) -> Found:
    """Memory of the objective alone, forward and backward, on the CPU."""
    batches = [16, 32, 64, 128] if request.size != "smoke" else [16]
    length, dim = (32, 768) if request.size != "smoke" else (8, 32)
    for form in FORMS:
        values = [extra_gb(form, batch, 2 * batch, length, dim) for batch in batches]
        reasons = () if None not in values else ("peak memory is read from /proc, which this system does not have",)
        yield OurRow(f"{form}, objective alone", (*values, *[None] * (4 - len(values))), reasons=reasons)
    yield (
        f"B anchors and 2B candidates of {length} tokens of {dim}, float32, without the encoder: the paper's numbers "
        "are those of a whole training step of BERT-base in fp16 on a GPU, activations included"
    )
    yield "benchmarks/bench_rcmd_memory.py measures more batch sizes, and the paper's sparse form, too"


def texts_of_length(model: Model, n: int, n_tokens: int, seed: int) -> list[str] | None:
    """n texts of exactly so many tokens, special ones included; None where the model cannot read that many."""
    special, *covers = model.coverage(["", *_WORDS])
    words = [word for word, cover in zip(_WORDS, covers, strict=True) if cover.n_total == special.n_total + 1]
    wanted = n_tokens - special.n_total
    if not words or wanted < 1 or (model.max_length is not None and n_tokens > model.max_length):
        return None
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(words, wanted)) for _ in range(n)]


def _scoring(model: Model, a: Sequence[str], b: Sequence[str]) -> Mapping[str, Callable[[], object]]:
    def average() -> object:
        vectors = Embeddings.from_pooled(model.encode([*a, *b], progress=False))
        return by_name("cosine").score(vectors.select(range(len(a))), vectors.select(range(len(a), 2 * len(a))))

    def rcmd() -> object:
        tokens = model.embed([*a, *b], progress=False)
        return by_name("rcmd").score(tokens.select(range(len(a))), tokens.select(range(len(a), 2 * len(a))))

    return {"average pooling": average, "RCMD": rcmd} if model.pooled else {"RCMD": rcmd}


def _medians(jobs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each job, all in turn, after one round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for counted in (False, *[True] * repeats):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if counted:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}
