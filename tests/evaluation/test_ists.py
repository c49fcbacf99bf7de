from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from likewise import Model
from likewise.data import ChunkAlignment, ChunkedPair, ChunkedText, read_wa, write_wa
from likewise.errors import InputError
from likewise.evaluation.ists import ChunkTable, align_ists, chunk_tables, evaluate_ists
from likewise.evaluation.ists_f1 import alignment_f1, strong_alignments
from likewise.evaluation.worst import explain_worst


def text(*chunks):
    words = tuple(word for chunk in chunks for word in chunk.split())
    ids, end = [], 0
    for chunk in chunks:
        n = len(chunk.split())
        ids.append(tuple(range(end + 1, end + n + 1)))
        end += n
    return ChunkedText(" ".join(words), words, tuple(ids))


PAIR = ChunkedPair(
    1,
    text("A man", "plays", "the guitar", "."),
    text("A woman", "is playing", "the guitar", "."),
    (ChunkAlignment((1, 2), (1, 2), "SIMI", 3.0), ChunkAlignment((4, 5), (5, 6), "EQUI", 5.0)),
)

TABLE = ChunkTable(
    np.array([[0.5, 0.0, 0.0, 0.0], [0.0, 0.3, 0.1, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.2, 0.0, 0.1]]),
    rows=((1,), (2,)),
    columns=((1, 2), (3,)),
)


def test_a_block_is_its_mean_and_ties_are_all_chosen():
    assert TABLE.means == pytest.approx(np.array([[0.2, 0.0], [0.0, 0.0]]))
    assert TABLE.chosen("paper") == [(0, 0), (1, 1)]
    tied = ChunkTable(np.zeros((2, 2)), ((0,), (1,)), ((0,), (1,)))
    assert tied.chosen("paper") == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert tied.chosen("lawful") == [(0, 0)]


def test_the_lawful_table_adds_up_and_a_special_token_can_win():
    assert TABLE.sums.sum() == pytest.approx(TABLE.contributions.sum(), abs=1e-12)
    assert TABLE.sums.shape == (4, 3)
    assert TABLE.chosen("lawful") == [(0, 0)]
    stolen = ChunkTable(np.array([[0.0, 0.0], [0.9, 0.1]]), rows=((1,),), columns=((1,),))
    assert stolen.chosen("paper") == [(0, 0)]
    assert stolen.chosen("lawful") == []


def test_a_chunk_that_was_not_read_is_not_aligned():
    cut = ChunkTable(np.ones((2, 2)), rows=((0, 1), ()), columns=((0,), (1,)))
    assert cut.chosen("paper") == [(0, 0), (0, 1)]
    assert ChunkTable(np.ones((2, 2)), (), ()).chosen("lawful") == []
    with pytest.raises(InputError, match="known are paper, lawful"):
        cut.chosen("fair")


@pytest.mark.parametrize("similarity", ["cosine", "rcmd", "transport"])
def test_tables_hold_the_whole_score_and_every_token_once(tiny, similarity):
    ((table,),) = chunk_tables(tiny, [PAIR], [similarity])
    expected = tiny.explain(PAIR.left.text, PAIR.right.text, similarity=similarity).score
    assert table.sums.sum() == pytest.approx(expected, abs=1e-6)
    tokens = [token for chunk in table.rows for token in chunk]
    assert tokens == list(range(1, table.contributions.shape[0] - 1))
    ((without,),) = chunk_tables(tiny, [PAIR], [similarity], special_tokens=False)
    assert without.contributions.shape == (table.contributions.shape[0] - 2, table.contributions.shape[1] - 2)


def test_alignments_are_written_and_read_back(tiny, tmp_path):
    (system,) = align_ists(tiny, [PAIR], ["rcmd"])
    aligned = system.aligned()
    assert {(one.kind, one.score) for one in aligned[0].alignments} == {("EQUI", 5.0)}
    write_wa(tmp_path / "system.wa", aligned)
    again = read_wa(tmp_path / "system.wa")
    gold = strong_alignments([PAIR])
    assert alignment_f1(gold, again) == alignment_f1(gold, aligned)


def test_the_worst_sentences_say_what_people_and_the_system_aligned(tiny):
    crossed = replace(PAIR, id=2, alignments=(ChunkAlignment((3,), (5, 6), "EQUI", 5.0),))
    (system,) = align_ists(tiny, [PAIR, crossed, replace(PAIR, id=3, alignments=())], ["rcmd"])
    first, _ = system.worst(5)  # without gold there is no value
    f1 = alignment_f1(strong_alignments([crossed]), system.aligned()[1:2]).alignment
    assert first.verdict.startswith(f"alignment F1 {f1:.2f} · people: plays ~ the guitar · here: ")
    assert first.score == pytest.approx(tiny.explain(first.a, first.b, similarity="rcmd").score, abs=1e-6)


