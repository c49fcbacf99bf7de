"""Vectors do not depend on the batch, long texts are announced, and every edge of the input is finite."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import likewise
from likewise import Model
from likewise.encoder import Coverage, Encoder
from likewise.errors import InputError, TruncationError, TruncationWarning

WORDS = [
    "the",
    "cat",
    "dog",
    "plane",
    "is",
    "taking",
    "off",
    "a",
    "man",
    "plays",
    "large",
    "flute",
    "children",
    "running",
    "green",
    "park",
]


def _texts(n: int = 50, longest: int = 60) -> list[str]:
    draw = np.random.default_rng(7)
    return [" ".join(draw.choice(WORDS, draw.integers(1, longest + 1))) for _ in range(n)]


@pytest.fixture(scope="module")
def cls_model(sentence_folder: Callable[..., Path]) -> Model:
    return Model.load(sentence_folder("bert", "cls"))


# ------------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("name", ["bert", "roberta", "mpnet"])
@pytest.mark.parametrize("pooling", ["mean", "max", "lasttoken"])
def test_a_vector_does_not_depend_on_its_batch(name: str, pooling: str, checkpoint: Callable[[str], Path]) -> None:
    model = Model.load(checkpoint(name), pooling=pooling)
    texts = _texts()

    def encode(some: Any) -> np.ndarray:
        return np.asarray(model.encode(some, on_truncate="ignore", normalize=True))

    together = encode(texts)
    alone = np.stack([encode(text) for text in texts])
    threes = np.concatenate([encode(texts[i : i + 3]) for i in range(0, len(texts), 3)])
    order = np.random.default_rng(1).permutation(len(texts))
    shuffled = np.empty_like(together)
    shuffled[order] = encode([texts[i] for i in order])
    for other in (alone, threes, shuffled):
        np.testing.assert_allclose(other, together, atol=1e-5, rtol=0)
    assert len({tuple(row) for row in together.round(3)}) == len(set(texts))


def test_token_vectors_do_not_depend_on_their_batch(tiny: Model) -> None:
    texts = _texts(20, 15)
    together = tiny.embed(texts)
    for i, text in enumerate(texts):
        np.testing.assert_allclose(tiny.embed(text).text(0), together.text(i), atol=1e-5, rtol=0)


def test_results_are_in_the_order_of_the_texts_across_windows(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = _texts(40, 15)
    expected, tokens = tiny.encode(texts), tiny.embed(texts)
    monkeypatch.setattr("likewise.encoder.encoder.WINDOW", 7)
    monkeypatch.setattr("likewise.encoder.encoder._TOKENS_A_CALL", 64)
    np.testing.assert_allclose(tiny.encode(iter(texts)), expected, atol=1e-5, rtol=0)
    np.testing.assert_allclose(tiny.embed(iter(texts)).tokens, tokens.tokens, atol=1e-5, rtol=0)


def test_the_same_call_twice_gives_the_same_bytes(tiny: Model) -> None:
    texts = _texts(20, 15)
    assert tiny.encode(texts).tobytes() == tiny.encode(texts).tobytes()


# -------------------------------------------------------------------------------------------- empty texts


@pytest.mark.parametrize(
    "options", [{}, {"to": "torch"}, {"dtype": "float16"}, {"normalize": True}, {"truncate_dim": 5}]
)
@pytest.mark.parametrize("special_tokens", [True, False])
def test_no_texts(options: dict[str, Any], special_tokens: bool, tiny: Model) -> None:
    vectors = tiny.encode([], special_tokens=special_tokens, **options)
    assert tuple(vectors.shape) == (0, options.get("truncate_dim", tiny.dim))
    assert str(vectors.dtype).removeprefix("torch.") == options.get("dtype", "float32")


def test_no_texts_elsewhere(tiny: Model) -> None:
    embedded = tiny.embed([])
    assert (len(embedded), embedded.dim, embedded.pooled().shape) == (0, tiny.dim, (0, tiny.dim))
    assert tiny.coverage([]) == []
    assert tiny.score([], []).shape == (0,)
    assert tiny.matrix([], ["a"]).shape == (0, 1)
    assert tiny.matrix([]).shape == (0, 0)


@pytest.mark.parametrize(
    "texts", [[""], ["   "], ["", "a", "\n\t"], ["☃"], ["☃ ☃", ""], ["\u200d"], ["\x00"]], ids=repr
)
@pytest.mark.parametrize("special_tokens", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "max", "lasttoken", "weightedmean"])
def test_texts_that_say_nothing_are_finite(
    texts: list[str], special_tokens: bool, pooling: str, checkpoint: Callable[[str], Path]
) -> None:
    model = Model.load(checkpoint("bert"), pooling=pooling)
    vectors = model.encode(texts, special_tokens=special_tokens, normalize=True)
    assert vectors.shape == (len(texts), model.dim)
    assert np.isfinite(vectors).all()
    embedded = model.embed(texts, special_tokens=special_tokens)
    assert np.isfinite(embedded.pooled()).all()
    np.testing.assert_allclose(embedded.pooled(), model.encode(texts, special_tokens=special_tokens), atol=1e-5, rtol=0)


def test_a_text_without_tokens_is_zero_and_scores_zero(tiny: Model) -> None:
    assert (tiny.encode([""], special_tokens=False) == 0).all()
    assert tiny.embed(["", "a"], special_tokens=False).lengths.tolist() == [0, 1]
    assert tiny.score("", "a plane", special_tokens=False) == 0
    assert tiny.score("", "") == pytest.approx(1, abs=1e-6)


def test_cls_pooling_needs_its_token(cls_model: Model) -> None:
    for read in (cls_model.encode, cls_model.embed):
        with pytest.raises(InputError, match="the very token that CLS pooling reads"):
            read(["a"], special_tokens=False)


# ------------------------------------------------------------------------------------------------ long texts


def test_a_long_text_is_announced_once(tiny: Model) -> None:
    texts = ["a plane", "dog " * 10_000, "dog " * 100]
    for read in (tiny.encode, tiny.embed):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read(texts)
        (one,) = caught
        assert one.category is TruncationWarning
        assert "2 of 3 texts are longer than the 64 tokens" in str(one.message)
        assert "the longest is text 1 with 10002 tokens" in str(one.message)
        assert not Path(one.filename).is_relative_to(Path(likewise.__file__).parent), "it points at the caller"


def test_a_long_text_can_be_refused_or_let_pass(tiny: Model) -> None:
    texts = ["a plane", "the cat " * 5_000]
    for read in (tiny.encode, tiny.embed):
        with pytest.raises(TruncationError, match="1 of 2 texts are longer than the 64 tokens"):
            read(texts, on_truncate="raise")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(texts, on_truncate="ignore")
            read(texts[:1], on_truncate="raise")
        with pytest.raises(InputError, match="unknown on_truncate 'cut'; known are warn, raise, ignore"):
            read(texts, on_truncate="cut")


def test_counts_run_across_windows(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.encoder.encoder.WINDOW", 2)
    with pytest.warns(TruncationWarning, match=r"2 of 5 texts .*the longest is text 3 with 72 tokens"):
        tiny.encode(["a", "dog " * 63, "b", "dog " * 70, "c"])


def test_coverage(tiny: Model) -> None:
    text = "a plane ☃ " + "dog " * 100
    short, long, empty = tiny.coverage(["a plane ☃ is", text, ""])
    assert short == Coverage(n_tokens=6, n_total=6, cut_at=None, n_unknown=1)
    assert (long.n_tokens, long.n_total, long.n_unknown, long.truncated) == (64, 105, 1, True)
    assert long.cut_at is not None
    assert text[: long.cut_at] == ("a plane ☃ " + "dog " * 59).rstrip()
    assert empty == Coverage(n_tokens=2, n_total=2, cut_at=None, n_unknown=0)
    assert not short.truncated


def test_coverage_counts_the_prompt_and_points_into_the_text(sentence_folder: Callable[..., Path]) -> None:
    model = Model.load(sentence_folder(prompts={"query": "query: "}, default_prompt_name="query"))
    text = "dog " * 100
    (one,) = model.coverage([text])
    prompt_tokens = len(model.encoder.tokenizer(["query: "])[0].ids) - 2
    assert one.n_total == 102 + prompt_tokens
    assert one.cut_at == len(("dog " * (62 - prompt_tokens)).rstrip())


def test_only_the_part_that_is_read_counts(tiny: Model) -> None:
    text = "the cat " * 100
    (coverage,) = tiny.coverage([text])
    np.testing.assert_allclose(
        tiny.encode(text, on_truncate="ignore"), tiny.encode(text[: coverage.cut_at]), atol=1e-5, rtol=0
    )


# --------------------------------------------------------------------------------------------------- output


def test_output_options(tiny: Model) -> None:
    import torch

    texts = _texts(6, 10)
    plain = tiny.encode(texts)
    assert plain.dtype == np.float32
    for dtype in ("float16", "float64"):
        np.testing.assert_array_equal(tiny.encode(texts, dtype=dtype), plain.astype(dtype))
    tensor = tiny.encode(texts, to="torch")
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), plain)
    unit = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(tiny.encode(texts, normalize=True), unit, atol=1e-6)
    np.testing.assert_array_equal(tiny.encode(texts, truncate_dim=7), plain[:, :7])
    short = plain[:, :7] / np.linalg.norm(plain[:, :7], axis=1, keepdims=True)
    np.testing.assert_allclose(tiny.encode(texts, truncate_dim=7, normalize=True), short, atol=1e-6)


def test_a_normalising_model_normalises_what_is_cut_off(sentence_folder: Callable[..., Path]) -> None:
    from sentence_transformers.base.modules import Normalize

    model = Model.load(sentence_folder("bert", "mean", [Normalize()]))
    lengths = np.linalg.norm(model.encode(_texts(5, 9), truncate_dim=7), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, "unknown dtype 'int8'; known are float32, float16, float64"),
        ({"to": "jax"}, "unknown output 'jax'; known are numpy, torch"),
        ({"truncate_dim": 0}, "truncate_dim 0 is not between 1 and the model's 32"),
        ({"truncate_dim": 33}, "truncate_dim 33 is not between 1 and the model's 32"),
        ({"prompt_name": "query"}, "no prompt is called 'query'"),
    ],
)
def test_unknown_options(options: dict[str, Any], message: str, sentence_folder: Callable[..., Path]) -> None:
    model = Model.load(sentence_folder(prompts={"document": "passage: "}))
    model._spec.prompts.pop("query", None)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=message):
        model.encode(["a"], **options)


def test_half_precision_runs_on_the_cpu_and_comes_out_in_float32(mean_folder: Path, tiny: Model) -> None:
    half = Model.load(mean_folder, dtype="bfloat16", device="cpu")
    texts = _texts(5, 9)
    vectors = half.encode(texts)
    assert vectors.dtype == np.float32
    assert "bfloat16" in half.encoder.backbone.describe()
    wanted = tiny.encode(texts)
    cosines = (vectors * wanted).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(wanted, axis=1)
    assert (cosines > 0.99).all()


def test_dimensions(sentence_folder: Callable[..., Path], checkpoint: Callable[[str], Path]) -> None:
    from sentence_transformers.base.modules import Dense

    encoder: Encoder = Model.load(sentence_folder("bert", ("cls", "max"), [Dense(64, 9)])).encoder
    assert (encoder.token_dim, encoder.dim) == (32, 9)
    tokens = Model.load(checkpoint("bert"), pooling="none").encoder
    assert (tokens.token_dim, tokens.dim) == (32, 32)


# -------------------------------------------------------------------------------------------------- progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "n", "progress", "shown"),
    [
        (io.StringIO, 400, None, False),
        (io.StringIO, 400, True, True),
        (_Terminal, 400, None, True),
        (_Terminal, 400, False, False),
        (_Terminal, 3, None, False),
        (_Terminal, 3, True, True),
    ],
)
def test_progress(
    stream: type[io.StringIO], n: int, progress: bool | None, shown: bool, tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, output = stream(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(sys, "stdout", output)
    for read in (tiny.encode, tiny.embed):
        read(["a plane"] * n, progress=progress)
        read((text for text in ["a plane"] * n), progress=progress if shown else False)
    assert bool(error.getvalue()) == shown
    assert output.getvalue() == ""
