"""Growth, tests of trend and the mean cumulative function: closed forms, a published example, SciPy, simulation."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outage_traces import made
from scipy import stats
from ttf.analyses.outages.follow_outages import GROWTH, MCF
from ttf.analyses.outages.follow_outages.compute import analyse_growth
from ttf.analyses.shared.outages.faults import faults
from ttf.stats.durations.growth import Stratum, common_growth, cumulative, growth
from ttf.stats.durations.mcf import mean_cumulative

# Failures of a system on test for 620 hours (ReliaWiki, Crow-AMSAA, the example of developmental testing).
HOURS = [2.7, 10.3, 12.5, 30.6, 57, 61.3, 80, 109.5, 125, 128.6, 143.8, 167.9, 229.2, 296.7, 320.6, 328.2, 366.2, 396.7]
HOURS += [421.1, 438.2, 501.2, 620]


def test_the_growth_of_a_published_example():
    found = growth(np.array(HOURS), 620)
    assert found["n"] == 22 and found["beta"] == pytest.approx(0.6142, abs=1e-4)
    ends = found["beta"] * stats.chi2.ppf([0.025, 0.975], 44) / 44
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(tuple(ends))


def test_the_tests_of_trend_by_their_formulas():
    at, total = np.array([5.0, 20, 22, 60, 64, 90]), 100
    found = growth(at, total)
    laplace = (at.mean() - 50) / (100 / np.sqrt(72))
    assert found["laplace_u"] == pytest.approx(laplace)
    assert found["laplace_p"] == pytest.approx(2 * stats.norm.sf(abs(laplace)))
    handbook = 2 * np.log(total / at).sum()
    assert found["mil_hdbk_p"] == pytest.approx(2 * min(stats.chi2.cdf(handbook, 12), stats.chi2.sf(handbook, 12)))
    gaps = np.diff(at, prepend=0)
    corrected = laplace / (gaps.std(ddof=1) / gaps.mean())
    assert found["lewis_robinson_p"] == pytest.approx(2 * stats.norm.sf(abs(corrected)))
    farthest = stats.kstest(at / total, "uniform")
    assert found["change_point_p"] == pytest.approx(farthest.pvalue, abs=0.02)
    assert at[found["change_place"]] == pytest.approx(total * farthest.statistic_location)


def test_what_has_no_trend():
    assert growth(np.array([1.0, 2]), 3)["reasons"] == ["fewer than 3 events: no trend"]
    assert "beta" not in growth(np.full(4, 7.0), 7)
    assert "lewis_robinson_p" not in growth(np.array([2.0, 4, 6]), 7)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8),
    st.lists(st.integers(0, 120), min_size=1, max_size=8),
)
def test_time_watched_together_second_by_second(windows, times):
    begin, end = np.array([(first, first + length) for first, length in windows]).T
    by_hand = [sum(max(0, min(time, last) - first) for first, last in zip(begin, end, strict=True)) for time in times]
    assert cumulative(np.array(times), begin, end).tolist() == by_hand


def test_bursts_reject_what_supposes_none_and_not_what_allows_for_them():
    """Bursts at a constant rate; and that a rate which doubles is seen all the same."""
    rng, total = np.random.default_rng(7), 1e6
    names = ("laplace_p", "mil_hdbk_p", "change_point_p", "lewis_robinson_p", "change_point_p_corrected")

    def rejected(power):
        found = []
        for _ in range(80):
            begun = rng.random(rng.poisson(200)) ** power * total
            events = np.repeat(begun, rng.geometric(0.4, begun.size))
            at = np.sort(np.clip(events + 10 * rng.random(events.size), 1, total))
            found.append([growth(at, total)[name] < 0.05 for name in names])
        return dict(zip(names, np.mean(found, axis=0), strict=True))

    constant, worse = rejected(1), rejected(0.5)
    assert min(constant[name] for name in names[:3]) > 0.2 and max(constant[name] for name in names[3:]) < 0.12
    assert min(worse[name] for name in names) > 0.95


def test_mean_cumulative_of_all_watched_throughout():
    """Nelson's variance but for n / (n - 1): that of the numbers of events of the units."""
    times, units = np.array([3, 5, 5, 8, 9, 9]), np.array([0, 1, 2, 1, 1, 3])
    n, watch = 5, np.full(5, 10)
    found = mean_cumulative(times, units, 0 * watch, watch, np.arange(n), 2000)
    assert found["time_s"].tolist() == [3, 5, 8, 9] and found["at_risk"].tolist() == [5] * 4
    for place, time in enumerate(found["time_s"]):
        numbers = np.bincount(units[times <= time], minlength=n)
        se = np.sqrt(((numbers - numbers.mean()) ** 2).sum()) / n
        assert found["mcf"][place] == pytest.approx(numbers.mean())
        ends = numbers.mean() * np.exp(np.array([-1, 1]) * stats.norm.ppf(0.975) * se / numbers.mean())
        assert (found["ci_low"][place], found["ci_high"][place]) == pytest.approx(tuple(ends))


