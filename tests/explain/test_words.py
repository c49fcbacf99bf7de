from __future__ import annotations

import numpy as np
import pytest

from likewise.explain import roll_up, words_of
from likewise.types import TextTokens, Token


def tokens(text: str, pieces: list[tuple[int, int]]) -> TextTokens:
    return TextTokens(text, tuple(Token(text[start:end], start, end, False) for start, end in pieces))


def one_token_a_character(text: str) -> TextTokens:
    return tokens(text, [(i, i + 1) for i in range(len(text)) if not text[i].isspace()])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A plane.", ["A", "plane", "."]),
        ("don't", ["don't"]),
        ("the cats' tails", ["the", "cats", "'", "tails"]),
        ("state-of-the-art", ["state", "-", "of", "-", "the", "-", "art"]),
        ("cafe\u0301 au lait", ["cafe\u0301", "au", "lait"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("東京は", ["東", "京", "は"]),
        ("ok 👩\u200d🚀!", ["ok", "👩\u200d🚀", "!"]),
        ("👍🏽 yes", ["👍🏽", "yes"]),
        ("x\ud800y", ["x", "\ud800", "y"]),
        ("3.5 km", ["3", ".", "5", "km"]),
        ("", []),
        (" \t\n", []),
    ],
)
def test_words_are_cut_as_a_reader_would(text, words):
    found = words_of(one_token_a_character(text))
    assert [word.text for word in found] == words
    assert all(text[word.start : word.end] == word.text for word in found)


def test_every_token_is_in_one_word_and_special_ones_stand_alone():
    side = TextTokens(
        "An airplane",
        (
            Token("[CLS]", 0, 0, True),
            Token("an", 0, 2, False),
            Token("air", 3, 6, False),
            Token("##plane", 6, 11, False),
            Token("[SEP]", 0, 0, True),
        ),
    )
    words = words_of(side)
    assert [(word.text, word.tokens, word.special) for word in words] == [
        ("[CLS]", (0,), True),
        ("An", (1,), False),
        ("airplane", (2, 3), False),
        ("[SEP]", (4,), True),
    ]


def test_several_tokens_of_one_character():
    side = tokens("é ab", [(0, 1), (0, 1), (2, 4)])
    assert [(word.text, word.tokens) for word in words_of(side)] == [("é", (0, 1)), ("ab", (2,))]


def test_words_that_share_a_token_are_one_word():
    side = tokens("no zero width here", [(0, 2), (3, 10), (10, 13), (14, 18)])
    assert [(word.text, word.tokens) for word in words_of(side)] == [
        ("no", (0,)),
        ("zero width", (1, 2)),
        ("here", (3,)),
    ]


def test_a_token_without_characters_counts_to_the_word_behind_it():
    side = TextTokens(" ab ", (Token("Ġ", 0, 0, False), Token("ab", 1, 3, False), Token("Ġ", 3, 4, False)))
    assert [(word.text, word.tokens) for word in words_of(side)] == [("ab", (0, 1)), ("Ġ", (2,))]


def test_a_word_that_the_model_did_not_see_is_left_out():
    assert [word.text for word in words_of(tokens("one two three", [(0, 3), (4, 7)]))] == ["one", "two"]


def test_a_roll_up_keeps_the_sum():
    table = np.random.default_rng(0).standard_normal((5, 4))
    rolled = roll_up(table, [(0, 2), (1,), (3, 4)], [(3,), (0, 1, 2)])
    assert rolled.shape == (3, 2)
    assert rolled.sum() == pytest.approx(table.sum())
    assert rolled[0, 0] == pytest.approx(table[0, 3] + table[2, 3])
    assert roll_up(table[:0], [], [(0, 1, 2, 3)]).shape == (0, 1)
    assert roll_up(table[:, :0], [(0,)], []).shape == (1, 0)
