"""Claim: the native engine is faster than the best inference engine at exact length, in float32 and in int8.

ONNX Runtime, OpenVINO and CTranslate2 driven as well as we know how (peers.py), each pass in a fresh process, in turn
with ours: one foreign runtime a process, since they slow one another down. Needs `make bench-peers`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import peers
from bench_encode import REASONS
from harness import arguments, row, seconds, write
from inputs import stsb_sentences

from likewise import Model

BARS = {"float32": 1.2, "int8": 1.4}


def peer_pass(runtime: str, precision: str, texts: Path, vectors: Path) -> float:
    """Seconds of one warmed-up pass of a peer."""
    command = [str(peers.PYTHON), peers.__file__, runtime, precision, "--texts", str(texts), "--repeats", "1"]
    done = subprocess.run([*command, "--save", str(vectors)], check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"][0])


def main() -> None:
    """Measures, prints and (at full size) records."""
    size = arguments(__doc__).size
    pairs = peers.available()
    if not pairs:
        print("encode_peers: no peers here; `make bench-peers` installs them")
        return
    full = size == "full"
    sentences = stsb_sentences(2500 if full else 40)
    ours = {precision: Model.load(precision=precision) for precision in ("float32", "bfloat16", "int8")}
    times: dict[str, list[float]] = {}
    cosines: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        file, saved = Path(folder) / "texts.txt", Path(folder) / "vectors.npy"
        file.write_text("\n".join(sentences) + "\n", encoding="utf-8")
        exact = ours["float32"].encode(sentences)
        for _ in range(2 if full else 1):
            for precision, model in ours.items():
                model.encode(sentences[:200], progress=False)
                spent = seconds(lambda model=model: model.encode(sentences, progress=False))
                times.setdefault(precision, []).append(spent)
            for runtime, precision in pairs:
                spent = peer_pass(runtime, precision, file, saved)
                times.setdefault(f"{runtime} {precision}", []).append(spent)
                cosines[f"{runtime} {precision}"] = float((np.load(saved) * exact).sum(1).mean())
    medians = {name: statistics.median(values) for name, values in times.items()}
    rows = []
    for name in cosines:
        rows.append(row(f"{name}: texts a second", len(sentences) / medians[name], "1/s"))
        rows.append(row(f"{name}: mean cosine to our float32", cosines[name], "cosine"))
    for precision, model in ours.items():
        rows.append(row(f"ours {precision}: texts a second", len(sentences) / medians[precision], "1/s"))
        cosine = float((model.encode(sentences, progress=False) * exact).sum(1).mean())
        rows.append(row(f"ours {precision}: mean cosine to our float32", cosine, "cosine"))
    for precision, limit in BARS.items():
        best = min((name for name in cosines if name.endswith(precision)), key=medians.get)
        rows.append(
            row(
                f"MiniLM, {len(sentences)} short texts, {precision}",
                medians[precision],
                "s",
                baseline=medians[best],
                baseline_name=best,
                bar=f"ratio >= {limit}" if full else None,
                reason=REASONS[precision],
            )
        )
    write("encode_peers", rows, size=size)


if __name__ == "__main__":
    main()
