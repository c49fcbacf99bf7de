from __future__ import annotations

import numpy as np
import pytest

from likewise.errors import DataError, InputError
from likewise.evaluation.baselines import TfIdf, WordVectors, words_of

GLOVE = "cat 1 0\ndog 0 1\n. . 0.5 0.5\nDog 9 9\n"
WORD2VEC = "3 2\ncat 1 0 \ndog 0 1 \nbird 2 2 \n"


def write(folder, text, name="vectors.txt"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_glove_file(tmp_path):
    read = WordVectors.load(write(tmp_path, GLOVE))
    assert set(read.rows) == {"cat", "dog", ". .", "Dog"}
    assert read.vectors[read.rows[". ."]].tolist() == [0.5, 0.5]
    assert read.name == "avg. vectors"


def test_a_word2vec_file_with_crlf_and_bom(tmp_path):
    read = WordVectors.load(write(tmp_path, "\ufeff" + WORD2VEC.replace("\n", "\r\n")))
    assert list(read.rows) == ["cat", "dog", "bird"]
    assert read.vectors.tolist() == [[1, 0], [0, 1], [2, 2]]


def test_only_needed_words_are_kept(tmp_path):
    read = WordVectors.load(write(tmp_path, WORD2VEC), texts=["A BIRD!", "no"])
    assert "bird" in read.rows
    assert "dog" not in read.rows


def test_of_a_doubled_word_the_first_counts(tmp_path):
    read = WordVectors.load(write(tmp_path, "cat 1 0\ncat 5 5\n"))
    assert read.encode(["cat"]).tolist() == [[1, 0]]


def test_written_case_comes_first_and_unknown_words_are_left_out(tmp_path):
    read = WordVectors.load(write(tmp_path, GLOVE))
    assert read.encode(["Dog unknown", "CAT", "unknown", ""]).tolist() == [[9, 9], [1, 0], [0, 0], [0, 0]]
    assert read.embed(["cat unknown dog", ""]).lengths.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat 1 0\ndog 1\n", "line 2: 1 numbers after the word; a word and 2 numbers"),
        ("cat 1 0\n\ndog 1 0\n", "line 2: an empty line"),
        ("cat 1 0\ndog one 0\n", "line 2: could not convert string to float"),
        ("cat 1 0\ndog nan 0\n", "line 2: NaN"),
        ("cat 1 0\n 1 0\n", "line 2: the word is empty"),
        ("cat\ndog\n", "line 1: 0 numbers"),
        ("4 2\ncat 1 0\n", "1 words, and its first line announces 4"),
        ("", "no word vectors"),
        (b"cat 1 0\n\xff 1 0\n", "line 2: byte 0 is not UTF-8"),
    ],
)
def test_a_bad_file_is_refused_and_the_line_named(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        WordVectors.load(write(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        WordVectors.load(tmp_path / "gone.txt")


def test_words_and_vectors_must_fit():
    with pytest.raises(InputError, match="2 words do not fit 1 vectors"):
        WordVectors(["a", "b"], np.zeros((1, 3)))


def test_words():
    assert words_of("Don't – «stop»: U.S.A. re-use 3.5%") == (
        ["Don't", "–", "«", "stop", "»", ":", "U.S.A", ".", "re-use", "3.5", "%"]
    )


def test_tfidf_weighs_rare_words_more_and_knows_only_what_it_learned():
    model = TfIdf(["the cat", "the dog", "the bird"])
    scores = model.encode(["the cat"]) @ model.encode(["the dog", "a cat", "cow"]).T
    assert scores[0, 1] > scores[0, 0] > scores[0, 2] == 0


def test_tfidf_of_nothing():
    with pytest.raises(InputError, match="these have none"):
        TfIdf([" ", ""])
