"""Vectors made small: one byte a dimension with stored ranges, or one bit.

int8 needs the range of each dimension. Taken from the batch at hand it would be another one for every batch, and
that of a single vector would be empty, so that all its codes were equal; so the range comes from a `Calibration`,
which is fitted once on at least 100 vectors and stored beside the codes.

The codes of int8 have an offset and a step for each dimension: compare what `Calibration.from_int8` gives back,
not the codes. Binary codes need no calibration and are compared by `hamming`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int8, UInt8

from likewise.errors import DataError, InputError, InputTypeError
from likewise.files import atomic_file

__all__ = ["MIN_VECTORS", "Calibration", "hamming", "to_binary"]

MIN_VECTORS = 100
"""Fewest vectors that a calibration is fitted on."""

_FORMAT = "likewise-calibration-1"
_STEPS = 255


@dataclass(frozen=True, eq=False)
class Calibration:
    """The range of each dimension, which int8 codes divide into 255 steps.

    Example:
        >>> vectors = np.linspace(-1, 1, 200, dtype=np.float32).reshape(100, 2)
        >>> calibration = Calibration.fit(vectors)
        >>> codes = calibration.to_int8(vectors[:1])  # a single vector is as good as many
        >>> codes.dtype.name, bool(np.abs(calibration.from_int8(codes) - vectors[:1]).max() < 0.01)
        ('int8', True)
    """

    low: Float32[np.ndarray, "..."]
    """[dim] value of the code -128, the smallest one seen."""
    high: Float32[np.ndarray, "..."]
    """[dim] value of the code 127, the largest one seen."""
    n: int
    """How many vectors the ranges come from."""

    def __post_init__(self) -> None:
        if self.low.ndim != 1 or self.low.shape != self.high.shape:
            raise InputError(
                f"low has shape {self.low.shape} and high {self.high.shape}: they belong to different calibrations; "
                "give one value a dimension in each"
            )
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all() and (self.low <= self.high).all()):
            raise InputError("a range is NaN, infinite or upside down: the calibration is damaged; fit it again")

    @classmethod
    def fit(cls, vectors: Any) -> Calibration:
        """The smallest and the largest value of each dimension.

        Args:
            vectors: [n, dim] real numbers of any precision, n at least 100, of texts like those to come.

        Raises:
            InputError: Too few vectors, or one that holds NaN or infinity; its position is named.
        """
        rows = _rows(vectors)
        if rows.ndim != 2 or len(rows) < MIN_VECTORS:
            n = len(rows) if rows.ndim == 2 else 1
            raise InputError(
                f"{n} {'vector is' if n == 1 else 'vectors are'} too few for a calibration: the ranges would fit these "
                f"alone, and others would be cut; give at least {MIN_VECTORS}, or load a stored one"
            )
        return cls(rows.min(axis=0).astype(np.float32), rows.max(axis=0).astype(np.float32), len(rows))

    @property
    def dim(self) -> int:
        """Length of the vectors that it is for."""
        return len(self.low)

    def to_int8(self, vectors: Any) -> Int8[np.ndarray, "..."]:
        """Codes from -128 to 127; a value outside its range gets the nearest code.

        Args:
            vectors: [n, dim], or [dim] for a single one; real numbers of any precision.

        Raises:
            InputError: Another number of dimensions, or NaN or infinity; its position is named.
        """
        rows = _rows(vectors)
        self._check_dim(rows)
        step = self._step()
        inside = np.clip(rows.astype(np.float32), self.low, self.high)
        codes = np.rint((inside - self.low) / np.where(step > 0, step, np.float32(np.inf)))
        return np.clip(codes - 128, -128, 127).astype(np.int8)

    def from_int8(self, codes: Any) -> Float32[np.ndarray, "..."]:
        """The values that the codes stand for: within half a step (1/510 of the range) of those inside the range.

        Args:
            codes: What `to_int8` gave, [n, dim] or [dim].

        Raises:
            InputError: They are not int8, or have another number of dimensions.
        """
        rows = np.asarray(codes)
        if rows.dtype != np.int8:
            raise InputTypeError(f"the codes are {rows.dtype}, not int8; give what to_int8 returned")
        self._check_dim(rows)
        return self.low + (rows.astype(np.float32) + 128) * self._step()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, whole or not at all.

        Raises:
            InputError: The file cannot be written.
        """
        content = {"format": _FORMAT, "n": self.n, "low": self.low.tolist(), "high": self.high.tolist()}
        with atomic_file(path, "w") as stream:
            stream.write(json.dumps(content) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibration:
        """Read what `save` wrote; the same bits come back.

        Raises:
            DataError: The file is missing, damaged or of another kind.
        """
        try:
            with open(path, encoding="utf-8") as stream:
                content = json.load(stream)
        except OSError as error:
            raise DataError(
                f"cannot read the calibration {os.fspath(path)}: {error.strerror or error}; check the path, or make "
                "one with `likewise calibrate`"
            ) from error
        except ValueError as error:  # not JSON, or not UTF-8
            raise DataError(_damaged(path, str(error))) from error
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise DataError(_damaged(path, f'"format" is not {_FORMAT!r}'))
        try:
            low, high = (np.asarray(content[key], dtype=np.float32) for key in ("low", "high"))
            return cls(low, high, int(content["n"]))
        except (KeyError, TypeError, ValueError) as error:  # among them InputError
            raise DataError(_damaged(path, str(error))) from error

    def _step(self) -> Float32[np.ndarray, " dim"]:
        return ((self.high.astype(np.float64) - self.low) / _STEPS).astype(np.float32)

    def _check_dim(self, rows: np.ndarray) -> None:
        if rows.shape[-1] != self.dim:
            raise InputError(
                f"the vectors have {rows.shape[-1]} dimensions and the calibration {self.dim}: it was fitted for "
                "another model or another truncate_dim; fit one on vectors like these"
            )


def to_binary(vectors: Any) -> UInt8[np.ndarray, "..."]:
    """One bit a dimension, 1 where the value is above 0, eight in a byte, the first dimension the highest bit.

    Args:
        vectors: [n, dim], or [dim] for a single one; real numbers of any precision.

    Returns:
        [n, dim / 8] rounded up; bits that fill the last byte are 0.

    Raises:
        InputError: A vector holds NaN or infinity; its position is named.
    """
    return np.packbits(_rows(vectors) > 0, axis=-1)


def hamming(a: Any, b: Any, dim: int | None = None) -> Float[np.ndarray, "rows columns"]:
    """Every row of `a` against every row of `b` by the bits in which they differ, as a score from -1 to 1.

    The score is `1 - 2 * distance / dim`, where the distance counts those bits: 1 for equal codes, 0 when half of
    the bits differ, -1 for opposite ones. It equals the cosine of the vectors of signs. The distance itself is
    `(1 - score) * dim / 2`.

    Args:
        a: [n, bytes] codes of `to_binary`, or [bytes] for a single one.
        b: [m, bytes], likewise.
        dim: Dimensions of the vectors; by default 8 a byte. It matters where dim is no multiple of 8.

    Returns:
        [n, m] float32.

    Raises:
        InputError: Codes of unequal length, or a `dim` that they cannot hold.
    """
    left, right = _codes(a), _codes(b)
    if left.shape[1] != right.shape[1]:
        raise InputError(
            f"codes of {left.shape[1]} and of {right.shape[1]} bytes cannot be compared: they come from vectors of "
            "unequal dims; make both with one model"
        )
    dim = 8 * left.shape[1] if dim is None else dim
    if dim <= 0 or left.shape[1] != -(-dim // 8):
        raise InputError(
            f"{left.shape[1]} bytes a code do not belong to {dim} dimensions, which would fill {max(0, -(-dim // 8))}; "
            "give the length of the vectors that to_binary got"
        )
    return (_signs(left, dim) @ _signs(right, dim).T) / np.float32(dim)  # whole numbers below 2^24: exact


def _signs(codes: np.ndarray, dim: int) -> np.ndarray:
    return np.unpackbits(codes, axis=1, count=dim).astype(np.float32) * 2 - 1


def _codes(codes: Any) -> np.ndarray:
    rows = np.asarray(codes)
    if rows.dtype != np.uint8 or rows.ndim not in (1, 2):
        raise InputTypeError(
            f"the codes are {rows.dtype} of shape {rows.shape}, not uint8 [n, bytes]; give what to_binary returned"
        )
    return np.atleast_2d(rows)


def _rows(vectors: Any) -> np.ndarray:
    """The vectors as a finite floating-point array [n, dim] or [dim]."""
    try:
        rows = np.asarray(vectors)
    except (TypeError, ValueError) as error:  # rows of unequal length, or a tensor on a GPU
        raise InputError(f"the vectors are no array ({error}); give [n, dim] real numbers") from error
    if rows.dtype.kind not in "fiu" or rows.ndim not in (1, 2):
        raise InputTypeError(f"the vectors are {rows.dtype} of shape {rows.shape}; give [n, dim] real numbers")
    if not np.isfinite(rows).all():
        *row, column = np.argwhere(~np.isfinite(rows))[0].tolist()
        where = f"vector {row[0]}, dimension {column}" if row else f"dimension {column}"
        raise InputError(
            f"{where} is NaN or infinite: the model or its precision is at fault; encode again in float32, and leave "
            "out what stays so"
        )
    return rows


def _damaged(path: str | os.PathLike[str], reason: str) -> str:
    return f"{os.fspath(path)} is no calibration ({reason}); make one with `likewise calibrate`, or Calibration.save"
