"""Tokens and words know their characters in the original text; nothing is cut silently."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.encoder import Tokenized, Tokenizer
from likewise.errors import InputError, ModelError
from likewise.explain import words_of

NAMES = ("bert", "bert-cased", "roberta", "xlm-roberta")

TRICKY = [
    "A plane is taking off.",
    "naïve café, the dog's don't",
    "cafe\u0301 nai\u0308ve e\u0301\u0323",
    "family \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 and \U0001f44d\U0001f3fd ok \u2764\ufe0f",
    "lone \ud800 surrogate \udfff\ud83d end",
    "東京。 El niño ¿dónde?",
    "  two  spaces\tand\nlines  ",
    "İstanbul STRASSE straße ﬁne Å",
    "and\xa0no-break soft\xadhyphen",
    "\x00control\x07",
    "हिन्दी ภาษาไทย العَرَبِيَّة",
]


@pytest.fixture(scope="module")
def tokenizer(checkpoint: Callable[[str], Path]) -> Callable[..., Tokenizer]:
    def make(name: str = "bert", max_length: int | None = None, **options: Any) -> Tokenizer:
        definition = (checkpoint(name) / "tokenizer.json").read_text(encoding="utf-8")
        return Tokenizer(definition, max_length, **options)

    return make


def _folded(text: str) -> str:
    """As BERT reads it: lower case, no accents, no control or format characters."""
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(sign for sign in decomposed if unicodedata.category(sign) not in ("Mn", "Cc", "Cf"))


def _letters(text: str) -> set[int]:
    return {i for i, sign in enumerate(text) if unicodedata.category(sign)[0] in "LNM"}


def _assert_words_are_whole(one: Tokenized) -> None:
    """Tokens are shared out, words do not overlap, and no letter lies outside them."""
    side = one.text_tokens()
    words = words_of(side)
    assert sorted(row for word in words for row in word.tokens) == list(range(len(side.tokens)))
    covered: set[int] = set()
    for word in words:
        inside = set(range(word.start, word.end))
        if inside & _letters(side.text):
            assert word.text == side.text[word.start : word.end]
            assert not any(sign.isspace() for sign in word.text)
            assert not inside & covered
            covered |= inside
    assert _letters(side.text) <= covered


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", TRICKY, ids=range(len(TRICKY)))
def test_tokens_and_words_point_into_the_text(name: str, text: str, tokenizer: Callable[..., Tokenizer]) -> None:
    for prompt in ("", "query: "):
        one = tokenizer(name)([text], prompt)[0]
        side = one.text_tokens()
        assert side.text == text
        assert len(side.tokens) == len(one.ids) == len(one.special)
        for token in side.tokens:
            assert 0 <= token.start <= token.end <= len(text)
            assert token.special == (token.start == token.end == 0) or token.start < token.end
        assert side.tokens[0].special
        assert side.tokens[-1].special
        _assert_words_are_whole(one)


@pytest.mark.parametrize("text", TRICKY, ids=range(len(TRICKY)))
def test_a_piece_is_what_its_characters_say(text: str, tokenizer: Callable[..., Tokenizer]) -> None:
    side = tokenizer("bert")([text])[0].text_tokens()
    pieces = [token for token in side.tokens if not token.special]
    for token in pieces:
        if token.text != "[UNK]":
            assert _folded(text[token.start : token.end]) == token.text.removeprefix("##")
    assert [token.start for token in pieces] == sorted(token.start for token in pieces)


@pytest.mark.parametrize("text", ["zero\u200bwidth", "大きい。"])
def test_a_token_that_covers_two_words(text: str, tokenizer: Callable[..., Tokenizer]) -> None:
    _assert_words_are_whole(tokenizer("bert")([text])[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cats don't like it.", ["The", "cats", "don't", "like", "it", "."]),
        ("cafe\u0301 olé", ["cafe\u0301", "olé"]),
        ("a \U0001f469\u200d\U0001f467 b", ["a", "\U0001f469\u200d\U0001f467", "b"]),
        ("ok \U0001f44d\U0001f3fd!", ["ok", "\U0001f44d\U0001f3fd", "!"]),
    ],
)
def test_words(text: str, words: list[str], tokenizer: Callable[..., Tokenizer]) -> None:
    for name in NAMES:
        side = tokenizer(name)([text])[0].text_tokens()
        assert [word.text for word in words_of(side) if word.start < word.end] == words


def test_a_lone_surrogate(tokenizer: Callable[..., Tokenizer]) -> None:
    text = "x \ud800 y"
    for name, words in (("bert", ["x", "y"]), ("roberta", ["x", "\ud800", "y"]), ("xlm-roberta", ["x", "\ud800", "y"])):
        side = tokenizer(name)([text])[0].text_tokens()
        assert side.text == text
        assert [word.text for word in words_of(side) if word.start < word.end] == words, "BERT reads no U+FFFD"


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_at_all(text: str, tokenizer: Callable[..., Tokenizer]) -> None:
    for name in ("bert", "roberta"):
        one = tokenizer(name)([text], "query: ")[0]
        side = one.text_tokens()
        assert side.text == text
        assert all(0 <= token.start <= token.end <= len(text) for token in side.tokens)
        words = words_of(side)
        assert sorted(row for word in words for row in word.tokens) == list(range(len(side.tokens)))


# ----------------------------------------------------------------------------------------------- length


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompt", ["", "query: "])
def test_what_is_cut_is_counted(name: str, prompt: str, tokenizer: Callable[..., Tokenizer]) -> None:
    texts = ["a plane is off", "the cat " * 40, ""]
    whole, cut = (tokenizer(name, limit)(texts, prompt) for limit in (None, 10))
    for full, short in zip(whole, cut, strict=True):
        assert not full.truncated
        assert full.n_total == len(full.ids)
        assert short.n_total == full.n_total
        assert len(short.ids) == min(10, full.n_total)
        assert short.truncated == (full.n_total > 10)
        np.testing.assert_array_equal(short.ids[:-1], full.ids[: len(short.ids) - 1])
        assert short.ids[-1] == full.ids[-1]


def test_a_text_of_exactly_the_limit_is_not_cut(tokenizer: Callable[..., Tokenizer]) -> None:
    (one,) = tokenizer("bert", 6)(["a a a a"])
    assert (len(one.ids), one.n_total, one.truncated) == (6, 6, False)


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_limit_without_room(limit: int, tokenizer: Callable[..., Tokenizer]) -> None:
    with pytest.raises(InputError, match=rf"max_length {limit} leaves no room beside the 2 special tokens"):
        tokenizer("bert", limit)


def test_padding_and_truncation_of_the_definition_are_put_off(tokenizer: Callable[..., Tokenizer]) -> None:
    content = json.loads(tokenizer("bert").definition)
    content["padding"] = {"strategy": {"Fixed": 32}, "direction": "Left", "pad_to_multiple_of": None}
    content["padding"] |= {"pad_id": 1, "pad_type_id": 0, "pad_token": "[PAD]"}
    content["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    padded = Tokenizer(json.dumps(content), None)
    for ours, plain in zip(padded(TRICKY), tokenizer("bert")(TRICKY), strict=True):
        np.testing.assert_array_equal(ours.ids, plain.ids)


# ---------------------------------------------------------------------------------------------- prompts


@pytest.mark.parametrize("name", ["bert", "bert-cased", "xlm-roberta"])  # byte pairs join its blank to the text
def test_a_prompt_is_special_and_covers_nothing(name: str, tokenizer: Callable[..., Tokenizer]) -> None:
    plain = tokenizer(name)(["a plane"])[0]
    prompted = tokenizer(name)(["a plane"], "query: ")[0]
    assert plain.n_prompt == 0
    assert prompted.text == "a plane"
    assert prompted.special[: prompted.n_prompt].all()
    real = [token for token in prompted.text_tokens().tokens if not token.special]
    assert "".join(prompted.text[token.start : token.end] for token in real).replace(" ", "") == "aplane"
    assert prompted.n_prompt + len(real) + 1 == len(prompted.ids)


# ------------------------------------------------------------------------------------------ lower case


def test_lower_case_is_added_only_where_it_is_missing(tokenizer: Callable[..., Tokenizer]) -> None:
    text = ["The PLANE İS off"]
    cased, lowered = tokenizer("bert-cased"), tokenizer("bert-cased", lower_case=True)
    assert cased(text)[0].ids.tolist() != lowered(text)[0].ids.tolist()
    assert lowered(text)[0].ids.tolist() == lowered([text[0].lower()])[0].ids.tolist()
    assert [text[0][token.start : token.end] for token in lowered(text)[0].text_tokens().tokens][1:3] == [
        "The",
        "PLANE",
    ]
    plain, again = tokenizer("bert"), tokenizer("bert", lower_case=True)
    assert plain(text)[0].ids.tolist() == again(text)[0].ids.tolist()


# ----------------------------------------------------------------------------------------------- the rest


def test_the_vocabulary(tokenizer: Callable[..., Tokenizer]) -> None:
    bert = tokenizer("bert", unknown="[UNK]")
    assert bert.size == 216
    assert bert.id_of("plane") == bert(["plane"])[0].ids[1]
    assert bert.id_of("not-a-piece") is None
    assert bert.unknown_in(bert(["plane ☃ ☃"])[0].ids) == 2
    assert tokenizer("bert").unknown_in(bert(["☃"])[0].ids) == 0


def test_leaving_tokens_out(tokenizer: Callable[..., Tokenizer]) -> None:
    one = tokenizer("bert")(["a plane is off ."])[0]
    names = [token.text for token in one.text_tokens().tokens]
    odd = one.only(np.arange(len(one.ids)) % 2 == 1)
    assert [token.text for token in odd.text_tokens().tokens] == names[1::2]
    last = odd.only(np.arange(len(odd.ids)) == len(odd.ids) - 1)
    assert [token.text for token in last.text_tokens().tokens] == names[1::2][-1:]
    assert not odd.truncated
    assert tokenizer("bert", 4)(["a plane is off ."])[0].only(np.arange(4) == 1).truncated


@pytest.mark.parametrize("definition", ["", "{}", "[]", '{"model": {"type": "Nothing"}}'])
def test_a_definition_that_is_none(definition: str) -> None:
    with pytest.raises(ModelError, match=r"tokenizer definition cannot be read.*fetch tokenizer\.json again"):
        Tokenizer(definition, None)
