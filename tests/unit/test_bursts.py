"""Bursts and repeated outages agree with comparing all pairs, closed forms and histories without bursts."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outage_analyses import Frames, compute_tables, render_analysis
from outage_traces import DAY, make_outages
from ttf.analyses.outages.find_bursts.compute import (
    DRIFTS,
    NO_OUTAGE,
    NOT_WATCHED,
    WINDOWS_S,
    Events,
    _null_range,
    burst_rows,
)
from ttf.stats.outages.nearness import (
    NEVER,
    jitter_times,
    longest_chain,
    nearest_gaps,
    permute_times,
    replicate_count,
    shift_times,
    sorted_nearest_gaps,
)

EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-20, 20)), max_size=25)


def bursts_of(folder, outages, exposure=None, simulations=60):
    frames = {"outages": outages} | ({} if exposure is None else {"exposure": exposure})
    return compute_tables("find_bursts", Frames(frames, seed=1, simulations=simulations, jitter_s=DAY // 2), folder)


def event_arrays(rows):
    return np.array(rows, np.int64).reshape(-1, 3).T


@given(EVENTS, st.integers(0, 10))
def test_the_nearest_event_is_that_of_all_pairs(rows, window):
    group, member, time = event_arrays(rows)
    gaps = [min((abs(t - u) for q, n, u in rows if q == p and n != m), default=NEVER) for p, m, t in rows]
    assert nearest_gaps(group, member, time).tolist() == gaps
    assert sorted(sorted_nearest_gaps(group, member, time)) == sorted(gaps)
    chains = {}
    for p, _, t in sorted(rows, key=lambda row: (row[0], row[2])):
        length, prev = chains.get(p, ([], None))
        chains[p] = ([*length[:-1], length[-1] + 1] if prev is not None and t - prev <= window else [*length, 1], t)
    assert longest_chain(group, time, window) == max((max(c) for c, _ in chains.values()), default=0)


def test_simulated_times_keep_their_invariants():
    rng = np.random.default_rng(2)
    time, group, member = rng.integers(0, 999, 60), np.repeat([0, 1], 30), np.repeat(np.arange(20), 3)
    (simulated,) = permute_times(rng, time, group, 1)
    assert sorted(simulated[:30]) == sorted(time[:30]) and simulated.tolist() != time.tolist()
    (simulated,) = shift_times(rng, time, member, np.zeros(60, np.int64), np.full(60, 1000), 1)
    shifts = (simulated - time) % 1000
    assert all(len(set(shifts[member == unit])) == 1 for unit in range(20)) and len(set(shifts)) > 1
    bounds = np.zeros(60, np.int64), np.full(60, 1000)
    (simulated,) = jitter_times(rng, time, *bounds, 20, 1)
    assert 0 < np.abs(simulated - time).max() <= 20 and simulated.min() >= 0 and simulated.max() <= 1000
    assert [replicate_count(n, 1000) for n in (10, 10_000_000)] == [1000, 20]


def make_fleet(rng, shared_fraction: float, units=60, days=400, rate=0.02):
    """Units that fail at random. A share of their outages hits the whole rack at once."""
    intervals = {f"u{unit:02}": [] for unit in range(units)}
    for unit_intervals in intervals.values():
        for start in rng.integers(1, days * DAY, rng.poisson(rate * days * (1 - shared_fraction))):
            unit_intervals.append((int(start), int(start) + 3600))
    for rack in range(units // 10):
        for start in rng.integers(1, days * DAY, rng.poisson(rate * days * shared_fraction)):
            for unit in range(10 * rack, 10 * rack + 10):
                intervals[f"u{unit:02}"].append((int(start) + unit, int(start) + unit + 3600))
    outages, *_, exposure = make_outages(intervals, days * DAY)
    rack = pl.format("r{}", pl.col("unit_id").str.slice(1, 1))
    return outages.with_columns(rack=rack), exposure.with_columns(rack=rack)


def test_racks_that_fail_together_are_found(tmp_path):
    tables = bursts_of(tmp_path, *make_fleet(np.random.default_rng(4), 0.5))
    rack = tables["bursts"].row(by_predicate=(pl.col("location") == "rack") & (pl.col("window_s") == 60), named=True)
    # Permuted times are as close to each other, but mostly in different racks.
    assert rack["share"] > 0.45 > rack["chance"]
    assert rack["ci_low_clustered"] < rack["share"] < rack["ci_high_clustered"]
    assert rack["is_burst"]
    assert rack["longest_chain"] == 10
    fleet = tables["bursts"].filter(location="fleet", window_s=60).row(0, named=True)
    assert "exchanged" in fleet["reason"]
    m, text, charts = render_analysis("find_bursts", tables)
    assert m["bursts.rack.30_min.share"] >= rack["share"]
    assert charts["bursts"].empty is None
    assert "of repairs, the unit had another outage within a day" in text


@pytest.mark.parametrize("spread", [0.5, 0.0])
def test_a_rate_that_drifts_is_no_burst(spread):
    """400 nodes, 26 weekly rates with log SD 0.5. The shifted null alone finds bursts in a third of histories."""
    rng, weeks, rejections = np.random.default_rng(8), 26, []
    for _ in range(40):
        rates = 20 * np.exp(spread * rng.normal(size=weeks) - spread**2 / 2)
        time = np.concatenate([(n + rng.random(k)) * 7 * DAY for n, k in enumerate(rng.poisson(rates))])
        time = np.sort(time).astype(np.int64)
        node, observed_s = rng.integers(0, 400, time.size), np.full(time.size, weeks * 7 * DAY)
        events = Events(0 * time, node, 0 * time, time, 0 * time, observed_s)
        rows = list(burst_rows("fleet", events, rng, 40, DAY // 2))
        shifted = shift_times(np.random.default_rng(9), time, node, events.from_s, observed_s, 40)
        _, highs = _null_range(events.location, node, shifted)
        pairs = [[row["share"] > high, row["is_burst"]] for row, high in zip(rows, highs, strict=True)]
        rejections.append([pair for pair in pairs if pair[1] is not None])
        assert [row["is_burst"] is None and DRIFTS in row["reason"] for row in rows] == [w >= DAY for w in WINDOWS_S]
    shifted_rate, burst_rate = np.mean(rejections, axis=0).T
    assert burst_rate.max() <= 0.07
    if spread:
        assert shifted_rate[WINDOWS_S.index(3600)] > 0.25


def test_only_repairs_observed_long_enough_count(tmp_path):
    outages, _, exposure = make_outages({"a": [(DAY, DAY + 100), (DAY + 600, DAY + 900)], "b": [(5, None)]}, 2 * DAY)
    tables = bursts_of(tmp_path, outages, exposure, 2)
    rows = tables["again_after_repair"].select("within_s", "repairs", "again", "observed").rows()
    assert rows == [(3600, 2, 1, 0.5), (DAY, 0, 0, None), (7 * DAY, 0, 0, None)]
    hour = tables["again_after_repair"].row(0, named=True)
    uptime_s = 2 * DAY - 400
    assert hour["expected_own"] == pytest.approx(3600 / uptime_s)
    assert hour["expected_fleet"] == pytest.approx(1 - np.exp(-3600 * 3 / (uptime_s + 5)))


@pytest.mark.parametrize("planned", [True, False])
def test_blank_results_have_a_reason(tmp_path, planned):
    outages, *_ = make_outages({"a": [(5, 9)]}, 100, rack=pl.lit("r"))
    tables = bursts_of(tmp_path, outages.with_columns(planned=pl.lit(planned)), None, 2)
    assert tables["again_after_repair"]["reason"].to_list() == [NOT_WATCHED] * 3
    assert (tables["bursts"]["reason"] == NO_OUTAGE).all() == planned
    rack_reason = NO_OUTAGE if planned else "one rack only: that is the fleet"
    assert set(tables["bursts"].filter(location="rack")["reason"]) == {rack_reason}
    render_analysis("find_bursts", tables)
