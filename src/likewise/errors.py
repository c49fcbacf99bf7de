"""Every error and warning that likewise raises.

A message says three things: what happened with the value, the likely cause, what to do.

    LikewiseError
    ├── InputError (ValueError)          a text, an array or an option cannot be used
    │   ├── InputTypeError (TypeError)   it has the wrong type; position and type are named
    │   └── TruncationError              a text is too long and on_truncate="raise"
    ├── ModelError (ValueError)          a model folder, its weights or its modules cannot be used
    │   └── ModelNotFoundError           no such folder, package or hub model at hand
    ├── DataError (ValueError)           a data file breaks its format; file and line are named
    ├── MissingExtraError (ImportError)  an optional dependency is absent; the pip line is given
    ├── TrainingError (ArithmeticError)  a loss or a gradient is NaN or infinite; step and rows are named
    └── WorkerError (RuntimeError)       a worker process ended before its work was done

    LikewiseWarning (UserWarning)
    ├── TruncationWarning                texts were cut, with counts
    ├── EmptyTextWarning                 a text without tokens got the documented value
    ├── PlainKernelsWarning              the compiled kernels are not there; said once
    └── DataWarning                      a data file has faults that were mended, or its end may be cut; it is named
"""

from __future__ import annotations

import sys
import warnings

__all__ = [
    "DataError",
    "DataNotFoundError",
    "DataWarning",
    "EmptyTextWarning",
    "InputError",
    "InputTypeError",
    "LikewiseError",
    "LikewiseWarning",
    "MissingExtraError",
    "ModelError",
    "ModelNotFoundError",
    "PlainKernelsWarning",
    "TrainingError",
    "TruncationError",
    "TruncationWarning",
    "WorkerError",
    "warn",
]


class LikewiseError(Exception):
    """Root of all errors of this package."""


class InputError(LikewiseError, ValueError):
    """A text, an array or an option cannot be used."""


class InputTypeError(InputError, TypeError):
    """A value has the wrong type; the message names its position and its type."""


class TruncationError(InputError):
    """A text is longer than the model reads and the caller asked to be told so."""


class ModelError(LikewiseError, ValueError):
    """A model folder, its weights or its modules cannot be used."""


class ModelNotFoundError(ModelError):
    """No folder, package or hub model of this name is at hand."""


class DataError(LikewiseError, ValueError):
    """A data file breaks its format; the message names the file and the line."""


class DataNotFoundError(DataError):
    """A file of the data set is not in the folder named."""


class MissingExtraError(LikewiseError, ImportError):
    """An optional dependency is absent; the message holds the pip line that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}': pip install {package} (it comes with likewise[{extra}])"
        )


class TrainingError(LikewiseError, ArithmeticError):
    """A loss, a gradient or a weight is not finite; the message names the step and the rows."""


class WorkerError(LikewiseError, RuntimeError):
    """A worker process ended before its work was done."""


class LikewiseWarning(UserWarning):
    """Root of all warnings of this package."""


class TruncationWarning(LikewiseWarning):
    """Texts were cut at the model's maximum length."""


class EmptyTextWarning(LikewiseWarning):
    """A text without any token took part; its documented value was returned."""


class PlainKernelsWarning(LikewiseWarning):
    """The compiled kernels are not in use, so that the plain ones run: the same results, more slowly."""


class DataWarning(LikewiseWarning):
    """A data file was read in spite of a fault: mended where there is no doubt what was meant, or an end cut short."""


def warn(message: str, category: type[LikewiseWarning]) -> None:
    """Warn at the line outside this package that led here, however deep the call."""
    frame, level = sys._getframe(1), 3  # the level of its caller
    while frame.f_back is not None and _inside(frame.f_back.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _inside(module: str) -> bool:
    return module.partition(".")[0] in ("likewise", "jaxtyping", "beartype", "contextlib")
