"""GPU and host use by the minute, against a count of single readings."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import one_row as select_row
from ttf.analyses.queue.measure_use import GPU_USE, HOST_USE
from ttf.analyses.queue.measure_use.compute import (
    PERCENTS,
    VALUES,
    gpu_use_by_kind,
    host_use,
    summarise_readings,
)

ALLOCATIONS = {
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


def allocate(*rows):
    return pl.DataFrame(rows, schema=ALLOCATIONS, orient="row")


def make_gpu_util(*rows):
    """Make readings of (minute, machine, use in % of its first GPUs)."""
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
JOBS = allocate(
    (0, 0, "m1", 0, 59, 121, "success", 1, 1),  # minutes 0, 1, 2
    (1, 0, "m1", 1, 0, 60, "failure", 8, 1),  # minute 0
    (1, 1, "m1", 1, 120, 240, "failure", 8, 2),  # minutes 2, 3
    (1, 1, "m2", 0, 120, 240, "failure", 8, 2),
    (2, 0, "m9", 0, 0, 600, "cancelled", 2, 1),  # no telemetry
)
READINGS = make_gpu_util(
    *(
        (minute, "m1", first, second)
        for minute, first, second in [(0, 10, 0), (1, 20, 50), (2, 60, None), (3, 99, 100)]
    ),
    *((minute, "m2", value) for minute, value in [(0, 7), (2, 30), (3, 0)]),
)


def test_use_by_size_outcome_and_servers():
    table = gpu_use_by_kind(JOBS, READINGS)
    # Minute 0 on m1: 0; then 100 on m1 in minute 3 (blank in minute 2), 30 and 0 on m2.
    row = select_row(table, job_gpus="8", outcome="all", servers=None)
    assert (row["n"], row["mean_share"], row["zero_share"], row["p75_share"]) == (4, 0.325, 0.5, 0.475)
    assert select_row(table, job_gpus="8", dedicated=True)["servers"] == 1
    total = select_row(table, job_gpus="all", outcome="all")
    assert (total["jobs"], total["n"]) == (2, 7)
    assert total["coverage_share"] == 7 / 18
    # The telemetry ends with minute 3, so it covers 4 of the 10 minutes of the last job.
    assert total["coverage_in_span_share"] == 7 / 12
    assert select_row(table, job_gpus="all", outcome="cancelled")["reason"] == "no GPU of such a job has a reading"
    assert select_row(table, job_gpus="16", outcome="all", servers=4)["reason"] == "no such job held a GPU"
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
def test_use_in_any_chunks_equals_a_count_of_readings(spans, rows, chunk):
    jobs = allocate(
        *(
            (owner, 0, machine, gpu, start, start + length, *kind)
            for owner, (machine, gpu, start, length, kind) in enumerate(spans)
        )
    )
    table = gpu_use_by_kind(jobs, make_gpu_util(*rows), chunk)

    def pool(match):
        values_used = []
        for machine, gpu, start, length, kind in spans:
            for minute, reading_machine, *values in rows:
                is_busy = length and start // 60 * 60 <= minute * 60 < start + length
                if is_busy and reading_machine == machine and gpu < 8 and values[gpu] is not None and match(*kind):
                    values_used.append(values[gpu] / 100)
        return values_used

    cases = [
        ({"job_gpus": "all", "outcome": "all"}, lambda *_: True),
        ({"job_gpus": "16", "outcome": "all", "servers": 4}, lambda _, gpus, servers: (gpus, servers) == (16, 4)),
        ({"job_gpus": "8", "dedicated": True}, lambda _, gpus, servers: (gpus, servers) == (8, 1)),
        (
            {"job_gpus": "8", "outcome": "failure", "servers": None},
            lambda outcome, gpus, _: (outcome, gpus) == ("failure", 8),
        ),
    ]
    for criteria, match in cases:
        summary, expected = select_row(table, **criteria), pool(match)
        assert summary["n"] == len(expected)
        if expected:
            assert summary["mean_share"] == pytest.approx(np.mean(expected), abs=1e-12)
            assert summary["p90_share"] == pytest.approx(np.percentile(expected, 90), abs=1e-12)
    # Of the hosts, each minute counts once, however many jobs held it.
    hosts = host_use(jobs, make_cpu_util(*((minute, machine, 1000) for minute, machine, *_ in rows)), None, chunk)
    is_busy = [
        any(
            machine == host and gpu < 8 and length and start // 60 * 60 <= 60 * minute < start + length
            for machine, gpu, start, length, _ in spans
        )
        for minute, host, *_ in rows
    ]
    assert select_row(hosts, resource="cpu", machine_minutes="all")["n"] == len(rows)
    assert select_row(hosts, resource="cpu", machine_minutes="held")["n"] == sum(is_busy)
    assert select_row(hosts, resource="memory")["reason"] == "the trace has no telemetry of it"


def test_pieces_of_intervals_change_nothing(monkeypatch):
    expected = gpu_use_by_kind(JOBS, READINGS)
    monkeypatch.setattr("ttf.analyses.queue.measure_use.compute._READINGS_AT_ONCE", 2)
    assert gpu_use_by_kind(JOBS, READINGS).equals(expected)


def make_cpu_util(*rows):
    return pl.LazyFrame([(60 * minute, *cells) for minute, *cells in rows], schema=CPU_UTIL, orient="row")


def make_mem_util(*rows):
    return pl.LazyFrame([(60 * minute, *cells) for minute, *cells in rows], schema=MEM_UTIL, orient="row")


def test_hosts_with_and_without_idle_machines():
    cpu = make_cpu_util(
        (0, "m1", 10_000), (4, "m1", 2000), (3, "m2", 30_000), (0, "m7", 0), (0, "m2", 200_000), (1, "m1", None)
    )
    memory = make_mem_util((0, "m1", 3000, 1000), (0, "m7", 1000, 1000), (0, "m1", 5, 6), (0, "m2", None, 4))
    table = host_use(JOBS, cpu, memory)
    hosts, busy_hosts = (select_row(table, resource="cpu", machine_minutes=name) for name in ("all", "held"))
    assert (hosts["n"], hosts["mean_share"], hosts["p50_share"]) == (4, 0.105, 0.06)
    # Minute 4 of m1 is after its last attempt, and minute 0 of m2 before its first.
    assert (busy_hosts["n"], busy_hosts["mean_share"]) == (2, 0.2)
    # 2,000 of 3,000 kB; a machine with more free than total memory is omitted.
    memory_use = select_row(table, resource="memory", machine_minutes="held")
    assert (memory_use["n"], memory_use["mean_share"]) == (1, 0.66667)
    assert select_row(table, resource="memory", machine_minutes="all")["mean_share"] == 0.333335
    assert table.schema == HOST_USE.schema
