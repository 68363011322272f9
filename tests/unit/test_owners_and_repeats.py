"""Failures by owner, their concentration and their repetition."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint
from trace_losses import owner_counts, repeats_table
from ttf.analyses.lost.measure_losses import FAILURE_CONCENTRATION, FAILURES_BY_OWNER, REPEATS
from ttf.analyses.lost.measure_losses.owners import concentration, failures_by_owner
from ttf.analyses.lost.measure_losses.repeats import (
    ONE_GROUP,
    counts_by_group,
    list_events,
    previous_outcome,
    share_over_groups,
)
from ttf.engine.storage.partitions import Partitions
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.records.runs import RUN_COLUMNS, add_previous_runs
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.shares import wilson_interval


def make_jobs(rows: list[dict], **extras: type[pl.DataType]) -> pl.LazyFrame:
    names = ["user", "account", "outcome", "start_s", "end_s"]
    schema = {name: JOB_COLUMNS[name] for name in names} | extras
    return conform(pl.LazyFrame(rows, schema=schema), JOB_COLUMNS)


def make_runs(jobs: pl.LazyFrame, gpu_milli: int = 1000) -> pl.LazyFrame:
    """Make one run per job, as long as the job."""
    frame = jobs.with_row_index("job").select(
        *("job", "user", "account", "start_s", "end_s", "outcome"),
        attempt=pl.lit(0),
        runtime_s=pl.col("end_s") - pl.col("start_s"),
        gpu_milli=pl.lit(gpu_milli),
        failed=pl.col("outcome") == "failure",
        infra=pl.lit(False),
        basis=pl.lit("proxy"),
        preempted=pl.lit(False),
        timed_out=pl.lit(False),
    )
    return add_previous_runs(conform(frame, RUN_COLUMNS).select(list(RUN_COLUMNS)))


def job(user: str | None, outcome: str, start_s: int | None = 0, end_s: int | None = 3600, **columns) -> dict:
    return {"user": user, "outcome": outcome, "start_s": start_s, "end_s": end_s, **columns}


# --- owners

HOSTILE = '<script>alert(1)</script>\n"|{{x}}'
OWNER_JOBS = [
    *[job("ana", "failure", 0, 7200)] * 2,
    job("ana", "success"),
    job("ana", "running"),
    job("bo", "success"),
    job("bo", "failure", 0, 3600),
    job(None, "failure", 0, 36_000),
    job(HOSTILE, "cancelled"),
]


def test_failures_by_owner_by_hand():
    jobs = make_jobs(OWNER_JOBS)
    table = failures_by_owner(owner_counts(jobs, make_runs(jobs)), 10, jobs)
    FAILURES_BY_OWNER.check(table)
    columns = ("owner_by", "owner", "ended", "failures", "failure_share", "failed_gpu_hours", "failed_gpu_hours_share")
    assert table.select(columns).rows() == [
        ("user", "ana", 3, 2, 2 / 3, 4.0, 0.8),
        ("user", "bo", 2, 1, 0.5, 1.0, 0.2),
        ("user", HOSTILE, 0, 0, None, 0.0, 0.0),
    ]
    assert (table["ci_low"][0], table["ci_high"][0]) == pytest.approx(proportion_confint(2, 3, method="wilson"))
    assert table["reason"].to_list() == [UNCLUSTERED, UNCLUSTERED, "no job of this owner ended"]
    assert failures_by_owner(owner_counts(jobs, make_runs(jobs)), 1, jobs)["owner"].to_list() == ["ana"]


def test_concentration_by_hand():
    rows = [job(f"u{n:02d}", "success") for n in range(20) for _ in range(20 - n)]
    rows += [job("u00", "failure")] * 2 + [job("u19", "failure")] * 6
    jobs = make_jobs(rows)
    table = concentration(owner_counts(jobs, make_runs(jobs)))
    FAILURE_CONCENTRATION.check(table)
    by_rank = {(row["ranked_by"], row["top_share"]): row for row in table.to_dicts()}
    assert by_rank["ended", 0.01]["owners_in_top"] == by_rank["ended", 0.05]["owners_in_top"] == 1
    assert by_rank["ended", 0.1]["owners_in_top"] == 2
    assert by_rank["ended", 0.05]["failures_share"] == 0.25 and by_rank["ended", 0.05]["ended_share"] == 22 / 218
    assert by_rank["failures", 0.05]["failures_share"] == 0.75
    assert by_rank["ended", 1.0]["failures"] == 8 and by_rank["failures", 1.0]["failures_share"] == 1
    assert by_rank["ended", 1.0]["failed_gpu_hours"] == 8.0


def test_unknown_owners_and_no_failures():
    jobs = make_jobs([job(None, "failure")])
    FAILURES_BY_OWNER.check(failures_by_owner(owner_counts(jobs, make_runs(jobs)), 5, jobs))
    assert concentration(owner_counts(jobs, make_runs(jobs))).is_empty()
    jobs = make_jobs([job("ana", "success")])
    assert set(concentration(owner_counts(jobs, make_runs(jobs)))["reason"]) == {"no job failed"}
    (reason,) = failures_by_owner(owner_counts(jobs, make_runs(jobs)), 5, jobs)["reason"]
    assert reason == f"no failed attempt has GPU time; {UNCLUSTERED}"


# --- repeats


def test_repeats_by_hand():
    rows = [
        job("ana", "failure", 0, 10),
        job("ana", "failure", 11, 20),  # follows a failure
        job("ana", "success", 15, 40),  # follows the failure that ended at 10
        job("ana", "failure", 41, 50),  # follows a success
        job("bo", "success", 0, 10),
        job("bo", "failure", 10, 20),  # starts in the second of that end: has no previous job
        job("bo", "cancelled", 21, 22),
        job("bo", "success", 30, 31),  # follows a failure, as a cancelled job did not end by itself
        job("cy", "success", 0, 100),
    ]
    jobs = make_jobs(rows)
    table = repeats_table(jobs, make_runs(jobs))
    REPEATS.check(table)
    measures = {row["measure"]: row for row in table.to_dicts()}
    assert {row["group_by"] for row in measures.values()} == {"user"}

    def estimate(measure: str) -> tuple:
        return tuple(measures[measure][name] for name in ("n", "groups", "events", "estimate"))

    assert estimate("not_first_share") == (4, 2, 2, 0.5)
    assert estimate("failures_per_group") == (4, 2, 4, 2.0)
    assert estimate("preceded_share") == (2, 1, 1, 0.5)
    assert estimate("failure_after_failure") == (3, 2, 1, 1 / 3)
    assert estimate("failure_after_success") == (1, 1, 1, 1.0)
    assert measures["failure_after_success"]["reason"] == ONE_GROUP
    # First failures occur after 10 s and 20 s; cy is censored at 100 s.
    assert estimate("first_failure_s") == (3, 3, 2, 20.0)


def test_groups_of_the_trace_and_jobs_of_several_runs():
    rows = [job("ana", "failure", 0, 10, recurrence_group="g"), job("bo", "success", 50, 90, recurrence_group="g")]
    jobs = make_jobs(rows, recurrence_group=pl.String)
    single_runs = make_runs(jobs)
    retry = single_runs.head(1).with_columns(attempt=pl.lit(1, dtype=pl.Int64), start_s=pl.lit(20), end_s=pl.lit(70))
    retry = retry.select(pl.col(name).cast(dtype) for name, dtype in RUN_COLUMNS.items())
    table = repeats_table(jobs, add_previous_runs(pl.concat([single_runs.head(1), retry, single_runs.tail(1)])))
    assert table["group_by"].unique(maintain_order=True).to_list() == ["user", "recurrence_group", "job"]
    repeats = table.filter((pl.col("group_by") == "recurrence_group") & (pl.col("measure") == "failure_after_failure"))
    assert repeats.select("n", "estimate").rows() == [(1, 0.0)]
    assert table.filter(pl.col("group_by") == "job").select("measure", "n", "events", "estimate").rows() == [
        ("first_failure_s", 1, 1, 10.0)
    ]


JOB = st.fixed_dictionaries(
    {
        "user": st.sampled_from(("ana", "bo", "cy", "dee", None)),
        "outcome": st.sampled_from(("success", "failure", "running")),
        "start_s": st.none() | st.integers(0, 30),
        "end_s": st.none() | st.integers(0, 40),
        "recurrence_group": st.none() | st.sampled_from("abcdefgh"),
    }
)


@given(st.lists(JOB, max_size=40))
def test_partitions_do_not_change_the_table(rows):
    jobs = make_jobs(rows, recurrence_group=pl.String)
    runs = make_runs(jobs)
    table = repeats_table(jobs, runs)
    with TemporaryDirectory() as folder:
        assert repeats_table(jobs, runs, Partitions(Path(folder), 3)).equals(table)


ENDED = st.fixed_dictionaries(
    {
        "group": st.sampled_from((0, 3)),
        "failed": st.booleans(),
        "start_s": st.none() | st.integers(-3, 30),
        "end_s": st.none() | st.integers(-3, 40),
    }
)


@given(st.lists(ENDED, max_size=20), st.randoms(use_true_random=False))
def test_the_previous_job_is_the_last_that_had_ended(rows, random):
    expected = []
    for row in rows:
        if row["start_s"] is not None:
            ends = [
                r for r in rows if r["group"] == row["group"] and r["end_s"] is not None and r["end_s"] < row["start_s"]
            ]
            if ends:
                last = max(r["end_s"] for r in ends)
                expected.append((row["group"], row["failed"], any(r["failed"] for r in ends if r["end_s"] == last)))
    random.shuffle(rows)
    schema = {"group": pl.Int64, "failed": pl.Boolean, "start_s": pl.Int64, "end_s": pl.Int64}
    group, _, kind = list_events(pl.DataFrame(rows, schema=schema))
    assert sorted(previous_outcome(group, kind).rows()) == sorted(expected)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=60))
def test_the_variance_between_groups_matches_a_clustered_mean(rows):
    members = pl.DataFrame(rows, schema={"group": pl.Int64, "hit": pl.Boolean}, orient="row")
    estimate = share_over_groups(counts_by_group(members))
    hit = members["hit"].to_numpy().astype(float)
    groups = members["group"].to_numpy()
    if estimate["groups"] == 1:
        assert estimate["reason"] == ONE_GROUP and "ci_low" not in estimate
        return
    assert estimate["ci_low"] <= estimate["estimate"] <= estimate["ci_high"]
    if 0 < hit.mean() < 1:
        fit = sm.OLS(hit, np.ones(len(hit))).fit(cov_type="cluster", cov_kwds={"groups": groups})
        variance = float(fit.bse[0]) ** 2
        binomial_variance = hit.mean() * (1 - hit.mean())
        effective = min(len(hit), binomial_variance / variance) if variance > 1e-18 else len(hit)
        low, high = wilson_interval([hit.mean() * effective], [effective])
        assert (estimate["ci_low"], estimate["ci_high"]) == pytest.approx((low[0], high[0]), rel=1e-6, abs=1e-9)
