"""Workload: submissions, roles, users, gangs, requests, run times and waits by kind of job, and machine load."""

from collections import Counter
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import one_row as row
from ttf.analyses.queue.describe_workload import population
from ttf.analyses.queue.describe_workload.machine_load import QUANTITIES, machine_load
from ttf.analyses.queue.describe_workload.population import WEEKDAYS, submissions
from ttf.analyses.queue.describe_workload.workload import (
    PERCENTS,
    gpu_requests,
    percentiles,
    request_against_use,
    wait_share,
)

COLUMNS = {
    "task": pl.String,
    "user": pl.String,
    "outcome": pl.String,
    "submit_s": pl.Int64,
    "start_s": pl.Int64,
    "queue_s": pl.Int64,
    "runtime_s": pl.Int64,
    "trace_end_s": pl.Int64,
    "gpu_type": pl.String,
    "gpu_milli": pl.Int64,
    "cpu_milli": pl.Int64,
    "mem_mib": pl.Int64,
    "size": pl.Int64,
    "account": pl.String,
}


def jobs(*rows, names=("task", "user", "outcome", "queue_s", "runtime_s", "gpu_milli", "size"), **columns):
    frame = pl.DataFrame(rows, schema={name: COLUMNS[name] for name in names}, orient="row")
    blank = {name: pl.lit(None, dtype=kind) for name, kind in COLUMNS.items() if name not in names}
    return frame.with_columns(**(blank | columns)).select(*COLUMNS)


SIX_JOBS = jobs(
    ("worker", "a", "success", 10, 30, 1000, 2),
    ("worker", "a", "failure", 50, 20, 500, 1),
    ("ps", "a", "success", 0, 10, None, 1),
    ("worker", "b", "failure", 5, 40, 2000, 10),
    ("ps", "c", "running", 100, None, None, 1),
    (None, None, "waiting", None, None, 250, None),
)
KIND = ("outcome", "runtime_s", "queue_s", "gpu_type", "gpu_milli", "size", "account")
FIVE_JOBS = jobs(
    ("success", 10, 0, "A", 1000, 1, "x"),
    ("success", 20, 5, "A", 500, 3, "x"),  # 1.5 GPUs count as two
    ("failure", 30, None, "B", 8000, 2, "y"),
    ("cancelled", None, 7, None, None, 1, None),
    ("running", None, 9, "B", 200, 1, "y"),
    names=KIND,
)


# Submissions -------------------------------------------------------------------------------------------------


def submit_times(*times):
    return pl.DataFrame({"submit_s": times}, schema={"submit_s": pl.Int64})


def test_hours_and_weekdays_follow_the_time_zone():
    # 1970-01-01 was a Thursday. 20:30 UTC is 4:30 of Friday in Shanghai.
    table = submissions(submit_times(20 * 3600 + 1800, 20 * 3600 + 60, 47 * 3600, None), "Asia/Shanghai")
    row_at_4 = row(table, by="hour", value="4")
    assert (row_at_4["jobs_share"], row_at_4["jobs_per_hour"]) == (2 / 3, 1)
    assert row_at_4["first_submit_s"] == 20 * 3600 + 1800  # the first row, not the earliest time
    # From Friday 4 o'clock to Saturday 7: 20 hours and 8.
    assert [row(table, by="weekday", value=day)["clock_hours"] for day in ("Friday", "Saturday")] == [20, 8]
    sunday = row(table, by="weekday", value="Sunday")
    assert (sunday["jobs"], sunday["jobs_per_hour"], sunday["reason"]) == (0, None, "the trace has no such hour")
    assert row(table, by="hour", value="5")["reason"] == "no submission then"


