"""Differences between two sets of jobs: tests agree with SciPy, and each blank has a reason."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from ttf.stats import differences
from ttf.stats.basics.p_value import SMALLEST_P, TINY_P
from ttf.stats.differences import compare_distributions, compare_medians, compare_shares


def counts_of(values, sample):
    return np.array([sample.count(value) for value in values], dtype=np.int64)


samples = st.lists(st.integers(0, 12), min_size=8, max_size=40)


@given(samples, samples)
def test_mann_whitney_is_that_of_scipy(values_before, values_after):
    values = sorted({*values_before, *values_after})
    row = compare_medians(np.array(values), counts_of(values, values_before), counts_of(values, values_after))
    assert (row["before"], row["after"]) == (np.median(values_before), np.median(values_after))
    greater = sum((b > a) - (b < a) for a in values_before for b in values_after)
    assert row["effect"] == greater / (len(values_before) * len(values_after))
    if len(values) == 1:
        assert (row["p_value"], row["reason"]) == (None, differences.ALL_EQUAL)
    else:
        expected = stats.mannwhitneyu(values_after, values_before, method="asymptotic", use_continuity=True)
        assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)


@given(st.integers(8, 500), st.integers(8, 500), st.floats(0, 1), st.floats(0, 1))
def test_shares_are_tested_as_by_the_chi_square_of_two_rows(n_before, n_after, p_before, p_after):
    hits = round(p_before * n_before), round(p_after * n_after)
    row = compare_shares(hits[0], n_before, hits[1], n_after)
    assert (row["before"], row["after"]) == (hits[0] / n_before, hits[1] / n_after)
    expected = min(sum(hits), n_before + n_after - sum(hits)) * min(n_before, n_after) / (n_before + n_after)
    assert (row["p_value"] is None) == (expected < differences.FEWEST_EXPECTED)
    if row["p_value"] is not None:
        expected = stats.chi2_contingency([hits, (n_before - hits[0], n_after - hits[1])], correction=False)
        assert row["p_value"] == pytest.approx(max(expected.pvalue, SMALLEST_P), rel=1e-6)


@given(st.lists(st.tuples(st.integers(10, 500), st.integers(10, 500)), min_size=2, max_size=8))
def test_distributions_are_those_of_scipy(cells):
    counts_before, counts_after = (np.array(side) for side in zip(*cells, strict=True))
    row = compare_distributions(counts_before, counts_after)[0]
    table = np.array([counts_before, counts_after])
    expected = stats.chi2_contingency(table, correction=False)
    if expected.expected_freq.min() >= 5:
        assert row["p_value"] == pytest.approx(max(expected.pvalue, SMALLEST_P), rel=1e-6)
        assert row["effect"] == pytest.approx(stats.contingency.association(table, "cramer"), abs=1e-9)


def test_rare_values_are_merged():
    row = compare_distributions(np.array([50, 40, 3, 3, 0]), np.array([40, 50, 3, 4, 1]))[0]
    table = np.array([[50, 40, 6], [40, 50, 8]])
    assert row["p_value"] == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)
    row = compare_distributions(np.array([50, 40, 1]), np.array([40, 50, 0]))[0]
    table = np.array([[51, 40], [40, 50]])
    assert row["p_value"] == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (compare_shares(1, 7, 5, 10), differences.TOO_FEW),
        (compare_shares(0, 100, 0, 100), differences.ALL_EQUAL),
        (compare_shares(1, 100, 0, 100), differences.TOO_RARE),
        (compare_shares(0, 10**6, 10**6, 10**6), TINY_P),
        (compare_distributions(np.array([5, 0]), np.array([0, 0]))[0], differences.NOT_THERE),
        (compare_distributions(np.array([99, 1]), np.array([99, 1]))[0], differences.TOO_RARE),
        (compare_medians(np.array([1, 2]), np.array([10**6, 0]), np.array([0, 10**6])), TINY_P),
    ],
)
def test_a_blank_has_its_reason(row, reason):
    assert row["reason"] == reason
    is_complete = row["effect"] is not None and row["p_value"] is not None
    assert is_complete == (reason == TINY_P)


def test_a_million_equal_jobs_do_not_overflow():
    counts = np.array([3_000_000, 1], dtype=np.int64)
    row = compare_medians(np.array([0, 1]), counts, counts)
    assert 0.9 < row["p_value"] <= 1
    assert row["effect"] == 0
