"""Learning from a teacher."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from likewise.errors import InputError
from likewise.objectives import MarginDistillation, VectorDistillation
from likewise.similarity import Cosine


def test_vectors(columns: Callable) -> None:
    text, translation = columns(2)
    teacher = torch.ones(4, 3, dtype=torch.float64)
    apart = [((side.pooled() - teacher) ** 2).mean().item() for side in (text, translation)]
    assert VectorDistillation()([text], teacher).item() == pytest.approx(apart[0])
    assert VectorDistillation()([text, translation], teacher).item() == pytest.approx(sum(apart) / 2)
    assert VectorDistillation()([text], text.pooled().detach()) == 0


def test_margins(columns: Callable) -> None:
    anchor, positive, negative = columns(3)
    own = Cosine().score(anchor, positive) - Cosine().score(anchor, negative)
    assert MarginDistillation()([anchor, positive, negative], own.detach()) == 0
    assert MarginDistillation()([anchor, positive, negative], own.detach() + 0.5).item() == pytest.approx(0.25)


def test_a_teacher_of_another_length(columns: Callable) -> None:
    with pytest.raises(InputError, match="teacher's vectors have 5 components and the student's 3; reduce"):
        VectorDistillation()(columns(1), torch.ones(4, 5))
    with pytest.raises(InputError, match=r"labels have shape \(4,\); give the teacher's pooled vectors"):
        VectorDistillation().check(torch.ones(4))
