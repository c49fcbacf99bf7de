"""SentEval: how much of a class a plain linear classifier reads off frozen sentence vectors.

Logistic regression of scikit-learn on the vectors as they are, without standardising, as the toolkit does. The
strength of the L2 penalty is chosen from its grid, C = 2^-2 … 2^3, on data that is not tested on:

MR, CR, SUBJ, MPQA   10 folds; within the training part of each, 10 folds choose the strength; accuracy over all
                     examples, each of which is tested once
SST2                 the development set chooses, the test set is reported
TREC, MRPC           10 folds of the training set choose, the test set is reported

MRPC pairs are seen as `|u - v|` and `u * v` side by side.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Shaped

from likewise.data import BinaryPair, LabelledText
from likewise.errors import InputError, MissingExtraError
from likewise.evaluation.example_scores import ExampleScores
from likewise.evaluation.measures import Embedder, Measure
from likewise.evaluation.sts import AVERAGE
from likewise.types import Embeddings

__all__ = [
    "STRENGTHS",
    "TASKS",
    "Folds",
    "average_accuracy",
    "evaluate_classification",
    "evaluate_paraphrases",
    "score_classification",
    "score_paraphrases",
]

TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
"""In the order of the papers' tables."""

T = TypeVar("T")

STRENGTHS = tuple(2.0**power for power in range(-2, 4))
"""Inverse penalties C among which the data chooses."""


@dataclass(frozen=True)
class Folds:
    """How data is split to choose and to test."""

    n: int = 10
    """Folds, fewer where a class has fewer examples."""
    seed: int = 1111
    """Seed of the shuffle before the split."""
    strengths: tuple[float, ...] = STRENGTHS
    """Inverse penalties to choose from; of equally good ones the first."""


def evaluate_classification(
    model: Embedder,
    splits: Mapping[str, Sequence[LabelledText]],
    *,
    task: str,
    folds: Folds = Folds(),
    progress: bool | None = None,
) -> list[Measure]:
    """Accuracy: see `score_classification` for the arguments, `ExampleScores.measures` for the row."""
    return score_classification(model, splits, task=task, folds=folds, progress=progress).measures()


def score_classification(
    model: Embedder,
    splits: Mapping[str, Sequence[LabelledText]],
    *,
    task: str,
    folds: Folds = Folds(),
    progress: bool | None = None,
) -> ExampleScores:
    """Accuracy, times 100, of a logistic regression on the vectors of texts.

    Args:
        model: Its pooled vectors are the features.
        splits: {"all"}: nested folds; {"train", "dev", "test"}: dev chooses; {"train", "test"}: folds of train choose.
        task: Name for the table.
        folds: Folds, seed and strengths.
        progress: Show a bar on standard error while encoding.

    Raises:
        InputError: Splits of other names.
        MissingExtraError: scikit-learn is not installed.

    Source:
        Conneau & Kiela 2018 (SentEval); Reimers & Gurevych 2019 (Sentence-BERT), section 5.
    """
    if "dev" in splits and not splits["dev"]:
        splits = {name: split for name, split in splits.items() if name != "dev"}
    if set(splits) not in ({"all"}, {"train", "test"}, {"train", "dev", "test"}):
        raise InputError(f"splits are {sorted(splits)}; give all, or train and test, or train, dev and test")
    examples = [example for split in splits.values() for example in split]
    tested = splits["all" if "all" in splits else "test"]
    labels = {name: np.asarray([example.label for example in split]) for name, split in splits.items()}
    learned = "all" if "all" in splits else "train"
    reason = _unusable(labels[learned], len(tested), 1 if "dev" in splits else 3 if "all" in splits else 2)
    right = np.zeros(len(tested))
    if reason is None:
        vectors = _encoded(model, [example.text for example in examples], progress)
        ends = np.cumsum([0, *(len(split) for split in splits.values())])
        vectors = _centred(vectors)
        features = {name: vectors[ends[i] : ends[i + 1]] for i, name in enumerate(splits)}
        if "all" in splits:
            right = _nested(features["all"], labels["all"], folds)
        else:
            right = _predicted(features, labels, folds) == labels["test"]
    return ExampleScores(task, model.name, "", tested, {"accuracy": 100.0 * right}, reason)


def evaluate_paraphrases(
    model: Embedder,
    train: Sequence[BinaryPair],
    test: Sequence[BinaryPair],
    *,
    task: str = "MRPC",
    folds: Folds = Folds(),
    progress: bool | None = None,
) -> list[Measure]:
    """Accuracy and F1: see `score_paraphrases` for the arguments, `ExampleScores.measures` for the rows."""
    return score_paraphrases(model, train, test, task=task, folds=folds, progress=progress).measures()


