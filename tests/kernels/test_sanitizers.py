"""The C++ kernels under the address, undefined-behaviour and thread sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["dispatch", "encoder", "prepare", "scoring", "training", "isa_portable", "isa_avx2", "isa_avx512", "isa_amx"]
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mavx512bf16", "-mfma"]
FLAGS = {
    "isa_avx2": ["-mavx2", "-mfma"],
    "isa_avx512": AVX512,
    "isa_amx": [*AVX512, "-mamx-tile", "-mamx-bf16", "-mamx-int8"],
}


@pytest.mark.sanitizer
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_kernels_under_a_sanitizer(sanitizer, tmp_path):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None or os.uname().machine != "x86_64":
        pytest.skip("needs g++ or clang++ on x86-64")
    common = [
        compiler,
        "-std=c++17",
        "-O1",
        "-g",
        f"-fsanitize={sanitizer}",
        "-fno-sanitize-recover=undefined",
        "-Wno-psabi",
    ]

    def compiled(name: str) -> str:
        source = ROOT / "tests" / "native" / "check.cpp" if name == "check" else ROOT / "src" / "native" / f"{name}.cpp"
        target = str(tmp_path / f"{name}.o")
        command = [*common, "-I", str(ROOT / "src" / "native"), *FLAGS.get(name, []), "-c", str(source), "-o", target]
        subprocess.run(command, check=True, capture_output=True)
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, ["check", *SOURCES]))
    program = str(tmp_path / "check")
    subprocess.run([*common, *objects, "-pthread", "-o", program], check=True, capture_output=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "0 faults"
