"""Data sets are checked at birth, tokenized once, and packed column after column."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.errors import InputError, InputTypeError
from likewise.training import Dataset, TrainableEncoder, TrainingConfig
from likewise.training.batches import Batches, Place

COLUMNS = (["A plane is taking off.", "Two dogs", "A plane is taking off."], ["A man", "a large flute", "Two dogs"])


@pytest.fixture(scope="module")
def encoder(mean_folder):
    return TrainableEncoder.from_folder(mean_folder)


def test_a_batch_is_packed_column_after_column(encoder):
    data = Dataset("a", COLUMNS, labels=[0, 1, 2])
    batch = Batches([data], encoder)[Place(0, np.array([2, 0]))]
    wanted, offsets = encoder.tokenize([COLUMNS[0][2], COLUMNS[0][0], COLUMNS[1][2], COLUMNS[1][0]])
    np.testing.assert_array_equal(batch["ids"], wanted)
    np.testing.assert_array_equal(batch["offsets"], offsets)
    assert batch["n_sides"] == 2
    assert torch.equal(batch["labels"], torch.tensor([2, 0]))


@pytest.mark.parametrize(
    ("labels", "dtype"), [([0, 1, 1], torch.int64), ([0.5, 1, 0], torch.float32), (np.eye(3), torch.float32)]
)
def test_labels_keep_their_kind(encoder, labels, dtype):
    batches = Batches([Dataset("a", COLUMNS, labels=labels)], encoder)
    assert batches[Place(0, np.array([1]))]["labels"].dtype == dtype


def test_a_fingerprint_sees_every_change(encoder):
    def made(columns=COLUMNS, labels=(0, 1, 2), weight=1.0):
        return Batches([Dataset("a", columns, list(labels), weight)], encoder).fingerprint

    swapped = (COLUMNS[1], COLUMNS[0])
    assert made() == made()
    assert len({made(), made(labels=(0, 1, 1)), made(weight=2.0), made(columns=swapped)}) == 4


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"columns": ()}, InputError, "no column"),
        ({"columns": ([], [])}, InputError, "is empty"),
        ({"columns": (["a"], ["b", "c"])}, InputError, r"\[1, 2\] texts"),
        ({"columns": (["a"], ["b"]), "labels": [1, 2]}, InputError, "2 labels for 1 rows"),
        ({"columns": (["a"],), "weight": 0.0}, InputError, "weight 0"),
        ({"columns": (["a", None],)}, InputTypeError, "row 1 of column 0 of data set 'nli' is NoneType"),
    ],
)
def test_bad_data_sets_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        Dataset("nli", **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"epochs": 0.0}, "epochs is 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"warmup_ratio": 1.5}, "warmup_ratio is 1.5"),
        ({"schedule": "linaer"}, "unknown schedule 'linaer'; known are linear"),
        ({"precision": "fp16"}, "unknown precision 'fp16'"),
        ({"gradcache_chunk": 0}, "gradcache_chunk is 0"),
    ],
)
def test_bad_configurations_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        TrainingConfig(**given)


def test_no_data_is_refused(encoder):
    with pytest.raises(InputError, match="no data set"):
        Batches([], encoder)
