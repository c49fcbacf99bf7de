from __future__ import annotations

import hashlib
import json
import re

from likewise import __version__
from likewise.evaluation.provenance import command_line, measured, measured_model
from likewise.kernels import instruction_set


def test_a_model_has_its_engine_and_the_hash_of_its_weights(tiny):
    found = measured_model(tiny, "bfloat16")
    assert (found.name, found.precision) == (tiny.name, "bfloat16")
    assert "float32" in found.engine  # what served
    digest = hashlib.sha256((tiny.folder / "model.safetensors").read_bytes()).hexdigest()
    assert found.weights == {"model.safetensors": digest}


def test_a_command_line_does_not_say_where_things_lie(tmp_path):
    words = ["likewise", "evaluate", "pairs", "--data", tmp_path / "my pairs.jsonl", "--json", "here/out.json", "$x"]
    assert command_line(words) == "likewise evaluate pairs --data …/'my pairs.jsonl' --json here/out.json '$x'"


def test_what_a_reader_needs_is_told(tiny, tmp_path):
    found = measured("likewise evaluate …", [measured_model(tiny)], ["cosine", ""], 500)
    told = json.loads(json.dumps(found.to_dict()))
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", told["date"])
    assert (told["likewise"], told["instruction_set"]) == (__version__, instruction_set())
    assert (told["resamples"], told["seed"]) == (500, 0)
    assert str(tiny.folder.parent) not in json.dumps(told)
    rows = dict(found.rows())
    assert rows["bootstrap resamples"] == "500, seed 0"
    assert rows["similarities"] == "cosine"
    assert rows["SHA-256 of model.safetensors"] in found.models[0].weights.values()
    none = measured("x", [], [], None)
    assert (none.resamples, none.seed) == (None, None)
    assert dict(none.rows())["bootstrap resamples"] == "none"
