"""Units that fail and are repaired: against closed forms, SciPy, and the example of a textbook."""

import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import one_row as at
from outage_traces import DAY, make_outages
from scipy import stats
from ttf.analyses.outages.measure_availability import AVAILABILITY, OUTAGE_CAUSES
from ttf.analyses.outages.measure_availability.compute import availability, causes
from ttf.stats.clustered import Clusters
from ttf.stats.durations.renewal import exponential_availability, mttr_limits, repair_times


@pytest.mark.parametrize(("up", "down", "n", "low", "high"), [(999, 1, 1, 0.9624, 1), (9990, 10, 10, 0.9975, 0.9996)])
def test_trivedis_examples(up, down, n, low, high):
    assert exponential_availability(up, down, n) == pytest.approx((low, high), abs=5e-5)


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=40))
def test_repair_times_are_those_of_scipy(times):
    seconds, ended = np.array([time for time, _ in times]), np.array([done for _, done in times])
    repair = repair_times(seconds, ended)
    if not (ended.any() or seconds.any()):
        assert set(repair) == {"n", "open", "reasons"}, "nobody wrote an end, or saw one last"
        return
    curve = stats.ecdf(stats.CensoredData(uncensored=seconds[ended], right=seconds[~ended])).sf
    down = np.concatenate(([1.0], curve.probabilities))
    edges = np.concatenate(([0.0], curve.quantiles, [seconds.max()]))
    assert repair["restricted_mean_s"] == pytest.approx((down * np.diff(edges)).sum())
    assert repair["open"] == (~ended).sum()
    longest = sorted(seconds)[len(seconds) - len(seconds) // 10 :]
    assert repair.get("longest_share", 0) == pytest.approx(sum(longest) / max(sum(seconds), 1))
    for name, share in (("median_s", 0.5), ("p90_s", 0.1)):
        below = curve.quantiles[curve.probabilities < share - 1e-9]
        if name in repair and below.size:
            assert repair[name] <= below[0]
    if ended.all():
        assert repair["median_s"] == np.median(seconds)


def test_the_spread_of_a_mean_is_that_of_the_units():
    """Of one outage each: the classical interval of a mean of n values, but for the scale and n / (n - 1)."""
    down, ones = np.array([10.0, 30, 20, 50, 40, 25]), np.ones(6)
    clusters = Clusters(np.zeros(6, np.int64), ones, 1)
    influence = down / down.sum() - 1 / 6
    se = np.sqrt((influence**2).sum()) / (1 - 1 / 6)
    assert se == pytest.approx(down.std(ddof=1) / np.sqrt(6) / down.mean() * np.sqrt(6 / 5))
    degrees = (influence**2).sum() ** 2 / (influence**4).sum()
    half_width = stats.t.ppf(0.975, degrees) * se
    spread = clusters.spread(influence, ones / 6, by_influence=True)
    assert spread.half_width(0.95) == pytest.approx([half_width])
    low, high, _ = mttr_limits(clusters, down, ones)
    assert (low[0], high[0]) == pytest.approx((down.mean() * np.exp(-half_width), down.mean() * np.exp(half_width)))


def compute(intervals, until_s=100, **columns):
    outages, records, exposure = make_outages(intervals, until_s, **columns)
    table = availability(outages, records, exposure, 7)
    AVAILABILITY.check(table)
    return table


def test_a_few_units_by_hand():
    """Units of 100 s: outages of 10 and 20 s, an open one from 90 s on, none, and one beyond the end."""
    row = at(compute({"a": [(10, 20), (40, 60)], "b": [(90, None)], "c": [], "d": [(95, 130)], "e": []}), stratum="all")
    assert (row["units"], row["exposure_s"], row["down_s"], row["outages"], row["repairs"]) == (5, 500, 45, 4, 2)
    assert (row["mtbf_s"], row["mttf_s"], row["mttr_s"]) == (125, 455 / 4, 22.5)
    assert row["availability"] == 1 - 45 / 500
    low, high = stats.chi2.ppf([0.025, 0.975], [8, 10]) / 2
    assert (row["mtbf_ci_low_s"], row["mtbf_ci_high_s"]) == pytest.approx((500 / high, 500 / low))
    # Repairs of 10, 20 and 35 s, and one censored at 10 s.
    assert (row["repair_median_s"], row["repair_p90_s"], row["open"]) == (20, 35, 1)
    assert row["records_per_1000_unit_days"] == pytest.approx(4 / (500 / (1000 * DAY)))


def test_outages_open_at_the_start_of_the_record():
    """As in three systems of LANL, an outage open at the start counts as time down and is reported."""
    row = at(
        compute({"a": [(0, 30), (50, 60)], "b": [(-20, 10)], "c": [(40, 44), (90, None)], "d": [(-9, 0)]}),
        stratum="all",
    )
    assert (row["outages"], row["under_way"], row["repairs"], row["down_s"]) == (3, 2, 4, 30 + 10 + 10 + 4 + 10)
    assert row["availability"] == 1 - 64 / 400 and row["mttr_s"] == 64 / 4
    # Repairs of 4 and 10 s, and one censored at 10 s.
    assert (row["repair_median_s"], row["open"]) == (10, 1)


def test_what_cannot_be_estimated_is_blank_with_a_reason():
    no_outages = at(compute({"a": [], "b": []}), stratum="all")
    assert no_outages["mtbf_s"] is None and no_outages["mtbf_ci_low_s"] == pytest.approx(200 / -np.log(0.05))
    assert no_outages["availability"] == 1 and no_outages["availability_ci_low"] is None
    assert "lower bounds only" in no_outages["reason"]
    single = at(compute({"a": [(10, 20), (40, 50)]}), stratum="all")
    assert single["availability_method"] == "exponential up and down times"
    assert single["mttr_ci_low_s"] is single["mtbf_ci_low_clustered_s"] is None and "fewer than 4" in single["reason"]
    open_ = at(compute({"a": [(100, None)], "b": []}), stratum="all")
    assert open_["availability"] is None and "no outage is seen to last" in open_["reason"]
    down = at(compute({"a": [(0, 100)], "b": [(-5, 200)]}), stratum="all")
    assert (down["outages"], down["availability"]) == (0, 0) and "never up" in down["reason"]
    brief = at(compute({name: [(10, 10)] for name in "abcde"}), stratum="all")
    assert (brief["mttr_s"], brief["availability"]) == (0, 1) and "second of its start" in brief["reason"]


def test_without_exposure_repairs_alone():
    outages, records, _ = make_outages({name: [(10, 20 + at), (40, 60)] for at, name in enumerate("abcdef")}, 100)
    row = at(availability(outages, records, None, 7), stratum="all")
    filled = {name for name, value in row.items() if value is not None}
    assert filled.isdisjoint({"units", "exposure_s", "mtbf_s", "availability", "records_per_1000_unit_days"})
    assert row["mttr_s"] == pytest.approx((6 * 30 + 15) / 12) and row["mttr_ci_low_s"] < row["mttr_s"]
    assert "no one knows how many units" in row["reason"]


def test_strata_divide_units_or_outages():
    outages, records, exposure = make_outages({"a": [(10, 20), (40, 60)], "b": [(30, 60)], "c": []}, 100)
    exposure = exposure.with_columns(group=pl.Series(["x", "x", "y"]))
    level, planned = pl.Series(["hardware", None, "software"]), pl.Series([False, True, False])
    outages, records = (frame.with_columns(level=level, planned=planned) for frame in (outages, records))
    table = availability(outages, records, exposure, 7)
    sums = table.select("stratum_by", "stratum", "units", "exposure_s", "down_s", "outages", "records").rows()
    assert sums == [
        ("all", "all", 3, 300, 60, 3, 3),
        ("group", "x", 2, 200, 60, 3, 3),
        ("group", "y", 1, 100, 0, 0, 0),
        ("planned", "planned", 3, 300, 20, 1, 1),
        ("planned", "unplanned", 3, 300, 40, 2, 2),
        ("level", "hardware", 3, 300, 10, 1, 1),
        ("level", "software", 3, 300, 30, 1, 1),
    ]


def test_causes_at_their_depths():
    outages, records, _ = make_outages({"a": [(10, 20), (15, 30), (40, None)], "b": [(30, 60)]}, 100)
    words = {"level": ["H", "S", "H", None], "class": ["GPU", "OS", None, None], "cause": ["xid", "kernel", None, None]}
    table = causes(outages, records.with_columns(**{name: pl.Series(values) for name, values in words.items()}))
    OUTAGE_CAUSES.check(table)
    rows = table.select("depth", "level", "class", "cause", "events", "repair_mean_s").rows()
    assert rows[:4] == [
        ("all", None, None, None, 4, 115 / 3),
        ("level", "H", None, None, 2, 70),
        ("level", "S", None, None, 1, 15),
        ("level", None, None, None, 1, 30),
    ]
    assert table.group_by("depth", maintain_order=True).agg(pl.col("share").sum())["share"].to_list() == [1, 1, 1, 1]
    assert causes(outages.clear(), records.clear()).height == 0
    brief = causes(*make_outages({"a": [(10, 10)]}, 100)[:2]).row(0, named=True)
    assert (brief["downtime_share"], brief["repair_mean_s"], brief["reason"]) == (None, 0, "no record lasts")


SIMULATED = runpy.run_path(str(Path(__file__).parents[2] / "tools/docs" / "coverage_outages.py"))


@pytest.mark.parametrize("fleet", ["repairs of log SD 2", "repairs of log SD 1.5, nodes differ"])
def test_the_intervals_cover(fleet):
    """Run docs/coverage.md with few repetitions."""
    repetitions = 200
    differ = "differ" in fleet
    between, repair, up = SIMULATED["coverage"](SIMULATED["FLEETS"][fleet], repetitions, 1)
    for _, robust, converged in (between, repair, up):
        assert converged > 0.98
        assert robust > 0.95 - 4 * np.sqrt(0.95 * 0.05 / repetitions)
    garwood, ended_repairs = between[0], repair[0]
    assert garwood < 0.85 if differ else garwood > 0.92
    assert ended_repairs < 0.93
