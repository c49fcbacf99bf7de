from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from likewise import Model
from likewise.cli import main
from likewise.data import read_stsb
from likewise.errors import DataError, InputError
from likewise.evaluation import correlate
from likewise.evaluation.baselines import words_of
from likewise.evaluation.papers import TABLES
from likewise.evaluation.reproduce import NAMES, OurRow, Request, reproduce
from likewise.evaluation.reproduce.resources import texts_of_length
from likewise.model import CrossEncoder
from likewise.similarity import by_name

pytestmark = [
    pytest.mark.filterwarnings("ignore:read as meant"),  # a known line of the iSTS headlines
    pytest.mark.filterwarnings("ignore::likewise.errors.TruncationWarning"),  # the tiny models read 64 tokens
]

NEEDS_PROCESSES = "clrcmd-table3"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A small word2vec file: random vectors of common words."""
    words = sorted(set(words_of("a the man woman is are playing of in to and dog cat on two with . , people not")))
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("words") / "random.txt"
    lines = [f"{word} {' '.join(f'{x:.3f}' for x in random.standard_normal(8))}" for word in words]
    path.write_text("\n".join([f"{len(words)} 8", *lines, ""]), encoding="utf-8")
    return path


def test_every_published_table_can_be_measured():
    assert set(NAMES) == set(TABLES)
    shown = CliRunner().invoke(main, ["reproduce", "--help"]).stdout
    assert all(name in shown for name in NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name != NEEDS_PROCESSES])
def test_a_table_is_measured_whole(name, tiny, shared, vectors):
    found = reproduce(name, Request([tiny], shared / "data", "smoke", word_vectors=vectors))
    assert found.table is TABLES[name]
    assert found.rows
    assert found.notes
    for row in found.rows:
        assert len(row.values) == len(found.columns)
        assert row.beside is None or row.beside in found.table.rows
        assert any(value is not None for value in row.values), row
    said = " ".join(found.notes)
    assert "size smoke" in said
    if name in ("sbert-table1", "sbert-table3", "sbert-table5"):
        assert {"Avg. GloVe (ours)", "InferSent-GloVe (ours)"} <= {row.system.partition(",")[0] for row in found.rows}
    if name.startswith("sbert") and name != "sbert-table7":
        assert "likewise train reproduce/" in said


def test_memory_of_the_objective_is_measured(tiny):
    found = reproduce(NEEDS_PROCESSES, Request([tiny], size="smoke"))
    assert [row.system for row in found.rows] == ["dense, objective alone", "ours, objective alone"]
    assert all(row.reasons or row.values[0] >= 0 for row in found.rows)


def test_the_numbers_are_those_of_the_protocol(tiny, shared):
    row = reproduce("sbert-table2", Request([tiny], shared / "data")).rows[0]
    pairs = read_stsb(shared / "data", "test")
    a, b = (tiny.embed([getattr(pair, side) for pair in pairs], on_truncate="ignore") for side in "ab")
    expected = correlate(by_name("cosine").score(a, b), np.asarray([pair.gold for pair in pairs])).spearman
    assert row.values == pytest.approx((expected,), abs=0.01)
    assert row.differences == pytest.approx((expected - 84.67,), abs=0.01)


def test_cross_encoders_have_rows(tiny, checkpoint, shared):
    scorer = CrossEncoder.load(checkpoint(), n_labels=1)
    found = reproduce("sbert-table2", Request([tiny], shared / "data", "smoke", cross_encoders=[scorer]))
    row = found.rows[1]
    assert row.system.endswith(", cross-encoder")
    assert row.beside.system == "BERT-base"
    pairs = Request([], size="smoke").some(read_stsb(shared / "data", "test"), 60)
    scores = scorer.score([pair.a for pair in pairs], [pair.b for pair in pairs])
    assert row.values[0] == pytest.approx(correlate(scores, np.asarray([p.gold for p in pairs])).spearman, abs=0.01)


def test_what_a_model_is_set_beside(checkpoint, shared):
    plain = [Model.load(checkpoint(name), pooling=how) for name, how in (("bert", "cls"), ("roberta", "mean"))]
    rows = reproduce("clrcmd-table2", Request(plain, shared / "data", "smoke")).rows
    assert [row.beside.system for row in rows if row.beside] == [
        "BERT-base avg",
        "BERT-base RCMD",
        "RoBERTa-base avg",
        "RoBERTa-base RCMD",
    ]
    rows = reproduce("sbert-table1", Request(plain[:1], shared / "data", "smoke")).rows
    assert [row.beside.system for row in rows] == ["BERT CLS"]


def test_a_token_level_model_has_rows_of_rcmd_only(checkpoint, shared):
    model = Model.load(checkpoint(), pooling="none")
    found = reproduce("clrcmd-table2", Request([model], shared / "data", "smoke"))
    assert all("RCMD" in row.system for row in found.rows)
    assert reproduce("sbert-table1", Request([model], shared / "data", "smoke")).rows == ()
    assert [row.system for row in reproduce("sbert-table2", Request([model], shared / "data", "smoke")).rows] == [
        f"{model.name}, rcmd"
    ]


def test_differences_leave_out_what_either_lacks():
    beside = TABLES["sbert-table3"].row("SVR (Misra et al.)", "10-fold")
    assert OurRow("x", (64.0, 50.0), beside).differences == (pytest.approx(0.67), None)
    assert OurRow("x", (64.0, None)).differences == (None, None)


def test_texts_have_the_length_asked_for(tiny):
    texts = texts_of_length(tiny, 5, 12, seed=0)
    assert texts is None or {cover.n_total for cover in tiny.coverage(texts)} == {12}
    assert texts_of_length(tiny, 5, 1000, seed=0) is None
    assert texts_of_length(tiny, 5, 2, seed=0) is None


def test_bad_requests(tiny, tmp_path):
    with pytest.raises(InputError, match="unknown size 'huge'"):
        Request([tiny], size="huge")
    with pytest.raises(InputError, match="no table 'table9'"):
        reproduce("table9", Request([tiny]))
    with pytest.raises(InputError, match="name the folder of the data sets"):
        reproduce("sbert-table1", Request([tiny]))
    with pytest.raises(DataError):
        reproduce("sbert-table2", Request([tiny], tmp_path))


def test_the_command_prints_ours_below_the_papers(mean_folder, shared):
    words = ["reproduce", "sbert-table2", "--data", str(shared / "data"), "--size", "smoke", "-m", str(mean_folder)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "SBERT-base" in done.stdout
    assert "84.67 ± 0.19" in done.stdout
    place = lines.index("measured here")
    assert lines[place + 1].startswith(mean_folder.name)
    assert lines[place + 2].split()[0] == "−"
    assert "What explains differences" in lines
    told = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert told["rows"][0]["system"] == f"{mean_folder.name}, cosine"
    assert told["table"]["name"] == "sbert-table2"


def test_the_command_takes_several_poolings_of_a_plain_checkpoint(checkpoint, shared):
    words = ["reproduce", "sbert-table2", "--data", str(shared / "data"), "--size", "smoke", "-m", str(checkpoint())]
    done = CliRunner().invoke(main, [*words, "--pooling", "mean", "--pooling", "cls", "--json"])
    assert len(json.loads(done.stdout)["rows"]) == 2
    bad = CliRunner().invoke(main, ["reproduce", "table9"])
    assert bad.exit_code == 2
    assert "no table 'table9'" in bad.stderr
