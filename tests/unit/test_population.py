"""Workload: submissions, roles, users, gangs, requests, run times and waits by kind of job, and machine load."""

from collections import Counter
from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from given_tables import one_row as row
from hypothesis import given, settings
from hypothesis import strategies as st
from ttf.analyses.queue.describe_workload import population
from ttf.analyses.queue.describe_workload.machine_load import QUANTITIES, machine_load
from ttf.analyses.queue.describe_workload.population import WEEKDAYS, submissions
from ttf.analyses.queue.describe_workload.workload import (
    PERCENTS,
    gpu_requests,
    percentiles,
    recurrence,
    request_against_use,
    wait_share,
)
from ttf.engine.storage.tables import blocks

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
    given = pl.DataFrame(rows, schema={name: COLUMNS[name] for name in names}, orient="row")
    rest = {name: pl.lit(None, dtype=kind) for name, kind in COLUMNS.items() if name not in names}
    return given.with_columns(**(rest | columns)).select(*COLUMNS)


SIX = jobs(
    ("worker", "a", "success", 10, 30, 1000, 2),
    ("worker", "a", "failure", 50, 20, 500, 1),
    ("ps", "a", "success", 0, 10, None, 1),
    ("worker", "b", "failure", 5, 40, 2000, 10),
    ("ps", "c", "running", 100, None, None, 1),
    (None, None, "waiting", None, None, 250, None),
)
KIND = ("outcome", "runtime_s", "queue_s", "gpu_type", "gpu_milli", "size", "account")
FIVE = jobs(
    ("success", 10, 0, "A", 1000, 1, "x"),
    ("success", 20, 5, "A", 500, 3, "x"),  # 1.5 GPUs: two
    ("failure", 30, None, "B", 8000, 2, "y"),
    ("cancelled", None, 7, None, None, 1, None),
    ("running", None, 9, "B", 200, 1, "y"),
    names=KIND,
)


# Submissions -------------------------------------------------------------------------------------------------


def moments(*times):
    return pl.DataFrame({"submit_s": times}, schema={"submit_s": pl.Int64})


def test_hours_and_weekdays_are_those_of_the_zone():
    # 1970-01-01 was a Thursday. 20:30 UTC is 4:30 of Friday in Shanghai.
    table = submissions(moments(20 * 3600 + 1800, 20 * 3600 + 60, 47 * 3600, None), "Asia/Shanghai")
    four = row(table, by="hour", value="4")
    assert (four["jobs"], four["n"], four["clock_hours"], four["jobs_per_hour"]) == (2, 3, 2, 1.0)
    assert four["first_submit_s"] == 20 * 3600 + 1800  # the first row, not the earliest time
    assert row(table, by="hour", value="7")["jobs_share"] == 1 / 3
    # From Friday 4 o'clock to Saturday 7: 20 hours and 8.
    assert [row(table, by="weekday", value=day)["clock_hours"] for day in ("Friday", "Saturday")] == [20, 8]
    sunday = row(table, by="weekday", value="Sunday")
    assert (sunday["jobs"], sunday["jobs_per_hour"], sunday["reason"]) == (0, None, "the trace has no such hour")
    assert row(table, by="hour", value="5")["reason"] == "no submission then"


@settings(deadline=None, max_examples=16)
@given(
    st.lists(st.integers(1_500_000_000, 1_502_000_000), min_size=1, max_size=30),
    st.sampled_from(["UTC", "Asia/Shanghai", "America/Los_Angeles", "Asia/Kolkata"]),
)
def test_counts_are_those_of_python_calendars(times, zone):
    table = submissions(moments(*times), zone)
    clocks = [datetime.fromtimestamp(time, UTC).astimezone(ZoneInfo(zone)) for time in times]
    hours = Counter(clock.hour for clock in clocks)
    days = Counter(WEEKDAYS[clock.weekday()] for clock in clocks)
    assert [row(table, by="hour", value=str(hour))["jobs"] for hour in range(24)] == [hours[h] for h in range(24)]
    assert [row(table, by="weekday", value=day)["jobs"] for day in WEEKDAYS] == [days[day] for day in WEEKDAYS]
    # Every clock hour from the first to the last, counted one by one.
    first, last = (min(times) // 1800, max(times) // 1800)
    halves = {half * 1800 for half in range(first, last + 1)}
    shown = {datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone)).strftime("%F %H") for at in halves}
    for by in ("hour", "weekday"):
        assert table.filter(pl.col("by") == by)["clock_hours"].sum() == len(shown)