def test_an_explanation_has_no_prompt_either(sentence_folder):
    model = Model.load(sentence_folder(prompts={"query": "query: "}, default_prompt_name="query"))
    (system,) = align_ists(model, [PAIR], ["rcmd"])
    (pair,) = explain_worst(model, system.worst(), "rcmd")
    assert pair.explanation.score == pytest.approx(pair.score, abs=1e-6)
    with_prompt = model.explain(pair.a, pair.b, similarity="rcmd").score
    assert abs(with_prompt - pair.score) > 1e-4


def test_measures_and_their_reasons(tiny):
    named = {one.metric: one for one in evaluate_ists(tiny, [PAIR], ["rcmd"])}
    assert named["lawful_gain"].value == named["alignment_f1_lawful"].value - named["alignment_f1"].value
    for pairs in ([], [ChunkedPair(1, PAIR.left, PAIR.right, ())]):
        measures = evaluate_ists(tiny, pairs, ["rcmd", "cosine"])
        assert [one.value for one in measures] == [None] * 6
        assert {one.reason for one in measures} == {"the gold aligns no chunks"}
    with pytest.raises(InputError, match="euclidean"):
        evaluate_ists(tiny, [PAIR], ["euclidean"])


def test_two_systems_are_compared_in_pairs(tiny):
    first, second = align_ists(tiny, [PAIR], ["cosine", "rcmd"])
    compared = second.compare(first)
    assert compared.difference == second.measures()[0].value - first.measures()[0].value
    assert second.compare(second).difference == 0
    few = [replace(PAIR, id=i) for i in range(9)]
    many = [*few, replace(PAIR, id=9)]
    for pairs, unsure, why in ((few, True, "n = 9"), (many, False, "the same value")):
        first, second = align_ists(tiny, pairs, ["cosine", "rcmd"])
        compared = second.compare(first)
        assert (compared.low is None, compared.p_value is None, compared.reason is not None) == (unsure,) * 3
        for one in second.measures():  # ten times the same pair say no more than one
            assert one.low is None
            assert why in one.reason
    (other,) = align_ists(tiny, [], ["rcmd"])
    with pytest.raises(InputError, match="same sentence pairs"):
        second.compare(other)


@pytest.mark.model
@pytest.mark.parametrize(
    ("name", "expected"), [("images", {"cosine": 0.8653, "rcmd": 0.9032}), ("headlines", {"cosine": 0.8347})]
)
def test_f1_equals_the_recorded_values(minilm, ists_gold, name, expected):
    measures = evaluate_ists(minilm, ists_gold(name), list(expected), subset=name)
    found = {one.similarity: one for one in measures if one.metric == "alignment_f1"}
    assert {similarity: round(one.value, 4) for similarity, one in found.items()} == expected
    assert all(one.low < one.value < one.high for one in found.values())


@pytest.mark.model
@pytest.mark.parametrize(("record", "similarity"), [("avg", "cosine"), ("rcmd", "rcmd"), ("rcmd_ns", "rcmd")])
def test_heat_maps_and_chosen_pairs_equal_the_recorded_ones(minilm, shared, ists_gold, record, similarity):
    path = shared / "oracle" / f"ists_all-MiniLM-L6-v2.{record}.images.json"
    recorded = json.loads(path.read_text(encoding="utf-8"))
    by_id = {pair.id: pair for pair in ists_gold("images")}
    pairs = [by_id[entry["id"]] for entry in recorded]
    special_tokens = record != "rcmd_ns"
    (system,) = align_ists(minilm, pairs, [similarity], special_tokens=special_tokens)
    for entry, table, aligned in zip(recorded, system.tables, system.aligned(), strict=True):
        heat = table.contributions[1:-1, 1:-1] if special_tokens else table.contributions
        assert heat == pytest.approx(np.asarray(entry["heatmap_token"]), abs=1e-4)
        assert table.means == pytest.approx(np.asarray(entry["heatmap_chunk"]), abs=1e-4)
        assert [(list(one.left), list(one.right)) for one in aligned.alignments] == [
            (one["sent1_word_ids"], one["sent2_word_ids"]) for one in entry["pairs"]
        ]
