from __future__ import annotations

import json

import pytest

from likewise.data import ChunkAlignment, ChunkedPair, ChunkedText, read_wa
from likewise.errors import InputError
from likewise.evaluation.ists_f1 import alignment_f1, alignment_sums, resampled_f1, strong_alignments

WORDS = tuple("The red car stopped .".split()), tuple("A crimson vehicle halted quickly .".split())


def pair(*alignments, number=1, words=WORDS):
    sides = [ChunkedText(" ".join(side), side) for side in words]
    return ChunkedPair(number, *sides, tuple(ChunkAlignment(*one) for one in alignments))


def test_the_official_cases(shared, tmp_path):
    cases = json.loads((shared / "oracle" / "ists_f1_cases.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 8
    for case in cases:
        (tmp_path / "gold.wa").write_text(case["gold_wa"], encoding="utf-8")
        (tmp_path / "system.wa").write_text(case["system_wa"], encoding="utf-8")
        ours = alignment_f1(read_wa(tmp_path / "gold.wa"), read_wa(tmp_path / "system.wa"))
        expected = [case["official"][key] for key in ("Ali", "Type", "Score", "Typ+Sco")]
        assert [ours.alignment, ours.kind, ours.score, ours.joint] == pytest.approx(expected, abs=1e-4), case["name"]


@pytest.mark.parametrize(("name", "n", "ceiling"), [("images", 1063, 0.964), ("headlines", 1106, 0.970)])
def test_the_filter_of_the_gold_and_its_ceiling(ists_gold, name, n, ceiling):
    gold = ists_gold(name)
    strong = strong_alignments(gold)
    assert sum(len(one.alignments) for one in strong) == n
    assert alignment_f1(strong, gold).alignment == pytest.approx(ceiling, abs=5e-4)


def test_a_pair_listed_twice_keeps_its_last_type_and_score():
    gold = [pair(((1,), (1,), "EQUI", 5.0))]
    twice = [pair(((1,), (1,), "OPPO", 1.0), ((1,), (1,), "EQUI", 5.0))]
    assert alignment_f1(gold, twice) == alignment_f1(gold, gold)
    assert alignment_f1(gold, twice).joint == 1
    reversed_twice = [pair(((1,), (1,), "EQUI", 5.0), ((1,), (1,), "OPPO", 1.0))]
    assert alignment_f1(gold, reversed_twice).kind == 0


def test_what_has_no_value_and_what_is_zero():
    gold, nothing = [pair(((1,), (1,), "EQUI", 5.0))], [pair()]
    assert alignment_f1(nothing, gold).alignment is None
    assert alignment_f1([], []).alignment is None
    assert alignment_f1(gold, nothing).alignment == 0
    assert alignment_f1(gold, []).alignment == 0
    only_punctuation = [pair(((5,), (6,), "EQUI", 5.0))]
    assert alignment_f1(only_punctuation, only_punctuation).alignment is None


def test_an_alignment_without_score_counts_as_zero_and_is_not_strong():
    gold = [pair(((1,), (1,), "EQUI", 5.0))]
    assert alignment_f1(gold, [pair(((1,), (1,), "EQUI", None))]).score == 0
    kept = strong_alignments([pair(((1,), (1,), "EQUI", None), ((2,), (2,), "REL", 2.5), ((3,), (3,), "SIMI", 3.0))])
    assert [one.kind for one in kept[0].alignments] == ["SIMI"]


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ([pair(number=2)], "sentence pair 2, which the gold does not have"),
        ([pair(), pair()], "stands twice in the system"),
        ([pair(words=(("The",), ("A",)))], "has other words"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(system, message):
    with pytest.raises(InputError, match=message):
        alignment_f1([pair()], system)


def test_resamples_are_those_of_the_sums():
    gold = [pair(((1,), (1,), "EQUI", 5.0), number=number) for number in range(40)]
    system = [pair(((1,), (1 if number % 2 else 2,), "EQUI", 5.0), number=number) for number in range(40)]
    draws = resampled_f1(alignment_sums(gold, system), resamples=200)
    assert abs(draws.mean() - alignment_f1(gold, system).alignment) < 0.03
    assert 0.03 < draws.std() < 0.15
    assert (resampled_f1(alignment_sums(gold, system), resamples=200) == draws).all()
    assert len(resampled_f1(alignment_sums([], []), resamples=3)) == 0
    assert len(resampled_f1(alignment_sums(gold[:9], system[:9]), resamples=3)) == 0
    assert len(resampled_f1(alignment_sums(gold[:10], system[:10]), resamples=3)) == 3