def test_mean_cumulative_with_staggered_watches_by_its_formula():
    rng = np.random.default_rng(3)
    begin = np.array([0, 0, 20, 35, 0, 60, 5])
    end = np.array([100, 30, 100, 80, 50, 100, 90])
    owner = np.array([0, 1, 2, 3, 4, 4, 5])
    rows = [(w, t) for w in range(7) for t in rng.integers(begin[w] + 1, end[w] + 1, 4)]
    times, units = np.array([t for _, t in rows]), np.array([owner[w] for w, _ in rows])
    found = mean_cumulative(times, units, begin, end, owner, 2000)
    at = np.unique(times)
    watched = np.array([[((begin < t) & (t <= end) & (owner == unit)).any() for t in at] for unit in range(6)])
    own = np.array([[((times == t) & (units == unit)).sum() for t in at] for unit in range(6)])
    at_risk, events = watched.sum(0), own.sum(0)
    moved = np.cumsum(watched / at_risk * (own - events / at_risk), axis=1)
    se = np.sqrt((moved**2).sum(0))
    assert found["mcf"] == pytest.approx(np.cumsum(events / at_risk))
    assert found["ci_high"] == pytest.approx(found["mcf"] * np.exp(stats.norm.ppf(0.975) * se / found["mcf"]))
    few = mean_cumulative(times, units, begin, end, owner, 5)
    assert few["time_s"].size == 5 and set(few["ci_low"]) <= set(found["ci_low"])


def test_faults_are_records_that_neither_go_on_nor_repeat():
    _, records, _ = made({"a": [(10, 20), (20, 30), (25, 28), (25, 40), (40, 40)], "b": [(5, None), (9, 12)]}, 100)
    assert faults(records).select("unit_id", "start_s").rows() == [("a", 10), ("a", 25), ("b", 5), ("b", 9)]


def test_a_fleet_that_grows_is_not_taken_for_one_that_fails_more():
    """Four units, then forty, each with an outage every 10 s."""
    old, new = (
        {f"{kind}{n}": range(first + n % 10 + 1, 401, 10) for n in range(many)} for kind, many, first in _FLEETS
    )
    intervals = {unit: [(at, at + 1) for at in times] for unit, times in (old | new).items()}
    _, records, exposure = made(intervals, 400)
    exposure = exposure.with_columns(from_s=pl.when(pl.col("unit_id").is_in([*new])).then(200).otherwise("from_s"))
    tables = analyse_growth(records, exposure.with_columns(group=pl.col("unit_id").str.slice(0, 1)))
    GROWTH.check(tables["growth"])
    MCF.check(tables["mcf"])
    every, *groups = tables["growth"].iter_rows(named=True)
    assert every["n"] == 4 * 40 + 36 * 20 and every["beta"] == pytest.approx(1, abs=0.03)
    assert [row["stratum"] for row in groups] == ["n", "o"]
    last = tables["mcf"].filter(pl.col("stratum_by") == "all").row(-1, named=True)
    assert last["at_risk"] == 40 and last["mcf"] == pytest.approx(40, rel=0.02)


_FLEETS = (("o", 4, 0), ("n", 36, 200))


def test_few_faults_have_reasons():
    _, records, exposure = made({"a": [(10, 20)], "b": []}, 100)
    tables = analyse_growth(records, exposure)
    for name, contract in (("growth", GROWTH), ("mcf", MCF)):
        contract.check(tables[name])
    assert tables["growth"]["reason"].to_list() == ["fewer than 3 events: no trend"]
    assert "fewer than 4 units" in tables["mcf"]["reason"][0]
    none = analyse_growth(records.clear(), exposure)
    assert none["growth"]["n"].to_list() == [0] and none["mcf"].height == 0


@pytest.mark.parametrize("n", [5, 20, 500])
def test_the_p_of_the_point_of_change_is_close_to_the_exact_one(n):
    rng = np.random.default_rng(n)
    for power in (1, 1.3, 1.6):
        at = np.sort(rng.random(n)) ** power
        exact = stats.kstest(at, "uniform").pvalue
        assert growth(at, 1)["change_point_p"] == pytest.approx(exact, abs=0.005 if exact < 0.2 else 0.02)


