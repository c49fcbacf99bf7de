from __future__ import annotations

from collections import Counter

import pytest

from likewise.data import ArgumentPair, read_arguments
from likewise.errors import DataError, DataNotFoundError

AFS = (
    "regression_label,datasetId_1,discussionId_1,postId_1,sentenceIndex_1,datasetId_2,discussionId_2,postId_2,"
    "sentenceIndex_2,sentence_1,sentence_2\r\n"
)
NUMBERS = "1,2,3,4,5,6,7,8"


def test_the_two_stand_ins(shared):
    bws = read_arguments(shared / "data" / "bws_argument_similarity" / "BWS_corpus.csv")
    aspect = read_arguments(shared / "data" / "ukp_aspect" / "UKP_ASPECT.tsv")
    assert (len(bws), len({pair.topic for pair in bws})) == (3400, 8)
    assert (len(aspect), len({pair.topic for pair in aspect})) == (3595, 28)
    assert all(0 <= pair.gold <= 1 for pair in bws)
    assert Counter(pair.gold for pair in aspect) == {0.0: 571 + 1723, 1.0: 841, 2.0: 460}


def test_the_original_corpus_with_its_damaged_bytes(tmp_path):
    row = b'3.25,1,2,3,4,5,6,7,8,"It\x89\xdb\xaas a \x89\xdb\xcfright\x89\xdb\x9d, caf\xe9.",No.\r\n'
    (tmp_path / "ArgPairs_GM.csv").write_bytes(AFS.encode() + row)
    (tmp_path / "ArgPairs_GC.csv").write_bytes(AFS.encode() + f"0,{NUMBERS},“ü”,b\r\n".encode())
    gay_marriage = ArgumentPair("gay marriage", "It’s a “right”, café.", "No.", 3.25)
    assert read_arguments(tmp_path / "ArgPairs_GM.csv") == [gay_marriage]
    assert read_arguments(tmp_path) == [ArgumentPair("gun control", "“ü”", "b", 0.0), gay_marriage]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ArgPairs_DP.csv", f"{AFS}5.5,{NUMBERS},a,b\n", "line 2: the score 5.5 is outside 0 to 5"),
        ("ArgPairs_DP.csv", f"{AFS},{NUMBERS},a,b\n", "line 2: the score '' is not a number"),
        ("ArgPairs_DP.csv", f"{AFS}1,{NUMBERS},a, b,c\n", "line 2: 12 columns, 11 expected"),
        ("ArgPairs_DP.csv", f"{AFS}1,{NUMBERS},a,\n", "line 2: a text is empty"),
        ("ArgPairs_DP.csv", f'{AFS}1,{NUMBERS},"a,b\n', "line 2: the row that starts here is not CSV"),
        ("ArgPairs_DP.csv", "", "line 1: no column 'sentence_1'"),
        ("x.csv", "topic,sentence_1,sentence_2,regression_label\nt,a,b,1.5\n", "line 2: the score 1.5 is outside"),
        ("x.tsv", "topic\tsentence_1\tsentence_2\tlabel\nt\ta\tb\t\n", "line 2: the label '' is none of"),
        ("x.tsv", "topic\tsentence_1\tsentence_2\tlabel\nt\ta\tb\tc\tHS\n", "line 2: 5 columns"),
        ("BWS_corpus.csv", "topic,sentence_1,sentence_2,regression_label\nt,a,b,1\n", "1 pairs, 3400 expected"),
    ],
)  # fmt: skip
def test_what_is_broken_is_named(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    with pytest.raises(DataError, match=message):
        read_arguments(tmp_path / name)


def test_only_the_original_corpus_may_be_something_else_than_utf8(tmp_path):
    text = b"topic,sentence_1,sentence_2,regression_label\nt,caf\xe9,b,1\n"
    (tmp_path / "x.csv").write_bytes(text)
    with pytest.raises(DataError, match=r"x\.csv, line 2: byte 5 is not UTF-8"):
        read_arguments(tmp_path / "x.csv")
    (tmp_path / "ArgPairs_DP.csv").write_bytes(AFS.encode() + f"1,{NUMBERS},".encode() + b"a\x81,b\n")
    with pytest.raises(DataError, match=r"ArgPairs_DP\.csv, line 2: byte 19 is not CP1252"):
        read_arguments(tmp_path / "ArgPairs_DP.csv")


def test_a_folder_of_one_corpus_is_that_corpus(shared, tmp_path):
    folder = shared / "data" / "ukp_aspect"
    assert read_arguments(folder) == read_arguments(folder / "UKP_ASPECT.tsv")
    (tmp_path / "BWS_corpus.csv").write_text("x")
    (tmp_path / "ArgPairs_GM.csv").write_text("x")
    with pytest.raises(DataError, match=r"holds several corpora \(AFS, BWS\); name the file of one"):
        read_arguments(tmp_path)


def test_what_is_not_there(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"none of ArgPairs_GC\.csv, .*, UKP_ASPECT\.tsv in"):
        read_arguments(tmp_path)
    with pytest.raises(DataNotFoundError, match=r"cannot read .*x\.csv"):
        read_arguments(tmp_path / "x.csv")
