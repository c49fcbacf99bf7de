from __future__ import annotations

import pytest

from likewise.data import LabelledPair, ScoredPair, read_sick, read_sick_nli
from likewise.errors import DataError, DataNotFoundError

HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
GOOD = "1\tA cat.\tA dog.\t3.5\tNEUTRAL"


@pytest.mark.parametrize(("split", "n"), [("train", 4500), ("dev", 500), ("test", 4927)])
def test_the_published_counts(shared, split, n):
    scored, labelled = read_sick(shared / "data", split), read_sick_nli(shared / "data" / "sick", split)
    assert len(scored) == len(labelled) == n
    assert [(pair.a, pair.b) for pair in scored] == [(pair.premise, pair.hypothesis) for pair in labelled]
    assert {pair.label for pair in labelled} == {"entailment", "neutral", "contradiction"}


def test_the_file_that_its_authors_keep(tmp_path):
    header = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set\r"
    rows = [header] + [f'{i}\tA "cat\tB\tENTAILMENT\t4\t{"TRIAL" if i < 500 else "TEST"}\r' for i in range(600)]
    (tmp_path / "SICK.txt").write_bytes("\n".join([*rows, ""]).encode())
    assert read_sick(tmp_path, "dev") == [ScoredPair('A "cat', "B", 4.0)] * 500
    assert read_sick_nli(tmp_path, "dev") == [LabelledPair('A "cat', "B", "entailment")] * 500


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEADER, GOOD], "1 pairs, 500 expected"),
        ([HEADER, GOOD, GOOD + "\tmore"], "line 3: 6 columns, 5 expected"),
        ([HEADER, GOOD.replace("3.5", "0.9")], "line 2: the score 0.9 is outside 1 to 5"),
        ([HEADER, GOOD.replace("3.5", "")], "line 2: the score '' is not a number"),
        ([HEADER, GOOD.replace("NEUTRAL", "")], "line 2: the judgement '' is none of"),
        ([HEADER, GOOD.replace("A dog.", "")], "line 2: a text is empty"),
        ([GOOD], "line 1: no column 'sentence_a'"),
        ([], "line 1: no column"),
    ],
)
def test_what_is_broken_is_named(tmp_path, lines, message):
    (tmp_path / "SICK_trial.txt").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=rf"SICK_trial\.txt.*{message}"):
        read_sick(tmp_path, "dev")


def test_what_is_not_there(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"no SICK_train\.txt of SICK"):
        read_sick(tmp_path, "train")
    with pytest.raises(DataError, match="unknown split of SICK 'trial'"):
        read_sick(tmp_path, "trial")
