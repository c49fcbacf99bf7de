from __future__ import annotations

import shutil

import pytest

from likewise.data.catalogue import CATALOGUE, known
from likewise.data.dataset import DataSet, check
from likewise.errors import DataError

ELSEWHERE = {"afs", "nli_for_simcse", "wikipedia-sections-triplets"}
"""Sets of which there is no copy here."""


@pytest.mark.filterwarnings("ignore::likewise.errors.DataWarning")
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_a_copy_is_complete_or_absent(shared, name):
    state = check(known(name), shared / "data")
    assert (state.name, state.state) == (name, "absent" if name in ELSEWHERE else "complete")
    assert (state.n_rows > 0) == (not state.reasons) == (name not in ELSEWHERE)


@pytest.mark.parametrize("dataset", CATALOGUE.values(), ids=lambda dataset: dataset.name)
def test_every_entry_says_what_where_and_under_which_terms(dataset):
    assert dataset.about
    assert dataset.licence
    assert dataset.source
    assert dataset.parts
    assert dataset.unit != "rows"
    for download in dataset.downloads:
        assert download.url.startswith(("https://", "http://ixa2.si.ehu.es/"))
        kind, _, digest = (download.checksum or f"md5:{'0' * 32}").partition(":")
        assert len(digest) == {"sha256": 64, "md5": 32}[kind]


def test_a_broken_part_makes_a_set_incomplete(shared, tmp_path):
    home = tmp_path / "multi30k"
    shutil.copytree(shared / "data" / "multi30k", home, copy_function=shutil.copyfile)
    assert check(known("multi30k"), tmp_path).state == check(known("multi30k"), home).state == "complete"
    text = (home / "val.en").read_bytes()
    for broken, reason in ((text[:1000], "17 lines, 1014 expected"), (text + text, "2028 lines"), (b"\xff", "UTF-8")):
        (home / "val.en").write_bytes(broken)
        state = check(known("multi30k"), tmp_path)
        assert (state.state, state.n_rows) == ("incomplete", 29_000)
        assert len(state.reasons) == 1
        assert state.reasons[0].startswith("val: ")
        assert reason in state.reasons[0]
    (home / "val.en").unlink()
    assert check(known("multi30k"), tmp_path).reasons[0].startswith("val: no val.en of multi30k in")
    assert check(known("multi30k"), tmp_path / "nowhere").state == "absent"


def test_a_published_checksum_is_that_of_the_file(shared):
    from likewise.files import sha256

    for name in ("cad_nli", "conjnli"):
        for download in known(name).downloads:
            assert download.checksum == f"sha256:{sha256(shared / 'data' / name / download.name)}"


def test_unknown_names_and_faults_of_our_own():
    with pytest.raises(DataError, match="unknown data set 'sts17'; known are sts12"):
        known("sts17")

    def broken(folder):
        raise KeyError("a fault that is not the file's")

    with pytest.raises(KeyError):
        check(DataSet("x", "x", "x", "x", {"all": broken}), ".")
