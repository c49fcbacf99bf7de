"""Claim: every objective of both papers trains a model that has never seen sentence pairs (small-scale).

A tiny BERT is pre-trained here by masked language modelling on sentence pools, without a sentence that is measured
on. Then each objective trains it from there; STS-b under the similarity that fits the objective is compared before and
after, and iSTS alignment for CLRCMD beside SimCSE-avg. A model trained on STS-b train is measured on STS-b only.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import arguments, write
from small_scale import (
    F1,
    SPEARMAN,
    Place,
    alignments,
    columns,
    correlations,
    data_folder,
    drawn,
    evaluation_texts,
    fitted,
    losses,
    nli_pairs,
    paired,
    triplets,
)
from tokenizers import Tokenizer
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
    get_linear_schedule_with_warmup,
)

from likewise import Model
from likewise.data import (
    NLI_LABELS,
    drop_overlapping,
    read_articles,
    read_ists,
    read_lines,
    read_stsb,
)
from likewise.model import find
from likewise.objectives import Contrastive, Objective, Regression, Softmax, Triplet
from likewise.training import Dataset, TrainableEncoder, TrainingConfig

N_PIECES, DIM, N_LAYERS, LONGEST = 8_192, 128, 2, 64
TABLE = f"BERT of {N_LAYERS} layers × {DIM}, 1 seed"
SPECIAL = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
POOLS = (
    "captions_vse/coco_precomp/dev_caps.txt",
    "captions_vse/coco_precomp/testall_caps.txt",
    "captions_vse/f30k_precomp/dev_caps.txt",
    "captions_vse/f30k_precomp/test_caps.txt",
    "multi30k/train.en",
    "multi30k/val.en",
    "flickr8k/Flickr8k.token.txt",
)
"""Files of one sentence a line, behind a tab where there is one."""


@dataclass(frozen=True)
class Size:
    """How much is read and trained."""

    n_pretraining: int
    """Sentences of the masked language model."""
    n_rows: int
    """Rows of each objective at most."""
    n_measured: int | None
    """Pairs of each measured set; None for all."""


SIZES = {"full": Size(150_000, 40_000, None), "smoke": Size(2_000, 128, 60)}

# ------------------------------------------------------------------------------------------- pre-training


def sentences() -> list[str]:
    """Distinct sentences of the pools, without those that are measured on."""
    folder = data_folder()
    found = [line.split("\t")[-1] for path in POOLS for _, line in read_lines(folder / path)]
    with open(folder / "ag_news" / "test.csv", encoding="utf-8", newline="") as stream:
        found += [text for row in csv.reader(stream) for text in row[1:3]]
    for name in ("valid", "test"):
        articles = read_articles(folder / "wikitext2" / f"{name}.txt")
        found += [one for article in articles for section in article.sections for one in section.sentences]
    distinct = list(dict.fromkeys(text.strip() for text in found if text.strip()))
    return list(drop_overlapping(distinct, evaluation_texts()))


def vocabulary(texts: list[str]) -> Tokenizer:
    """The default model's WordPiece with its pieces of one ASCII sign and the most frequent others only."""
    whole = json.loads((find().folder / "tokenizer.json").read_text(encoding="utf-8"))
    whole["truncation"] = whole["padding"] = None
    pieces = whole["model"]["vocab"]
    counts = Counter(piece for one in Tokenizer.from_str(json.dumps(whole)).encode_batch(texts) for piece in one.tokens)
    signs = [piece for piece in pieces if len(piece.removeprefix("##")) == 1 and piece.isascii()]
    needed = [*SPECIAL.values(), *signs]
    frequent = sorted(set(counts) - set(needed), key=lambda piece: (-counts[piece], piece))
    kept = dict(zip([*needed, *frequent][:N_PIECES], range(N_PIECES), strict=False))
    whole["model"]["vocab"] = kept
    for token in whole["added_tokens"]:
        token["id"] = kept[token["content"]]
    for name, token in whole["post_processor"]["special_tokens"].items():
        token["ids"] = [kept[name]]
    return Tokenizer.from_str(json.dumps(whole))


def pretrained(texts: list[str], folder: Path, *, batch: int = 128, seed: int = 0) -> list[float]:
    """Writes a plain BERT checkpoint, trained on one pass of the texts; the loss of each step."""
    torch.manual_seed(seed)
    made = vocabulary(texts)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=LONGEST, **SPECIAL)
    shape = {"hidden_size": DIM, "num_hidden_layers": N_LAYERS, "num_attention_heads": 2, "intermediate_size": 4 * DIM}
    config = BertConfig(vocab_size=made.get_vocab_size(), max_position_embeddings=LONGEST, **shape)
    model = BertForMaskedLM(config).train()
    mask = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    ids = tokenizer(texts, truncation=True)["input_ids"]
    n_steps = len(ids) // batch
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, n_steps // 10, n_steps)
    history = []
    for rows in alike([len(one) for one in ids], batch, seed):
        inputs = mask([{"input_ids": ids[row]} for row in rows])
        hidden = model.bert(inputs["input_ids"], inputs["attention_mask"]).last_hidden_state
        chosen = inputs["labels"] != -100
        loss = torch.nn.functional.cross_entropy(model.cls(hidden[chosen]), inputs["labels"][chosen])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        history.append(float(loss.detach()))
    model.bert.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return history