@given(
    st.lists(st.integers(1_500_000_000, 1_502_000_000), min_size=1, max_size=30),
    st.sampled_from(["UTC", "Asia/Shanghai", "America/Los_Angeles", "Asia/Kolkata"]),
)
def test_counts_match_python_calendars(times, zone):
    table = submissions(submit_times(*times), zone)
    clocks = [datetime.fromtimestamp(time, UTC).astimezone(ZoneInfo(zone)) for time in times]
    hours = Counter(clock.hour for clock in clocks)
    days = Counter(WEEKDAYS[clock.weekday()] for clock in clocks)
    assert [row(table, by="hour", value=str(hour))["jobs"] for hour in range(24)] == [hours[hour] for hour in range(24)]
    assert [row(table, by="weekday", value=day)["jobs"] for day in WEEKDAYS] == [days[day] for day in WEEKDAYS]
    # Every clock hour from the first to the last, counted one by one.
    first, last = (min(times) // 1800, max(times) // 1800)
    halves = {half * 1800 for half in range(first, last + 1)}
    expected_hours = {datetime.fromtimestamp(time, UTC).astimezone(ZoneInfo(zone)).strftime("%F %H") for time in halves}
    for column in ("hour", "weekday"):
        assert table.filter(pl.col("by") == column)["clock_hours"].sum() == len(expected_hours)


def test_a_trace_without_a_clock_has_a_reason():
    table = submissions(submit_times(1, 2), None)
    assert table["by"].to_list() == ["hour", "weekday"]
    assert "origin" in table["reason"][0]
    assert submissions(submit_times(None), "UTC")["reason"][0] == "no submission has a time"


# Population --------------------------------------------------------------------------------------------------


def test_roles_by_hand():
    table = population.count_roles(SIX_JOBS)
    assert table["role"].to_list() == ["worker", "ps"]
    worker = row(table, role="worker")
    assert [worker[name] for name in ("jobs", "n", "ended", "failures")] == [3, 5, 3, 2]
    assert worker["failure_share"] == 2 / 3
    assert worker["ci_low"] < 2 / 3 < worker["ci_high"]
    running = population.count_roles(SIX_JOBS.filter(pl.col("outcome") == "running"))
    assert (running["failure_share"][0], running["reason"][0]) == (None, "none of them ended")
    assert population.count_roles(SIX_JOBS.tail(1)).height == 0


def test_the_most_active_users_by_hand():
    table = population.activity(SIX_JOBS)
    by_jobs = row(table, ranked_by="jobs", top_share=0.1)
    # a: three jobs of five, and 2 x 30 + 0.5 x 20 of 470 GPU seconds; b: 20 x 40 = 400.
    assert (by_jobs["owners"], by_jobs["owners_in_top"], by_jobs["jobs_share"]) == (3, 1, 0.6)
    assert by_jobs["gpu_hours_share"] == pytest.approx(70 / 870)
    by_gpu_hours = row(table, ranked_by="gpu_hours", top_share=0.01)
    assert by_gpu_hours["gpu_hours"] == pytest.approx(800 / 3600)
    assert by_gpu_hours["jobs_share"] == 0.2
    without_gpus = population.activity(SIX_JOBS.with_columns(gpu_milli=pl.lit(None, dtype=pl.Int64)))
    assert set(without_gpus["ranked_by"]) == {"jobs"}
    assert set(without_gpus["reason"]) == {"no job has GPU time"}
    assert population.activity(SIX_JOBS.tail(1)).height == 0


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 50)), min_size=1, max_size=40), st.integers(1, 99))
def test_a_weighted_percentile_is_that_of_the_repeated_values(pairs, percent):
    values, weights = np.array([v for v, _ in pairs]), np.array([w for _, w in pairs])
    percentile = population.weighted_percentile(values, weights, percent)
    repeated_values = np.repeat(values, weights)
    assert percentile == np.quantile(repeated_values, percent / 100, method="inverted_cdf")


def test_job_status_counts_starts_and_ends():
    job = pl.DataFrame({"status": ["Failed", "Failed", "Waiting"], "start_s": [1, 2, None], "end_s": [None, 5, None]})
    table = population.job_status(job.lazy())
    assert row(table, status="Failed") == {
        "status": "Failed", "jobs": 2, "n": 3, "jobs_share": 2 / 3, "with_start": 2, "with_end": 1,
    }  # fmt: skip
    assert population.job_status(None).height == 0


def test_share_of_jobs_that_wait_longer_than_they_run():
    table = wait_share(SIX_JOBS)
    # Run times 10, 20, 30, 40: up to 25 is short. Delays 0, 50, 10, 5: one, of a short job, exceeds its run time.
    assert row(table, group="all")["over_half_share"] == 0.25
    assert (row(table, group="short")["over_half_share"], row(table, group="long")["over_half_share"]) == (0.5, 0)
    assert row(table, group="short")["limit_s"] == 25
    assert wait_share(SIX_JOBS.tail(2)).height == 0


