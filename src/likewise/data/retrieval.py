"""Documents, queries and judgements in the format of BEIR."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from likewise.data.examples import RetrievalSet
from likewise.data.json_lines import read_objects, text_at
from likewise.data.rows import chosen, decimal, find, number_in, tab_rows
from likewise.errors import DataError, DataNotFoundError, DataWarning, warn

__all__ = ["read_beir"]

_ROWS = {
    "scifact": {"corpus": 5183, "queries": 1109, "test": 339, "train": 919},
}
"""Published rows, by the folder's name."""

_PLACES = ("", "beir/", "scifact/beir/", "scifact/")

_MISSING = ("raise", "drop")

_Judged = dict[str, dict[str, int]]
"""Query id → document id → degree."""


def read_beir(folder: str | os.PathLike[str], split: str = "test", *, missing: str = "raise") -> RetrievalSet:
    """A retrieval set: `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`.

    A document's text is its title, a blank and its text, as BEIR joins them. Only queries with at least one relevant
    document in the split are returned. A judgement of 0 says "not relevant", which is what no judgement says, too.

    Args:
        folder: Where the files are, or a folder that has them in `beir/` or `scifact/beir/`.
        split: Name of the file of judgements, such as "test", "train" or "dev".
        missing: What becomes of a judgement on a document or a query that is not in the files: "raise", or "drop" for
            a corpus that was made smaller on purpose. Those dropped are counted in one `DataWarning`. Scores on what
            is left cannot be compared with those on the whole set.

    Raises:
        DataError: A missing file, a line that is not such an object, an id twice, a judgement that is not a whole
            number of 0 or more, judges an unknown id (if `missing` is "raise") or stands twice, a split without a
            relevant document, or (SciFact, if `missing` is "raise") a count other than the published one.

    Source:
        Thakur et al. 2021 (BEIR).
    """
    drop = chosen(missing, _MISSING, "way with missing ids") == "drop"
    qrels = _qrels(folder, split)
    home = qrels.parent.parent
    corpus = dict(_texts(find(home, ["corpus.jsonl"], "the corpus")))
    queries = dict(_texts(find(home, ["queries.jsonl"], "the queries")))
    relevant: _Judged = {}
    for number, query, document, degree in _judgements(qrels):
        if not drop:
            _expect_known(query, queries, f"{qrels}, line {number}", "queries")
            _expect_known(document, corpus, f"{qrels}, line {number}", "corpus")
        if document in relevant.setdefault(query, {}):
            raise DataError(f"{qrels}, line {number}: query {query} and document {document} were judged before")
        relevant[query][document] = degree
    if drop:
        relevant = _present(relevant, queries, corpus, qrels)
    else:
        n_judged = sum(map(len, relevant.values()))
        _check(home, {"corpus": len(corpus), "queries": len(queries), split: n_judged})
    judged = _above_0(relevant)
    if not judged:
        raise DataError(
            f"{qrels} calls no document relevant to a query; is it empty or cut? a line is: query-id, corpus-id, score"
        )
    return RetrievalSet(corpus, {query: queries[query] for query in judged}, judged)


def _qrels(folder: str | os.PathLike[str], split: str) -> Path:
    try:
        return find(folder, [f"{place}qrels/{split}.tsv" for place in _PLACES], f"the {split} split")
    except DataNotFoundError as error:
        splits = sorted({path.stem for place in _PLACES for path in Path(folder, place, "qrels").glob("*.tsv")})
        if not splits:
            raise
        raise DataNotFoundError(
            f"no {split}.tsv among the judgements in {folder}; the splits that are there: {', '.join(splits)}"
        ) from error


def _expect_known(name: str, known: Mapping[str, str], where: str, what: str) -> None:
    if name not in known:
        raise DataError(
            f"{where}: the id {name!r} is not in the {what}; do the files belong together? "
            '(--partial, or read_beir(missing="drop"), leaves such judgements out)'
        )


def _present(relevant: _Judged, queries: Mapping[str, str], corpus: Mapping[str, str], qrels: Path) -> _Judged:
    """The judgements on queries and documents that are there; warns of the rest."""
    kept = {
        query: {document: degree for document, degree in documents.items() if document in corpus}
        for query, documents in relevant.items()
        if query in queries
    }
    n = sum(map(len, relevant.values()))
    n_dropped = n - sum(map(len, kept.values()))
    if n_dropped:
        n_without = len(_above_0(relevant)) - len(_above_0(kept))
        warn(
            f"{qrels}: {n_dropped:,} of {n:,} judgements are on a document or a query that is not in the files and "
            f"were dropped, and with them {n_without:,} queries that have no relevant document left",
            DataWarning,
        )
    return kept


def _above_0(judged: _Judged) -> _Judged:
    """The queries with a relevant document, and those documents."""
    found = {query: {name: degree for name, degree in names.items() if degree} for query, names in judged.items()}
    return {query: names for query, names in found.items() if names}


def _check(home: Path, found: dict[str, int]) -> None:
    names = [part for part in (home.absolute().name, home.absolute().parent.name) if part in _ROWS]
    expected: dict[str, int] = _ROWS[names[0]] if names else {}
    for what, n in found.items():
        if n != expected.get(what, n):
            raise DataError(
                f"{home}: {n} rows of {what}, {expected[what]} expected; the copy is not whole; fetch it again"
            )


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    advice = 'give {"_id": "…", "title": "…", "text": "…"} a line'
    for where, row in read_objects(path):
        key, title, text = (text_at({"title": "", **row}, name, where, advice) for name in ("_id", "title", "text"))
        if not key:
            raise DataError(f'{where}: "_id" is empty; {advice}')
        if key in seen:
            raise DataError(f"{where}: the id {key!r} occurs twice; is a part of the file doubled?")
        seen.add(key)
        yield key, f"{title} {text}".strip()


def _judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    rows = tab_rows(path, lambda n: n == 3, "3 (query, document, degree)")
    header = next(rows, (1, ["", "", "score"]))[1]
    if decimal(header[2]) is not None:
        raise DataError(f"{path}, line 1 is a judgement; the format has a header there: query-id, corpus-id, score")
    for number, (query, document, degree) in rows:
        value = number_in(degree, 0.0, float("inf"), path, number)
        if value % 1:
            raise DataError(f"{path}, line {number}: the degree {degree!r} is not a whole number")
        yield number, query, document, int(value)
