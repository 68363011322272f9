"""Exact integer sums, ranks and Holm's adjustment."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from statsmodels.stats.multitest import multipletests
from ttf.engine.exact_sums import dot, doubled_ranks, group_sums
from ttf.stats.basics.holm import holm

LARGE = st.integers(0, 2**45)


@given(st.lists(st.tuples(LARGE, LARGE), max_size=50))
def test_dot_is_exact(pairs):
    a, b = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    assert dot(a, b) == sum(x * y for x, y in pairs)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**57)), max_size=30))
def test_group_sums_are_exact(pairs):
    codes, weights = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    expected = [sum(w for c, w in pairs if c == code) for code in range(5)]
    assert group_sums(codes, weights, 5).tolist() == expected


def test_group_sums_refuse_to_overflow():
    with pytest.raises(OverflowError):
        group_sums(np.array([0, 0]), np.array([2**62, 2**62]), 1)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_doubled_ranks_are_scipys(values):
    ranks = doubled_ranks(np.bincount(values))
    assert ranks[values].tolist() == (2 * rankdata(values)).tolist()


# statsmodels takes a tenth of a second for each.
@settings(max_examples=5)
@given(st.lists(st.none() | st.floats(1e-12, 1), max_size=12))
def test_holm_agrees_with_statsmodels(p_values):
    adjusted = holm(p_values)
    present = [p for p in p_values if p is not None]
    assert [p is None for p in adjusted] == [p is None for p in p_values]
    if present:
        expected = multipletests(present, method="holm")[1]
        assert [p for p in adjusted if p is not None] == pytest.approx(expected.tolist(), rel=1e-12)


def test_holm_by_hand():
    assert holm([0.04, None, 0.01, 0.03]) == [0.06, None, 0.03, 0.06]
