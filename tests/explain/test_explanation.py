from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import EmptyTextWarning, InputError
from likewise.explain import Side, explain_pair
from likewise.explain.render import printed, to_html, to_text
from likewise.types import Token

PAIRS = [
    ("A plane is taking off.", "An air plane is taking off!"),
    ("a man plays", "a man plays"),
    ("", "a plane"),
    ("naïve café 👩\u200d🚀 x\ud800", "the park"),
    ("the the the", "the"),
    ("(", ")"),
]


@pytest.mark.parametrize("similarity", ["cosine", "dot", "rcmd", "transport"])
@pytest.mark.parametrize("pair", PAIRS)
def test_every_level_adds_up_to_the_score(tiny, pair, similarity):
    explanation = tiny.explain(*pair, similarity=similarity)
    scale = max(1, abs(explanation.score))
    assert abs(explanation.contributions.sum() - explanation.score) < 1e-12 * scale
    assert abs(explanation.words.contributions.sum() - explanation.score) < 1e-12 * scale
    ends = [(0, len(side.text)) for side in (explanation.a, explanation.b) if side.text]
    phrases = explanation.phrases(ends[:1] if pair[0] else [], ends[-1:])
    assert abs(phrases.sum() - explanation.score) < 1e-12 * scale
    assert explanation.score == pytest.approx(tiny_score(tiny, pair, similarity), rel=1e-4, abs=1e-5)


def tiny_score(tiny, pair, similarity):
    from likewise.similarity import by_name

    a, b = (tiny.embed([text]) for text in pair)
    return float(by_name(similarity).score(a, b)[0])


@pytest.mark.parametrize("pair", PAIRS)
def test_each_word_is_either_aligned_once_or_unmatched(tiny, pair):
    explanation = tiny.explain(*pair, similarity="rcmd")
    words = explanation.words
    for side, own, aligned, unmatched in (
        (explanation.a, words.a, [p.a for p in explanation.alignments], explanation.unmatched[0]),
        (explanation.b, words.b, [p.b for p in explanation.alignments], explanation.unmatched[1]),
    ):
        plain = [i for i, word in enumerate(own) if not word.special]
        assert sorted([*aligned, *unmatched]) == plain
        assert sorted(row for word in own for row in word.tokens) == list(range(len(side.tokens)))


def test_json_has_the_documented_keys_and_adds_up(tiny):
    told = json.loads(tiny.explain(*PAIRS[0], similarity="rcmd").to_json())
    assert {
        "score",
        "similarity",
        "a",
        "b",
        "cosines",
        "plan",
        "contributions",
        "words",
        "alignments",
        "unmatched",
    } <= set(told)
    assert set(told["a"]["tokens"][0]) == {"text", "start", "end", "special"}
    assert len(told["contributions"]) == len(told["a"]["tokens"])
    assert len(told["contributions"][0]) == len(told["b"]["tokens"])
    assert abs(sum(map(sum, told["contributions"])) - told["score"]) < 1e-12
    assert abs(sum(map(sum, told["words"]["contributions"])) - told["score"]) < 1e-12
    assert told["details"]["a→b"] + told["details"]["b→a"] == pytest.approx(2 * told["score"])
    assert np.allclose(np.multiply(told["plan"], told["cosines"]), told["contributions"])


def test_lone_surrogates_are_escaped_in_json_and_replaced_in_pictures(tiny):
    explanation = tiny.explain("x\ud800", "y")
    assert json.loads(explanation.to_json())["a"]["text"] == "x\ud800"
    explanation.to_json().encode("utf-8")
    explanation.to_text().encode("utf-8")
    explanation._repr_html_().encode("utf-8")


def test_the_printed_table_adds_up_digit_by_digit(tiny):
    text = to_text(tiny.explain(*PAIRS[0], similarity="rcmd"), level="token")
    header = next(line for line in text.splitlines() if line.startswith("rcmd"))
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.rstrip().endswith("sum"))
    rows = [line.split() for line in lines[start + 1 : lines.index("", start)]]
    units = [[round(float(cell) * 10_000) for cell in row[1:] if cell != "·"] for row in rows]
    assert [sum(row[:-1]) for row in units] == [row[-1] for row in units]
    assert sum(row[-1] for row in units[:-1]) == units[-1][-1] == round(float(header.split()[1]) * 10_000)


@given(st.lists(st.lists(st.floats(-3, 3), min_size=3, max_size=3), min_size=1, max_size=8))
@settings(max_examples=80, deadline=None)
def test_printed_cells_add_up_and_are_off_by_less_than_a_unit(table):
    units = printed(np.asarray(table))
    assert units.sum() == round(float(np.sum(np.asarray(table) * 10_000)))
    assert (np.abs(units - np.asarray(table) * 10_000) < 1 + 1e-6).all()


def test_a_narrow_terminal_gets_a_list_that_adds_up(tiny):
    text = tiny.explain(*PAIRS[0], similarity="rcmd").to_text(width=40)
    assert "most of it with" in text
    assert max(map(len, text.splitlines())) <= 60


