"""Simulated outages: exponential ones give the formulas, resampled weeks give the trace back."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outage_traces import DAY, made
from scipy import stats
from ttf.outages import simulate
from ttf.outages.down import course_of, spans_of
from ttf.outages.simulate import (
    Drawn,
    Exponential,
    Spans,
    batches,
    blocks_of,
    observed_times,
    paths_of,
    renewals,
    resampled,
    times_of,
    up_at_begin,
)

UP, REPAIR = 9 * DAY, DAY


def shares(paths):
    time = paths.time_down()
    return time / time.sum()


@pytest.mark.parametrize("repair", [Exponential(REPAIR), Drawn(np.array([0.1, 0.1, 2.8]) * DAY)], ids=["exp", "drawn"])
def test_independent_units_are_binomial_at_any_moment_whatever_their_repair_times(repair):
    units, replicates, horizon = 20, 4000, 30 * DAY
    paths = paths_of(
        renewals(np.random.default_rng(1), units, replicates, horizon, Exponential(UP), repair), replicates, horizon
    )
    expected = stats.binom.pmf(np.arange(8), units, 0.1)
    assert shares(paths)[:8] == pytest.approx(expected, abs=0.004)
    # From the first moment on: stationary, so that the first hour is like the last.
    spans = renewals(np.random.default_rng(2), units, replicates, 3600, Exponential(UP), repair)
    assert shares(paths_of(spans, replicates, 3600))[:8] == pytest.approx(expected, abs=0.02)


def test_the_number_of_outages_of_a_stationary_renewal_process_is_the_time_over_the_cycle():
    rng, replicates, horizon = np.random.default_rng(3), 3000, 50 * DAY
    up = Drawn(np.quantile(rng.weibull(0.6, 10_000), (np.arange(500) + 0.5) / 500) * 5 * DAY)
    spans = renewals(rng, 10, replicates, horizon, up, Exponential(REPAIR))
    began = spans.began.sum() / (10 * replicates)
    assert began == pytest.approx(horizon / (up.mean + REPAIR), rel=0.01)
    # Up at a random moment, and for so long after it: the integrated tail over the mean (Cox 1962).
    for days in (1, 5):
        left = up.left(np.random.default_rng(4), 200_000) > days * DAY
        assert left.mean() == pytest.approx(up.left_longer(days * DAY), abs=0.005)


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
    simulated = paths_of(spans, replicates, horizon).of_replicates(spares, units - spares)["never_short"]
    error = np.sqrt(never * (1 - never) / replicates)
    assert abs(simulated.mean() - never) < 4 * error


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 30)), max_size=20), st.integers(0, 3))
def test_paths_count_every_second(rows, spares):
    replicate = np.array(sorted(row[0] for row in rows), np.int64)
    start = np.array([min(row[1:]) for row in sorted(rows)], np.int64)
    end = np.array([max(row[1:]) for row in sorted(rows)], np.int64)
    paths = paths_of(Spans(replicate, start, end, np.ones(len(rows), bool)), 3, 30)
    down = np.array([[((replicate == r) & (start <= s) & (s < end)).sum() for s in range(30)] for r in range(3)])
    assert paths.time_down().tolist() == np.bincount(down.ravel()).tolist()
    fares = paths.of_replicates(spares, 5)
    assert fares["never_short"].tolist() == (down.max(axis=1) <= spares).tolist()
    assert fares["full"].tolist() == pytest.approx((down <= spares).mean(axis=1))
    assert fares["capacity"].tolist() == pytest.approx(1 - np.maximum(down - spares, 0).mean(axis=1) / 5)


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
    assert blocks.number == 6
    assert blocks.watched.sum(axis=1).tolist() == [5, 5, 5, 5, 5, 4]
    # d is down over the end of a week: a part in each, of which the second did not begin there.
    assert [
        (s, e, b) for u, s, e, b in zip(blocks.unit, blocks.start_s, blocks.end_s, blocks.began, strict=True) if u == 3
    ] == [
        (7 * DAY - 3600, 7 * DAY, True),
        (0, 3600, False),
    ]
    horizon, replicates = 35 * DAY, 4000
    drawn = resampled(np.random.default_rng(1), blocks, 4, replicates, horizon)
    paths = paths_of(drawn, replicates, horizon)
    assert paths.time_down().size == 4
    # Four of five units in a week of five, all four in the last: what is down is 4/5 of the whole, or all of it.
    whole = [3 * (n + 1) * 3600 for n in range(6)]
    whole[0] += 3600
    whole[1] += 3600
    expected = (0.8 * sum(whole[:5]) + whole[5]) / 6 * 5
    found = (paths.time_down() * np.arange(4)).sum() / replicates
    assert found == pytest.approx(expected, rel=0.02)
    up = up_at_begin(blocks)
    assert up.watched[1].tolist() == [True, True, True, False, True]


def test_resampled_weeks_give_the_distribution_of_the_trace_back():
    outages, exposure = weekly_trace()
    exposure = exposure.with_columns(until_s=42 * DAY)
    spans = spans_of(outages, exposure)
    drawn = resampled(np.random.default_rng(1), blocks_of(spans, exposure, 7 * DAY), 5, 3000, 42 * DAY)
    time = course_of(spans, exposure).time_down()
    assert shares(paths_of(drawn, 3000, 42 * DAY)) == pytest.approx(time / time.sum(), rel=0.03)


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
    monkeypatch.setattr(simulate, "MOST_UNITS", 10)
    assert [*batches(3, 8)] == [3, 3, 2]
    assert [*batches(100, 2)] == [1, 1]
