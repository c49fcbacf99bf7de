from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.data import LabelledPair
from likewise.errors import InputError, ModelError
from likewise.evaluation.baselines import InferSent, WordVectors

NAMES = "red green blue cat dog bird not no is".split()


def words(dim=8):
    return WordVectors(NAMES, np.random.default_rng(0).standard_normal((len(NAMES), dim)))


def pairs():
    """Same colour: entailment; other colour: contradiction; other animal: neutral."""
    rows = []
    for animal in ("cat", "dog", "bird"):
        for one in ("red", "green", "blue"):
            for other in ("red", "green", "blue"):
                label = "entailment" if one == other else "contradiction"
                rows.append(LabelledPair(f"{one} {animal}", f"{animal} is {other}", label))
                rows.append(LabelledPair(f"{one} {animal}", f"not {other}", "neutral"))
    return rows


def test_a_vector_is_the_largest_state_of_each_dimension():
    model, text = InferSent.untrained(words(), hidden=3), "red dog is blue"
    states = model.lstm(torch.from_numpy(model.words.vectors[model.words.rows_of(text)])[None])[0][0]
    assert np.allclose(model.encode([text, "cat"])[0], states.detach().amax(0).numpy(), atol=1e-6)
    assert np.allclose(model.embed(["cat", text]).text(1), states.detach().numpy(), atol=1e-6)


def test_training_learns_the_relation():
    labelled = pairs()
    model = InferSent.train(words(), labelled, hidden=16, epochs=40, batch_size=9, learning_rate=0.01)
    start = InferSent.untrained(words(), hidden=16)

    def apart(one):
        u, v = (one.encode([getattr(pair, side) for pair in labelled]) for side in ("premise", "hypothesis"))
        distance = np.linalg.norm(u - v, axis=1) / np.linalg.norm(u, axis=1)
        kinds = np.asarray([pair.label for pair in labelled])
        return distance[kinds == "contradiction"].mean() - distance[kinds == "entailment"].mean()

    assert apart(model) > apart(start) + 0.1


def test_a_saved_model_is_the_same(tmp_path):
    model = InferSent.train(words(), pairs(), hidden=4)
    model.save(tmp_path / "model")
    read = InferSent.load(tmp_path / "model")
    texts = ["red dog", "nothing known here: zzz", "BLUE bird"]
    assert np.array_equal(read.encode(texts), model.encode(texts))
    assert (read.name, read.dim) == (model.name, 8)
    model.save(tmp_path / "model")  # over an earlier one


@pytest.mark.parametrize("damage", ["cut", "gone", "config", "sizes"])
def test_a_damaged_folder_is_refused(tmp_path, damage, edit_json):
    folder = tmp_path / "model"
    InferSent.untrained(words(), hidden=2).save(folder)
    weights = folder / "model.safetensors"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-9])
    elif damage == "gone":
        weights.unlink()
    elif damage == "config":
        edit_json(folder / "infersent.json", words=...)
    else:
        edit_json(folder / "infersent.json", hidden=3)
    with pytest.raises(ModelError, match="not a whole InferSent folder"):
        InferSent.load(folder)


def test_what_cannot_be_made():
    with pytest.raises(InputError, match="no pairs to learn from"):
        InferSent.train(words(), [])
    with pytest.raises(InputError, match="LSTM for vectors of 5"):
        InferSent(words(), torch.nn.LSTM(5, 2, bidirectional=True))