def test_html_is_escaped_self_contained_and_adds_up(tiny):
    page = to_html(tiny.explain("<script>alert(1)</script> & a man", "a man plays", similarity="rcmd"))
    assert "<script" not in page
    assert "&lt;" in page
    assert "http" not in page
    assert 'class="both"' in page
    assert 'class="only"' in page
    assert '<p class="text"><b>a</b>' in page
    assert '<p class="text"><b>b</b>' in page


def test_html_lists_the_aligned_pairs(tiny):
    explanation = tiny.explain(*PAIRS[0], similarity="rcmd")
    pairs = to_html(explanation).partition('<table class="pairs">')[2].partition("</table>")[0]
    assert pairs.count("<td>~</td>") == len(explanation.alignments) > 0
    assert all(f"{pair.cosine:.2f}" in pairs for pair in explanation.alignments)
    assert 'class="pairs"' not in to_html(tiny.explain("", ""))


def test_phrases_must_lie_inside_and_apart(tiny):
    explanation = tiny.explain("a man plays", "a man")
    with pytest.raises(InputError, match="overlap"):
        explanation.phrases([(0, 4), (2, 6)], [])
    with pytest.raises(InputError, match="within the text"):
        explanation.phrases([(0, 40)], [])
    table = explanation.phrases([(0, 5), (6, 11)], [(0, 5)])
    assert table.shape == (3, 2)


def test_tables_must_fit_the_tokens():
    side = Side("a", (Token("a", 0, 1, False),), False)
    with pytest.raises(InputError, match="do not fit"):
        explain_pair("rcmd", (side, side), np.zeros((1, 2)), np.zeros((1, 2)))


def test_a_cut_text_says_so(tiny):
    with pytest.warns(UserWarning, match="longer than"):
        explanation = tiny.explain("a man " * 60, "a man")
    assert explanation.a.truncated
    assert not explanation.b.truncated
    notice = "a was cut: the model reads its first 64 tokens only"
    assert notice in explanation.to_text()
    assert notice in to_html(explanation)
    assert "b was cut" not in to_html(explanation)
    with pytest.warns(UserWarning, match="longer than"):
        bare = tiny.explain("a man " * 60, "a man", special_tokens=False)
    assert (bare.a.truncated, bare.b.truncated) == (True, False)
    assert "its first 62 tokens" in bare.to_text()


@pytest.mark.parametrize("similarity", ["rcmd", "transport"])
def test_a_side_without_a_token_is_announced_once(tiny, similarity):
    with pytest.warns(EmptyTextWarning) as caught:
        explanation = tiny.explain("", "a man", similarity=similarity, special_tokens=False)
    assert len(caught) == 1
    assert explanation.score == 0
    assert not explanation.a.truncated


def test_levels_of_the_text(tiny):
    explanation = tiny.explain(*PAIRS[0], similarity="rcmd")
    assert explanation.to_text(level="token") == to_text(explanation, level="token") != explanation.to_text()
    with pytest.raises(InputError, match="unknown level 'phrase'; known are word, token"):
        explanation.to_text(level="phrase")


@pytest.mark.parametrize(("n", "full"), [(20, True), (40, False)])
def test_text_is_at_most_200_columns_wide(n, full, tiny):
    text = tiny.explain("a man", "plane " * n, similarity="rcmd").to_text()
    assert ("most of it with" not in text) == full
    assert max(map(len, text.split("\n\n")[1].splitlines())) <= 200


def test_a_table_of_long_words_is_never_squeezed(tiny):
    explanation = tiny.explain("a", "representations " * 3, similarity="rcmd")
    text = explanation.to_text()
    needed = max(map(len, text.split("\n\n")[1].splitlines()))
    for width in (needed - 1, needed + 1):
        squeezed = explanation.to_text(width=width)
        assert ("representatio… representatio… representatio…" in squeezed) == (width > needed)
        assert ("most of it with" in squeezed) == (width < needed)


def test_unmatched_words_are_said_to_have_no_partner(tiny):
    explanation = tiny.explain("a man", "a man plays a flute", similarity="rcmd")
    lonely = " · ".join(explanation.words.b[i].text for i in explanation.unmatched[1])
    assert lonely
    assert f"no partner in a: {lonely}\n" in explanation.to_text()
    assert "no partner in b" not in explanation.to_text()


def test_joined_emoji_stay_joined_in_the_terminal(tiny):
    text = tiny.explain("👩\u200d🚀 👍🏽\u200d🚀 ❤\ufe0f\u200d🔥 x\u200dy \u200d", "\x07").to_text()
    assert "a  👩\u200d🚀 👍🏽\u200d🚀 ❤\ufe0f\u200d🔥 x\ufffdy \ufffd\n" in text
    assert "b  \ufffd\n" in text


def test_a_prompt_takes_part_as_a_row_of_its_own(tiny):
    plain, prompted = tiny.explain("A plane.", "the cat"), tiny.explain("A plane.", "the cat", prompt="find: ")
    assert prompted.contributions.shape[0] > plain.contributions.shape[0]
    vectors = tiny.encode(["A plane.", "the cat"], prompt="find: ").astype(np.float64)
    cosine = vectors[0] @ vectors[1] / np.linalg.norm(vectors[0]) / np.linalg.norm(vectors[1])
    assert prompted.score == pytest.approx(cosine, abs=1e-6)