def alike(lengths: list[int], batch: int, seed: int) -> Iterator[np.ndarray]:
    """Full batches of texts of like length, in random order."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    near = np.array_split(order, max(1, len(order) // (batch * 50)))
    sorted_rows = np.concatenate([part[np.argsort(np.asarray(lengths)[part], kind="stable")] for part in near])
    n_batches = len(order) // batch
    for start in random.permutation(n_batches) * batch:
        yield sorted_rows[start : start + batch]


# --------------------------------------------------------------------------------------------- objectives


@dataclass(frozen=True, eq=False)
class Job:
    """One objective on its data."""

    name: str
    """For the table."""
    similarity: str
    """The one that fits, under which it is measured."""
    objective: Objective
    """What is made small."""
    data: Dataset
    """On what."""
    config: TrainingConfig
    """How."""
    chunks: bool = False
    """Measure iSTS alignment, too."""


def jobs(pool: list[str], size: Size) -> list[Job]:
    """Every objective of both papers."""
    torch.manual_seed(0)  # of the classifier
    pairs, threes, texts = (drawn(rows, size.n_rows, 0) for rows in (nli_pairs(), triplets(), pool))
    tested = [pair for split in ("dev", "test") for pair in read_stsb(data_folder(), split)]
    scored = drawn(drop_overlapping(read_stsb(data_folder(), "train"), tested), size.n_rows, 0)
    labels = [NLI_LABELS.index(pair.label) for pair in pairs]
    nli = Dataset("NLI pairs", columns(pairs, "premise", "hypothesis"), labels)
    sts = Dataset("STS-b train", columns(scored, "a", "b"), [pair.gold / 5 for pair in scored])
    three = Dataset("NLI triplets", columns(threes, "anchor", "positive", "negative"))
    same = Dataset("sentences", (texts, texts))
    shared: dict[str, Any] = {"learning_rate": 5e-4, "warmup_ratio": 0.1, "log_steps": 1, "device": "cpu"}
    once, often = TrainingConfig(batch_size=64, **shared), TrainingConfig(batch_size=32, epochs=4, **shared)
    return [
        Job("SBERT softmax", "cosine", Softmax(DIM, len(NLI_LABELS)), nli, once),
        Job("SBERT regression", "cosine", Regression("cosine"), sts, often),
        Job("SBERT triplet", "euclidean", Triplet(), three, once),
        Job("SimCSE unsupervised", "cosine", Contrastive("cosine"), same, once),
        Job("SimCSE-avg supervised", "cosine", Contrastive("cosine"), three, once, chunks=True),
        Job("CLRCMD", "rcmd", Contrastive("rcmd"), three, once, chunks=True),
    ]


def measured(model: Model, job: Job, limit: int | None) -> dict[str, Any]:
    """STS-b, and iSTS where the job has it."""
    folder = data_folder()
    tasks = {f"STS-b {split}": {split: read_stsb(folder, split)[:limit]} for split in ("dev", "test")}
    found = correlations(model, job.similarity, tasks)
    if job.chunks:
        sets = {name: read_ists(folder, name, "test")[:limit] for name in ("images", "headlines")}
        found |= alignments(model, job.similarity, sets)
    return found


def rows_of(job: Job, folder: Path, limit: int | None) -> list[dict[str, Any]]:
    """Train from the pre-trained model and compare."""
    before = measured(Model.load(folder, pooling="mean"), job, limit)
    encoder = TrainableEncoder.from_folder(folder, pooling="mean")
    model, history = fitted(encoder, job.objective, job.data, job.config)
    after = measured(model, job, limit)
    epochs = f", {job.config.epochs:g} epochs" if job.config.epochs != 1 else ""
    line = f"{job.name}, under {job.similarity}: {len(job.data):,} {job.data.name}{epochs}"
    print(f"{line}: " + ", ".join(f"{what} {before[what].value:.4g} → {after[what].value:.4g}" for what in after))
    rows = [losses(Place(TABLE, line, "loss"), [history])]
    for what, value in before.items():
        bar = f"ours > {value.value:.4f}" if what == "STS-b dev" else None
        unit = SPEARMAN if what.startswith("STS-b") else F1
        reason = "training did not help"
        rows.append(paired(Place(TABLE, line, what), unit, [after[what]], value, bar=bar, reason=reason))
    return rows


def main() -> None:
    """Pre-trains, trains, measures, prints and (at full size) records."""
    name = arguments(__doc__).size
    size = SIZES[name]
    pool = sentences()
    texts = drawn(pool, size.n_pretraining, 0)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / f"bert-{N_LAYERS}x{DIM}"
        history = pretrained(texts, folder)
        line = f"Masked language model: {len(texts):,} sentences"
        rows = [losses(Place(TABLE, line, "loss"), [history])]
        print(f"{line}: loss {history[0]:.3f} → {np.mean(history[-20:]):.3f}")
        for job in jobs(pool, size):
            rows += rows_of(job, folder, size.n_measured)
    write("training_raw", rows, size=name)


if __name__ == "__main__":
    main()