def test_a_trace_without_a_clock_says_so():
    table = submissions(moments(1, 2), None)
    assert table["by"].to_list() == ["hour", "weekday"]
    assert "origin" in table["reason"][0]
    assert submissions(moments(None), "UTC")["reason"][0] == "no submission has a time"


# Population --------------------------------------------------------------------------------------------------


def test_roles_by_hand():
    table = population.roles(SIX)
    assert table["role"].to_list() == ["worker", "ps"]
    worker = row(table, role="worker")
    assert (worker["jobs"], worker["n"], worker["ended"], worker["failures"], worker["failures_share"]) == (
        3,
        5,
        3,
        2,
        1,
    )
    assert worker["failure_share"] == 2 / 3
    assert worker["ci_low"] < 2 / 3 < worker["ci_high"]
    running = population.roles(SIX.filter(pl.col("outcome") == "running"))
    assert (running["failure_share"][0], running["reason"][0]) == (None, "none of them ended")
    assert population.roles(SIX.tail(1)).height == 0


def test_the_most_active_users_by_hand():
    table = population.activity(SIX)
    first = row(table, ranked_by="jobs", top_share=0.1)
    # a: three jobs of five, and 2 x 30 + 0.5 x 20 of 470 GPU seconds; b: 20 x 40 = 400.
    assert (first["owners"], first["owners_in_top"], first["jobs_share"]) == (3, 1, 0.6)
    assert first["gpu_hours_share"] == pytest.approx(70 / 870)
    most = row(table, ranked_by="gpu_hours", top_share=0.01)
    assert most["gpu_hours"] == pytest.approx(800 / 3600)
    assert most["jobs_share"] == 0.2
    without = population.activity(SIX.with_columns(gpu_milli=pl.lit(None, dtype=pl.Int64)))
    assert set(without["ranked_by"]) == {"jobs"}
    assert set(without["reason"]) == {"no job has GPU time"}
    assert population.activity(SIX.tail(1)).height == 0


def test_gangs_by_hand():
    table = population.gangs(SIX)
    assert table["at_least"].to_list() == [1, 2, 10]
    two = row(table, at_least=2)
    assert (two["jobs"], two["n"], two["instances"], two["instances_share"]) == (2, 5, 12, 12 / 15)
    # Ended: 2 + 1 + 1 + 10 instances, of failed jobs 1 + 10.
    assert row(table, at_least=1)["instances_failed_share"] == 11 / 14
    assert population.gangs(SIX.tail(1)).height == 0


def test_percentiles_of_requests_count_each_instance():
    table = population.request_percentiles(SIX)
    per_job = row(table, resource="gpu", weighted_by="jobs")
    assert (per_job["n"], per_job["p50"], per_job["p95"], per_job["largest"]) == (4, 0.5, 2, 2)
    per_instance = row(table, resource="gpu", weighted_by="instances")
    assert (per_instance["n"], per_instance["p50"]) == (14, 2)
    assert row(table, resource="gpus", weighted_by="jobs")["largest"] == 20
    assert row(table, resource="cpu", weighted_by="jobs")["reason"]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 50)), min_size=1, max_size=40), st.integers(1, 99))
def test_a_weighted_percentile_is_that_of_the_values_written_out(pairs, percent):
    pairs.sort()
    values, weights = np.array([v for v, _ in pairs]), np.array([w for _, w in pairs])
    (found,) = population.weighted_percentiles(values, weights, [percent])
    written = np.repeat(values, weights)
    assert found == np.quantile(written, percent / 100, method="inverted_cdf")


def test_machines_by_type():
    nodes = pl.DataFrame({"gpu_type": ["T4", "T4", None], "gpu_count": [2, 2, 0]})
    table = population.machines(nodes)
    assert table["gpu_type"].to_list() == ["T4", None]
    assert (table["nodes"].to_list(), table["gpus_share"].to_list()) == ([2, 1], [1, 0])
    assert population.machines(nodes.head(0)).height == 0
    unknown = population.machines(nodes.with_columns(gpu_count=pl.lit(None, dtype=pl.Int64)))
    assert set(unknown["reason"]) == {"no machine has its GPUs written"}


