from __future__ import annotations

import numpy as np
import pytest

from likewise.kernels.plain import cosines, nearest, rcmd_matrix, segment_max, segment_mean, unit

OFFSETS = np.array([0, 2, 2, 5])


@pytest.mark.parametrize("torch_too", [False, True], ids=["numpy", "torch"])
def test_segments_with_an_empty_one(torch_too):
    x = np.arange(10.0).reshape(5, 2)[::-1].copy()
    given = pytest.importorskip("torch").tensor(x) if torch_too else x
    assert np.asarray(segment_max(given, OFFSETS)).tolist() == [[8, 9], [0, 0], [4, 5]]
    assert np.asarray(segment_mean(given, OFFSETS)).tolist() == [[7, 8], [0, 0], [2, 3]]


def test_segments_that_are_all_empty():
    assert segment_max(np.zeros((0, 2)), np.array([0, 0, 0])).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_unit_rows_of_any_magnitude(scale):
    x = np.array([[3.0, 4.0], [0.0, 0.0]]) * scale
    assert np.allclose(unit(x), [[0.6, 0.8], [0, 0]], atol=1e-15)


def test_a_tie_goes_to_the_first_even_across_rounding():
    assert nearest(np.array([[0.5, 0.5 + 1e-16, 0.1], [0.0, 0.2, 0.2]])).tolist() == [0, 1]
    random = np.random.default_rng(0)
    y = np.repeat(random.standard_normal((1, 384)).astype(np.float32), 37, axis=0)
    assert (nearest(cosines(random.standard_normal((5, 384)).astype(np.float32), y)) == 0).all()


def test_rcmd_matrix_equals_two_loops():
    random = np.random.default_rng(1)
    lengths = [[3, 1, 0, 6], [2, 5, 1]]
    sides = [[random.standard_normal((length, 7)) for length in side] for side in lengths]
    packed = [np.concatenate(side) for side in sides]
    offsets = [np.concatenate([[0], np.cumsum(side)]) for side in lengths]
    expected = [
        [((c := cosines(x, y)).max(1).mean() + c.max(0).mean()) / 2 if len(x) and len(y) else 0 for y in sides[1]]
        for x in sides[0]
    ]
    assert np.allclose(rcmd_matrix(packed[0], offsets[0], packed[1], offsets[1]), expected, atol=1e-12)
