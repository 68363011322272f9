"""Simulated outages: exponential ones give the formulas, resampled weeks give the trace back."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outage_traces import DAY, made
from scipy import stats
from ttf.analyses.shared.outages import outage_simulation
from ttf.analyses.shared.outages.outage_simulation import (
    Drawn,
    Exponential,
    batches,
    block_shortfalls,
    blocks_of,
    observed_times,
    renewals,
    resampled,
    shortfalls,
    time_down,
    times_of,
    up_at_begin,
)
from ttf.analyses.shared.outages.units_down import course_of, spans_of

UP, REPAIR = 9 * DAY, DAY


def shares(spans, replicates, horizon):
    return time_down(spans, replicates, horizon) / (replicates * horizon)


@pytest.mark.parametrize("repair", [Exponential(REPAIR), Drawn(np.array([0.1, 0.1, 2.8]) * DAY)], ids=["exp", "drawn"])
def test_independent_units_are_binomial_at_any_moment_whatever_their_repair_times(repair):
    units, replicates, horizon = 20, 4000, 30 * DAY
    spans = renewals(np.random.default_rng(1), units, replicates, horizon, Exponential(UP), repair)
    expected = stats.binom.pmf(np.arange(8), units, 0.1)
    assert shares(spans, replicates, horizon)[:8] == pytest.approx(expected, abs=0.004)
    # From the first moment on: stationary, so that the first hour is like the last.
    spans = renewals(np.random.default_rng(2), units, replicates, 3600, Exponential(UP), repair)
    assert shares(spans, replicates, 3600)[:8] == pytest.approx(expected, abs=0.02)


def test_the_number_of_outages_of_a_stationary_renewal_process_is_the_time_over_the_cycle():
    rng, replicates, horizon = np.random.default_rng(3), 3000, 50 * DAY
    up = Drawn(np.quantile(rng.weibull(0.6, 10_000), (np.arange(500) + 0.5) / 500) * 5 * DAY)
    spans = renewals(rng, 10, replicates, horizon, up, Exponential(REPAIR))
    began = (spans[0] % horizon > 0).sum() / (10 * replicates)
    assert began == pytest.approx(horizon / (up.mean + REPAIR), rel=0.01)
    # Up at a random moment, and for so long after it: the integrated tail over the mean (Cox 1962).
    for days in (1, 5):
        residual = up.draw_residual(np.random.default_rng(4), 200_000) > days * DAY
        assert residual.mean() == pytest.approx(up.left_longer(days * DAY), abs=0.005)


def test_exponential_units_are_never_short_as_the_birth_and_death_chain_says():
    from scipy.linalg import expm

    units, spares, horizon, replicates = 12, 3, 10 * DAY, 20_000
    fails, repaired = 1 / UP, 1 / REPAIR
    chain = np.zeros((spares + 1, spares + 1))
    for down in range(spares + 1):
        chain[down, down] = -(units - down) * fails - down * repaired
        if down < spares:
            chain[down, down + 1] = (units - down) * fails
        if down:
            chain[down, down - 1] = down * repaired
    never = stats.binom.pmf(np.arange(spares + 1), units, 0.1) @ expm(chain * horizon).sum(axis=1)
    spans = renewals(np.random.default_rng(6), units, replicates, horizon, Exponential(UP), Exponential(REPAIR))
    simulated = shortfalls(spans, spares, replicates, horizon)[0] == 0
    error = np.sqrt(never * (1 - never) / replicates)
    assert abs(simulated.mean() - never) < 4 * error


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 30)), max_size=20), st.integers(0, 3))
def test_every_second_counts(rows, spares):
    replicate = np.array([row[0] for row in rows], np.int64)
    start, end = (np.array([limit(row[1:]) for row in rows], np.int64) for limit in (min, max))
    spans = 30 * replicate + start, 30 * replicate + end
    down = np.array([[((replicate == r) & (start <= s) & (s < end)).sum() for s in range(30)] for r in range(3)])
    assert time_down(spans, 3, 30).tolist() == np.bincount(down.ravel()).tolist()
    short_s, lacking_s = shortfalls(spans, spares, 3, 30)
    assert short_s.tolist() == (down > spares).sum(axis=1).tolist()
    assert lacking_s.tolist() == np.maximum(down - spares, 0).sum(axis=1).tolist()


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 25)), max_size=20),
    st.integers(1, 4),
    st.integers(0, 2),
    st.sampled_from([7, 10, 25]),
)
def test_resampled_blocks_count_every_second_of_the_units_they_take(rows, taken, spares, horizon):
    """Six blocks of 10 s of four units: all in each, but for the last two, which the fourth unit leaves."""
    intervals = {unit: sorted((at, at + lasts) for who, at, lasts in rows if who == n) for n, unit in enumerate("abcd")}
    outages, *_, exposure = made(intervals, 60)
    exposure = exposure.with_columns(until_s=pl.when(unit_id="d").then(40).otherwise("until_s"))
    spans = spans_of(outages, exposure)
    blocks = blocks_of(spans, exposure, 10)
    is_down = np.zeros((4, 60), bool)
    for unit, start, end in spans.select("unit", "start_s", "end_s").iter_rows():
        is_down[unit, start:end] = True
    rng, each = np.random.default_rng(5), -(-horizon // 10)
    picked = rng.integers(4 if taken == 4 else 6, size=(50, each))
    order = rng.permuted(np.tile(np.arange(4), (50, 1)), axis=1)
    down = np.zeros((50, 10 * each), np.int64)
    for run in range(50):
        for nth, block in enumerate(picked[run]):
            there = [unit for unit in np.argsort(order[run]) if blocks.watched[block, unit]][:taken]
            down[run, 10 * nth : 10 * nth + 10] = is_down[there, 10 * block : 10 * block + 10].sum(axis=0)
    lacking = np.maximum(down[:, :horizon] - spares, 0)
    drawn = resampled(np.random.default_rng(5), blocks, taken, 50, horizon)
    short_s, lacking_s = block_shortfalls(drawn, blocks, spares, 50)
    assert short_s.tolist() == (lacking > 0).sum(axis=1).tolist()
    assert lacking_s.tolist() == lacking.sum(axis=1).tolist()


def weekly_trace(weeks=6):
    """Five units: a, b and c are down together on a day of each week, longer from week to week; e leaves early."""
    week = 7 * DAY
    together = [(week * n + DAY, week * n + DAY + (n + 1) * 3600) for n in range(weeks)]
    over = [(week - 3600, week + 3600)]
    outages, *_, exposure = made({"a": together, "b": together, "c": together, "d": over, "e": []}, weeks * week)
    last = pl.when(unit_id="e").then((weeks - 1) * week).otherwise("until_s")
    return outages, exposure.with_columns(until_s=last)


def test_resampled_weeks_of_all_units_keep_what_fails_together():
    outages, exposure = weekly_trace()
    spans = spans_of(outages, exposure)
    blocks = blocks_of(spans, exposure, 7 * DAY)
    assert blocks.units.tolist() == [5, 5, 5, 5, 5, 4]
    # d is down over the end of a week: a part in each, of which the second did not begin there.
    d = blocks.unit == 3
    assert [each[d].tolist() for each in (blocks.at_s, blocks.step, blocks.began)] == [
        [7 * DAY - 3600, 7 * DAY, 0, 3600],
        [1, -1, 1, -1],
        [True, False, False, False],
    ]
    drawn = resampled(np.random.default_rng(1), blocks, 4, 4000, 35 * DAY)
    _, down_s = block_shortfalls(drawn, blocks, 0, 4000)
    # Four of five units in a week of five, all four in the last: what is down is 4/5 of the whole, or all of it.
    whole = [3 * (n + 1) * 3600 for n in range(6)]
    whole[0] += 3600
    whole[1] += 3600
    assert down_s.mean() == pytest.approx((0.8 * sum(whole[:5]) + whole[5]) / 6 * 5, rel=0.02)
    up = up_at_begin(blocks)
    assert up.watched[1].tolist() == [True, True, True, False, True]


def test_resampled_weeks_give_the_distribution_of_the_trace_back():
    outages, exposure = weekly_trace()
    exposure = exposure.with_columns(until_s=42 * DAY)
    spans = spans_of(outages, exposure)
    blocks, time = blocks_of(spans, exposure, 7 * DAY), course_of(spans, exposure).time_down()
    for spares, more in enumerate(np.cumsum(time[::-1])[-2::-1]):
        drawn = resampled(np.random.default_rng(1), blocks, 5, 3000, 42 * DAY)
        short_s, _ = block_shortfalls(drawn, blocks, spares, 3000)
        assert short_s.mean() == pytest.approx(more, rel=0.03)


def test_times_keep_the_share_down_of_the_trace_and_its_failures():
    rng = np.random.default_rng(8)
    intervals = {}
    for unit in range(60):
        at, mine = 0.0, []
        while (at := at + rng.exponential((5 if unit % 3 else 50) * DAY)) < 100 * DAY:
            mine.append((int(at), int(at := at + rng.lognormal(9, 1))))
        intervals[f"u{unit}"] = mine
    outages, *_, exposure = made(intervals, 100 * DAY)
    spans = spans_of(outages, exposure)
    up, repair = times_of(spans, exposure)
    course, began = course_of(spans, exposure), spans["inside"].sum()
    assert repair.mean / (up.mean + repair.mean) == pytest.approx(course.down_share, rel=1e-9)
    assert (up.mean + repair.mean) * began == pytest.approx(60 * 100 * DAY, rel=1e-9)


def test_observed_times_are_kaplan_and_meiers_with_an_exponential_rest():
    rng = np.random.default_rng(9)
    times, limit = rng.exponential(DAY, 4000), 1.5 * DAY
    found = observed_times(np.minimum(times, limit), times <= limit, DAY)
    for share in (0.2, 0.5, 0.9, 0.99):
        assert np.quantile(found.values, share) == pytest.approx(-DAY * np.log(1 - share), rel=0.08)
    assert observed_times(np.array([5.0]), np.array([True]), 7.0) == Exponential(7.0)


def test_batches_add_up(monkeypatch):
    monkeypatch.setattr(outage_simulation, "MOST_UNITS", 10)
    assert [*batches(3, 8)] == [3, 3, 2]
    assert [*batches(100, 2)] == [1, 1]
