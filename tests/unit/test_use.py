"""GPU and host use by the minute: against the same counted reading by reading."""

import numpy as np
import polars as pl
import pytest
from given_tables import one_row as row
from hypothesis import given, settings
from hypothesis import strategies as st
from ttf.analyses.queue.measure_use import GPU_USE, HOST_USE
from ttf.analyses.queue.measure_use.compute import PERCENTS, VALUES, gpu_use_by_kind, host_use, summarise_readings

HELD = {
    "owner": pl.Int64,
    "attempt": pl.Int64,
    "machine": pl.String,
    "gpu": pl.Int64,
    "start_s": pl.Int64,
    "end_s": pl.Int64,
    "outcome": pl.String,
    "gpus": pl.Int64,
    "servers": pl.Int64,
}
GPU_UTIL = {"time_s": pl.Int64, "machine": pl.String} | {f"gpu{gpu}_mpct": pl.Int64 for gpu in range(8)}
CPU_UTIL = {"time_s": pl.Int64, "machine": pl.String, "cpu_mpct": pl.Int64}
MEM_UTIL = {"time_s": pl.Int64, "machine": pl.String, "mem_total_kb": pl.Int64, "mem_free_kb": pl.Int64}


def held(*rows):
    return pl.DataFrame(rows, schema=HELD, orient="row")


def gpu_util(*rows):
    """rows: minute, machine, readings in % of its GPUs from the first on."""
    filled = [
        (minute * 60, machine, *(None if value is None else round(value * 1000) for value in values), *[None] * 8)[:10]
        for minute, machine, *values in rows
    ]
    return pl.LazyFrame(filled, schema=GPU_UTIL, orient="row")


@given(st.lists(st.integers(0, VALUES - 1), max_size=50))
def test_percentiles_of_counts_are_numpys(readings):
    use = summarise_readings(np.bincount(np.array(readings, dtype=np.int64), minlength=VALUES))
    assert use["n"] == len(readings)
    if readings:
        shares = np.array(readings) / 100_000
        assert use["mean_share"] == pytest.approx(shares.mean(), rel=1e-12)
        assert use["zero_share"] == pytest.approx((shares == 0).mean(), rel=1e-12)
        for percent in PERCENTS:
            assert use[f"p{percent}_share"] == pytest.approx(np.percentile(shares, percent), rel=1e-12)
    else:
        assert use == {"n": 0}


# A job of 1 GPU, and one of 8 whose two attempts are on 1 server and on 2; minutes 0 to 3 of m1 and m2 are measured.
JOBS = held(
    (0, 0, "m1", 0, 59, 121, "success", 1, 1),  # minutes 0, 1, 2
    (1, 0, "m1", 1, 0, 60, "failure", 8, 1),  # minute 0
    (1, 1, "m1", 1, 120, 240, "failure", 8, 2),  # minutes 2, 3
    (1, 1, "m2", 0, 120, 240, "failure", 8, 2),
    (2, 0, "m9", 0, 0, 600, "cancelled", 2, 1),  # no telemetry
)
READINGS = gpu_util(
    *(
        (minute, "m1", first, second)
        for minute, first, second in [(0, 10, 0), (1, 20, 50), (2, 60, None), (3, 99, 100)]
    ),
    *((minute, "m2", value) for minute, value in [(0, 7), (2, 30), (3, 0)]),
)


def test_use_by_size_outcome_and_servers():
    table = gpu_use_by_kind(JOBS, READINGS)
    one = row(table, job_gpus="1", outcome="success", servers=None)
    assert (one["jobs"], one["n"], one["mean_share"], one["p50_share"], one["zero_share"]) == (1, 3, 0.3, 0.2, 0)
    # Minute 0 on m1: 0; then 100 on m1 in minute 3 (blank in minute 2), 30 and 0 on m2.
    eight = row(table, job_gpus="8", outcome="all", servers=None)
    assert (eight["n"], eight["mean_share"], eight["zero_share"], eight["p75_share"]) == (4, 0.325, 0.5, 0.475)
    alone = row(table, job_gpus="8", dedicated=True)
    assert (alone["servers"], alone["n"], alone["mean_share"]) == (1, 1, 0)
    everything = row(table, job_gpus="all", outcome="all")
    assert (everything["jobs"], everything["n"], everything["held_gpu_minutes"]) == (2, 7, 3 + 5 + 10)
    assert everything["coverage_share"] == 7 / 18
    # The telemetry ends with minute 3: the last job held 4 of its 10 minutes within it.
    assert everything["coverage_in_span_share"] == 7 / 12
    assert row(table, job_gpus="all", outcome="cancelled")["reason"] == "no GPU of such a job has a reading"
    assert row(table, job_gpus="16", outcome="all", servers=4)["reason"] == "no such job held a GPU"
    assert table.schema == GPU_USE.schema


