"""Units down at once and their spares, against closed forms and a count of each second."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outage_analyses import Frames, compute_tables, render_analysis
from outage_traces import DAY, make_outages
from scipy import stats
from ttf.analyses.outages.size_spares.compute import TOO_RARE, block_length_s, spares_limits
from ttf.stats.outages.outage_simulation import ALWAYS_DOWN, NOT_WATCHED, Empirical, Exponential, simulate_renewals
from ttf.stats.outages.units_down import (
    binomial_cdf,
    binomial_cumulative,
    build_course,
    count_extra_spares,
    list_spans,
    smallest_sufficient,
)


def size_spares(folder, outages, exposure):
    return compute_tables(
        "size_spares", Frames({"outages": outages, "exposure": exposure}, seed=1, block_days=7, sizes=[]), folder
    )


@pytest.mark.parametrize("units", [1, 7, 400])
@pytest.mark.parametrize("down_share", [0.001, 0.02, 0.4])
def test_binomials_are_those_of_scipy(units, down_share):
    down = np.arange(units + 3)
    assert binomial_cdf(down, units, down_share) == pytest.approx(stats.binom.cdf(down, units, down_share), abs=1e-12)
    for share in (0.9, 0.95, 0.99, 0.999):
        s = count_extra_spares(units, down_share, share)
        assert stats.binom.cdf(s, units + s, down_share) >= share - 1e-12
        assert s == 0 or stats.binom.cdf(s - 1, units + s - 1, down_share) < share


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 60), st.integers(0, 20)), max_size=12),
    st.tuples(st.integers(0, 10), st.integers(20, 60)),
    st.integers(1, 17),
)
def test_the_sweep_counts_every_second(rows, window, block):
    intervals = {unit: [(a, a + n) for name, a, n in rows if name == unit] for unit in "abc"}
    outages, *_, exposure = make_outages(intervals, 50)
    exposure = exposure.with_columns(from_s=pl.when(unit_id="c").then(window[0]).otherwise("from_s"))
    exposure = exposure.with_columns(until_s=pl.when(unit_id="c").then(window[1]).otherwise("until_s"))
    course = build_course(list_spans(outages, exposure), exposure)
    spans = {unit: (start, until) for unit, start, until in exposure.select("unit_id", "from_s", "until_s").rows()}
    seconds = [
        (
            sum(start <= s < until for start, until in spans.values()),
            sum(spans[unit][0] <= s < spans[unit][1] and any(a <= s < b for a, b in intervals[unit]) for unit in spans),
        )
        for s in range(60)
    ]
    counted = [pair for pair in seconds if pair[0]]
    assert np.repeat(course.watched, course.length_s).tolist() == [watched for watched, _ in counted]
    assert np.repeat(course.down, course.length_s).tolist() == [down for _, down in counted]
    assert course.time_down().tolist() == np.bincount([down for _, down in counted]).tolist()
    time_by_block = course.time_down_by(block)
    assert time_by_block.sum(axis=0).tolist() == course.time_down().tolist()
    assert time_by_block.sum(axis=1)[:-1].tolist() == [block] * (len(time_by_block) - 1)


def test_a_fleet_that_grows_has_a_mixture_of_binomials():
    outages, *_, exposure = make_outages({"a": [(10, 30)], "b": [(60, 70)], "c": [], "d": []}, 100)
    exposure = exposure.with_columns(from_s=pl.when(unit_id="d").then(50).otherwise("from_s"))
    course = build_course(list_spans(outages, exposure), exposure)
    assert course.units == 3.5
    assert course.down_share == pytest.approx(30 / 350)
    mixture = sum(stats.binom.cdf(np.arange(5), units, 30 / 350) / 2 for units in (3, 4))
    assert binomial_cumulative(course, 4) == pytest.approx(mixture, abs=1e-12)


def test_units_that_fail_together_need_more_spares_than_the_binomial(tmp_path):
    """Ten of 40 units fail together on one day in twenty, so 10 are down for 5% of the time."""
    joint = [(20 * DAY * n + DAY, 20 * DAY * n + 2 * DAY) for n in range(10)]
    outages, *_, exposure = make_outages({f"u{n:02}": joint if n < 10 else [] for n in range(40)}, 200 * DAY)
    tables = size_spares(tmp_path, outages, exposure)
    down = tables["units_down"].filter(pl.col("time_s") > 0)
    assert down.select("down", "time_share").rows() == [(0, 0.95), (10, 0.05)]
    row_by_share = {row["p"]: row for row in tables["spares"].iter_rows(named=True)}
    assert [row_by_share[p]["spares_observed"] for p in (0.9, 0.95, 0.99)] == [0, 0, 10]
    for p, row in row_by_share.items():
        assert row["spares_binomial"] == stats.binom.ppf(p, 40, 0.0125)
        assert row["short_share"] == pytest.approx(0.05)
        assert (row["n"], row["units"], row["block_s"], row["blocks"]) == (100, 40, 7 * DAY, 29)
        if p > 0.95:
            # The tail has two days or less, and a block is a week.
            assert row["observed_low"] is None and row["reason"] == TOO_RARE.format(7)
        else:
            assert row["observed_low"] <= row["spares_observed"] <= row["observed_high"] and row["reason"] is None
    metrics, text, charts = render_analysis("size_spares", tables)
    assert "At most 10 of 40 were down at once" in text
    assert metrics["spares.p99_9.observed"] == 10
    assert charts["units_down"].caption.endswith("40 nodes watched.")


def test_groups_and_planned_outages_have_rows_of_their_own(tmp_path):
    outages, _, exposure = make_outages({"a": [(10, 20)], "b": [(10, 30)]}, 100)
    group = pl.col("unit_id").replace_strict({"a": "x", "b": "y"})
    outages = outages.with_columns(planned=pl.col("unit_id") == "b")
    tables = size_spares(tmp_path, outages, exposure.with_columns(group=group))
    selected = tables["spares"].filter(p=0.99).select("stratum_by", "stratum", "outages", "n", "spares_observed")
    assert selected.rows() == [
        ("all", "all", "all", 2, 2),
        ("all", "all", "unplanned", 1, 1),
        ("group", "x", "all", 1, 1),
        ("group", "y", "all", 1, 1),
        ("group", "y", "unplanned", 0, 0),
    ]


@pytest.mark.parametrize(
    ("intervals", "until", "reason"),
    [
        ({"a": []}, 0, NOT_WATCHED),
        ({"a": [(0, 10 * DAY)]}, 10 * DAY, ALWAYS_DOWN),
    ],
)
def test_missing_spares_have_a_reason(tmp_path, intervals, until, reason):
    tables = size_spares(tmp_path, *(make_outages(intervals, until)[i] for i in (0, 2)))
    assert tables["spares"]["reason"].str.contains(reason, literal=True).all()
    _, text, _ = render_analysis("size_spares", tables)
    assert reason in text


def test_one_spare_is_not_lost_to_rounding():
    assert smallest_sufficient(np.array([0.3, 0.3 + 0.6, 1.0]), 0.9) == 1


def test_blocks_are_a_multiple_of_the_mean_outage():
    """A block is four mean outages, or four mean residual outages if a few are long."""
    hours, days = np.full(100, 3600), np.full(100, 4 * DAY)
    assert [block_length_s(down, 100) for down in (0 * hours, hours, days)] == [0, 4 * 3600, 16 * DAY]
    tails = np.append(hours, 100 * 3600)
    assert block_length_s(100 * tails, 101) == 4 * 100 * (100 + 100**2) * 3600 // 400


@pytest.mark.parametrize(
    ("units", "days", "repair", "sigma", "p"),
    [(100, 182, 0.5, 0, 0.95), (400, 349, 5.55, 0.8, 0.9), (400, 349, 5.55, 2, 0.9)],
)
def test_the_interval_covers_the_spares_of_independent_units_or_is_blank(units, days, repair, sigma, p):
    """The binomial gives the true number. With long tails (the third case) resampled weeks covered it half the time."""
    times = np.exp(sigma * stats.norm.ppf((np.arange(4096) + 0.5) / 4096))
    down, up = (
        Empirical(times * repair * DAY / times.mean()) if sigma else Exponential(repair * DAY),
        Exponential(40 * repair * DAY),
    )
    exposure = pl.DataFrame({"from_s": [0] * units, "until_s": [days * DAY] * units})
    truth, interval_count, covered_count, rng = stats.binom.ppf(p, units, 1 / 41), 0, 0, np.random.default_rng(1)
    for _ in range(40):
        start_s, end_s, _ = simulate_renewals(rng, units, 1, days * DAY, up, down)
        length_s = max(7 * DAY, block_length_s(end_s - start_s, np.count_nonzero(start_s)))
        if (1 - p) * days * DAY >= length_s:
            course = build_course(pl.DataFrame({"start_s": start_s, "end_s": end_s}), exposure)
            low, high = spares_limits(course.time_down_by(length_s), p)
            interval_count, covered_count = interval_count + 1, covered_count + (low <= truth <= high)
    assert interval_count == 0 if sigma == 2 else interval_count > 36 and covered_count >= 0.9 * interval_count
