"""Bursts and outages after a repair, against every pair compared, closed forms and histories without bursts."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outage_rooms import Frames, on_page, tables_of
from outage_traces import DAY, made
from ttf.analyses.outages.find_bursts.compute import DRIFTS, NO_OUTAGE, NOT_WATCHED, WINDOWS_S, Events, burst_rows
from ttf.analyses.shared.outages.nearness import (
    NEVER,
    by_chance,
    jittered,
    longest_chain,
    nearest,
    nearest_sorted,
    others_in_place,
    permuted,
    replicates,
    shifted,
)

EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-20, 20)), max_size=25)


def bursts_of(folder, outages, exposure=None, simulations=200):
    frames = {"outages": outages} | ({} if exposure is None else {"exposure": exposure})
    return tables_of("find_bursts", Frames(frames, seed=1, simulations=simulations, jitter_s=DAY // 2), folder)


def columns(rows):
    return np.array(rows, np.int64).reshape(-1, 3).T


@settings(max_examples=100)
@given(EVENTS, st.integers(0, 10))
def test_the_nearest_other_is_that_of_all_pairs(rows, window):
    place, member, time = columns(rows)
    gaps = [min((abs(t - u) for q, n, u in rows if q == p and n != m), default=NEVER) for p, m, t in rows]
    assert nearest(place, member, time).tolist() == gaps
    assert sorted(nearest_sorted(place, member, time)) == sorted(gaps)
    chains = {}
    for p, _, t in sorted(rows, key=lambda row: (row[0], row[2])):
        length, last = chains.get(p, ([], None))
        chains[p] = ([*length[:-1], length[-1] + 1] if last is not None and t - last <= window else [*length, 1], t)
    assert longest_chain(place, time, window) == max((max(c) for c, _ in chains.values()), default=0)


def test_what_does_not_fit_one_number_is_sorted_all_the_same():
    place, member, time = np.array([0, 1 << 20]), np.array([0, 1 << 20]), np.array([0, 1 << 40])
    assert nearest_sorted(place, member, time).tolist() == [NEVER, NEVER]


def test_by_chance_is_the_share_of_events_at_random():
    rng = np.random.default_rng(1)
    n, length, window = 8, 1000, 40
    times = rng.integers(0, length, (20_000, n))
    near = (np.abs(times[:, :1] - times[:, 1:]) <= window).any(axis=1).mean()
    ends = np.zeros(20_000, np.int64), np.full(20_000, length)
    chance = by_chance(np.full(20_000, n - 1), times[:, 0], *ends, window)
    assert chance.mean() == pytest.approx(near, abs=0.01)
    assert by_chance(np.array([3]), np.array([500]), np.array([0]), np.array([1000]), 2000).tolist() == [1]


def test_moved_times_keep_what_they_should():
    rng = np.random.default_rng(2)
    time, kind, member = rng.integers(0, 999, 60), np.repeat([0, 1], 30), np.repeat(np.arange(20), 3)
    (found,) = permuted(rng, time, kind, 1)
    assert sorted(found[:30]) == sorted(time[:30]) and sorted(found[30:]) == sorted(time[30:])
    assert found.tolist() != time.tolist()
    (found,) = shifted(rng, time, member, np.zeros(60, np.int64), np.full(60, 1000), 1)
    moved = (found - time) % 1000
    assert all(len(set(moved[member == one])) == 1 for one in range(20)) and len(set(moved)) > 1
    ends = np.zeros(60, np.int64), np.full(60, 1000)
    (found,) = jittered(rng, time, *ends, 20, 1)
    assert 0 < np.abs(found - time).max() <= 20 and found.min() >= 0 and found.max() <= 1000
    assert others_in_place(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 2])).tolist() == [1, 1, 2, 0]
    assert [replicates(n, 1000) for n in (10, 100_000, 10_000_000)] == [1000, 25, 20]


def a_fleet(rng, together: float, units=60, days=400, rate=0.02):
    """Units that fail at random; a share of their outages together with all others of the rack."""
    intervals = {f"u{unit:02}": [] for unit in range(units)}
    for unit in intervals:
        for start in rng.integers(1, days * DAY, rng.poisson(rate * days * (1 - together))):
            intervals[unit].append((int(start), int(start) + 3600))
    for rack in range(units // 10):
        for start in rng.integers(1, days * DAY, rng.poisson(rate * days * together)):
            for unit in range(10 * rack, 10 * rack + 10):
                intervals[f"u{unit:02}"].append((int(start) + unit, int(start) + unit + 3600))
    outages, *_, exposure = made(intervals, days * DAY)
    rack = pl.format("r{}", pl.col("unit_id").str.slice(1, 1))
    return outages.with_columns(rack=rack), exposure.with_columns(rack=rack)


def test_a_fleet_without_bursts_has_the_shares_of_chance(tmp_path):
    given = bursts_of(tmp_path, *a_fleet(np.random.default_rng(3), 0))
    for row in given["bursts"].filter(pl.col("within").is_in(["rack", "fleet"])).iter_rows(named=True):
        assert row["share"] == pytest.approx(row["null_uniform"], abs=0.05)
        for null in ("permuted", "shifted", "jittered"):
            if row[f"null_{null}"] is not None:
                assert row[f"null_{null}_low"] - 0.02 <= row["share"] <= row[f"null_{null}_high"] + 0.02
    daily = given["outage_counts"].row(1, named=True)
    assert daily["dispersion"] == pytest.approx(1, abs=0.25)
    for row in given["again_after_repair"].iter_rows(named=True):
        assert row["ci_low_clustered"] is None or row["ci_low_clustered"] < row["expected_own"]
        assert row["expected_own"] == pytest.approx(row["expected_fleet"], rel=0.15)


def test_racks_that_fail_together_are_found(tmp_path):
    given = bursts_of(tmp_path, *a_fleet(np.random.default_rng(4), 0.5))
    rack = given["bursts"].row(by_predicate=(pl.col("within") == "rack") & (pl.col("window_s") == 60), named=True)
    # Exchanged times are as near each other, and mostly of other racks.
    assert rack["share"] > 0.45 > rack["null_permuted_high"]
    assert rack["ci_low_clustered"] < rack["share"] < rack["ci_high_clustered"]
    assert rack["null_shifted_high"] < 0.05 and rack["is_burst"]
    assert rack["chance"] == max(rack[f"null_{null}"] for null in ("permuted", "shifted", "jittered"))
    assert rack["longest_chain"] == 10
    fleet = given["bursts"].filter(within="fleet", window_s=60).row(0, named=True)
    assert fleet["null_permuted"] is None and "exchanged" in fleet["reason"]
    m, text, charts = on_page("find_bursts", given)
    assert m["bursts.rack.30_min.share"] >= rack["share"]
    assert charts["bursts"].empty is None
    assert "of repairs, the unit had another outage within a day" in text


@pytest.mark.parametrize("spread", [0.5, 0.0])
def test_a_rate_that_drifts_is_no_burst(spread):
    """400 nodes over 26 weeks whose rates differ by log SD 0.5: against shifted histories alone a third were bursts."""
    rng, weeks, found = np.random.default_rng(8), 26, []
    for _ in range(60):
        rates = 20 * np.exp(spread * rng.normal(size=weeks) - spread**2 / 2)
        time = np.concatenate([(n + rng.random(k)) * 7 * DAY for n, k in enumerate(rng.poisson(rates))])
        time = np.sort(time).astype(np.int64)
        node, watched = rng.integers(0, 400, time.size), np.full(time.size, weeks * 7 * DAY)
        events = Events(0 * time, node, 0 * time, time, 0 * time, watched)
        rows = list(burst_rows("fleet", events, rng, 60, DAY // 2))
        found.append(
            [[row["share"] > row["null_shifted_high"], row["is_burst"]] for row in rows if row["window_s"] < DAY]
        )
        assert [row["is_burst"] is None and DRIFTS in row["reason"] for row in rows] == [w >= DAY for w in WINDOWS_S]
    by_shifting, by_all = np.mean(found, axis=0).T
    assert by_all.max() <= 0.07
    if spread:
        assert by_shifting[WINDOWS_S.index(3600)] > 0.25


def test_units_with_rates_of_their_own_fail_again_as_their_own_rate_says(tmp_path):
    """Without any memory: the fleet's rate is too low, the own one, less the outage repaired, is right on average."""
    rng, days = np.random.default_rng(5), 2000
    intervals = {}
    for unit in range(150):
        at, mine, mean = 0.0, [], (20 if unit % 3 == 0 else 400) * DAY
        while (at := at + rng.exponential(mean)) < days * DAY:
            mine.append((int(at), int(at) + 600))
            at += 600
        intervals[f"u{unit}"] = mine
    given = bursts_of(tmp_path, *(made(intervals, days * DAY)[i] for i in (0, 2)), simulations=2)
    week = given["again_after_repair"].filter(within_s=7 * DAY).row(0, named=True)
    assert week["observed"] == pytest.approx(week["expected_own"], rel=0.06)
    assert week["expected_fleet"] < 0.6 * week["observed"]


