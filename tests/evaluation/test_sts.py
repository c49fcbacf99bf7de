from __future__ import annotations

import json

import numpy as np
import pytest

from likewise.data import read_stsb
from likewise.errors import InputError
from likewise.evaluation import correlate, evaluate_pairs
from likewise.similarity import by_name
from likewise.types import Embeddings


def test_correlations_are_those_of_ranks_and_values():
    result = correlate(np.array([0.1, 0.2, 0.4, 0.9]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert result.spearman == pytest.approx(100)
    assert result.pearson == pytest.approx(100 * np.corrcoef([0.1, 0.2, 0.4, 0.9], [1, 2, 3, 4])[0, 1])


@pytest.mark.parametrize(
    ("scores", "gold", "reason"),
    [
        ([1.0, 1.0], [1.0, 2.0], "all scores are equal"),
        ([1.0, 2.0], [3.0, 3.0], "all gold values are equal"),
        ([1.0], [1.0], "two pairs or more"),
        ([], [], "two pairs or more"),
        ([1.0, np.nan], [1.0, 2.0], "1 of the scores are NaN"),
    ],
)
def test_no_correlation_is_none_with_a_reason(scores, gold, reason):
    result = correlate(np.asarray(scores), np.asarray(gold))
    assert result.spearman is None
    assert result.pearson is None
    assert reason in result.reason


def test_unequal_lengths_are_refused():
    with pytest.raises(InputError, match="do not fit"):
        correlate(np.zeros(2), np.zeros(3))


@pytest.mark.model
@pytest.mark.parametrize(("split", "special_tokens"), [("dev", False), ("test", True)])
def test_stsb_equals_the_recorded_table(minilm, shared, split, special_tokens):
    recorded = json.loads((shared / "oracle" / "sts_results.json").read_text())["all-MiniLM-L6-v2.raw"]
    expected = recorded["stsb_dev" if split == "dev" else "stsb"]["all"]
    pairs = read_stsb(shared / "data" / "stsbenchmark", split)
    keys = {"cosine": "mean_cos", "rcmd": "rcmd"}
    if not special_tokens:
        keys = {"cosine": "mean_nospecial_cos", "rcmd": "rcmd_nospecial"}
    results = evaluate_pairs(minilm, pairs, list(keys), special_tokens=special_tokens)
    for name, key in keys.items():
        ours = results[name]
        assert ours.spearman == pytest.approx(expected[key]["spearman"], abs=0.01)
        assert ours.pearson == pytest.approx(expected[key]["pearson"], abs=0.01)


@pytest.mark.model
@pytest.mark.parametrize("task", ["sickr", "sts12", "sts14"])
def test_the_other_recorded_tables(minilm, shared, task):
    expected = json.loads((shared / "oracle" / "sts_results.json").read_text())["all-MiniLM-L6-v2.raw"][task]["all"]
    pairs = READERS[task](shared / "data")
    texts = sorted({text for a, b, _ in pairs for text in (a, b)})
    row = {text: i for i, text in enumerate(texts)}
    tokens = minilm.embed(texts, on_truncate="ignore")
    gold = np.asarray([g for *_, g in pairs])
    left, right = ([row[pair[side]] for pair in pairs] for side in (0, 1))
    for name, key in (("cosine", "mean_cos"), ("rcmd", "rcmd")):
        scores = by_name(name).score(tokens.select(left), tokens.select(right))
        assert correlate(scores, gold).spearman == pytest.approx(expected[key]["spearman"], abs=0.01)
    # The recorded distances are those of the unnormalised means, and this model normalises its output.
    means = np.stack([text.mean(0) for text in tokens])
    unnormalised = [Embeddings.from_pooled(means[rows]) for rows in (left, right)]
    for name in ("manhattan", "euclidean"):
        scores = by_name(name).score(*unnormalised)
        assert correlate(scores, gold).spearman == pytest.approx(expected[f"neg_{name}"]["spearman"], abs=0.01)


def sick(data):
    lines = (data / "sick").rglob("SICK_test_annotated.txt")
    rows = [line.split("\t") for line in next(lines).read_text(encoding="utf-8").split("\n")[1:] if line]
    return [(row[1], row[2], float(row[3])) for row in rows]


def sts_year(year):
    def read(data):
        pairs = []
        folder = data / year / "raw"
        for gold in sorted(set(folder.rglob("STS.gs.*.txt")) - {folder / "STS.gs.ALL.txt"}):
            inputs = gold.with_name(gold.name.replace(".gs.", ".input.")).read_text(encoding="utf-8").split("\n")
            for line, score in zip(inputs, gold.read_text(encoding="utf-8").split("\n"), strict=False):
                if score.strip():
                    pairs.append((*line.split("\t")[:2], float(score)))
        return pairs

    return read


READERS = {"sickr": sick, "sts12": sts_year("sts12"), "sts14": sts_year("sts14")}


@pytest.mark.model
def test_pair_scores_equal_the_recorded_ones(minilm, shared):
    recorded = json.loads((shared / "oracle" / "sts_pair_scores.json").read_text())["stsb_dev.dev"]
    pairs = read_stsb(shared / "data" / "stsbenchmark", "dev")[:50]
    a, b = (minilm.embed([getattr(pair, side) for pair in pairs]) for side in "ab")
    assert [pair.gold for pair in pairs] == recorded["gold"]
    assert np.allclose(by_name("cosine").score(a, b), recorded["mean_cos"], atol=1e-4)
    assert np.allclose(by_name("rcmd").score(a, b), recorded["rcmd"], atol=1e-4)
