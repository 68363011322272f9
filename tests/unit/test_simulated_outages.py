"""Simulated outages: exponential outages agree with formulas, resampled weeks with the trace."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outage_traces import DAY, make_outages
from scipy import stats
from ttf.stats.outages import outage_simulation
from ttf.stats.outages.outage_simulation import (
    Empirical,
    Exponential,
    batches,
    build_blocks,
    count_block_spares,
    count_renewal_spares,
    fit_distribution,
    fit_times,
    mean_down_time,
    resample_blocks,
    select_initially_up,
    simulate_renewals,
)
from ttf.stats.outages.units_down import build_course, list_spans

UP, REPAIR = 9 * DAY, DAY


def time_shares(spans, units, replicates, horizon):
    exposure = pl.DataFrame({"from_s": [0] * units, "until_s": [replicates * horizon] * units})
    course = build_course(pl.DataFrame({"start_s": spans[0], "end_s": spans[1]}), exposure)
    return course.time_down() / course.total_s


@pytest.mark.parametrize(
    "repair", [Exponential(REPAIR), Empirical(np.array([0.1, 0.1, 2.8]) * DAY)], ids=["exp", "drawn"]
)
def test_independent_units_are_binomial_at_any_moment_whatever_their_repair_times(repair):
    units, replicates, horizon = 20, 2000, 30 * DAY
    spans = simulate_renewals(np.random.default_rng(1), units, replicates, horizon, Exponential(UP), repair)
    expected = stats.binom.pmf(np.arange(8), units, 0.1)
    assert time_shares(spans, units, replicates, horizon)[:8] == pytest.approx(expected, abs=0.004)
    # The process is stationary from the start, so the first hour is like the last.
    spans = simulate_renewals(np.random.default_rng(2), units, replicates, 3600, Exponential(UP), repair)
    assert time_shares(spans, units, replicates, 3600)[:8] == pytest.approx(expected, abs=0.02)


def test_the_number_of_outages_of_a_stationary_renewal_process_is_the_time_over_the_cycle():
    rng, replicates, horizon = np.random.default_rng(3), 3000, 50 * DAY
    up = Empirical(np.quantile(rng.weibull(0.6, 10_000), (np.arange(500) + 0.5) / 500) * 5 * DAY)
    spans = simulate_renewals(rng, 10, replicates, horizon, up, Exponential(REPAIR))
    outages_per_unit = (spans[0] % horizon > 0).sum() / (10 * replicates)
    assert outages_per_unit == pytest.approx(horizon / (up.mean + REPAIR), rel=0.01)
    # A unit found up stays up so long with the integrated tail over the mean (Cox 1962).
    for days in (1, 5):
        is_longer = up.draw_residual(np.random.default_rng(4), 200_000) > days * DAY
        assert is_longer.mean() == pytest.approx(up.left_longer(days * DAY), abs=0.005)


def test_the_share_without_shortfall_equals_a_birth_and_death_chain():
    from scipy.linalg import expm

    units, spares, horizon, replicates = 12, 3, 10 * DAY, 10_000
    failure_rate, repair_rate = 1 / UP, 1 / REPAIR
    chain = np.zeros((spares + 1, spares + 1))
    for down in range(spares + 1):
        chain[down, down] = -(units - down) * failure_rate - down * repair_rate
        if down < spares:
            chain[down, down + 1] = (units - down) * failure_rate
        if down:
            chain[down, down - 1] = down * repair_rate
    never_short = stats.binom.pmf(np.arange(spares + 1), units, 0.1) @ expm(chain * horizon).sum(axis=1)
    distributions = Exponential(UP), Exponential(REPAIR)
    needed = count_renewal_spares(np.random.default_rng(6), units - spares, units, replicates, horizon, *distributions)
    is_never_short = needed <= spares
    error = np.sqrt(never_short * (1 - never_short) / replicates)
    assert abs(is_never_short.mean() - never_short) < 4 * error


def count_needed(is_down, nodes, most):
    """Return the fewest spares by seconds; is_down: (units in the order in which a run takes them, seconds)."""
    sufficient = (s for s in range(most + 1) if (is_down[: nodes + s].sum(axis=0) <= s).all())
    return next(sufficient, most + 1)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 25)), max_size=20),
    st.integers(1, 4),
    st.integers(0, 2),
    st.sampled_from([7, 10, 25]),
)
def test_resampled_blocks_count_every_second_of_the_units_they_take(rows, count, spares, horizon):
    """Four units have six blocks of 10 s; the fourth unit is not in the last two."""
    spares = min(spares, count - 1)
    nodes = count - spares
    intervals = {unit: sorted((t, t + d) for k, t, d in rows if k == n) for n, unit in enumerate("abcd")}
    outages, *_, exposure = make_outages(intervals, 60)
    exposure = exposure.with_columns(until_s=pl.when(unit_id="d").then(40).otherwise("until_s"))
    spans = list_spans(outages, exposure)
    blocks = build_blocks(spans, exposure, 10)
    is_down = np.zeros((4, 60), bool)
    for unit, start, end in spans.select("unit", "start_s", "end_s").iter_rows():
        is_down[unit, start:end] = True
    eligible, blocks_per_run = 4 if count == 4 else 6, -(-horizon // 10)
    sampled = np.random.default_rng(5).integers(eligible, size=(50, blocks_per_run))
    order = np.random.default_rng(6).permuted(np.tile(np.arange(4, dtype=np.int32), (50, 1)), axis=1)
    expected = []
    for run in range(50):
        parts = []
        for i, block in enumerate(sampled[run]):
            present = [unit for unit in np.argsort(order[run]) if blocks.watched[block, unit]]
            down = is_down[present, 10 * block : 10 * block + min(10, horizon - 10 * i)]
            parts.append(count_needed(down, nodes, spares))
        expected.append(max(parts))
    draws = resample_blocks(np.random.default_rng(5), blocks, count, order, horizon)
    assert count_block_spares(draws, blocks, nodes, spares, 50).tolist() == expected


@pytest.mark.parametrize("nodes", [1, 20, 150])
def test_the_shortage_of_a_state_is_hypergeometric(nodes):
    down = np.array([1, 7, 40, 90, 199, 200])
    for spares in (0, 1, 5, 50):
        taken = np.arange(nodes + spares + 1)
        p = stats.hypergeom.pmf(taken[:, None], 200, down, nodes + spares)
        for state in range(len(down)):
            time = outage_simulation.DownTime(np.array([200]), down[[state]], np.array([1.0]), 1)
            short, lacking = p[taken > spares, state].sum(), np.maximum(taken - spares, 0) @ p[:, state]
            assert time.shortage(nodes, spares) == pytest.approx((short, lacking), abs=1e-9)


def make_weekly_trace(weeks=6):
    """Make five units: a, b and c are down together once a week, each time longer; e leaves early."""
    week = 7 * DAY
    joint = [(week * n + DAY, week * n + DAY + (n + 1) * 3600) for n in range(weeks)]
    overlap = [(week - 3600, week + 3600)]
    outages, *_, exposure = make_outages({"a": joint, "b": joint, "c": joint, "d": overlap, "e": []}, weeks * week)
    until_s = pl.when(unit_id="e").then((weeks - 1) * week).otherwise("until_s")
    return outages, exposure.with_columns(until_s=until_s)


def test_resampled_weeks_preserve_joint_outages():
    outages, exposure = make_weekly_trace()
    spans = list_spans(outages, exposure)
    blocks = build_blocks(spans, exposure, 7 * DAY)
    assert blocks.units.tolist() == [5, 5, 5, 5, 5, 4]
    # d is down across the end of a week: the second part does not begin an outage.
    is_d = blocks.unit == 3
    assert [column[is_d].tolist() for column in (blocks.at_s, blocks.step, blocks.began)] == [
        [7 * DAY - 3600, 7 * DAY, 0, 3600],
        [1, -1, 1, -1],
        [True, False, False, False],
    ]
    # Drawing four of five units gives 4/5 of the time down; the last week has four units and gives all of it.
    down_h_by_week = [3 + 1, 6 + 1, 9, 12, 15, 18]
    _, missing = mean_down_time(blocks, 4, 35 * DAY).shortage(4, 0)
    assert missing * 35 * 24 == pytest.approx((0.8 * sum(down_h_by_week[:5]) + down_h_by_week[5]) / 6 * 5)
    up = select_initially_up(blocks)
    assert up.watched[1].tolist() == [True, True, True, False, True]


def test_times_keep_the_share_down_of_the_trace_and_its_failures():
    rng = np.random.default_rng(8)
    intervals = {}
    for unit in range(60):
        time_s, unit_intervals = 0.0, []
        while (time_s := time_s + rng.exponential((5 if unit % 3 else 50) * DAY)) < 100 * DAY:
            unit_intervals.append((int(time_s), int(time_s := time_s + rng.lognormal(9, 1))))
        intervals[f"u{unit}"] = unit_intervals
    outages, *_, exposure = make_outages(intervals, 100 * DAY)
    spans = list_spans(outages, exposure)
    up, repair = fit_times(spans, exposure)
    course, outage_count = build_course(spans, exposure), spans["inside"].sum()
    assert repair.mean / (up.mean + repair.mean) == pytest.approx(course.down_share, rel=1e-9)
    assert (up.mean + repair.mean) * outage_count == pytest.approx(60 * 100 * DAY, rel=1e-9)


def test_observed_times_are_kaplan_and_meiers_with_an_exponential_rest():
    rng = np.random.default_rng(9)
    times, limit = rng.exponential(DAY, 4000), 1.5 * DAY
    distribution = fit_distribution(np.minimum(times, limit), times <= limit, DAY)
    for share in (0.2, 0.5, 0.9, 0.99):
        assert np.quantile(distribution.values, share) == pytest.approx(-DAY * np.log(1 - share), rel=0.08)
    few, enough = (fit_distribution(np.arange(1, 12), np.arange(11) < n_ended, 7.0) for n_ended in (9, 10))
    assert few == Exponential(7.0) and isinstance(enough, Empirical)


def test_batches_add_up(monkeypatch):
    monkeypatch.setattr(outage_simulation, "MOST_UNITS", 10)
    assert [*batches(3, 8)] == [3, 3, 2]
    assert [*batches(100, 2)] == [1, 1]
