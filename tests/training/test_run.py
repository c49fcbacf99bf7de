"""`train`: what it refuses, what it leaves, and that a resumed run is a straight run."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from likewise import Model
from likewise.errors import InputError, MissingExtraError, TrainingError
from likewise.objectives import Contrastive, Regression, Softmax, Triplet
from likewise.similarity import RCMD, Cosine
from likewise.training import Dataset, TrainableEncoder, TrainingConfig, checkpoints, train
from tests.conftest import CORPUS

WORDS = "plane taking off man plays large flute woman guitar three children park cats dogs".split()


def sentences(n: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(2, 9))) + " " + " ".join(str(i)) for i in range(n)]


def pairs(n: int = 48, labels=None) -> Dataset:
    return Dataset("pairs", (sentences(n, 1), sentences(n, 2)), labels)


def triplets(n: int = 48) -> Dataset:
    return Dataset("triplets", (sentences(n, 1), sentences(n, 2), sentences(n, 3)))


def plan(**options) -> TrainingConfig:
    defaults = {"batch_size": 8, "epochs": 2.0, "learning_rate": 1e-3, "log_steps": 1, "device": "cpu"}
    return TrainingConfig(**{**defaults, **options})


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Every tensor of the newest checkpoint: encoder, objective, optimizer."""
    last = checkpoints.last_checkpoint(folder / "checkpoints")
    return {
        f"{path.name}:{name}": tensor
        for path in sorted(last.glob("*.safetensors"))
        for name, tensor in checkpoints.read_tensors(path).items()
    }


def assert_same_run(one: Path, other: Path) -> None:
    a, b = weights(one), weights(other)
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []
    last = [checkpoints.last_checkpoint(folder / "checkpoints") for folder in (one, other)]
    for file in ("scheduler.json", "run.json"):
        assert json.loads((last[0] / file).read_text()) == json.loads((last[1] / file).read_text())
    losses = [_losses(path) for path in last]
    assert losses[0] == losses[1]
    assert (one / "model" / "model.safetensors").read_bytes() == (other / "model" / "model.safetensors").read_bytes()


def _losses(checkpoint: Path) -> list[float]:
    history = json.loads((checkpoint / checkpoints.MARKER).read_text())["log_history"]
    return [entry["loss"] for entry in history if "loss" in entry]


OBJECTIVES = {
    "simcse": (lambda: Contrastive(Cosine()), pairs),
    "clrcmd": (lambda: Contrastive(RCMD()), triplets),
    "triplet": (Triplet, triplets),
    "regression": (Regression, lambda: pairs(labels=np.linspace(0, 1, 48).tolist())),
    "softmax": (lambda: Softmax(32, 3), lambda: pairs(labels=[i % 3 for i in range(48)])),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_loss_falls_and_a_model_is_left(name, mean_folder, tmp_path):
    make, data = OBJECTIVES[name]
    encoder = TrainableEncoder.from_folder(mean_folder)
    before = encoder.backbone.words.detach().clone()
    result = train(encoder, make(), [data()], plan(epochs=4.0), output=tmp_path / "run")
    losses = [entry["loss"] for entry in result.history]
    assert result.n_steps == len(losses) == 24
    assert np.mean(losses[-6:]) < np.mean(losses[:6])
    assert not torch.equal(before, encoder.backbone.words)
    model = Model.load(result.folder)
    ids, offsets = encoder.tokenize(CORPUS)
    with torch.no_grad():
        found = encoder(torch.from_numpy(ids), offsets).pooled()
    assert np.abs(found.numpy() - model.encode(CORPUS)).max() < 1e-5
    assert model.similarity.name == ("rcmd" if name == "clrcmd" else "cosine")


def test_checkpoints_hold_no_pickle(mean_folder, tmp_path):
    train(TrainableEncoder.from_folder(mean_folder), Contrastive(), [pairs()], plan(), output=tmp_path / "run")
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".safetensors", ".json", ".txt"}
    assert len(list((tmp_path / "run" / "checkpoints").iterdir())) == 2


class Stop(Exception):
    pass


