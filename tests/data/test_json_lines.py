from __future__ import annotations

import pytest

from likewise.data import number_at, object_in
from likewise.errors import DataError


@pytest.mark.parametrize("line", ['{"a": 1, "b": 2, "a": 3}', '{"b": {"a": 1, "a": 1}}', '[{"a": 1, "a": 1}]'])
def test_a_key_that_stands_twice_is_an_error(line):
    with pytest.raises(DataError, match=r'^line 7: the key "a" stands twice, and only one value can be meant'):
        object_in(line, "line 7")


@pytest.mark.parametrize("line", ["[" * 100_000, '{"a": 1e999}', '{"a": -Infinity}', "{"])
def test_what_is_not_json(line):
    with pytest.raises(DataError, match=r"^line 7 is not JSON"):
        object_in(line, "line 7")


def test_a_number_that_no_float_holds_is_named():
    row = object_in(f'{{"score": 1{"0" * 400}, "ok": 1{"0" * 300}}}', "line 7")
    assert number_at(row, "ok", "line 7", "") == 1e300
    with pytest.raises(DataError, match=r'^line 7: "score" is 1000*\.\.\., beyond the range of float64; give less$'):
        number_at(row, "score", "line 7", "give less")
