from __future__ import annotations

import numpy as np
import pytest

from likewise import Model
from likewise.errors import InputError
from likewise.evaluation.baselines import PaddedBatches

TEXTS = ["A plane is taking off.", "dog", "", "Three children are running through the green park.", "A man plays."]


@pytest.mark.parametrize("smart", [False, True])
@pytest.mark.parametrize("name", ["bert", "roberta", "mpnet"])
def test_the_vectors_are_the_models_own(checkpoint, name, smart):
    model = Model.load(checkpoint(name), pooling="mean")
    padded = PaddedBatches(model, smart=smart, batch_size=2)
    assert np.allclose(padded.encode(TEXTS), model.encode(TEXTS), atol=1e-5)
    assert padded.encode([]).shape == (0, model.dim)
    assert padded.name.endswith("smart batching" if smart else "padded batches")


def test_another_pooling_is_refused(checkpoint):
    with pytest.raises(InputError, match="does not pool by the mean"):
        PaddedBatches(Model.load(checkpoint(), pooling="cls"))
