from __future__ import annotations

import pytest

from likewise.data import ChunkAlignment, ChunkedPair, ChunkedText
from likewise.errors import InputError


def test_chunks_know_their_characters():
    text = ChunkedText("the cat  on the mat.", ("the", "cat", "on", "the", "mat."), ((1, 2), (3, 4, 5)))
    assert [text.text[start:end] for start, end in text.word_spans] == list(text.words)
    assert [text.text[start:end] for start, end in text.chunk_spans] == ["the cat", "on the mat."]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChunkedText("a b", ("b", "a")), "word 2, 'a', is not in the rest of 'a b'"),
        (
            lambda: ChunkedText("a b", ("a", "b"), ((1, 3),)),
            r"chunk \(1, 3\) does not fit a sentence of words 1 to 2",
        ),
        (lambda: ChunkedText("a", ("a",), ((0,),)), r"the chunk \(0,\)"),
        (lambda: ChunkedText("a", ("a",), ((),)), r"the chunk \(\)"),
        (lambda: ChunkAlignment((), (), "NOALI"), "neither side"),
        (lambda: ChunkAlignment((1,), (), "equi"), "the type 'equi'"),
        (lambda: ChunkAlignment((1,), (1,), "EQUI", 5.5), "the score 5.5"),
    ],
)
def test_what_cannot_be(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_an_alignment_must_fit_its_pair():
    text = ChunkedText("a", ("a",))
    with pytest.raises(InputError, match="pair 4: the words"):
        ChunkedPair(4, text, text, (ChunkAlignment((2,), (1,), "EQUI", 5.0),))
