"""Growth, the test of trend and the mean cumulative function against closed forms and simulation."""

import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outage_traces import make_outages
from scipy import stats
from ttf.analyses.outages.track_outages import GROWTH, MCF
from ttf.analyses.outages.track_outages.compute import analyse_growth
from ttf.records.outages.faults import faults
from ttf.stats.durations.growth import Stratum, accumulate_exposure, fit_common_growth
from ttf.stats.durations.mcf import mean_cumulative


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8),
    st.lists(st.integers(0, 120), min_size=1, max_size=8),
)
def test_cumulative_observation_time_matches_a_sum_over_windows(windows, times):
    begin, end = np.array([(first, first + length) for first, length in windows]).T
    expected = [sum(max(0, min(time, last) - first) for first, last in zip(begin, end, strict=True)) for time in times]
    assert accumulate_exposure(np.array(times), begin, end).tolist() == expected


def test_mean_cumulative_function_with_staggered_observation_matches_its_formula():
    rng = np.random.default_rng(3)
    begin = np.array([0, 0, 20, 35, 0, 60, 5])
    end = np.array([100, 30, 100, 80, 50, 100, 90])
    owner = np.array([0, 1, 2, 3, 4, 4, 5])
    rows = [(w, t) for w in range(7) for t in rng.integers(begin[w] + 1, end[w] + 1, 4)]
    times, units = np.array([t for _, t in rows]), np.array([owner[w] for w, _ in rows])
    curve = mean_cumulative(times, units, begin, end, owner, 2000)
    jumps = np.unique(times)
    observed = np.array([[((begin < t) & (t <= end) & (owner == unit)).any() for t in jumps] for unit in range(6)])
    counts = np.array([[((times == t) & (units == unit)).sum() for t in jumps] for unit in range(6)])
    at_risk, events = observed.sum(0), counts.sum(0)
    residuals = np.cumsum(observed / at_risk * (counts - events / at_risk), axis=1)
    se = np.sqrt((residuals**2).sum(0))
    assert curve["mcf"] == pytest.approx(np.cumsum(events / at_risk))
    assert curve["ci_high"] == pytest.approx(curve["mcf"] * np.exp(stats.norm.ppf(0.975) * se / curve["mcf"]))
    thinned = mean_cumulative(times, units, begin, end, owner, 5)
    assert thinned["time_s"].size == 5 and set(thinned["ci_low"]) <= set(curve["ci_low"])


def test_faults_leave_out_records_that_continue_or_repeat_another():
    _, records, _ = make_outages(
        {"a": [(10, 20), (20, 30), (25, 28), (25, 40), (40, 40)], "b": [(5, None), (9, 12)]}, 100
    )
    assert faults(records).select("unit_id", "start_s").rows() == [("a", 10), ("a", 25), ("b", 5), ("b", 9)]


def test_few_faults_have_reasons():
    _, records, exposure = make_outages({"a": [(10, 20)], "b": []}, 100)
    tables = analyse_growth(records, exposure)
    for name, contract in (("growth", GROWTH), ("mcf", MCF)):
        contract.check(tables[name])
    assert tables["growth"]["reason"].to_list() == ["fewer than 3 events: no trend"]
    assert "fewer than 4 units" in tables["mcf"]["reason"][0]
    without_faults = analyse_growth(records.clear(), exposure)
    assert without_faults["growth"]["n"].to_list() == [0] and without_faults["mcf"].height == 0


def simulate_stratum(rng, rate, bursts=1.0, growth=1.0):
    """Simulate a stratum with these weekly fault rates, a mean burst size and growth as a power of time."""
    weeks = len(rate)
    burst_starts = [week + rng.random(n) for week, n in enumerate(rng.poisson(rate))]
    times = (np.concatenate(burst_starts) / weeks) ** (1 / growth)
    times = np.sort(np.clip(np.repeat(times, rng.geometric(1 / bursts, times.size)), 1e-9, 1))
    return Stratum(times, np.minimum((times * weeks).astype(np.int64), weeks - 1), np.arange(weeks + 1) / weeks)


