"""Claim: contrastive training 1.5 times as quick as sentence-transformers' trainer, in no more memory.

One recipe in both: MiniLM, InfoNCE over the cosine with temperature 0.05, batches of 64 triplets with hard negatives,
AdamW, no evaluation. The triplets are the natural ones of SNLI's and MultiNLI's development sets, each seen once, so
that both train on the same texts. Every measurement is a fresh process, ours and theirs in turn; the first steps
warm up. Tokenizing is part of their step; ours is done before the first one and is added. The objective's share is
that of a CLRCMD step: 128 triplets, cut at 32 tokens.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import ROOT, arguments, row, write

BATCH, WARM_UP = 64, 3
PEER = "sentence-transformers"
OPTIONS = {"learning_rate": 5e-5, "seed": 0}


def triplets(n: int) -> tuple[list[str], list[str], list[str]]:
    """Anchors, positives and hard negatives; needs the shared data (LIKEWISE_SHARED)."""
    from likewise.data import nli_triplets, read_nli

    data = Path(os.environ.get("LIKEWISE_SHARED", ROOT.parent / "shared")) / "data"
    files = ("snli/snli_1.0_dev.csv", "multinli/multinli_1.0_dev_matched.csv")
    sets = [nli_triplets(read_nli(data / file)) for file in files]
    mixed = [one for pair in zip(*sets, strict=False) for one in pair][:n]
    assert len(mixed) == n, f"{len(mixed)} triplets at hand, {n} wanted"
    return [one.anchor for one in mixed], [one.positive for one in mixed], [one.negative for one in mixed]


def clock() -> tuple[list[float], Any]:
    """The time after each step, and the callback that notes it."""
    from transformers import TrainerCallback

    times: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            times.append(time.perf_counter())

    return times, Clock()


def ours(columns: Sequence[list[str]], precision: str, similarity: str, output: Path) -> list[float]:
    """Times after each step of ours; the time of tokenizing is spread over them."""
    from likewise.objectives import Contrastive
    from likewise.training import Dataset, TrainableEncoder, TrainingConfig, train

    encoder = TrainableEncoder.from_folder()
    start = time.perf_counter()
    for column in columns:
        encoder.tokenize(column)
    tokenizing = (time.perf_counter() - start) / (len(columns[0]) // BATCH)
    times, callback = clock()
    config = TrainingConfig(batch_size=BATCH, precision=precision, device="cpu", no_duplicates=False, **OPTIONS)
    data = Dataset("nli", tuple(columns))
    train(encoder, Contrastive(similarity), [data], config, output=output, callbacks=[callback])
    return [at + tokenizing * number for number, at in enumerate(times)]


def theirs(columns: Sequence[list[str]], precision: str, output: Path) -> list[float]:
    """Times after each step of sentence-transformers' trainer."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from likewise.model import find

    model = SentenceTransformer(str(find().folder), device="cpu")
    times, callback = clock()
    args = SentenceTransformerTrainingArguments(
        output_dir=str(output),
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        bf16=precision == "bfloat16",
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        dataloader_pin_memory=False,
        **OPTIONS,
    )
    data = Dataset.from_dict(dict(zip(("anchor", "positive", "negative"), columns, strict=True)))
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model=model, args=args, train_dataset=data, loss=loss, callbacks=[callback]).train()
    return times


def measure(who: str, precision: str, n_steps: int) -> dict[str, float]:
    """Triplets a second and the peak of resident memory of this process, in MB."""
    columns = triplets(BATCH * (n_steps + WARM_UP))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "run"
        times = theirs(columns, precision, output) if who == PEER else ours(columns, precision, who, output)
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    return {"rate": BATCH * n_steps / (times[-1] - times[WARM_UP - 1]), "peak": peak}


def fresh(who: str, precision: str, n_steps: int) -> dict[str, float]:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--measure", who, precision, str(n_steps)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def compared(precision: str, n_steps: int, repeats: int, bars: bool) -> list[dict[str, Any]]:
    """Ours, ours with RCMD in place of the cosine, and theirs, in turn."""
    found: dict[str, list[dict[str, float]]] = {who: [] for who in ("cosine", PEER, "rcmd")}
    for _ in range(repeats):
        for who, values in found.items():
            values.append(fresh(who, precision, n_steps))

    def middle(who: str, key: str) -> float:
        return statistics.median(one[key] for one in found[who])

    job, rows = f"MiniLM, contrastive, {BATCH} triplets, {precision}", []
    for who, name in (("cosine", ""), ("rcmd", " (ours with RCMD)")):
        seconds = {key: BATCH / middle(key, "rate") for key in (who, PEER)}
        bar = "ratio >= 1.5" if bars and who == "cosine" else None
        rows.append(
            row(f"{job}: seconds a step{name}", seconds[who], "s", baseline=seconds[PEER], baseline_name=PEER, bar=bar)
        )
        rows.append(row(f"{job}: triplets a second{name}", middle(who, "rate"), "1/s"))
    peaks = {who: middle(who, "peak") for who in ("cosine", PEER)}
    bar = "ratio >= 1" if bars else None
    rows.append(row(f"{job}: peak memory", peaks["cosine"], "MB", baseline=peaks[PEER], baseline_name=PEER, bar=bar))
    return rows


def share(n: int, repeats: int, bars: bool) -> list[dict[str, Any]]:
    """What the objective costs beside the encoder: forward and backward of each, in the recipe of CLRCMD."""
    import numpy as np
    import torch

    from likewise.objectives import Contrastive
    from likewise.training import Dataset, TrainableEncoder
    from likewise.training.batches import Batches, Place
    from likewise.types import Embeddings

    encoder = TrainableEncoder.from_folder(max_length=32).train()
    batch = Batches([Dataset("nli", triplets(n))], encoder)[Place(0, np.arange(n))]
    rows = []
    for precision in ("float32", "bfloat16"):
        for similarity in ("cosine", "rcmd"):
            objective, spent = Contrastive(similarity), []
            for _ in range(repeats + 1):
                start = time.perf_counter()
                with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
                    found = encoder(batch["ids"], batch["offsets"])
                forward = time.perf_counter()
                leaf = found.tokens.detach().requires_grad_()
                texts = Embeddings(leaf, found.offsets, found.weights.detach())
                objective([texts.select(range(at, at + n)) for at in range(0, 3 * n, n)]).backward()
                middle = time.perf_counter()
                found.tokens.backward(leaf.grad)
                spent.append((middle - forward) / (time.perf_counter() - middle + forward - start))
            job = (
                f"{similarity}, {n} triplets of at most 32 tokens, {precision}: the objective's time over the encoder's"
            )
            bar = "ours <= 0.15" if bars and similarity == "rcmd" else None
            rows.append(row(job, statistics.median(spent[1:]), "share", bar=bar))
    return rows


def main() -> None:
    """Measures, prints and (at full size) records."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
        return
    size = arguments(__doc__).size
    if size == "smoke":
        write("training", compared("float32", 1, 1, bars=False) + share(8, 1, bars=False), size=size)
        return
    rows = [line for precision in ("float32", "bfloat16") for line in compared(precision, 6, 1, bars=True)]
    write("training", rows + share(128, 2, bars=True), size=size)


if __name__ == "__main__":
    main()