def test_the_table_of_whole_jobs():
    job = pl.DataFrame({"status": ["Failed", "Failed", "Waiting"], "start_s": [1, 2, None], "end_s": [None, 5, None]})
    table = population.job_status(job.lazy())
    assert row(table, status="Failed") == {
        "status": "Failed", "jobs": 2, "n": 3, "jobs_share": 2 / 3, "with_start": 2, "with_end": 1,
    }  # fmt: skip
    assert population.job_status(None).height == 0


def test_who_waits_longer_than_it_runs():
    table = wait_share(SIX)
    # Run times 10, 20, 30, 40: short to 25. Delays 0, 50, 10, 5: one of them above its run time, a short one.
    assert row(table, group="all")["over_half"] == 1
    assert (row(table, group="short")["over_half_share"], row(table, group="long")["over_half_share"]) == (0.5, 0)
    assert row(table, group="short")["limit_s"] == 25
    assert row(table, group="long")["wait_median_share"] == pytest.approx((10 / 40 + 5 / 45) / 2)
    assert wait_share(SIX.tail(2)).height == 0


# Machines ----------------------------------------------------------------------------------------------------


def load_of(*rows, spec=(("m1", "T4"), ("m2", None))):
    """rows: (machine, start_s, end_s, CPU in thousandths)."""
    metric = pl.LazyFrame(
        [(*one, None) for one in rows],
        schema={"machine": pl.String, "start_s": pl.Int64, "end_s": pl.Int64, "cpu_milli": pl.Int64, "x": pl.Int64},
        orient="row",
    )
    metric = metric.with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in QUANTITIES if name != "cpu_milli")
    return machine_load(
        {
            "machine_metric": metric,
            "machine_spec": pl.LazyFrame(spec, schema={"node": pl.String, "gpu_type": pl.String}, orient="row"),
        }
    )


def test_load_weighs_by_the_length_of_a_life():
    table = load_of(
        ("m1", 0, 10, 50_000), ("m1", 0, 30, 10_000), ("m2", 5, 15, 90_000), ("m2", 9, 9, 1), ("m2", None, 9, 1)
    )
    everywhere = row(table, quantity="cpu", group="all")
    assert (everywhere["n"], everywhere["nodes"], everywhere["measured_s"]) == (3, 2, 50)
    assert everywhere["mean"] == (500 + 300 + 900) / 50
    assert (everywhere["p50"], everywhere["p90"]) == (10, 90)
    assert row(table, quantity="cpu", group="T4")["mean"] == 20
    assert row(table, quantity="gpu", group="all")["reason"] == "no row has a value and a life above 0 s"
    assert machine_load({}).height == 0


@pytest.mark.parametrize(("furthest", "bins"), [(3_000, 1 << 17), (3_000, 2), (3_000, 100), (10**12, 1 << 17)])
def test_load_is_that_of_each_value_repeated_for_every_second(furthest, bins, monkeypatch):
    monkeypatch.setattr("ttf.analyses.queue.describe_workload.machine_load.MOST_BINS", bins)
    monkeypatch.setattr("ttf.analyses.queue.describe_workload.machine_load.blocks", partial(blocks, rows=7))
    rng = np.random.default_rng(3)
    rows = [(f"m{rng.integers(1, 3)}", 0, int(rng.integers(1, 9)), int(rng.integers(0, 3_000))) for _ in range(40)]
    rows.append(("m2", 0, 1, furthest))
    table = load_of(*rows)
    for group, mine in (("all", rows), ("T4", [one for one in rows if one[0] == "m1"])):
        seconds = np.sort(np.repeat([one[3] for one in mine], [one[2] for one in mine]))
        found = row(table, quantity="cpu", group=group)
        assert (found["n"], found["measured_s"], found["nodes"]) == (len(mine), seconds.size, 1 + (group == "all"))
        assert found["mean"] == seconds.sum() / (1000 * seconds.size)
        for percent in (25, 50, 95):
            assert found[f"p{percent}"] == np.quantile(seconds, percent / 100, method="inverted_cdf") / 1000


def test_load_without_the_list_of_machines_has_no_types():
    metric = pl.LazyFrame({"machine": ["m"], "start_s": [0], "end_s": [5], **{name: [10**14] for name in QUANTITIES}})
    table = machine_load({"machine_metric": metric})
    assert set(table["group"]) == {"all"}
    assert set(table["mean"]) == {1e11}


# Run times and delays by kind of job, requests, measured use and recurrence --------------------------------------


