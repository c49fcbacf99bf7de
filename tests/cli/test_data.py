from __future__ import annotations

import hashlib
import json
import re

import pytest
from click.testing import CliRunner

from likewise.cli import main
from likewise.data.catalogue import CATALOGUE
from likewise.data.dataset import DataSet, Download


def run(*words):
    return CliRunner().invoke(main, ["data", *map(str, words)])


def test_list_names_licence_and_origin():
    done = run("list")
    assert done.exit_code == 0
    for dataset in CATALOGUE.values():
        assert f"{dataset.name}\n    {dataset.about}\n    licence: {dataset.licence}\n" in done.stdout
    rows = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert [row["name"] for row in rows] == list(CATALOGUE)
    assert rows[0]["downloads"][0]["checksum"] is None


def test_list_prints_commands_that_run_as_they_stand(offered, tmp_path, monkeypatch):
    """Pasted into a shell, each makes its folder where one stands."""
    commands = re.findall(r"get it.*: likewise data (fetch .*)", run("list").stdout)
    assert "fetch cad_nli --to ." in commands
    assert "fetch sts12 --to . --unverified" in commands
    monkeypatch.chdir(tmp_path)
    offered(None)
    (command,) = re.findall(r"get it.*: likewise data (fetch tiny.*)", run("list").stdout)
    assert run(*command.split()).exit_code == 0
    assert (tmp_path / "tiny" / "x.txt").exists()


def test_check_passes_what_is_whole_and_what_is_not_there(shared):
    done = run("check", shared / "data", "xnli_en", "scifact", "--json")
    assert done.exit_code == 0, done.stdout
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["state"], row["unit"]) for row in told] == [
        ("complete", "labelled pairs"),
        ("complete", "judgements"),
    ]
    assert run("check", shared / "data", "scifact").stdout.split() == ["scifact", "complete", "1,258", "judgements"]


def test_check_without_names_lets_absent_sets_pass_but_not_broken_ones(shared, tmp_path):
    assert run("check", tmp_path).exit_code == 0
    (tmp_path / "SICK_train.txt").write_bytes((shared / "data" / "sick" / "SICK_train.txt").read_bytes())
    done = run("check", tmp_path)
    assert done.exit_code == 1
    assert "sick                          incomplete      4,500 pairs\n" in done.stdout
    assert "    dev: no SICK_trial.txt of SICK" in done.stdout
    assert "sts12                         absent\n" in done.stdout


def test_check_of_a_named_set_that_is_absent_fails_with_the_reason(tmp_path):
    done = run("check", tmp_path, "mrpc")
    assert done.exit_code == 1
    assert "no msr_paraphrase_train.txt of MRPC" in done.stdout
    done = run("check", tmp_path, "mprc")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "unknown data set 'mprc'" in done.stderr


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """A set whose source is a file of this machine."""
    source = tmp_path / "source.txt"
    source.write_bytes(b"one\n")

    def offer(checksum):
        dataset = DataSet("tiny", "", "free", "a page", {}, (Download(source.as_uri(), "x.txt", checksum),))
        monkeypatch.setitem(CATALOGUE, "tiny", dataset)

    return offer


def test_fetch_writes_the_set_and_says_so(offered, tmp_path):
    offered(f"sha256:{hashlib.sha256(b'one' + bytes([10])).hexdigest()}")
    done = run("fetch", "tiny", "--to", tmp_path)
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert f"wrote {tmp_path / 'tiny'}: complete" in done.stderr
    assert (tmp_path / "tiny" / "x.txt").read_bytes() == b"one\n"


def test_fetch_refuses_a_wrong_checksum_and_an_unknown_one(offered, tmp_path):
    for checksum, message in (("sha256:00", "not 00"), (None, "--unverified")):
        offered(checksum)
        done = run("fetch", "tiny", "--to", tmp_path)
        assert (done.exit_code, done.stdout) == (2, "")
        assert message in done.stderr
        assert not (tmp_path / "tiny").exists()
    assert run("fetch", "tiny", "--to", tmp_path, "--unverified").exit_code == 0


def test_fetch_asks_for_a_folder(tmp_path):
    assert "--to" in run("fetch", "mrpc").stderr
    assert "does not exist" in run("fetch", "mrpc", "--to", tmp_path / "gone").stderr