kinds = st.tuples(
    st.sampled_from(["success", "failure", "cancelled"]), st.sampled_from([1, 2, 8, 16]), st.integers(1, 9)
)
intervals = st.tuples(
    st.sampled_from(["m1", "m2", "m9"]), st.integers(0, 9), st.integers(0, 600), st.integers(0, 300), kinds
)
readings = st.tuples(
    st.integers(0, 10), st.sampled_from(["m1", "m2", "m3"]), *[st.none() | st.integers(0, 100) for _ in range(8)]
)


@given(st.lists(intervals, max_size=6), st.lists(readings, min_size=1, max_size=12), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_use_against_reading_by_reading_in_any_pieces(spans, rows, chunk):
    jobs = held(
        *(
            (owner, 0, machine, gpu, start, start + length, *kind)
            for owner, (machine, gpu, start, length, kind) in enumerate(spans)
        )
    )
    table = gpu_use_by_kind(jobs, gpu_util(*rows), chunk)

    def pool(chosen):
        found = []
        for machine, gpu, start, length, kind in spans:
            for minute, where, *values in rows:
                inside = length and start // 60 * 60 <= minute * 60 < start + length
                if inside and where == machine and gpu < 8 and values[gpu] is not None and chosen(*kind):
                    found.append(values[gpu] / 100)
        return found

    cases = [
        ({"job_gpus": "all", "outcome": "all"}, lambda *_: True),
        ({"job_gpus": "16", "outcome": "all", "servers": 4}, lambda _, gpus, servers: (gpus, servers) == (16, 4)),
        ({"job_gpus": "8", "dedicated": True}, lambda _, gpus, servers: (gpus, servers) == (8, 1)),
        (
            {"job_gpus": "8", "outcome": "failure", "servers": None},
            lambda outcome, gpus, _: (outcome, gpus) == ("failure", 8),
        ),
    ]
    for where, chosen in cases:
        found, expected = row(table, **where), pool(chosen)
        assert found["n"] == len(expected)
        if expected:
            assert found["mean_share"] == pytest.approx(np.mean(expected), abs=1e-12)
            assert found["p90_share"] == pytest.approx(np.percentile(expected, 90), abs=1e-12)


def test_many_intervals_at_once_are_looked_up_in_pieces(monkeypatch):
    whole = gpu_use_by_kind(JOBS, READINGS)
    monkeypatch.setattr("ttf.analyses.queue.measure_use.compute._READINGS_AT_ONCE", 2)
    assert gpu_use_by_kind(JOBS, READINGS).equals(whole)


def cpu_util(*rows):
    return pl.LazyFrame([(60 * minute, *rest) for minute, *rest in rows], schema=CPU_UTIL, orient="row")


def mem_util(*rows):
    return pl.LazyFrame([(60 * minute, *rest) for minute, *rest in rows], schema=MEM_UTIL, orient="row")


def test_hosts_with_and_without_idle_machines():
    cpu = cpu_util(
        (0, "m1", 10_000), (4, "m1", 2000), (3, "m2", 30_000), (0, "m7", 0), (0, "m2", 200_000), (1, "m1", None)
    )
    memory = mem_util((0, "m1", 3000, 1000), (0, "m7", 1000, 1000), (0, "m1", 5, 6), (0, "m2", None, 4))
    table = host_use(JOBS, cpu, memory)
    everyone, busy = (row(table, resource="cpu", machine_minutes=name) for name in ("all", "held"))
    assert (everyone["n"], everyone["mean_share"], everyone["p50_share"], everyone["out_of_range"]) == (
        4,
        0.105,
        0.06,
        1,
    )
    # Minute 4 of m1 comes after the last attempt there has ended; minute 0 of m2 before the first.
    assert (busy["n"], busy["mean_share"], busy["out_of_range"]) == (2, 0.2, 0)
    # 2,000 of 3,000 kB; a machine with more free than it has is left out.
    used = row(table, resource="memory", machine_minutes="held")
    assert (used["n"], used["mean_share"], used["out_of_range"]) == (1, 0.66667, 1)
    assert row(table, resource="memory", machine_minutes="all")["mean_share"] == 0.333335
    assert table.schema == HOST_USE.schema


@given(st.lists(intervals, max_size=6), st.lists(readings, min_size=1, max_size=12), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_busy_minutes_against_one_by_one(spans, rows, chunk):
    jobs = held(*((0, 0, machine, gpu, start, start + length, *kind) for machine, gpu, start, length, kind in spans))
    table = host_use(jobs, cpu_util(*((minute, machine, 1000) for minute, machine, *_ in rows)), None, chunk)
    busy = sum(
        any(
            machine == where and gpu < 8 and length and start // 60 * 60 <= 60 * minute < start + length
            for machine, gpu, start, length, _ in spans
        )
        for minute, where, *_ in rows
    )
    assert row(table, resource="cpu", machine_minutes="all")["n"] == len(rows)
    assert row(table, resource="cpu", machine_minutes="held")["n"] == busy
    assert row(table, resource="memory")["reason"] == "the trace has no telemetry of it"
