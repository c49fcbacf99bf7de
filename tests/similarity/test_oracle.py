"""Recorded values of independent implementations."""

from __future__ import annotations

import json

import numpy as np
import pytest

from likewise.errors import EmptyTextWarning
from likewise.similarity import RCMD, Cosine, Transport
from likewise.types import Embeddings

N_CASES = 36


@pytest.fixture(scope="module")
def cases(shared):
    found = json.loads((shared / "oracle" / "rcmd_cases.json").read_text())["cases"]
    assert len(found) == N_CASES
    return found


def valid(case: dict, side: str) -> np.ndarray:
    tokens = np.asarray(case[side], dtype=np.float64).reshape(-1, case["dim"])
    return tokens[np.asarray(case[f"mask_{side}"], dtype=bool)]


def cropped(case: dict, key: str) -> np.ndarray:
    """A recorded table without the rows and columns of padding."""
    table = np.asarray(case[key], dtype=np.float64)
    rows, columns = (np.asarray(case[f"mask_{side}"], dtype=bool) for side in "xy")
    return table if table.shape == (rows.sum(), columns.sum()) else table[rows][:, columns]


@pytest.mark.parametrize("number", range(N_CASES))
def test_rcmd_transport_and_cosine_equal_the_recorded_values(cases, number):
    case = cases[number]
    a, b = (Embeddings.from_texts([valid(case, side)]) for side in "xy")
    rcmd = RCMD()
    if "empty" in case["flags"]:
        with pytest.warns(EmptyTextWarning):
            assert rcmd.score(a, b)[0] == 0
        return
    forward, backward = rcmd.directions(a, b)
    assert forward[0] == pytest.approx(case["rcmd_x_to_y"], abs=1e-9)
    assert backward[0] == pytest.approx(case["rcmd_y_to_x"], abs=1e-9)
    assert rcmd.score(a, b)[0] == pytest.approx(case["rcmd"], abs=1e-9)
    assert rcmd.matrix(a, b)[0, 0] == pytest.approx(case["rcmd"], abs=1e-9)
    part = rcmd.decompose(a, b)[0]
    plan = (cropped(case, "plan_x_to_y") + cropped(case, "plan_y_to_x")) / 2
    assert np.allclose(part.plan, plan, atol=1e-9)
    assert np.allclose(part.cosines, cropped(case, "cos_matrix"), atol=1e-9)
    assert np.allclose(part.contributions, cropped(case, "rcmd_contributions_from_plans"), atol=1e-9)
    assert Transport().score(a, b)[0] == pytest.approx(case["emd_similarity"], abs=1e-9)
    assert Cosine().score(a, b)[0] == pytest.approx(case["avg_cosine"], abs=1e-9)


@pytest.mark.parametrize("number", range(N_CASES))
def test_cosine_contributions_are_those_of_equation_3(cases, number):
    case = cases[number]
    if case.get("avg_contributions_eq3") is None:
        assert "zero_mean" in case["flags"] or "empty" in case["flags"]
        return
    part = Cosine().decompose(*(Embeddings.from_texts([valid(case, side)]) for side in "xy"))[0]
    assert np.allclose(part.contributions, cropped(case, "avg_contributions_eq3"), atol=1e-9)
    assert np.allclose(part.plan, cropped(case, "avg_plan_eq3"), atol=1e-9)
