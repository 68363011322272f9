"""The number of points that a printed correlation implies."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr
from ttf.page.replication.implied_n import implied_n, p_value

# Ranges implied by a study of the PAI trace; solved independently of this project.
RANGES = {
    ("0.44", "2.01e-02"): (27, 28),
    ("0.64", "4.51e-07"): (50, 51),
    ("0.35", "3.78e-05"): (129, 136),
    ("0.04", "4.50e-01"): (284, 469),
    ("-0.14", "4.98e-01"): (25, 27),
    ("-0.11", "4.50e-01"): (46, 54),
    ("-0.09", "3.19e-01"): (112, 139),
}


@pytest.mark.parametrize(("printed", "range_"), RANGES.items())
def test_ranges_match_an_independent_solution(printed, range_):
    low, best, high = implied_n(*printed)
    assert (low, high) == range_
    assert low <= best <= high


def test_the_best_n_is_that_of_the_unrounded_printed_values():
    assert implied_n("0.04", "4.50e-01")[1] == 359
    # Read as 3.19e-02 the malformed p-value would need many more groups.
    assert implied_n("-0.09", "3.19e-02")[1] == 569


def test_the_p_value_matches_scipy():
    x, y = [1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 7, 5]
    r, p = pearsonr(x, y)
    assert p_value(r, 6) == pytest.approx(p, rel=1e-12)
    # Over four points t = r sqrt(2 / (1 - r^2)) with two degrees of freedom, so p is 1 - |r|.
    assert p_value(-0.4, 4) == pytest.approx(0.6, rel=1e-12)


@settings(deadline=None)
@given(st.floats(0.05, 0.97), st.integers(4, 2000), st.booleans())
def test_the_implied_range_contains_the_true_n(r, n, negative):
    p = p_value(r, n)
    assume(p > 1e-300)
    low, best, high = implied_n(f"{-r if negative else r:.2f}", f"{p:.2e}")
    assert (low or 0) <= n
    assert high is None or n <= high
    assert best is None or (low or 0) <= best


def test_a_correlation_that_may_be_0_has_no_largest_n():
    low, _, high = implied_n("0.00", "9.8e-01")
    assert high is None and low is not None


def test_an_impossible_pair_implies_no_n():
    assert implied_n("0.99", "9.00e-01") == (None, None, None)


@pytest.mark.parametrize(("r", "p"), [("0.1", "3.19e-0.1"), ("nan", "0.5"), ("1.2", "0.5"), ("0.5", "0"), ("", "0.1")])
def test_an_invalid_correlation_or_p_value_is_an_error(r, p):
    with pytest.raises(ValueError, match="not a"):
        implied_n(r, p)
