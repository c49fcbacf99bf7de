"""`likewise calibrate`, and `likewise encode --to int8` and `--to binary`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from likewise.cli import main
from likewise.quantise import Calibration, to_binary

TEXTS = [f"A plane {n} is taking off from the park." for n in range(120)]


@pytest.fixture
def run(mean_folder):
    def call(*words, lines=TEXTS):
        return CliRunner().invoke(main, [*map(str, words), "--model", str(mean_folder)], input="\n".join(lines))

    return call


def test_codes_of_a_stored_calibration(run, tiny, tmp_path):
    ranges, codes = tmp_path / "calibration.json", tmp_path / "codes.npy"
    assert run("calibrate", "-", "-o", ranges).exit_code == 0
    calibration = Calibration.load(ranges)
    assert calibration.n == len(TEXTS)
    assert run("encode", "--to", "int8", "--calibration", ranges, "-o", codes).exit_code == 0
    stored = np.load(codes)
    assert stored.dtype == np.int8
    np.testing.assert_array_equal(stored, calibration.to_int8(tiny.encode(TEXTS)))
    done = run("encode", "--to", "int8", "--calibration", ranges, lines=TEXTS[:2])
    assert [json.loads(line)["embedding"] for line in done.stdout.splitlines()] == stored[:2].tolist()
    parquet = pytest.importorskip("pyarrow.parquet")
    assert run("encode", "--to", "int8", "--calibration", ranges, "-o", tmp_path / "codes.parquet").exit_code == 0
    assert parquet.read_table(tmp_path / "codes.parquet")["embedding"].to_pylist() == stored.tolist()


def test_bits(run, tiny, tmp_path):
    assert run("encode", "--to", "binary", "-o", tmp_path / "bits.npy").exit_code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "bits.npy"), to_binary(tiny.encode(TEXTS)))
    assert run("encode", "--to", "binary", "-o", tmp_path / "none.npy", lines=[]).exit_code == 0
    none = np.load(tmp_path / "none.npy")
    assert (none.shape, none.dtype) == ((0, 4), np.uint8)


def test_what_does_not_fit_is_refused(run, tmp_path):
    ranges = tmp_path / "calibration.json"
    few = run("calibrate", "-", "-o", ranges, lines=TEXTS[:99])
    assert few.exit_code == 2
    assert "99 vectors are too few" in few.stderr
    assert not ranges.exists()
    assert run("calibrate", "-", "-o", ranges, "--truncate-dim", "8").exit_code == 0
    assert "needs --calibration" in run("encode", "--to", "int8").stderr
    assert "is for --to int8" in run("encode", "--calibration", ranges).stderr
    done = run("encode", "--to", "int8", "--calibration", ranges, "-o", tmp_path / "codes.npy")
    assert done.exit_code == 2
    assert "32 dimensions and the calibration 8" in done.stderr
    assert not (tmp_path / "codes.npy").exists()
