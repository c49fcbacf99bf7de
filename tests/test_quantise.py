"""Codes of a byte or a bit: what they keep, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest

from likewise.data import read_stsb
from likewise.errors import DataError, InputError, InputTypeError
from likewise.evaluation import correlate
from likewise.quantise import MIN_VECTORS, Calibration, hamming, to_binary


def cosine(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(1000, 48)) * rng.uniform(0.01, 10, 48) + rng.normal(size=48)).astype(np.float32)


@pytest.fixture(scope="module")
def calibration(vectors):
    return Calibration.fit(vectors[:500])


def test_one_vector_with_a_stored_calibration_keeps_its_direction(vectors, calibration, tmp_path):
    calibration.save(tmp_path / "calibration.json")
    stored = Calibration.load(tmp_path / "calibration.json")
    for vector in vectors[500:600]:
        codes = stored.to_int8(vector)
        assert len(np.unique(codes)) > 10
        assert cosine(stored.from_int8(codes), vector) >= 0.98


@pytest.mark.parametrize("n", [0, 1, 2, MIN_VECTORS - 1])
def test_too_few_vectors_are_no_calibration(vectors, n):
    with pytest.raises(InputError, match=f"{n} vectors? .* too few .* at least 100, or load"):
        Calibration.fit(vectors[:n])
    assert Calibration.fit(vectors[:MIN_VECTORS]).n == MIN_VECTORS


def test_a_single_flat_vector_is_no_calibration(vectors):
    with pytest.raises(InputError, match="1 vector is too few"):
        Calibration.fit(vectors[0])


def test_values_inside_the_range_come_back_within_half_a_step(vectors, calibration):
    inside = vectors[:500]
    codes = calibration.to_int8(inside)
    assert codes.dtype == np.int8
    assert codes.min() == -128
    assert codes.max() == 127
    error = np.abs(calibration.from_int8(codes) - inside)
    assert (error <= 0.501 * (calibration.high - calibration.low) / 255 + 1e-6).all()


def test_codes_survive_a_round_trip(calibration):
    codes = np.arange(-128, 128, dtype=np.int8)[:, None].repeat(calibration.dim, axis=1)
    np.testing.assert_array_equal(calibration.to_int8(calibration.from_int8(codes)), codes)


def test_values_outside_the_range_saturate(calibration):
    far = np.stack([calibration.high + 1e6, calibration.low - 1e6, np.full(48, 3e38), np.full(48, -3e38)])
    assert calibration.to_int8(far)[:, 0].tolist() == [127, -128, 127, -128]
    assert len(np.unique(calibration.to_int8(far))) == 2


def test_a_dimension_that_never_changes_comes_back_as_it_was():
    vectors = np.zeros((100, 2), np.float32)
    vectors[:, 0], vectors[:, 1] = 0.25, np.linspace(-1, 1, 100)
    calibration = Calibration.fit(vectors)
    assert (calibration.from_int8(calibration.to_int8(vectors))[:, 0] == 0.25).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_precision_gives_about_the_same_codes(vectors, calibration, dtype):
    codes = calibration.to_int8(vectors[500:].astype(dtype)).astype(int)
    assert np.abs(codes - calibration.to_int8(vectors[500:])).max() <= 1
    assert to_binary(vectors.astype(dtype)).dtype == np.uint8


@pytest.mark.parametrize("shape", [(48,), (1, 48), (0, 48)])
def test_the_shape_stays(calibration, shape):
    codes = calibration.to_int8(np.zeros(shape, np.float32))
    assert codes.shape == calibration.from_int8(codes).shape == shape


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("use", ["fit", "to_int8", "to_binary"])
def test_what_is_not_finite_is_refused_by_position(vectors, calibration, use, bad):
    damaged = vectors[:200].copy()
    damaged[7, 3] = bad
    call = {"fit": Calibration.fit, "to_int8": calibration.to_int8, "to_binary": to_binary}[use]
    with pytest.raises(InputError, match="vector 7, dimension 3 is NaN or infinite"):
        call(damaged)


def test_wrong_dims_and_types_are_refused(vectors, calibration):
    with pytest.raises(InputError, match="have 47 dimensions and the calibration 48"):
        calibration.to_int8(vectors[:, :47])
    with pytest.raises(InputError, match="have 47 dimensions"):
        calibration.from_int8(np.zeros((1, 47), np.int8))
    with pytest.raises(InputTypeError, match="codes are uint8, not int8"):
        calibration.from_int8(np.zeros((1, 48), np.uint8))
    with pytest.raises(InputTypeError, match="real numbers"):
        calibration.to_int8(["text"])
    with pytest.raises(InputError, match="no array"):
        Calibration.fit([[1.0], [1.0, 2.0]])
    with pytest.raises(InputError, match="different calibrations"):
        Calibration(np.zeros(2, np.float32), np.zeros(3, np.float32), 100)


def test_a_stored_calibration_is_the_same_bit_by_bit(calibration, tmp_path):
    path = tmp_path / "calibration.json"
    calibration.save(path)
    stored = Calibration.load(path)
    assert stored.low.tobytes() == calibration.low.tobytes()
    assert stored.high.tobytes() == calibration.high.tobytes()
    assert stored.n == calibration.n
    with pytest.raises(InputError, match="cannot write"):
        calibration.save(tmp_path / "absent" / "calibration.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, '"format" is not'),
        ({"low": None}, "no calibration"),
        ({"low": [1.0]}, "different calibrations"),
        ({"n": ...}, "no calibration"),
        ({"low": [float("nan")] * 48}, "NaN, infinite or upside down"),
    ],
)
def test_a_damaged_calibration_is_refused(calibration, tmp_path, edit_json, change, message):
    path = tmp_path / "calibration.json"
    calibration.save(path)
    edit_json(path, **change)
    with pytest.raises(DataError, match=message):
        Calibration.load(path)


def test_what_is_no_calibration_is_refused(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        Calibration.load(tmp_path / "absent.json")
    (tmp_path / "cut.json").write_text('{"format": "likewise-cal', encoding="utf-8")
    with pytest.raises(DataError, match="is no calibration"):
        Calibration.load(tmp_path / "cut.json")
    (tmp_path / "list.json").write_text(json.dumps([1]), encoding="utf-8")
    with pytest.raises(DataError, match="is no calibration"):
        Calibration.load(tmp_path / "list.json")


@pytest.mark.parametrize("dim", [8, 48, 13])
def test_hamming_is_the_cosine_of_signs(dim):
    rng = np.random.default_rng(dim)
    a, b = rng.normal(size=(5, dim)), rng.normal(size=(7, dim))
    codes = to_binary(a)
    assert codes.shape == (5, -(-dim // 8))
    scores = hamming(codes, to_binary(b), dim)
    slow = [[1 - 2 * np.mean((x > 0) != (y > 0)) for y in b] for x in a]
    np.testing.assert_allclose(scores, slow, atol=1e-6)
    assert (np.diag(hamming(codes, codes, dim)) == 1).all()
    assert hamming(to_binary(a[0]), to_binary(-a[0]), dim).tolist() == [[-1.0]]


def test_hamming_refuses_what_does_not_match():
    codes = to_binary(np.ones((2, 16)))
    with pytest.raises(InputError, match="codes of 2 and of 3 bytes"):
        hamming(codes, to_binary(np.ones((2, 24))))
    with pytest.raises(InputError, match="do not belong to 24 dimensions"):
        hamming(codes, codes, 24)
    with pytest.raises(InputTypeError, match="not uint8"):
        hamming(codes.astype(int), codes)


@pytest.mark.model
def test_int8_ranks_stsb_like_float32(minilm, shared):
    pairs = read_stsb(shared / "data" / "stsbenchmark", "dev")
    gold = np.asarray([pair.gold for pair in pairs])
    left, right = (minilm.encode([getattr(pair, side) for pair in pairs]) for side in "ab")
    calibration = Calibration.fit(left[:500])
    coarse = [calibration.from_int8(calibration.to_int8(side)) for side in (left, right)]
    exact = correlate(cosine(left, right), gold).spearman
    assert correlate(cosine(*coarse), gold).spearman == pytest.approx(exact, abs=0.3)
    bits = np.asarray([hamming(x, y)[0, 0] for x, y in zip(to_binary(left), to_binary(right), strict=True)])
    assert correlate(bits, gold).spearman > exact - 5