def score_paraphrases(
    model: Embedder,
    train: Sequence[BinaryPair],
    test: Sequence[BinaryPair],
    *,
    task: str = "MRPC",
    folds: Folds = Folds(),
    progress: bool | None = None,
) -> ExampleScores:
    """Accuracy and F1 of the paraphrases, times 100, of a logistic regression on `|u - v|` and `u * v`.

    Args:
        model: Its pooled vectors are u and v.
        train: Pairs to learn from; their folds choose the strength.
        test: Pairs to report on.
        task: Name for the table.
        folds: Folds, seed and strengths.
        progress: Show a bar on standard error while encoding.

    Raises:
        MissingExtraError: scikit-learn is not installed.

    Source:
        Conneau & Kiela 2018 (SentEval); Reimers & Gurevych 2019 (Sentence-BERT), section 5.
    """
    labels = {"train": np.asarray([pair.same for pair in train]), "test": np.asarray([pair.same for pair in test])}
    reason = _unusable(labels["train"], len(test), 2)
    right, f1 = np.zeros(len(test)), None
    if reason is None:
        pairs = [*train, *test]
        both = _encoded(model, [text for pair in pairs for text in (pair.a, pair.b)], progress)
        u, v = both[::2], both[1::2]
        seen = _centred(np.concatenate([np.abs(u - v), u * v], axis=1))
        predicted = _predicted({"train": seen[: len(train)], "test": seen[len(train) :]}, labels, folds)
        gold = labels["test"]
        right = predicted == gold
        named = int(np.count_nonzero(predicted)) + int(np.count_nonzero(gold))
        f1 = 200 * int(np.count_nonzero(predicted & gold)) / named if named else None
    none = reason or (None if f1 is not None else "no pair is the same, nor was called so")
    others = [Measure(task, "all", model.name, "", "f1", f1, len(test), reason=none)]
    return ExampleScores(task, model.name, "", test, {"accuracy": 100.0 * right}, reason, others=others)


def average_accuracy(measures: Sequence[Measure]) -> Measure:
    """The mean of the accuracies of one model over tasks, as the papers' last column has it.

    Raises:
        InputError: There is no accuracy, or there are several models.
    """
    found = [measure for measure in measures if measure.metric == "accuracy"]
    models = {measure.model for measure in found}
    if len(models) != 1:
        raise InputError(f"an average is of one model's accuracies; these are of {len(models)} models")
    missing = next((f"{one.task}: {one.reason}" for one in found if one.value is None), None)
    value = None if missing else float(np.mean([one.value for one in found if one.value is not None]))
    return Measure(AVERAGE, "all", models.pop(), "", "accuracy", value, sum(one.n for one in found), reason=missing)


def _unusable(labels: Shaped[np.ndarray, " n"], n_tested: int, least: int) -> str | None:
    """Why nothing can be learned or tested; of each class `least` examples are needed for the folds."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "eval", "SentEval") from error
    if not n_tested:
        return "there is nothing to test on"
    counts = Counter(labels.tolist())
    if len(counts) < 2:
        return f"a classifier needs two classes or more, and the training data has {len(counts)}"
    if min(counts.values()) < least:
        rarest = min(counts, key=lambda label: counts[label])
        return f"class {rarest!r} has {counts[rarest]} examples, and the folds need {least}"
    return None


def _encoded(model: Embedder, texts: list[str], progress: bool | None) -> Float[np.ndarray, "n dim"]:
    """Pooled vectors, each distinct text encoded once; refuses NaN."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = Embeddings.from_pooled(np.asarray(model.encode(list(rows), progress=progress))).tokens
    return vectors[[rows[text] for text in texts]]


def _centred(x: Float[np.ndarray, "n dim"]) -> Float[np.ndarray, "n dim"]:
    """A shift common to all features changes nothing in a model with a free intercept, but the solver ends sooner."""
    return x - x.mean(axis=0)


def _nested(x: Float[np.ndarray, "n dim"], y: Shaped[np.ndarray, " n"], folds: Folds) -> Bool[np.ndarray, " n"]:
    """Where the class is right when it is tested; each fold's strength is chosen within its training part."""

    def predicted(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        strength = _chosen_by_folds(x[train], y[train], folds)
        found: np.ndarray = _fitted(x[train], y[train], strength).predict(x[test])
        return found

    splits = _split(y, folds)
    right = np.zeros(len(y), bool)
    for (_, test), found in zip(splits, _in_threads(predicted, splits), strict=True):
        right[test] = found == y[test]
    return right


def _predicted(
    x: Mapping[str, Float[np.ndarray, "_ dim"]], y: Mapping[str, Shaped[np.ndarray, " _"]], folds: Folds
) -> Shaped[np.ndarray, " n"]:
    """Classes of the test set, from all of train with the strength that dev, or else folds of train, choose."""
    if "dev" in x:
        accuracies = _in_threads(
            lambda strength: float(_fitted(x["train"], y["train"], strength).score(x["dev"], y["dev"])),
            [(strength,) for strength in folds.strengths],
        )
        strength = folds.strengths[int(np.argmax(accuracies))]
    else:
        strength = _chosen_by_folds(x["train"], y["train"], folds, threads=True)
    predicted: np.ndarray = _fitted(x["train"], y["train"], strength).predict(x["test"])
    return predicted


def _chosen_by_folds(
    x: Float[np.ndarray, "n dim"], y: Shaped[np.ndarray, " n"], folds: Folds, *, threads: bool = False
) -> float:
    def accuracies(train: np.ndarray, test: np.ndarray) -> list[float]:
        return [float(_fitted(x[train], y[train], one).score(x[test], y[test])) for one in folds.strengths]

    splits = _split(y, folds)
    found = _in_threads(accuracies, splits) if threads else [accuracies(*split) for split in splits]
    return folds.strengths[int(np.argmax(np.mean(found, axis=0)))]


def _fitted(x: Float[np.ndarray, "n dim"], y: Shaped[np.ndarray, " n"], strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=1000).fit(x, y)


def _split(y: Shaped[np.ndarray, " n"], folds: Folds) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places to learn from and to test on, fold by fold, each class spread evenly."""
    from sklearn.model_selection import StratifiedKFold

    n = min(folds.n, *Counter(y.tolist()).values())
    return list(StratifiedKFold(n, shuffle=True, random_state=folds.seed).split(np.zeros(len(y)), y))


def _in_threads(work: Callable[..., T], items: Sequence[tuple[Any, ...]]) -> list[T]:
    """`work(*item)` for each item, one a core: products this small are slower, not faster, on several threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda item: work(*item), items))