def stop_at(step: int):
    from transformers import TrainerCallback

    class Stopper(TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            if state.global_step == step:
                raise Stop

    return Stopper()


@pytest.mark.parametrize(("save_steps", "stop", "accumulation"), [(4, 6, 1), (6, 6, 2), (None, 9, 2)])
def test_stop_and_resume_is_a_straight_run(save_steps, stop, accumulation, mean_folder, tmp_path):
    """In the middle of an epoch, at its end, and with gradients accumulated."""
    config = plan(save_steps=save_steps, accumulation=accumulation, batch_size=8 // accumulation, warmup_ratio=0.2)
    data = [pairs(50, [i % 3 for i in range(50)])]

    def run(name: str, resume: bool = False, callbacks=()):
        encoder = TrainableEncoder.from_folder(mean_folder)
        torch.manual_seed(1)
        return train(encoder, Softmax(32, 3), data, config, output=tmp_path / name, resume=resume, callbacks=callbacks)

    straight = run("straight")
    with pytest.raises(Stop):
        run("stopped", callbacks=[stop_at(stop)])
    resumed = run("stopped", resume=True)
    assert straight.n_steps == resumed.n_steps == 12
    assert_same_run(tmp_path / "straight", tmp_path / "stopped")
    again = run("stopped", resume=True)
    assert again.history == resumed.history
    assert_same_run(tmp_path / "straight", tmp_path / "stopped")


_KILLED = """
import os, signal, sys
from pathlib import Path
from tests.training.test_run import pairs, plan
from likewise.objectives import Contrastive
from likewise.similarity import RCMD
from likewise.training import TrainableEncoder, checkpoints, train
from transformers import TrainerCallback

class Killer(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        if state.global_step == 7:
            os.kill(os.getpid(), signal.SIGKILL)

write, n_saved = checkpoints.write_optimizer, 0
def killed_while_writing(folder, state):
    global n_saved
    n_saved += 1
    if n_saved == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    write(folder, state)

where, how = sys.argv[2:]
if how == "writing":
    checkpoints.write_optimizer = killed_while_writing
encoder = TrainableEncoder.from_folder(sys.argv[1])
train(encoder, Contrastive(RCMD()), [pairs()], plan(save_steps=3), output=Path(where),
      callbacks=[Killer()] if how == "step" else [])
"""


def test_a_killed_run_resumes_to_equal_weights(mean_folder, tmp_path):
    """Killed in the middle of a run, and while the second checkpoint is being written."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    names = {"step": "checkpoint-6", "writing": "checkpoint-3"}
    commands = {how: [sys.executable, "-c", _KILLED, str(mean_folder), str(tmp_path / how), how] for how in names}
    jobs = {how: subprocess.Popen(command, cwd=root, env=environment) for how, command in commands.items()}
    assert {job.wait(120) for job in jobs.values()} == {-signal.SIGKILL}

    def run(name: str, resume: bool):
        encoder = TrainableEncoder.from_folder(mean_folder)
        return train(encoder, Contrastive(RCMD()), [pairs()], plan(save_steps=3), output=tmp_path / name, resume=resume)

    run("straight", False)
    for how, left in names.items():
        assert checkpoints.last_checkpoint(tmp_path / how / "checkpoints").name == left
        run(how, True)
        assert_same_run(tmp_path / "straight", tmp_path / how)
        assert not list((tmp_path / how / "checkpoints").glob(".*"))


def test_training_does_not_move_the_random_numbers_of_others(mean_folder, tmp_path):
    torch.manual_seed(3)
    np.random.seed(3)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    train(
        TrainableEncoder.from_folder(mean_folder), Contrastive(), [pairs()], plan(max_steps=1), output=tmp_path / "run"
    )
    after = torch.get_rng_state(), np.random.get_state()[1].tolist()
    assert torch.equal(before[0], after[0])
    assert before[1] == after[1]


def test_the_best_model_is_kept(mean_folder, tmp_path):
    scores, seen = [None, 2.0, math.nan, 3.0, 1.0, 1.0], []

    def evaluate(model: Model) -> float | None:
        seen.append(model.encode(CORPUS))
        return scores[len(seen) - 1]

    encoder = TrainableEncoder.from_folder(mean_folder)
    result = train(
        encoder, Contrastive(), [pairs()], plan(eval_steps=2, patience=2), output=tmp_path / "run", evaluate=evaluate
    )
    assert (result.best_score, result.best_step, result.n_steps) == (3.0, 8, 12)
    assert result.stopped_early is False
    assert [entry["score"] for entry in result.history if "score" in entry] == [2.0, 3.0, 1.0, 1.0]
    np.testing.assert_array_equal(Model.load(result.folder).encode(CORPUS), seen[3])
    ids, offsets = encoder.tokenize(CORPUS)
    with torch.no_grad():
        assert np.abs(encoder(torch.from_numpy(ids), offsets).pooled().numpy() - seen[3]).max() < 1e-5


def test_patience_runs_out_also_after_a_resume(mean_folder, tmp_path):
    def run(name: str, scores: list[float], resume: bool = False, callbacks=()):
        left = iter(scores)
        config = plan(eval_steps=2, save_steps=2, patience=2)
        encoder = TrainableEncoder.from_folder(mean_folder)
        return train(
            encoder,
            Contrastive(),
            [pairs()],
            config,
            output=tmp_path / name,
            evaluate=lambda model: next(left),
            resume=resume,
            callbacks=callbacks,
        )

    straight = run("straight", [1.0, 0.5, 0.4])
    assert (straight.n_steps, straight.stopped_early, straight.best_step) == (6, True, 2)
    with pytest.raises(Stop):
        run("stopped", [1.0, 0.5], callbacks=[stop_at(5)])
    resumed = run("stopped", [0.4], resume=True)
    assert (resumed.n_steps, resumed.stopped_early, resumed.best_score) == (6, True, 1.0)
    assert_same_run(tmp_path / "straight", tmp_path / "stopped")
    assert run("stopped", [], resume=True).n_steps == 6


def test_scores_that_are_never_numbers_keep_the_last_model(mean_folder, tmp_path):
    encoder = TrainableEncoder.from_folder(mean_folder)
    result = train(
        encoder, Contrastive(), [pairs()], plan(epochs=1.0), output=tmp_path / "run", evaluate=lambda model: None
    )
    assert (result.best_score, result.best_step) == (None, None)
    assert (result.folder / "model.safetensors").exists()


@pytest.mark.parametrize("chunk", [None, 3])
def test_a_loss_that_is_no_number_stops_and_names_the_rows(chunk, mean_folder, tmp_path):
    encoder = TrainableEncoder.from_folder(mean_folder)
    poison = encoder.tokenizer.id_of("flute")
    data = pairs()
    texts = [text.replace("flute", "man") for text in data.columns[0]]
    texts[20] = "flute"
    data = Dataset("pairs", (texts, [text.replace("flute", "man") for text in data.columns[1]]))

    def spoil(model: Model) -> float:
        with torch.no_grad():
            encoder.backbone.words[poison] = torch.tensor([3e38, -3e38] * 16)  # finite, but no sum of it
        return 1.0

    config = plan(max_steps=12, eval_steps=2, save_steps=2, gradcache_chunk=chunk)
    with pytest.raises(TrainingError, match=r"step \d+: .*\(row 20 of 'pairs' alone .* checkpoint is .*checkpoint-\d+"):
        train(encoder, Contrastive(), [data], config, output=tmp_path / "run", evaluate=spoil)
    assert checkpoints.last_checkpoint(tmp_path / "run" / "checkpoints") is not None


def test_a_learning_rate_that_is_too_high_stops(mean_folder, tmp_path):
    encoder = TrainableEncoder.from_folder(mean_folder)
    with pytest.raises(TrainingError, match=r"step \d+: .* not finite .* lower the learning rate"):
        train(encoder, Triplet(), [triplets()], plan(learning_rate=1e38, max_grad_norm=0.0), output=tmp_path / "run")
    assert checkpoints.last_checkpoint(tmp_path / "run" / "checkpoints") is None


@pytest.mark.parametrize(
    ("make", "data", "message"),
    [
        (lambda: Softmax(32, 3), lambda: pairs(), "'pairs': .* label"),
        (lambda: Softmax(32, 2), lambda: pairs(labels=[i % 3 for i in range(48)]), "'pairs': label 2 of row 2"),
        (Regression, lambda: pairs(labels=[3.8] * 48), "'pairs': "),
        (Triplet, pairs, "takes 3 columns of texts and data set 'pairs' has 2"),
        (Contrastive, lambda: pairs(7), "fewer than one batch of 8"),
        (Contrastive, lambda: Dataset("same", (["a plane"] * 20, ["a man"] * 20)), "texts of their own"),
    ],
)
def test_bad_data_is_refused_before_anything_starts(make, data, message, mean_folder, tmp_path):
    with pytest.raises(InputError, match=message):
        train(TrainableEncoder.from_folder(mean_folder), make(), [data()], plan(), output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_earlier_run_is_not_overwritten_and_another_not_resumed(mean_folder, tmp_path):
    def run(config: TrainingConfig, data=pairs, temperature=0.05, **options):
        return train(
            TrainableEncoder.from_folder(mean_folder),
            Contrastive(temperature=temperature),
            [data()],
            config,
            output=tmp_path / "run",
            **options,
        )

    run(plan(max_steps=2))
    with pytest.raises(InputError, match="holds an earlier run"):
        run(plan(max_steps=2))
    with pytest.raises(InputError, match=r"config\.learning_rate was 0\.001 and is 0\.01"):
        run(plan(max_steps=2, learning_rate=1e-2), resume=True)
    with pytest.raises(InputError, match="another run: data was"):
        run(plan(max_steps=2), data=lambda: pairs(40), resume=True)
    with pytest.raises(InputError, match=r"another run: objective was .*temperature': 0.05.* and is .*0.1"):
        run(plan(max_steps=2), temperature=0.1, resume=True)
    assert run(plan(max_steps=2, keep_checkpoints=3), resume=True).n_steps == 2


def test_what_this_machine_cannot_do_is_refused(mean_folder, tmp_path, monkeypatch):
    encoder = TrainableEncoder.from_folder(mean_folder)
    with pytest.raises(InputError, match="'float16' needs a GPU"):
        train(encoder, Contrastive(), [pairs()], plan(precision="float16"), output=tmp_path / "run")
    monkeypatch.setattr("likewise.training.run.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="tensorboard"):
        train(encoder, Contrastive(), [pairs()], plan(tensorboard=True), output=tmp_path / "run")


def test_bfloat16_trains(mean_folder, tmp_path):
    encoder = TrainableEncoder.from_folder(mean_folder)
    result = train(encoder, Contrastive(RCMD()), [pairs()], plan(precision="bfloat16"), output=tmp_path / "run")
    losses = [entry["loss"] for entry in result.history]
    assert np.mean(losses[-6:]) < np.mean(losses[:6])
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}
