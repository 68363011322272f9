"""Sorting and numbering of integer rows against NumPy, packed into one integer or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.stats.basics.order import (
    cumulate_changes,
    distinct_rows,
    distinct_values,
    number_rows,
    run_ends,
    run_starts,
    sort_order,
    sort_rows,
)

# Narrow ranges are packed; wide ones do not fit into 63 bits.
SPANS = [(-5, 5), (-(2**61), 2**61)]


def column_arrays(span, count):
    row = st.tuples(*[st.integers(*span)] * count)
    return st.lists(row, max_size=30).map(lambda rows: np.array(rows, np.int64).reshape(-1, count).T)


@pytest.mark.parametrize("span", SPANS)
def test_order_numbers_and_distinct_rows_match_numpy(span):
    @given(column_arrays(span, 3))
    def check(columns):
        assert sort_order(*columns).tolist() == np.lexsort(columns[::-1]).tolist()
        rows, numbers, counts = np.unique(columns, axis=1, return_inverse=True, return_counts=True)
        unique_rows, multiplicities = distinct_rows(*columns)
        assert np.array(unique_rows).tolist() == rows.tolist()
        assert multiplicities.tolist() == counts.tolist()
        assert number_rows(*columns).tolist() == numbers.ravel().tolist()
        assert distinct_values(*columns).tolist() == sorted({*columns.ravel().tolist()})

    check()


@pytest.mark.parametrize("span", [(0, 5), (0, 2**61)])
def test_pairs_are_sorted_by_key_and_value(span):
    @given(column_arrays(span, 2), st.sampled_from([1, -1, -3]))
    def check(columns, factor):
        key, value = sort_rows(columns[0], columns[1] * factor)
        assert list(zip(key, value, strict=True)) == sorted(zip(columns[0], columns[1] * factor, strict=True))

    check()


@pytest.mark.parametrize("span", SPANS)
def test_running_sums_by_key(span):
    @given(column_arrays(span, 1), st.data())
    def check(columns, data):
        (key,) = columns
        change = data.draw(st.lists(st.integers(-9, 9), min_size=key.size, max_size=key.size))
        keys, sums = cumulate_changes(key, np.array(change, np.int64))
        assert keys.tolist() == sorted({*key.tolist()})
        assert sums.tolist() == [sum(c for k, c in zip(key, change, strict=True) if k <= limit) for limit in keys]

    check()


@pytest.mark.parametrize(
    ("values", "first", "last"), [([], [], []), ([3], [0], [0]), ([1, 1, 4, 4, 4], [0, 2], [1, 4])]
)
def test_first_and_last_index_of_each_run(values, first, last):
    assert run_starts(np.array(values)).tolist() == first
    assert run_ends(np.array(values)).tolist() == last
