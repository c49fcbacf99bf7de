from __future__ import annotations

import numpy as np
import pytest

from likewise.data import BinaryPair, LabelledText, read_classification
from likewise.errors import InputError
from likewise.evaluation.measures import Measure
from likewise.evaluation.senteval import (
    Folds,
    average_accuracy,
    evaluate_classification,
    evaluate_paraphrases,
    score_classification,
)

RNG = np.random.default_rng(0)
VECTORS = {
    f"{label} {i}": RNG.standard_normal(3) + 4 * np.eye(3)["abc".index(label)] for label in "abc" for i in range(30)
}
TEXTS = [LabelledText(text, text[0]) for text in VECTORS]
QUICK = Folds(n=3, strengths=(0.25, 4.0))


def accuracy(embedder, splits, vectors=VECTORS, folds=QUICK):
    (measure,) = evaluate_classification(embedder(vectors), splits, task="T", folds=folds)
    return measure


@pytest.mark.parametrize(
    "splits",
    [
        {"all": TEXTS},
        {"train": TEXTS[::2], "test": TEXTS[1::2]},
        {"train": TEXTS[::3], "dev": TEXTS[1::3], "test": TEXTS[2::3]},
        {"train": TEXTS[::2], "dev": [], "test": TEXTS[1::2]},
    ],
)
def test_classes_that_lie_apart_are_told_apart(embedder, splits):
    measure = accuracy(embedder, splits)
    assert 95 < measure.value <= 100
    assert measure.n == len(splits.get("all") or splits["test"])
    shuffled = {
        name: [LabelledText(t.text, "abc"[i % 3]) for i, t in enumerate(split)] for name, split in splits.items()
    }
    assert accuracy(embedder, shuffled).value < 60


def test_equal_seeds_give_equal_numbers_and_each_text_is_encoded_once(embedder):
    noisy = {text: RNG.standard_normal(3) for text in VECTORS}
    values = [accuracy(embedder, {"all": TEXTS}, noisy).value for _ in range(2)]
    assert values[0] == values[1]
    others = {
        accuracy(embedder, {"all": TEXTS}, noisy, Folds(n=3, seed=seed, strengths=(1.0,))).value for seed in range(4)
    }
    assert len(others) > 1
    model = embedder(VECTORS)
    evaluate_classification(model, {"train": TEXTS, "test": TEXTS}, task="T", folds=QUICK)
    assert len(model.encoded) == len(TEXTS)


def test_the_strength_is_not_chosen_on_the_test_set(embedder):
    """Only a weak penalty learns the odd one; dev decides, whatever test would have liked."""
    vectors = {"l": [-1, 0], "r": [1, 0], "odd": [0.5, -1], "like odd": [0.5, -1], "unlike": [0.5, -1.01]}
    train = [LabelledText("l", "L")] * 20 + [LabelledText("r", "R")] * 21 + [LabelledText("odd", "L")]
    for dev, expected in (("L", 100), ("R", 0)):
        splits = {"train": train, "dev": [LabelledText("like odd", dev)], "test": [LabelledText("unlike", "L")]}
        measure = accuracy(embedder, splits, vectors, Folds(strengths=(0.01, 1000.0)))
        assert measure.value == expected


@pytest.mark.parametrize(
    ("splits", "reason"),
    [
        ({"all": []}, "nothing to test on"),
        ({"train": TEXTS, "test": []}, "nothing to test on"),
        ({"all": TEXTS[:5]}, "needs two classes"),
        ({"all": TEXTS[:32]}, "class 'b' has 2 examples, and the folds need 3"),
        ({"train": [], "test": TEXTS}, "needs two classes"),
    ],
)
def test_what_cannot_be_learned_has_a_reason(embedder, splits, reason):
    measure = accuracy(embedder, splits)
    assert measure.value is None
    assert reason in measure.reason


def test_few_examples_make_fewer_folds_and_a_constant_model_guesses(embedder):
    assert accuracy(embedder, {"all": [*TEXTS[:20], *TEXTS[30:33]]}, folds=Folds(strengths=(1.0,))).value is not None
    constant = accuracy(embedder, {"all": [*TEXTS[:30], *TEXTS[30:40]]}, {key: [1.0, 0, 0] for key in VECTORS})
    assert constant.value == pytest.approx(75, abs=1)


def test_nan_and_unknown_splits_are_refused(embedder):
    with pytest.raises(InputError, match="NaN"):
        accuracy(embedder, {"all": TEXTS}, {**VECTORS, "a 3": [np.nan, 0, 0]})
    with pytest.raises(InputError, match="give all"):
        accuracy(embedder, {"validation": TEXTS})


def pairs(n, start=0):
    same = [BinaryPair(f"a {start + i}", f"a {start + i + 1}", True) for i in range(n)]
    return same + [BinaryPair(f"a {start + i}", f"b {start + i}", False) for i in range(n)]


def test_paraphrases_are_told_by_differences(embedder):
    found = {one.metric: one for one in evaluate_paraphrases(embedder(VECTORS), pairs(14), pairs(10, 15), folds=QUICK)}
    assert found["accuracy"].value > 85
    assert found["f1"].value > 85
    assert found["f1"].n == 20
    none = evaluate_paraphrases(embedder(VECTORS), pairs(14), [])
    assert [one.reason for one in none] == ["there is nothing to test on"] * 2


def test_the_average_needs_every_task():
    def measure(task, value, model="m", metric="accuracy"):
        return Measure(task, "all", model, "", metric, value, 10, reason=None if value else "nothing")

    average = average_accuracy([measure("MR", 80.0), measure("MRPC", 70.0), measure("MRPC", 1.0, metric="f1")])
    assert (average.task, average.value, average.n) == ("Avg.", 75, 20)
    assert average_accuracy([measure("MR", 80.0), measure("CR", None)]).reason == "CR: nothing"
    with pytest.raises(InputError, match="2 models"):
        average_accuracy([measure("MR", 80.0), measure("MR", 80.0, "other")])


def test_two_models_are_compared_on_the_same_examples(embedder):
    splits = {"all": TEXTS}
    noisy = {text: RNG.standard_normal(3) for text in VECTORS}
    good, bad = (score_classification(embedder(some), splits, task="T", folds=QUICK) for some in (VECTORS, noisy))
    (one,) = bad.compare(good)
    assert one.difference < -30
    assert (one.test, one.p_value < 0.001) == ("McNemar", True)
    (whole,) = good.measures()
    assert whole.low <= whole.value <= whole.high


@pytest.mark.model
def test_customer_reviews_in_part(minilm, shared):
    splits = read_classification(shared / "data" / "senteval_transfer", "CR")
    (measure,) = evaluate_classification(minilm, {"all": splits["all"][::10]}, task="CR", folds=Folds(n=3))
    assert 75 < measure.value < 95