def test_only_repairs_that_were_watched_for_so_long_count(tmp_path):
    outages, _, exposure = made({"a": [(DAY, DAY + 100), (DAY + 600, DAY + 900)], "b": [(5, None)]}, 2 * DAY)
    given = bursts_of(tmp_path, outages, exposure, 2)
    found = given["again_after_repair"].select("within_s", "repairs", "again", "observed").rows()
    assert found == [(3600, 2, 1, 0.5), (DAY, 0, 0, None), (7 * DAY, 0, 0, None)]
    hour = given["again_after_repair"].row(0, named=True)
    up = 2 * DAY - 400
    assert hour["expected_own"] == pytest.approx(3600 / up)
    assert hour["expected_fleet"] == pytest.approx(1 - np.exp(-3600 * 3 / (up + 5)))


@pytest.mark.parametrize("planned", [True, False])
def test_what_cannot_be_given_says_why(tmp_path, planned):
    outages, *_ = made({"a": [(5, 9)]}, 100)
    given = bursts_of(tmp_path, outages.with_columns(planned=pl.lit(planned)), None, 2)
    assert given["again_after_repair"]["reason"].to_list() == [NOT_WATCHED] * 3
    assert (given["bursts"]["reason"] == NO_OUTAGE).all() == planned
    on_page("find_bursts", given)
