"""Batches: full, distinct where asked, the same from one seed, and as many as promised."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from likewise.errors import InputError
from likewise.training import Dataset, TrainableEncoder
from likewise.training.batches import Batches
from likewise.training.samplers import BatchSampler, distinct_batches


@pytest.fixture(scope="module")
def encoder(mean_folder):
    return TrainableEncoder.from_folder(mean_folder)


def number(i: int) -> str:
    """Digit by digit, since the small vocabulary has no others."""
    return " ".join(str(i))


def rows(n: int, name: str = "a", weight: float = 1.0) -> Dataset:
    columns = [f"{name} {number(i)}" for i in range(n)], [f"plane {name} {number(i)}" for i in range(n)]
    return Dataset(name, columns, weight=weight)


def epoch(sampler: BatchSampler, at: int) -> list[tuple[int, tuple[int, ...]]]:
    sampler.set_epoch(at)
    return [(place.dataset, tuple(place.rows.tolist())) for place in sampler]


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_an_epoch_sees_each_row_once(encoder, distinct, grouped):
    sampler = BatchSampler(Batches([rows(50)], encoder).sets, 8, 0, distinct=distinct, grouped=grouped)
    seen = epoch(sampler, 0)
    assert len(seen) == len(sampler) == 6
    counts = Counter(row for _, batch in seen for row in batch)
    assert len(counts) == 48
    assert set(counts.values()) == {1}


def test_the_order_depends_on_seed_and_epoch_alone(encoder):
    sets = Batches([rows(50)], encoder).sets
    one, same, other = (BatchSampler(sets, 8, seed, distinct=True) for seed in (0, 0, 1))
    assert epoch(one, 3) == epoch(same, 3)
    assert len({str(epoch(one, number)) for number in range(3)} | {str(epoch(other, 0))}) == 4


def test_processes_share_every_batch(encoder):
    sets = Batches([rows(50)], encoder).sets
    whole = epoch(BatchSampler(sets, 8, 0), 1)
    parts = [epoch(BatchSampler(sets, 8, 0, part=(rank, 2)), 1) for rank in range(2)]
    assert [(d, a + b) for (d, a), (_, b) in zip(*parts, strict=True)] == whole
    with pytest.raises(InputError, match="8 rows cannot be shared by 3"):
        BatchSampler(sets, 8, 0, part=(0, 3))


def test_weights_say_how_often_rows_are_seen(encoder):
    sets = Batches([rows(40, "a", 2.0), rows(40, "b", 0.5), rows(16, "c")], encoder).sets
    seen = epoch(BatchSampler(sets, 8, 0), 0)
    assert Counter(dataset for dataset, _ in seen) == {0: 10, 1: 2, 2: 2}
    assert set(Counter(row for dataset, batch in seen if dataset == 0 for row in batch).values()) == {2}
    assert [dataset for dataset, _ in seen] != sorted(dataset for dataset, _ in seen)


def test_no_text_of_a_row_is_in_another_row_of_its_batch(encoder):
    random = np.random.default_rng(0)
    words = [f"{word} {number(n)}" for word in ("plane", "man", "dog") for n in range(10)]
    columns = tuple([words[at] for at in random.integers(0, len(words), 300)] for _ in range(3))
    sets = Batches([Dataset("a", columns)], encoder).sets
    sampler = BatchSampler(sets, 4, 0, distinct=True)
    for at in range(3):
        seen = epoch(sampler, at)
        assert len(seen) == len(sampler) == 75
        for _, batch in seen:
            owners = Counter(text for row in batch for text in {column[row] for column in columns})
            assert set(owners.values()) == {1}


def test_equal_tokens_are_equal_texts(encoder):
    columns = (["A Plane", "a plane", "a dog", "a man"], ["x 1", "x 2", "x 3", "x 4"])
    sampler = BatchSampler(Batches([Dataset("a", columns)], encoder).sets, 2, 0, distinct=True)
    assert all(set(batch) != {0, 1} for number in range(20) for _, batch in epoch(sampler, number))


def test_twenty_rows_fifty_times(encoder):
    columns = ([f"plane {number(i % 20)}" for i in range(1000)],) * 2
    sampler = BatchSampler(Batches([Dataset("a", columns)], encoder).sets, 20, 0, distinct=True)
    epochs = [epoch(sampler, at) for at in range(3)]
    for seen in epochs:
        assert len(seen) == len(sampler) == 50
        assert all(len({row % 20 for row in batch}) == 20 for _, batch in seen)
        assert len({row for _, batch in seen for row in batch}) == 1000
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize(("n_distinct", "size"), [(1, 2), (20, 21)])
def test_rows_that_are_too_much_alike_are_refused_and_it_ends(encoder, n_distinct, size):
    columns = ([f"plane {number(i % n_distinct)}" for i in range(500)],) * 2
    with pytest.raises(InputError, match=f"texts of their own for batches of {size}"):
        BatchSampler(Batches([Dataset("a", columns)], encoder).sets, size, 0, distinct=True)


def test_many_equal_rows_cost_little():
    keys = np.zeros((20_000, 2), np.int64)
    keys[10_000:] = np.arange(10_000)[:, None] + 1
    orders = (np.random.default_rng(0).permutation(len(keys)) for _ in range(2))
    assert sum(1 for _ in distinct_batches(orders, keys, 32)) > 300


def test_groups_are_of_like_length(encoder):
    texts = ["plane " * (i % 20 + 1) for i in range(400)]
    sets = Batches([Dataset("a", (texts,))], encoder).sets
    spreads = {}
    for grouped in (False, True):
        seen = epoch(BatchSampler(sets, 8, 0, grouped=grouped), 0)
        spreads[grouped] = np.mean([np.ptp(sets[0].lengths[list(batch)]) for _, batch in seen])
    assert spreads[True] < spreads[False] / 4


@pytest.mark.parametrize(("n", "weight"), [(7, 1.0), (30, 0.2)])
def test_less_than_a_batch_is_refused(encoder, n, weight):
    with pytest.raises(InputError, match="fewer than one batch of 8"):
        BatchSampler(Batches([rows(n, weight=weight)], encoder).sets, 8, 0)
