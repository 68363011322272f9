"""Run times and delays by kind of job, requests, measured use and recurrence."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ttf.analyses.describe_workload.workload import (
    PERCENTS,
    gpu_requests,
    percentiles,
    recurrence,
    request_against_use,
)

COLUMNS = {
    "outcome": pl.String,
    "runtime_s": pl.Int64,
    "queue_s": pl.Int64,
    "gpu_type": pl.String,
    "gpu_milli": pl.Int64,
    "cpu_milli": pl.Int64,
    "mem_mib": pl.Int64,
    "size": pl.Int64,
    "account": pl.String,
    "user": pl.String,
}


def jobs(*rows, **columns):
    """rows: (outcome, runtime_s, queue_s, gpu_type, gpu_milli, size, account)."""
    names = ("outcome", "runtime_s", "queue_s", "gpu_type", "gpu_milli", "size", "account")
    given = pl.DataFrame(rows, schema={name: COLUMNS[name] for name in names}, orient="row")
    rest = {name: pl.lit(None, dtype=kind) for name, kind in COLUMNS.items() if name not in names}
    return given.with_columns(**(rest | columns)).select(*COLUMNS, *(name for name in columns if name not in COLUMNS))


FIVE = jobs(
    ("success", 10, 0, "A", 1000, 1, "x"),
    ("success", 20, 5, "A", 500, 3, "x"),  # 1.5 GPUs: two
    ("failure", 30, None, "B", 8000, 2, "y"),
    ("cancelled", None, 7, None, None, 1, None),
    ("running", None, 9, "B", 200, 1, "y"),
)


def row(table, **where):
    found = table.filter(*(pl.col(name) == value for name, value in where.items()))
    assert found.height == 1, found
    return found.row(0, named=True)


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
    table = percentiles(jobs(*(("success", time, None, kind, 1000, 1, None) for kind, time in rows)))
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
    many = jobs(*(("success", 1, 1, None, None, 1, f"a{i:02}") for i in range(30) for _ in range(30 - i)))
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
