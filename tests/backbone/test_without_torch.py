"""Models of the BERT family load, embed, score, explain and save without torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise import Model
from likewise.kernels import native

pytestmark = pytest.mark.skipif(native.library() is None, reason="the compiled extension is not in use")

TEXTS = ["A plane is taking off.", "An air plane is taking off!", "The cats don't like the dog.", ""]
SIMILARITIES = ("cosine", "rcmd", "transport")

BLOCK = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "sentence_transformers", "accelerate", "datasets"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
"""

WORK = """
import json, warnings
from likewise import Model

warnings.simplefilter("ignore")
folder, target, texts = json.loads(sys.argv[1])
model = Model.load(*folder)
told = {"vectors": model.encode(texts).tolist(), "tokens": model.embed(texts[0]).tokens.tolist()}
for name in ("cosine", "rcmd", "transport"):
    chosen = Model.load(*folder, similarity=name)
    told[name] = [float(chosen.score(texts[0], texts[1])), chosen.matrix(texts[:3]).tolist()]
    told["explained " + name] = chosen.explain(texts[0], texts[1]).score
int8 = Model.load(*folder, precision="int8").encode(texts)
told["int8"] = int8.tolist()
model.save(target)
told["saved"] = Model.load(target).encode(texts).tolist()
told["repr"] = repr(model)
told["loaded"] = sorted(name for name in sys.modules if name.partition(".")[0] in ("torch", "transformers"))
print(json.dumps(told))
"""

ELSEWHERE = """
from likewise import Model

for arguments in json.loads(sys.argv[1]):
    try:
        Model.load(**arguments)
    except ImportError as error:
        print(type(error).__name__, error)
    else:
        print("it loaded")
"""


def _run(code: str, *arguments: str, options: tuple[str, ...] = (), **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, *options, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done


def test_torch_is_kept_out() -> None:
    """The other tests here mean something only if this import fails."""
    done = _run(BLOCK + "try:\n    import torch.nn\nexcept ImportError as error:\n    print(error)")
    assert done.stdout == "No module named 'torch'\n"


def _check(folder: list[str], model: Model, tmp_path: Path) -> None:
    done = _run(BLOCK + WORK, json.dumps([folder, str(tmp_path / "saved"), TEXTS]))
    told = json.loads(done.stdout)
    assert told["loaded"] == []
    assert "native engine on" in told["repr"]
    np.testing.assert_allclose(told["vectors"], model.encode(TEXTS), atol=1e-6)
    np.testing.assert_allclose(told["tokens"], model.embed(TEXTS[0]).tokens, atol=1e-6)
    np.testing.assert_array_equal(told["saved"], told["vectors"])
    assert 1e-6 < np.abs(np.asarray(told["int8"]) - told["vectors"]).max() < 0.05
    for name in SIMILARITIES:
        score, matrix = told[name]
        wanted = model.explain(TEXTS[0], TEXTS[1], similarity=name).score
        assert score == pytest.approx(wanted, abs=1e-5)
        assert told[f"explained {name}"] == pytest.approx(wanted, abs=1e-5)
        assert matrix[0][1] == pytest.approx(wanted, abs=1e-5)


@pytest.mark.filterwarnings("ignore::likewise.errors.LikewiseWarning")
def test_a_small_model(mean_folder: Path, tiny: Model, tmp_path: Path) -> None:
    _check([str(mean_folder)], tiny, tmp_path)


@pytest.mark.model
@pytest.mark.filterwarnings("ignore::likewise.errors.LikewiseWarning")
def test_the_default_model(minilm: Model, tmp_path: Path) -> None:
    _check([], minilm, tmp_path)


def test_what_needs_torch_says_how_to_get_it(mean_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for path in mean_folder.iterdir():
        if path.is_file():
            (other / path.name).write_bytes(path.read_bytes())
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "hidden_act": "silu"}))
    asked = [
        {"name_or_path": str(mean_folder), "precision": "float64"},
        {"name_or_path": str(other), "pooling": "mean"},
    ]
    (other / "modules.json").unlink()
    lines = _run(BLOCK + "import json\n" + ELSEWHERE, json.dumps(asked)).stdout.splitlines()
    for line, package in zip(lines, ("torch", "transformers"), strict=True):
        assert re.match(rf"MissingExtraError running .* outside the native engine .*pip install {package} ", line)
        assert "likewise[train]" in line
    plain = _run(
        BLOCK + "import json\n" + ELSEWHERE, json.dumps([{"name_or_path": str(mean_folder)}]), LIKEWISE_KERNELS="plain"
    )
    assert plain.stdout.startswith("MissingExtraError running")


USES = {
    "import likewise": {"likewise"},
    "import likewise; likewise.Model": {"likewise.model.model", "numpy"},
    "import likewise; m = likewise.Model.load({folder!r}); m.score('a', 'b'); m.explain('a', 'b')": {"tokenizers"},
}
"""What is run, and what it must have imported."""


@pytest.mark.parametrize("work", USES)
def test_torch_is_not_imported_where_it_is_at_hand(work: str, mean_folder: Path) -> None:
    lines = _run(work.format(folder=str(mean_folder)), options=("-X", "importtime")).stderr.splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert imported >= USES[work]
    heavy = {"torch", "transformers", "sentence_transformers", "accelerate", "datasets", "pandas", "matplotlib"}
    assert not {name for name in imported if name.partition(".")[0] in heavy}