def in_weeks(rng, rate, bursts=1.0, growth=1.0):
    """A stratum: faults in weeks of these rates, each of a burst of so many on average; growth: its power of time."""
    weeks = len(rate)
    begun = [week + rng.random(n) for week, n in enumerate(rng.poisson(rate))]
    at = (np.concatenate(begun) / weeks) ** (1 / growth)
    at = np.sort(np.clip(np.repeat(at, rng.geometric(1 / bursts, at.size)), 1e-9, 1))
    return Stratum(at, np.minimum((at * weeks).astype(np.int64), weeks - 1), np.arange(weeks + 1) / weeks)


def test_the_growth_that_groups_have_in_common_is_none_where_the_later_ones_fail_less():
    """Two constant rates, of old units and of new ones that fail a twentieth as often: together they seem better."""
    rng, day = np.random.default_rng(2), 86_400
    old = {f"o{n}": [(int(t), int(t) + 1) for t in np.sort(rng.integers(1, 700 * day, 60))] for n in range(8)}
    new = {f"n{n}": [(int(t), int(t) + 1) for t in np.sort(rng.integers(350 * day, 700 * day, 4))] for n in range(80)}
    _, records, exposure = made(old | new, 700 * day)
    group = pl.col("unit_id").str.slice(0, 1)
    exposure = exposure.with_columns(group=group, from_s=pl.when(group == "n").then(350 * day).otherwise("from_s"))
    every = analyse_growth(records, exposure)["growth"].row(0, named=True)
    assert every["ci_high"] < 0.75 and every["lewis_robinson_p"] < 0.001
    assert every["beta_within_ci_low"] < 1 < every["beta_within_ci_high"] and every["beta_within"] == pytest.approx(
        1, abs=0.1
    )
    assert (every["trend"], every["strata"]) == ("none", 2) and every["homogeneity_p"] > 0.05


@pytest.mark.parametrize(("bursts", "exact"), [(3, 0.75), (10, 0.5)])
def test_the_interval_of_growth_holds_when_faults_come_in_bursts(bursts, exact):
    """The exact one holds in 60% and 35%."""
    rng, held, known = np.random.default_rng(bursts), [], 0
    for _ in range(150):
        stratum = in_weeks(rng, np.full(52, 6.0), bursts)
        within, alone = common_growth([stratum]), growth(stratum.at, 1.0)
        if "ci_low" in within:
            known += 1
            held.append([one["ci_low"] <= 1 <= one["ci_high"] for one in (within, alone)])
    by_blocks, by_poisson = np.mean(held, axis=0)
    assert by_blocks > 0.92 and by_poisson < exact and known > 130


def test_a_rate_that_drifts_is_no_trend_and_a_trend_is_one():
    """Weekly rates of log SD 0.5: Lewis and Robinson's test rejects a third of those without any trend."""
    rng = np.random.default_rng(5)

    def rejected(growth_of):
        found = []
        for _ in range(150):
            stratum = in_weeks(rng, 20 * np.exp(0.5 * rng.normal(size=52)), growth=growth_of)
            found.append(
                [common_growth([stratum])["trend_p"] < 0.05, growth(stratum.at, 1.0)["lewis_robinson_p"] < 0.05]
            )
        return np.mean(found, axis=0)

    by_blocks, by_gaps = rejected(1)
    assert by_blocks < 0.08 and by_gaps > 0.2
    assert rejected(1.6)[0] > 0.9


def test_groups_of_different_growth_differ_and_have_no_common_trend():
    rng, rate = np.random.default_rng(6), np.full(104, 10.0)
    strata = [in_weeks(rng, rate, 2, growth) for growth in (0.5, 0.5, 2, 2)]
    found = common_growth(strata)
    assert found["homogeneity_p"] < 0.001 and found["strata"] == 4
    assert common_growth([in_weeks(rng, rate, 2) for _ in range(4)])["homogeneity_p"] > 0.05


def test_the_common_growth_is_that_of_the_likelihood():
    """N / sum ln(1 / u), and without bursts or drift the spread of independent faults: beta over the root of N."""
    rng = np.random.default_rng(7)
    strata = [in_weeks(rng, np.full(400, 5.0), growth=1.3) for _ in range(3)]
    at = np.concatenate([stratum.at for stratum in strata])
    found = common_growth(strata)
    assert found["beta"] == pytest.approx(at.size / np.log(1 / at).sum())
    width = np.log(found["ci_high"] / found["ci_low"]) / (2 * stats.t.ppf(0.975, found["effective_blocks"] - 1))
    assert width == pytest.approx(1 / np.sqrt(at.size), rel=0.25)


def test_few_weeks_tell_no_trend():
    _, records, exposure = made({unit: [(10 * n, 10 * n + 1) for n in range(1, 50)] for unit in "abcd"}, 20 * 86_400)
    row = analyse_growth(records, exposure)["growth"].row(0, named=True)
    assert row["beta"] is not None and row["trend"] is None and "blocks of time" in row["reason"]
