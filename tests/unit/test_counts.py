"""Counts of whole numbers agree with the counted rows."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.engine.counts import ValueCounts, count_rows, count_values, distinct_texts, most_frequent, text_codes

SMALL, WIDE = st.integers(-3, 3), st.integers(-(2**62), 2**62)


@given(st.lists(st.tuples(*[st.one_of(st.none(), SMALL, number) for number in (SMALL, WIDE, WIDE)]), max_size=30))
def test_counts_are_those_of_complete_rows(rows):
    frame = pl.DataFrame(rows, schema=dict.fromkeys("abc", pl.Int64), orient="row")
    for columns in (["a"], ["b"], ["a", "b"], ["b", "a"], ["a", "b", "c"]):
        table = count_rows(frame, **{name: pl.col(name) for name in columns})
        complete_rows = [row for row in frame.select(columns).iter_rows() if None not in row]
        assert table.rows() == [(*row, complete_rows.count(row)) for row in sorted(set(complete_rows))]
        assert set(table.dtypes) == {pl.Int64}


def test_texts_are_coded_by_their_index():
    frame = pl.LazyFrame({"x": ["b", None, "a", "b", "c", "a"]})
    assert distinct_texts(frame, "x") == ["a", "b", "c"]
    assert most_frequent(frame, "x", 2) == ["a", "b"]
    assert frame.select(text_codes("x", ["b", "c"])).collect()["x"].to_list() == [0, -1, -1, 0, 1, -1]


@given(st.lists(st.integers(0, 50), min_size=1), st.sampled_from([0, 25, 50, 90, 100]))
def test_counted_numbers_have_the_percentiles_of_all(numbers, percent):
    values, times = np.unique(numbers, return_counts=True)
    counted = ValueCounts(values, times)
    assert counted.size == len(numbers)
    assert [counted.at(rank) for rank in range(len(numbers))] == sorted(numbers)
    assert counted.mean() == sum(numbers) / len(numbers)
    assert counted.median() == np.median(numbers) == counted.percentile(50)
    assert counted.percentile(percent) == pytest.approx(np.percentile(numbers, percent))


@given(st.lists(st.one_of(st.none(), st.integers(-5, 40)), max_size=20), st.sampled_from([0, 8, 1 << 23]))
def test_counting_by_bins_equals_sorting(numbers, max_bins):
    numbers = [*numbers, 7]
    expected = Counter(number for number in numbers if number is not None)
    table = pl.LazyFrame({"x": numbers}, schema={"x": pl.Int64})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ttf.engine.counts.MOST_ROOM", max_bins)
        actual = count_values(table, "x", min(expected), max(expected))
    assert dict(zip(actual.values.tolist(), actual.counts.tolist(), strict=True)) == expected
    assert actual.values.tolist() == sorted(expected)