def test_no_common_growth_if_only_the_newer_units_fail_less():
    """Both rates are constant, but new units fail a twentieth as often, so the pooled fleet would seem to improve."""
    rng, day = np.random.default_rng(2), 86_400
    old = {f"o{n}": [(int(t), int(t) + 1) for t in np.sort(rng.integers(1, 700 * day, 60))] for n in range(8)}
    new = {f"n{n}": [(int(t), int(t) + 1) for t in np.sort(rng.integers(350 * day, 700 * day, 4))] for n in range(80)}
    _, records, exposure = make_outages(old | new, 700 * day)
    group = pl.col("unit_id").str.slice(0, 1)
    exposure = exposure.with_columns(group=group, from_s=pl.when(group == "n").then(350 * day).otherwise("from_s"))
    tables = analyse_growth(records, exposure)
    fleet, *groups = tables["growth"].iter_rows(named=True)
    assert [row["stratum"] for row in groups] == ["n", "o"] and fleet["n"] == 8 * 60 + 80 * 4
    assert tables["mcf"].filter(stratum_by="all")["at_risk"][-1] == 88
    assert fleet["beta_within_ci_low"] < 1 < fleet["beta_within_ci_high"] and fleet["beta_within"] == pytest.approx(
        1, abs=0.1
    )
    assert (fleet["trend"], fleet["strata"]) == ("none", 2) and fleet["homogeneity_p"] > 0.05


@pytest.mark.parametrize("bursts", [3, 10])
def test_growth_interval_covers_the_truth_when_faults_come_in_bursts(bursts):
    """The exact Poisson interval would cover it in 60% and 35% of samples."""
    rng, is_covered = np.random.default_rng(bursts), []
    for _ in range(100):
        common = fit_common_growth([simulate_stratum(rng, np.full(52, 6.0), bursts)])
        if "ci_low" in common:
            is_covered.append(common["ci_low"] <= 1 <= common["ci_high"])
    assert np.mean(is_covered) > 0.9 and len(is_covered) > 85


def test_a_drifting_rate_is_distinguished_from_a_trend():
    """Weekly rates have log SD 0.5. Tests that assume equal weeks reject a third of the samples without a trend."""
    rng = np.random.default_rng(5)

    def rejection_share(growth_power):
        weekly_rates = (20 * np.exp(0.5 * rng.normal(size=52)) for _ in range(100))
        strata = (simulate_stratum(rng, rates, growth=growth_power) for rates in weekly_rates)
        return np.mean([fit_common_growth([stratum])["trend_p"] < 0.05 for stratum in strata])

    assert rejection_share(1) < 0.1
    assert rejection_share(1.6) > 0.9


def test_groups_of_different_growth_differ_and_have_no_common_trend():
    rng, rate = np.random.default_rng(6), np.full(104, 10.0)
    strata = [simulate_stratum(rng, rate, 2, growth) for growth in (0.5, 0.5, 2, 2)]
    common = fit_common_growth(strata)
    assert common["homogeneity_p"] < 0.001 and common["strata"] == 4
    assert fit_common_growth([simulate_stratum(rng, rate, 2) for _ in range(4)])["homogeneity_p"] > 0.05


def test_common_growth_is_the_maximum_likelihood_estimate():
    """Its value is N / sum ln(1 / u). Without bursts or drift, its standard error is beta / sqrt(N)."""
    rng = np.random.default_rng(7)
    strata = [simulate_stratum(rng, np.full(400, 5.0), growth=1.3) for _ in range(3)]
    times = np.concatenate([stratum.at for stratum in strata])
    common = fit_common_growth(strata)
    assert common["beta"] == pytest.approx(times.size / np.log(1 / times).sum())
    width = np.log(common["ci_high"] / common["ci_low"]) / (2 * stats.t.ppf(0.975, common["effective_blocks"] - 1))
    assert width == pytest.approx(1 / np.sqrt(times.size), rel=0.25)


def test_early_failures_of_new_units_are_no_trend():
    simulate = runpy.run_path(str(Path(__file__).parents[2] / "tools/docs" / "coverage_faults.py"))
    assert set(simulate["ageing"](simulate["Units"](1, early=5), 4, 1)) == {"unclear"}
    assert set(simulate["ageing"](simulate["Units"](3, yearly=0.4), 3, 1)) == {"better"}


def test_few_weeks_give_no_trend():
    _, records, exposure = make_outages(
        {unit: [(10 * n, 10 * n + 1) for n in range(1, 50)] for unit in "abcd"}, 20 * 86_400
    )
    row = analyse_growth(records, exposure)["growth"].row(0, named=True)
    assert row["trend"] is None and "blocks of time" in row["reason"]
