from __future__ import annotations

import json
import shutil

import pytest

from likewise.data import ISTS_ROWS, read_ists, read_wa, write_wa
from likewise.errors import DataError, DataNotFoundError, DataWarning


def test_images_have_no_fault_and_the_recorded_chunks(shared):
    pairs = read_ists(shared / "data")
    recorded = json.loads((shared / "oracle" / "ists_all-MiniLM-L6-v2.avg.images.json").read_text("utf-8"))
    assert len(pairs) == 375
    for pair, known in zip(pairs, recorded, strict=False):
        assert (pair.id, pair.left.text, pair.right.text) == (known["id"], known["sent1"], known["sent2"])
        for side, chunks in ((pair.left, known["sent1_chunk"]), (pair.right, known["sent2_chunk"])):
            assert [side.text[start:end] for start, end in side.chunk_spans] == chunks


def test_gold_kept_by_the_protocol_has_the_known_size(shared):
    """Without NOALI and scores below 3: 1,063 in images and 1,106 in headlines."""
    with pytest.warns(DataWarning, match=r"^read as meant: STSint\.testinput\.headlines\.sent2\.txt line 97 "):
        headlines = read_ists(shared / "data" / "ists2016", "headlines")
    for pairs, n in ((read_ists(shared / "data"), 1063), (headlines, 1106)):
        kept = [
            alignment
            for pair in pairs
            for alignment in pair.alignments
            if alignment.kind != "NOALI" and alignment.score is not None and alignment.score >= 3
        ]
        assert len(kept) == n
    assert headlines[96].right.text == "Tottenham v Manchester City - live!"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("headlines", r"headlines\.wa line 7250 .*headlines\.wa line 20903 "),
        (
            "answers-students",
            r"sent1\.txt lines 8, 39, 77, 110, 148, 190, 197, 244 .blanks too many.; .*sent1\.chunk\.txt line 203 "
            r".a bracket too many.$",
        ),
    ],
)
def test_known_faults_of_train_are_repaired_in_one_warning(shared, tmp_path, name, message):
    with pytest.warns(DataWarning, match=message) as caught:
        pairs = read_ists(shared / "data", name, "train")
    assert len(caught) == 1
    assert len(pairs) == ISTS_ROWS["train"][name]
    assert all("  " not in pair.left.text for pair in pairs)
    if name == "answers-students":
        assert pairs[202].left.chunks[2] == (4, 5, 6, 7)  # "in a closed path", as the gold alignment has it
    else:
        assert pairs[637].right.words[-1] == "claims"
    write_wa(tmp_path / "x.wa", pairs)
    again = read_wa(tmp_path / "x.wa")
    assert [pair.alignments for pair in again] == [pair.alignments for pair in pairs]
    assert [(pair.left.words, pair.right.words) for pair in again] == [
        (pair.left.words, pair.right.words) for pair in pairs
    ]


STEM = "STSint.testinput.images."


@pytest.fixture
def copy(shared, tmp_path):
    """The images test set, to be broken."""
    for path in (shared / "data" / "ists2016" / "test").glob(f"{STEM}*"):
        shutil.copyfile(path, tmp_path / path.name)
    return tmp_path


def edit(path, change):
    lines = path.read_text("utf-8").split("\n")
    change(lines)
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("sent1.txt", lambda lines: lines.pop(9), "has 374 lines and the alignments 375 pairs"),
        ("sent1.txt", lambda lines: lines.insert(9, lines[9]), "has 376 lines"),
        ("sent1.txt", lambda lines: lines.insert(0, lines.pop(5)), "line 1: its words are not those of pair 1"),
        ("sent2.chunk.txt", lambda lines: lines.insert(0, lines.pop(5)), "line 1: its words are not those of pair 1"),
        ("sent1.chunk.txt", lambda lines: lines.__setitem__(2, "[ a ] b"), "line 3: 'b' stands outside the brackets"),
        ("sent1.chunk.txt", lambda lines: lines.__setitem__(2, "[ a ] [ b"), "line 3: a chunk is not closed"),
        ("sent1.chunk.txt", lambda lines: lines.__setitem__(2, "[ a ] [ ]"), "line 3: a chunk is empty"),
        ("wa", lambda lines: lines.__delitem__(slice(0, lines.index("</sentence>") + 1)), "374 pairs, 375 expected"),
        ("wa", lambda lines: lines.__delitem__(slice(5000, None)), "the file ends within pair"),
        ("wa", lambda lines: lines.extend(lines), "pair 1 occurs twice"),
    ],
)
def test_files_that_are_broken_or_do_not_fit(copy, name, change, message):
    edit(copy / f"{STEM}{name}", change)
    with pytest.raises(DataError, match=message):
        read_ists(copy)


def test_what_is_not_there_or_not_known(copy):
    (copy / f"{STEM}sent2.chunk.txt").unlink()
    with pytest.raises(DataNotFoundError, match=r"sent2\.chunk\.txt"):
        read_ists(copy)
    with pytest.raises(DataNotFoundError, match=r"no STSint\.testinput\.headlines\.wa"):
        read_ists(copy, "headlines")
    with pytest.raises(DataError, match="unknown set of iSTS 'belief'"):
        read_ists(copy, "belief")
    with pytest.raises(DataError, match="unknown split of iSTS 'dev'"):
        read_ists(copy, "images", "dev")