# Machines ----------------------------------------------------------------------------------------------------


def compute_load(*rows):
    """Compute the load of rows (machine, start_s, end_s, CPU in thousandths)."""
    metric = pl.LazyFrame(
        rows,
        schema={"machine": pl.String, "start_s": pl.Int64, "end_s": pl.Int64, "cpu_milli": pl.Int64},
        orient="row",
    )
    blank = (pl.lit(None, dtype=pl.Int64).alias(name) for name in QUANTITIES if name != "cpu_milli")
    return machine_load({"machine_metric": metric.with_columns(blank)})


def test_load_is_weighted_by_the_length_of_each_measurement():
    table = compute_load(
        ("m1", 0, 10, 50_000), ("m1", 0, 30, 10_000), ("m2", 5, 15, 90_000), ("m2", 9, 9, 1), ("m2", None, 9, 1)
    )
    load = row(table, quantity="cpu")
    assert (load["n"], load["nodes"], load["mean"], load["p95"]) == (3, 2, (500 + 300 + 900) / 50, 90)
    assert row(table, quantity="gpu")["reason"] == "no row has a value and a duration above 0 s"
    assert machine_load({}).height == 0
    assert row(compute_load((None, 0, 5, 10**14)), quantity="cpu")["mean"] == 1e11


@pytest.mark.parametrize("largest", [3_000, 10**12])
def test_load_matches_values_repeated_for_every_second(largest):
    rng = np.random.default_rng(3)
    rows = [(f"m{rng.integers(1, 3)}", 0, int(rng.integers(1, 9)), int(rng.integers(0, 3_000))) for _ in range(40)]
    rows.append(("m2", 0, 1, largest))
    values = np.sort(np.repeat([entry[3] for entry in rows], [entry[2] for entry in rows]))
    load = row(compute_load(*rows), quantity="cpu")
    assert load["mean"] == values.sum() / (1000 * values.size)
    assert load["p95"] == np.quantile(values, 0.95, method="inverted_cdf") / 1000


# Run times and delays by kind of job, requests, measured use and recurrence --------------------------------------


@given(st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 10**9)), max_size=40))
def test_percentiles_match_numpy(rows):
    table = percentiles(jobs(*(("success", time, None, kind, 1000, 1, None) for kind, time in rows), names=KIND))
    for kind in {kind for kind, _ in rows}:
        times = [time for row_kind, time in rows if row_kind == kind]
        percentile_row = row(table, quantity="runtime_s", outcome_set="all", group_by="gpu_type", group=kind)
        assert percentile_row["n"] == len(times)
        assert percentile_row["mean_s"] == pytest.approx(np.mean(times), rel=1e-12)
        for percent in PERCENTS:
            assert percentile_row[f"p{percent}_s"] == pytest.approx(np.percentile(times, percent), rel=1e-12)
    if not rows:
        assert table.height == 0


def test_the_order_of_the_rows_changes_nothing():
    assert percentiles(FIVE_JOBS).equals(percentiles(FIVE_JOBS.reverse()))
    assert gpu_requests(FIVE_JOBS).equals(gpu_requests(FIVE_JOBS.reverse()))


def test_only_the_accounts_with_the_most_jobs_have_rows():
    rows = jobs(*(("success", 1, 1, None, None, 1, f"a{i:02}") for i in range(30) for _ in range(30 - i)), names=KIND)
    accounts = percentiles(rows).filter((pl.col("group_by") == "account") & (pl.col("outcome_set") == "all"))
    assert sorted(set(accounts["group"])) == [f"a{i:02}" for i in range(20)]


def test_measured_use_against_the_request():
    measured = FIVE_JOBS.with_columns(gpu_used_milli=pl.Series([1000, 600, 4000, 1, None]), cpu_used_milli=pl.lit(5))
    table = request_against_use(measured)
    gpu = row(table, resource="gpu")
    shares = [gpu[f"{name}_share"] for name in ("requested_more", "used_more", "used_median")]
    assert gpu["n"] == 3 and shares == [1 / 3, 1 / 3, 1]
    assert row(table, resource="cpu")["reason"] == "no job has both a request and a measured use"
    assert row(table, resource="memory")["reason"] == "the trace does not measure its use"
