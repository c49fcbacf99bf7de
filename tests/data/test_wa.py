from __future__ import annotations

import re

import pytest

from likewise.data import ChunkAlignment, ChunkedPair, ChunkedText, read_wa, write_wa
from likewise.errors import DataError, DataNotFoundError, DataWarning, InputError

BLOCK = """<sentence id="{id}" status="">
// A cat : sat !
// Cats sit
<source>
1 A :{end}
2 cat :{end}
3 : :{end}
4 sat :{end}
5 ! :{end}
</source>
<translation>
1 Cats :{end}
2 sit :{end}
</translation>
<alignment>
1 2 <==> 1 // SPE2_FACT // 3.5 // A cat <==> Cats
4 <==> 2 // SIMI // 4 // sat <==> sit
4 <==> 1 2 // REL_POL_FACT // NIL
5 <==> 0 // NOALI // NIL // ! <==> -not aligned-
</alignment>
</sentence>
"""
LEFT = ChunkedText("A cat : sat !", ("A", "cat", ":", "sat", "!"))
RIGHT = ChunkedText("Cats sit", ("Cats", "sit"))
ALIGNMENTS = (
    ChunkAlignment((1, 2), (1,), "SPE2_FACT", 3.5),
    ChunkAlignment((4,), (2,), "SIMI", 4.0),
    ChunkAlignment((4,), (1, 2), "REL_POL_FACT"),
    ChunkAlignment((5,), (), "NOALI"),
)


def block(id=1, end=""):
    return BLOCK.replace("{id}", str(id)).replace("{end}", end)


def write(path, text):
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_file_with_many_to_many_suffixes_and_nil(tmp_path, ending):
    text = "\ufeff" + block(3, " ") + "\n\n" + block(7)
    pairs = read_wa(write(tmp_path / "x.wa", text.replace("\n", ending)))
    assert pairs == [ChunkedPair(id, LEFT, RIGHT, ALIGNMENTS) for id in (3, 7)]


def test_what_is_written_reads_back_equal(tmp_path):
    pairs = [ChunkedPair(id, LEFT, RIGHT, ALIGNMENTS) for id in (1, 2)]
    write_wa(tmp_path / "x.wa", pairs)
    assert read_wa(tmp_path / "x.wa") == pairs
    other = [(ChunkAlignment((), (1, 2), "NOALI"),), ()]
    write_wa(tmp_path / "y.wa", pairs, other)
    assert [pair.alignments for pair in read_wa(tmp_path / "y.wa")] == other
    assert "0 <==> 1 2 // NOALI // NIL // -not aligned- <==> Cats sit \n" in (tmp_path / "y.wa").read_text("utf-8")


def test_the_organisers_own_layout_is_written(shared, tmp_path):
    """Line for line; they leave more blank lines between pairs, and blanks at some line ends."""
    path = shared / "data" / "ists2016" / "test" / "STSint.testinput.images.wa"
    write_wa(tmp_path / "x.wa", read_wa(path))
    texts = [each.read_text("utf-8") for each in (tmp_path / "x.wa", path)]
    ours, theirs = ([line for line in text.split("\n") if line] for text in texts)
    assert ours == theirs


def test_what_cannot_be_written(tmp_path):
    pairs = [ChunkedPair(1, LEFT, RIGHT, ())]
    with pytest.raises(InputError, match="alignments of 0 pairs do not fit 1 pairs"):
        write_wa(tmp_path / "x.wa", pairs, [])
    with pytest.raises(InputError, match=r"pair 1: the words \(3,\) do not fit"):
        write_wa(tmp_path / "x.wa", pairs, [[ChunkAlignment((1,), (3,), "EQUI", 5.0)]])
    assert not list(tmp_path.iterdir())


def test_a_word_line_without_its_blank_is_read_as_meant(tmp_path):
    path = write(tmp_path / "x.wa", block().replace("2 sit :", "2 sit:").replace("5 ! :", "5  ! :  "))
    with pytest.warns(DataWarning, match=r"x\.wa line 9 .*; x\.wa line 13 .blanks around the colon."):
        assert read_wa(path) == [ChunkedPair(1, LEFT, RIGHT, ALIGNMENTS)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("5 ! :\n", "", "line 19: pair 1: the words .5,. do not fit a sentence of words 1 to 4|line 20"),
        ("2 cat :", "3 cat :", "line 6: '3 cat :' is not word 2"),
        ("2 cat :", "2 two words :", "line 6: '2 two words :' is not word 2"),
        ("1 2 <==> 1 //", "1 2 <==> 3 //", r"the words \(3,\) do not fit a sentence of words 1 to 2"),
        ("SPE2_FACT", "SPE3", "line 16: the type 'SPE3' is none of"),
        ("// 4 //", "// 6 //", "line 17: the score 6.0 of an alignment is outside"),
        ("// 4 //", "// -1 //", "line 17: the score -1.0"),
        ("// 4 //", "// four //", "line 17: the score 'four' is neither a number in plain digits nor NIL"),
        ("// 4 //", "// nan //", "line 17: the score 'nan' is neither"),
        ("// 4 //", "// 0_4 //", "line 17: the score '0_4' is neither"),
        ("\n1 ", "\n\u0661 ", "line 5: .* is not word 1"),
        ("5 <==> 0", "0 <==> 0", "line 19: an alignment has words on neither side"),
        ("5 <==> 0", "5 == 0", "line 19: '5 == 0.*is not an alignment"),
        ("<translation>", "<translations>", "line 11: <translations> does not belong here"),
        ("<source>", "source", "line 4: 'source' does not belong here"),
        ("</alignment>\n</sentence>\n", "", "the file ends within pair 1"),
        ("</sentence>\n", "</sentence>\n" + block(), "line 22: pair 1 occurs twice"),
        ("<sentence id", "lead\n<sentence id", "line 1: 'lead' stands outside a <sentence>"),
        ("<alignment>", "</sentence>", "line 15: pair 1 has no <alignment>"),
    ],
)
def test_what_is_broken_is_named_by_file_and_line(tmp_path, old, new, message):
    with pytest.raises(DataError, match=rf"x\.wa, .*(?:{message})"):
        read_wa(write(tmp_path / "x.wa", block().replace(old, new, 1)))


def test_every_cut_is_noticed_but_one_between_pairs(tmp_path):
    lines = block().split("\n")[:-1]
    for n in range(1, len(lines)):
        with pytest.raises(DataError, match="ends within pair 1"):
            read_wa(write(tmp_path / "x.wa", "\n".join(lines[:n])))


def test_invalid_utf8_and_a_missing_file(tmp_path):
    (tmp_path / "x.wa").write_bytes(re.sub(b"cat", b"c\xe9t", block().encode()))
    with pytest.raises(DataError, match=r"x\.wa, line 2: byte 6 is not UTF-8"):
        read_wa(tmp_path / "x.wa")
    with pytest.raises(DataNotFoundError):
        read_wa(tmp_path / "gone.wa")
