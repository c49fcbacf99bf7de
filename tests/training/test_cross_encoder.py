"""Training of a cross-encoder, on the tiny checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from likewise import CrossEncoder
from likewise.errors import InputError, TrainingError
from likewise.training import Dataset, TrainingConfig, train_cross_encoder
from tests.conftest import CORPUS

PAIRS = [(CORPUS[i % 5], CORPUS[(i * 3 + 1) % 5]) for i in range(12)]
COLUMNS = tuple(list(column) for column in zip(*PAIRS, strict=True))
GOLD = [0.25 * (i % 5) for i in range(12)]
CLASSES = [i % 5 % 3 for i in range(12)]

CONFIG: dict[str, Any] = {"batch_size": 4, "epochs": 4.0, "learning_rate": 2e-3, "device": "cpu", "log_steps": 1}


def _model(folder: Path, **options: Any) -> CrossEncoder:
    return CrossEncoder.load(folder, device="cpu", **{"n_labels": 1, **options})


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({"n_labels": 1}, GOLD),
        ({"n_labels": 1, "activation": "identity"}, [5 * gold for gold in GOLD]),
        ({"n_labels": 3}, CLASSES),
    ],
)
def test_the_loss_falls_and_the_model_is_saved(
    options: dict[str, Any], labels: list[float], checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    model = _model(checkpoint("bert"), **options)
    before = model.logits(*COLUMNS)
    config = TrainingConfig(**{**CONFIG, "epochs": 10.0})
    result = train_cross_encoder(model, [Dataset("pairs", COLUMNS, labels)], config, output=tmp_path / "run")
    losses = [entry["loss"] for entry in result.history]
    assert result.n_steps == len(losses) == 30
    assert np.mean(losses[-3:]) < 0.9 * np.mean(losses[:3])
    after = model.logits(*COLUMNS)
    assert np.abs(after - before).max() > 1e-2
    saved = CrossEncoder.load(result.folder, device="cpu")
    np.testing.assert_array_equal(saved.logits(*COLUMNS), after)
    assert (saved.activation, saved.n_labels) == (model.activation, model.n_labels)
    assert not model.module.training


@pytest.mark.parametrize(
    ("options", "labels", "wanted"),
    [
        ({}, GOLD, lambda x, y: F.binary_cross_entropy(torch.sigmoid(x[:, 0]), y)),
        ({"activation": "identity"}, GOLD, lambda x, y: ((x[:, 0] - y) ** 2).mean()),
        ({"n_labels": 3}, CLASSES, lambda x, y: -x.softmax(1)[torch.arange(12), y.long()].log().mean()),
    ],
)
def test_what_is_made_small(
    options: dict[str, Any],
    labels: list[float],
    wanted: Any,
    checkpoint: Callable[[str], Path],
    edit_json: Callable[..., None],
    tmp_path: Path,
) -> None:
    """The first loss, of the whole data as one batch and without dropout."""
    folder = Path(shutil.copytree(checkpoint("bert"), tmp_path / "base"))
    edit_json(folder / "config.json", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = _model(folder, **options)
    logits = torch.from_numpy(model.logits(*COLUMNS))
    config = TrainingConfig(**{**CONFIG, "batch_size": 12, "max_steps": 1})
    result = train_cross_encoder(model, [Dataset("pairs", COLUMNS, labels)], config, output=tmp_path / "run")
    assert result.loss == pytest.approx(float(wanted(logits, torch.tensor(labels))), rel=1e-4)


def test_the_best_model_is_kept(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    model, seen = _model(checkpoint("bert")), []

    def judge(found: CrossEncoder) -> float:
        seen.append(found.logits(*COLUMNS))
        return -float(len(seen))  # the first is the best

    config = TrainingConfig(**CONFIG, eval_steps=3)
    result = train_cross_encoder(
        model, [Dataset("pairs", COLUMNS, GOLD)], config, output=tmp_path / "run", evaluate=judge
    )
    assert (len(seen), result.best_step, result.best_score) == (4, 3, -1)
    np.testing.assert_array_equal(CrossEncoder.load(result.folder, device="cpu").logits(*COLUMNS), seen[0])
    np.testing.assert_array_equal(model.logits(*COLUMNS), seen[0])


def test_a_resumed_run_gives_the_weights_of_a_straight_one(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    data, config = [Dataset("pairs", COLUMNS, GOLD)], TrainingConfig(**CONFIG, save_steps=2)
    straight = _model(checkpoint("roberta"))
    train_cross_encoder(straight, data, config, output=tmp_path / "straight")

    from transformers import TrainerCallback

    class Stop(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_cross_encoder(_model(checkpoint("roberta")), data, config, output=tmp_path / "two", callbacks=[Stop()])
    resumed = _model(checkpoint("roberta"))
    train_cross_encoder(resumed, data, config, output=tmp_path / "two", resume=True)
    for name, tensor in straight.module.state_dict().items():
        assert torch.equal(tensor, resumed.module.state_dict()[name]), name


def test_a_loss_that_is_not_finite_names_its_row(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    model = _model(checkpoint("bert"))
    only = model.tokenize(["a 9"], ["b"]).ids
    others = model.tokenize(*COLUMNS).ids
    fresh = next(number for number in only.tolist() if number not in others)
    with torch.no_grad():
        model.module.encoder.words[fresh] = 3e38
    columns = ([*COLUMNS[0][:3], "a 9"], [*COLUMNS[1][:3], "b"])
    with pytest.raises(TrainingError, match="row 3 of 'pairs' alone does that"):
        train_cross_encoder(
            model, [Dataset("pairs", columns, GOLD[:4])], TrainingConfig(**CONFIG), output=tmp_path / "run"
        )


def test_bad_input(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    score, classes = _model(checkpoint("bert")), _model(checkpoint("bert"), n_labels=3)
    for model, data, said in (
        (score, Dataset("x", COLUMNS), "'x': a cross-encoder needs a label for each pair"),
        (score, Dataset("x", COLUMNS, [3.8] * 12), r"'x': label 3.8 of row 0 is outside \[0, 1\]"),
        (classes, Dataset("x", COLUMNS, [0, 3] * 6), "'x': label 3 of row 1 is no class: 3 classes are numbered"),
        (score, Dataset("x", COLUMNS[:1], GOLD), "reads pairs, and data set 'x' has 1 columns"),
    ):
        with pytest.raises(InputError, match=said):
            train_cross_encoder(model, [data], TrainingConfig(**CONFIG), output=tmp_path / "run")
    data = [Dataset("x", COLUMNS, GOLD)]
    with pytest.raises(InputError, match="gradcache_chunk is for contrastive batches"):
        train_cross_encoder(score, data, TrainingConfig(**CONFIG, gradcache_chunk=2), output=tmp_path / "run")
    with pytest.raises(InputError, match="fewer than one batch of 40"):
        train_cross_encoder(score, data, TrainingConfig(**{**CONFIG, "batch_size": 40}), output=tmp_path / "run")
    several = _model(checkpoint("bert"), n_labels=3, activation="sigmoid")
    with pytest.raises(InputError, match="classes with activation 'sigmoid' are not trained here"):
        train_cross_encoder(several, data, TrainingConfig(**CONFIG), output=tmp_path / "run")
