"""Documents, queries and judgements in the format of BEIR."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from likewise.data.examples import RetrievalSet
from likewise.data.json_lines import read_objects, text_at
from likewise.data.rows import find, number_in, tab_rows
from likewise.errors import DataError

__all__ = ["read_beir"]

_ROWS = {
    "scifact": {"corpus": 5183, "queries": 1109, "test": 339, "train": 919},
}
"""Published rows, by the folder's name."""


def read_beir(folder: str | os.PathLike[str], split: str = "test") -> RetrievalSet:
    """A retrieval set: `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`.

    A document's text is its title, a blank and its text, as BEIR joins them. Only queries with at least one relevant
    document in the split are returned. A judgement of 0 says "not relevant", which is what no judgement says, too.

    Args:
        folder: Where the files are, or a folder that has them in `beir/` or `scifact/beir/`.
        split: Name of the file of judgements, such as "test", "train" or "dev".

    Raises:
        DataError: A missing file, a line that is not such an object, an id twice, a judgement that is not a whole
            number of 0 or more, judges an unknown id or stands twice, or (SciFact) a count other than the published
            one.

    Source:
        Thakur et al. 2021 (BEIR).
    """
    places = ("", "beir/", "scifact/beir/", "scifact/")
    qrels = find(folder, [f"{place}qrels/{split}.tsv" for place in places], f"the {split} split")
    home = qrels.parent.parent
    corpus = dict(_texts(find(home, ["corpus.jsonl"], "the corpus")))
    queries = dict(_texts(find(home, ["queries.jsonl"], "the queries")))
    relevant: dict[str, dict[str, int]] = {}
    n_judged = 0
    for number, query, document, degree in _judgements(qrels):
        n_judged += 1
        for name, known in ((query, queries), (document, corpus)):
            if name not in known:
                where = "queries" if known is queries else "corpus"
                raise DataError(
                    f"{qrels}, line {number}: the id {name!r} is not in the {where}; do the files belong together?"
                )
        if document in relevant.setdefault(query, {}):
            raise DataError(f"{qrels}, line {number}: query {query} and document {document} were judged before")
        relevant[query][document] = degree
    _check(home, {"corpus": len(corpus), "queries": len(queries), split: n_judged})
    judged = {query: {doc: degree for doc, degree in docs.items() if degree} for query, docs in relevant.items()}
    judged = {query: docs for query, docs in judged.items() if docs}
    return RetrievalSet(corpus, {query: queries[query] for query in judged}, judged)


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
    if header[2].strip().lstrip("-").isdigit():
        raise DataError(f"{path}, line 1 is a judgement; the format has a header there: query-id, corpus-id, score")
    for number, (query, document, degree) in rows:
        value = number_in(degree, 0.0, float("inf"), path, number)
        if value % 1:  # NaN for infinity
            raise DataError(f"{path}, line {number}: the degree {degree!r} is not a whole number")
        yield number, query, document, int(value)
