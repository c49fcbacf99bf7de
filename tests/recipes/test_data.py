"""Data of recipes: one's own files, limits, overlap with evaluation sets."""

from __future__ import annotations

import pytest

from likewise.recipes.data import _KINDS, examples_of, read_argument_pairs, some_of
from likewise.recipes.recipe import EVALUATION_SETS, KINDS, DataPart


def test_every_kind_has_a_reader():
    assert tuple(_KINDS) == KINDS


def test_own_triplets_and_scored_pairs(data):
    triplets = examples_of(DataPart("triplets", ("mine/triplets.jsonl",)), data)
    assert (len(triplets), len(triplets.columns), triplets.labels) == (40, 3, None)
    assert [column[0][0] for column in triplets.columns] == ["a", "b", "c"]
    scored = examples_of(DataPart("scored-pairs", ("mine/scored.jsonl",)), data)
    assert scored.labels[:5] == [0, 0.25, 0.5, 0.75, 1]
    both = DataPart("triplets", ("mine/triplets.jsonl", "mine/triplets.jsonl"))
    assert len(examples_of(both, data)) == 80


def test_a_limit_draws_rows_by_the_seed_and_keeps_their_order():
    rows = list(range(100))
    drawn = some_of(rows, 10, 1)
    assert drawn == sorted(drawn)
    assert drawn == some_of(rows, 10, 1)
    assert drawn != some_of(rows, 10, 2)
    assert some_of(rows, 100, 1) == some_of(rows, None, 1) == rows


@pytest.mark.filterwarnings("ignore:read as meant")
def test_rows_that_overlap_with_evaluation_sets_go(shared):
    folder = shared / "data"
    part = DataPart("nli-triplets", ("snli/snli_1.0_dev.csv",))
    whole = examples_of(part, folder)
    clean = examples_of(DataPart(part.kind, part.paths, without=EVALUATION_SETS), folder)
    assert whole.n_overlapping == 0
    assert clean.n_read == len(whole) == len(clean) + clean.n_overlapping
    assert 0 < clean.n_overlapping < 0.2 * len(whole)
    assert f"{clean.n_overlapping:,} of them dropped" in clean.describe()


def test_arguments_have_gold_from_0_to_1(data, shared):
    own = read_argument_pairs(DataPart("arguments", ("mine/arguments.csv",)), data)
    assert max(pair.gold for pair in own) == 1
    for name in ("bws_argument_similarity/BWS_corpus.csv", "ukp_aspect/UKP_ASPECT.tsv", "ukp_aspect"):
        golds = [pair.gold for pair in read_argument_pairs(DataPart("arguments", (name,)), shared / "data")]
        assert 0 <= min(golds) < 0.1
        assert 0.9 < max(golds) <= 1
