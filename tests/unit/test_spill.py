"""Rows on disk by part: each added row is read back, for any portions and widths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.engine.storage.spill import Spill

PARTS = 4
narrow, wide = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**62), 2**62)
ROWS = st.lists(st.tuples(st.integers(0, PARTS - 1), narrow | wide, narrow), max_size=8)


@given(st.lists(ROWS, max_size=6), st.sampled_from([1, 5, 1000]))
def test_every_row_is_in_its_part(tmp_path_factory, portions, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ttf.engine.storage.spill.WAITING_ROWS", limit)
        rows = Spill(tmp_path_factory.mktemp("spill") / "rows", PARTS, 2)
        for portion in portions:
            part, *columns = np.array(portion, np.int64).reshape(-1, 3).T
            rows.add(part, *columns)
        for part in range(PARTS):
            values = rows.read(part)
            assert values.dtype == np.int64
            expected = [tuple(row[1:]) for portion in portions for row in portion if row[0] == part]
            assert sorted(zip(*values.tolist(), strict=True)) == sorted(expected)


def test_at_most_the_limit_and_one_portion_wait_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("ttf.engine.storage.spill.WAITING_ROWS", 10)
    rows = Spill(tmp_path / "rows", 3, 1)
    for number in range(100):
        rows.add(np.full(4, number % 3), np.arange(4))
    assert (tmp_path / "rows").stat().st_size >= (400 - 10) * 4
