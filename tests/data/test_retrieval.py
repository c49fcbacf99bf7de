from __future__ import annotations

import pytest

from likewise.data import RetrievalSet, read_beir
from likewise.errors import DataError, DataNotFoundError, DataWarning


@pytest.mark.parametrize(("split", "n_queries", "n_judged"), [("test", 300, 339), ("train", 809, 919)])
def test_scifact(shared, split, n_queries, n_judged):
    found = read_beir(shared / "data", split)
    assert (len(found.corpus), len(found.queries)) == (5183, n_queries)
    assert set(found.queries) == set(found.relevant)
    assert sum(map(len, found.relevant.values())) == n_judged
    assert found.corpus["4983"].startswith("Microstructural development of human newborn cerebral white matter")


CORPUS = '{"_id": "d1", "title": "T", "text": "x"}\n{"_id": "d2", "text": "y"}\n'
QUERIES = '{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "b"}\n{"_id": "q3", "text": "c"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td2\t0\n"


def write(folder, corpus=CORPUS, queries=QUERIES, qrels=QRELS):
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_bytes(corpus.encode())
    (folder / "queries.jsonl").write_bytes(queries.encode())
    (folder / "qrels" / "test.tsv").write_bytes(("\ufeff" + qrels).replace("\n", "\r\n").encode())
    return folder


def test_titles_and_queries_without_a_relevant_document(tmp_path):
    assert read_beir(write(tmp_path)) == RetrievalSet({"d1": "T x", "d2": "y"}, {"q1": "a"}, {"q1": {"d1": 2}})


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("corpus", CORPUS + CORPUS, r"corpus\.jsonl, line 3: the id 'd1' occurs twice"),
        ("corpus", CORPUS[:-10], r"corpus\.jsonl, line 2 is not JSON"),
        ("corpus", "[]\n", r"corpus\.jsonl, line 1 is a JSON list"),
        ("corpus", '{"_id": 1, "text": "x"}\n', r'corpus\.jsonl, line 1: "_id" is 1, not a text'),
        ("corpus", '{"_id": "", "text": "x"}\n', r'corpus\.jsonl, line 1: "_id" is empty'),
        ("corpus", '{"_id": "d1"}\n', r'corpus\.jsonl, line 1: "text" is missing'),
        ("qrels", "q1\td1\t2\n", r"test\.tsv, line 1 is a judgement; the format has a header"),
        ("queries", '{"_id": "q1", "text": "a"}\n', r"test\.tsv, line 4: the id 'q2' is not in the queries"),
        ("corpus", '{"_id": "d2", "text": "y"}\n', r"test\.tsv, line 2: the id 'd1' is not in the corpus"),
        ("qrels", QRELS + "q1\td1\t1\n", r"test\.tsv, line 5: query q1 and document d1 were judged before"),
        ("qrels", QRELS + "q1\td1\n", r"test\.tsv, line 5: 2 columns"),
        ("qrels", QRELS + "q3\td1\t\n", r"test\.tsv, line 5: the score '' is not a number"),
        ("qrels", QRELS + "q3\td1\t-1\n", r"test\.tsv, line 5: the score -1.0 is outside"),
        ("qrels", QRELS + "q3\td1\t0.5\n", r"test\.tsv, line 5: the degree '0.5' is not a whole number"),
        ("qrels", QRELS + "q3\td1\tinf\n", r"test\.tsv, line 5: the score 'inf' is not a number"),
        ("qrels", QRELS + "q3\td1\t1_0\n", r"test\.tsv, line 5: the score '1_0' is not a number"),
        ("qrels", "q1\td1\t1.0\nq1\td2\t1.0\n", r"test\.tsv, line 1 is a judgement; the format has a header"),
        ("qrels", "query-id\tcorpus-id\tscore\n", r"test\.tsv calls no document relevant"),
        ("qrels", QRELS.replace("\t2\n", "\t0\n"), r"test\.tsv calls no document relevant to a query; is it empty"),
    ],
)
def test_what_is_broken(tmp_path, part, text, message):
    with pytest.raises(DataError, match=message):
        read_beir(write(tmp_path, **{part: text}))


def test_judgements_of_0_bytes(tmp_path):
    (write(tmp_path) / "qrels" / "test.tsv").write_bytes(b"")
    with pytest.raises(DataError, match=r"test\.tsv calls no document relevant to a query; is it empty or cut\?"):
        read_beir(tmp_path)


def test_a_set_that_was_published_with_other_counts_and_one_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="2 rows of corpus, 5183 expected"):
        read_beir(write(tmp_path / "scifact"))
    with pytest.raises(DataNotFoundError, match=r"no dev\.tsv among .*; the splits that are there: test$"):
        read_beir(tmp_path / "scifact", "dev")
    with pytest.raises(DataNotFoundError, match=r"no dev\.tsv of the dev split in"):
        read_beir(tmp_path / "absent", "dev")


def test_judgements_on_what_was_left_out_are_dropped_when_asked_and_counted(tmp_path):
    qrels = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td9\t1\nq2\td9\t1\nq9\td1\t1\nq3\td2\t1\n"
    folder = write(tmp_path / "scifact", qrels=qrels)  # the counts of the whole set are not asked for either
    with pytest.raises(DataError, match=r"line 3: the id 'd9' is not in the corpus; .*missing=\"drop\""):
        read_beir(folder)
    with pytest.warns(DataWarning, match=r"3 of 5 judgements .* dropped, and with them 2 queries") as warned:
        found = read_beir(folder, missing="drop")
    assert len(warned) == 1
    assert found.relevant == {"q1": {"d1": 2}, "q3": {"d2": 1}}
    assert found.queries == {"q1": "a", "q3": "c"}
    with pytest.raises(DataError, match="unknown way with missing ids 'ignore'; known are raise, drop"):
        read_beir(folder, missing="ignore")


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_where_nothing_is_dropped(tmp_path):
    assert read_beir(write(tmp_path), missing="drop") == read_beir(tmp_path)
