"""Two processes on the parts of a batch are one process on the whole; started as users do, by torchrun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from likewise.errors import InputError
from likewise.objectives import Contrastive
from likewise.similarity import RCMD
from likewise.training import TrainableEncoder, TrainingResult, checkpoints, train
from tests.training.test_run import Stop, plan, stop_at, triplets

ROOT = Path(__file__).parents[2]


def run(folder: Path, output: Path, **options) -> TrainingResult:
    """The same run in any number of processes."""
    encoder = TrainableEncoder.from_folder(folder)
    config = plan(max_steps=6, learning_rate=1e-4, save_steps=2, eval_steps=3, gradcache_chunk=7)
    return train(
        encoder, Contrastive(RCMD()), [triplets()], config, output=output, evaluate=lambda model: 1.0, **options
    )


def main(folder: Path, output: Path) -> None:
    """What each of the two processes does: a straight run, and one that is stopped and resumed."""
    rank = int(os.environ["RANK"])
    result = run(folder, output / "straight")
    assert {path.name for path in (output / "straight").iterdir()} == {"model", "checkpoints"}
    try:
        run(folder, output / "stopped", callbacks=[stop_at(5)])
    except Stop:
        run(folder, output / "stopped", resume=True)
    if rank == 0:
        (output / "history.json").write_text(json.dumps(list(result.history)))


@pytest.fixture(scope="module")
def folders(mean_folder, tmp_path_factory, edit_json) -> tuple[Path, Path]:
    """A model without dropout, and what two processes made of it."""
    folder, output = tmp_path_factory.mktemp("model") / "bare", tmp_path_factory.mktemp("two")
    encoder = TrainableEncoder.from_folder(mean_folder)
    encoder.save(folder)
    edit_json(folder / "config.json", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    words = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "0", "--standalone"]
    done = subprocess.run(
        [sys.executable, *words, __file__, str(folder), str(output)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, output


def test_two_processes_are_one_on_the_joined_batch(folders, tmp_path):
    folder, output = folders
    alone = run(folder, tmp_path / "alone").history
    together = json.loads((output / "history.json").read_text())
    assert len(alone) == len(together) == 8
    for one, two in zip(alone, together, strict=True):
        assert one.keys() == two.keys()
        assert one.get("loss", 0.0) == pytest.approx(two.get("loss", 0.0), abs=1e-5)
        assert one.get("grad_norm", 0.0) == pytest.approx(two.get("grad_norm", 0.0), rel=1e-4)


def test_two_processes_resume_bit_for_bit(folders):
    last = [checkpoints.last_checkpoint(folders[1] / name / "checkpoints") for name in ("straight", "stopped")]
    for file in ("model.safetensors", "optimizer.safetensors"):
        one, two = (checkpoints.read_tensors(path / file) for path in last)
        assert [name for name in one if not torch.equal(one[name], two[name])] == []


def test_another_number_of_processes_is_refused(folders):
    folder, output = folders
    with pytest.raises(InputError, match="another run: processes was 2 and is 1"):
        run(folder, output / "stopped", resume=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