def test_percentiles_of_five_jobs():
    table = percentiles(FIVE)
    everyone = row(table, quantity="runtime_s", outcome_set="all", group_by="all")
    assert (everyone["n"], everyone["mean_s"], everyone["p50_s"], everyone["p25_s"], everyone["p90_s"]) == (
        3,
        20,
        20,
        15,
        28,
    )
    assert row(table, quantity="runtime_s", outcome_set="success", group_by="gpus", group="2-4")["p99_s"] == 20
    assert row(table, quantity="runtime_s", outcome_set="all", group_by="gpus", group=">8")["mean_s"] == 30
    assert row(table, quantity="queue_s", outcome_set="all", group_by="account", group="y")["n"] == 1
    assert row(table, quantity="queue_s", outcome_set="cancelled", group_by="all")["p50_s"] == 7
    shares = table.filter((pl.col("group_by") == "gpu_request") & (pl.col("quantity") == "queue_s"))
    everybody = shares.filter(pl.col("outcome_set") == "all")
    assert dict(everybody.select("group", "n").iter_rows()) == {"no GPU": 1, "share of a GPU": 2, "whole GPUs": 1}
    assert everybody["group"].to_list() == ["no GPU", "share of a GPU", "whole GPUs"]
    # Jobs without a GPU type or a request are in no group of it, and nothing has a row without jobs.
    assert table.filter(pl.col("n") == 0).height == 0
    assert set(table.filter(pl.col("group_by") == "gpus")["group"]) == {"1", "2-4", ">8"}
    assert "wall_s" not in set(table["quantity"])


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 10**9)), max_size=40))
def test_percentiles_are_numpys(rows):
    table = percentiles(jobs(*(("success", time, None, kind, 1000, 1, None) for kind, time in rows), names=KIND))
    for kind in {kind for kind, _ in rows}:
        times = [time for other, time in rows if other == kind]
        found = row(table, quantity="runtime_s", outcome_set="all", group_by="gpu_type", group=kind)
        assert found["n"] == len(times)
        assert found["mean_s"] == pytest.approx(np.mean(times), rel=1e-12)
        for percent in PERCENTS:
            assert found[f"p{percent}_s"] == pytest.approx(np.percentile(times, percent), rel=1e-12)
    if not rows:
        assert table.height == 0


def test_the_order_of_the_rows_changes_nothing():
    assert percentiles(FIVE).equals(percentiles(FIVE.reverse()))
    assert gpu_requests(FIVE).equals(gpu_requests(FIVE.reverse()))


def test_only_the_accounts_with_the_most_jobs_have_rows():
    many = jobs(*(("success", 1, 1, None, None, 1, f"a{i:02}") for i in range(30) for _ in range(30 - i)), names=KIND)
    accounts = percentiles(many).filter((pl.col("group_by") == "account") & (pl.col("outcome_set") == "all"))
    assert sorted(set(accounts["group"])) == [f"a{i:02}" for i in range(20)]


def test_requests_share_out_over_the_jobs_that_asked():
    table = gpu_requests(FIVE)
    everyone = dict(table.filter(pl.col("group_by") == "all").select("gpu_request", "jobs").iter_rows())
    assert everyone == {
        "below 25%": 1,
        "25 to below 50%": 0,
        "50 to below 100%": 1,
        "100%": 1,
        "above 100%": 1,
    }
    assert row(table, group_by="gpu_type", group="B", gpu_request="above 100%")["jobs_share"] == 0.5
    assert gpu_requests(FIVE.head(0)).height == 0


def test_what_was_used_against_what_was_asked_for():
    measured = FIVE.with_columns(gpu_used_milli=pl.Series([1000, 600, 4000, 1, None]), cpu_used_milli=pl.lit(5))
    table = request_against_use(measured)
    gpu = row(table, resource="gpu")
    assert (gpu["n"], gpu["asked_more"], gpu["used_more"], gpu["used_median_share"]) == (3, 1, 1, 1.0)
    assert row(table, resource="cpu")["reason"] == "no job has both a request and a measured use"
    assert row(table, resource="memory")["reason"] == "the trace does not measure its use"


def test_recurrence_by_group_and_by_user():
    table = recurrence(FIVE.with_columns(recurrence_group=pl.Series(["a", "a", "b", None, "b"]), user=pl.lit("u")))
    assert row(table, group_by="recurrence_group", at_least=2)["jobs_share"] == 1.0
    assert row(table, group_by="recurrence_group", at_least=5)["jobs"] == 0
    assert row(table, group_by="user", at_least=5)["groups"] == 1
    assert recurrence(FIVE).height == 0
