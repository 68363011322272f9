"""Next requests of run time and memory: by hand, against lifelines and closed forms, coverage by simulation."""

import math
import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.utils import qth_survival_times
from ttf.analyses.queue.suggest_requests import LIMIT_ENDS, SUGGESTED_MEMORY, SUGGESTED_TIME_LIMITS
from ttf.analyses.queue.suggest_requests.compute import (
    CENSORED,
    NO_PEAK,
    UNTESTED,
    compute,
    list_profile,
    suggest,
    suggest_next,
)
from ttf.analyses.queue.suggest_requests.rolling_test import suggest_and_test
from ttf.records.inputs import Inputs
from ttf.stats.durations.quantiles import TOLERANCE, kaplan_meier, survival_quantiles

SIMULATED = runpy.run_path(str(Path(__file__).parents[2] / "tools/docs" / "coverage_requests.py"))
WORLDS, measure_fit = SIMULATED["WORLDS"], SIMULATED["measure_fit"]
AT_SUBMISSION = ["user", "gpu_milli", "mem_mib", "size", "partition"]
WEEK_S = 7 * 86_400


def make_jobs(*rows, **columns):
    """Make jobs of (user, GPUs, status, run time), a day apart; columns: values of all jobs."""
    outcomes = {"COMPLETED": "success", "RUNNING": "running", "PENDING": "waiting"}
    frame = pl.DataFrame(
        [
            {
                "user": user,
                "gpu_milli": 1000 * gpus,
                "size": 1,
                "status_raw": status,
                "outcome": outcomes.get(status, "failure"),
                "start_s": 86_400 * i,
                "end_s": None if status in ("RUNNING", "PENDING") else 86_400 * i + seconds,
                "runtime_s": None if status in ("RUNNING", "PENDING") else seconds,
                "attempts": 1,
                "block_by": "week",
                "block": i // 7,
                "timelimit_s": 3600,
                "trace_end_s": 86_400 * len(rows),
            }
            for i, (user, gpus, status, seconds) in enumerate(rows)
        ],
        infer_schema_length=None,
    )
    gpu_time = (pl.col("gpu_milli") * pl.col("runtime_s")).cast(pl.Int128)
    return frame.with_columns(pl.lit(value).alias(name) for name, value in columns.items()).with_columns(
        gpu_time=gpu_time
    )


def suggest_time(jobs):
    table = SUGGESTED_TIME_LIMITS.conform(
        suggest(jobs, list_profile(AT_SUBMISSION, jobs.columns), SUGGESTED_TIME_LIMITS)[0]
    )
    SUGGESTED_TIME_LIMITS.check(table)
    return table


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 60), st.booleans()), min_size=1, max_size=60),
    st.sampled_from([0.5, 0.75, 0.9]),
)
def test_curves_and_quantiles_are_those_of_lifelines(rows, share):
    frame = pl.DataFrame(rows, schema=["number", "duration_s", "ended"], orient="row")
    frame = frame.with_columns(event=pl.when("ended").then(pl.lit("success")))
    curves = kaplan_meier(frame, ["number"])
    for row in survival_quantiles(frame, ["number"], share).iter_rows(named=True):
        stratum = frame.filter(number=row["number"])
        fitter = KaplanMeierFitter().fit(stratum["duration_s"], stratum["ended"])
        curve = curves.filter(number=row["number"])
        assert curve["survival"].to_list() == pytest.approx(
            fitter.survival_function_at_times(curve["duration_s"]).tolist()
        )
        expected = qth_survival_times(1 - share + TOLERANCE, fitter.survival_function_)
        assert (math.inf if row["quantile"] is None else row["quantile"]) == expected
        assert (row["n"], row["events"]) == (stratum.height, stratum["ended"].sum())


def test_later_jobs_widen_a_suggestion_and_test_it():
    """Folds of ten jobs: needs of 1 to 10, later ten times as long. Every number is counted by hand."""
    needs = [*range(1, 11)] * 5 + [*range(10, 101, 10)] * 5
    jobs = pl.DataFrame({"number": 0, "start_s": range(0, 100_000, 1000), "duration_s": needs, "event": "success"})
    rows, tests = suggest_and_test(jobs.with_columns(end_s=pl.col("start_s") + pl.col("duration_s")), is_time=True)
    row = rows.row(0, named=True)
    # Fold 2 to 5 fit their quantile of 9; fold 6 does not, and the quantiles of its successors grow.
    assert row["quantile"] == 80
    assert row["tested"] == tests.height == 80
    fits_by_fold = tests.group_by("fold").agg((pl.col("duration_s") <= 1000).sum()).sort("fold")["duration_s"].to_list()
    assert fits_by_fold[:4] == [9, 9, 9, 0]
    assert fits_by_fold[-1] == 10
    assert row["fitted_share"] == pytest.approx(sum(fits_by_fold) / 80)
    # Nine times the quantile would be longer than any job seen.
    assert row["suggested"] is None


def test_a_fold_is_judged_by_what_was_known_before_it():
    """A job that still ran when the fold began is censored at its age then, and tells no peak of memory."""
    jobs = pl.DataFrame({"number": 0, "start_s": [100 * i for i in range(100)], "event": "success"})
    jobs = jobs.with_columns(duration_s=pl.lit(10_000)).with_columns(end_s=pl.col("start_s") + pl.col("duration_s"))
    for is_time in (True, False):
        rows, tests = suggest_and_test(jobs, is_time)
        assert tests.is_empty() and rows.select("tested", "suggested").row(0) == (0, None)


def test_the_next_jobs_fit_as_the_test_says():
    """docs/coverage.md has more repetitions."""
    _, fits, _, tested, quantile = measure_fit(*WORLDS["log SD 0.5, AR 0.8"], np.random.default_rng(2))
    assert 0.88 < fits < 0.93 and fits > quantile and tested == pytest.approx(fits, abs=0.02)


def test_a_time_limit_by_hand():
    """Ten times 10 jobs of 200 to 2,000 s, of which those at 2,000 s were stopped by their limits."""
    rows = [("ann", 8, "TIMEOUT" if i > 18 else "COMPLETED", 100 * i) for _ in range(10) for i in range(2, 21, 2)]
    rows += [("ann", 4, "COMPLETED", 50), ("bob", 8, "COMPLETED", 50), ("ann", 8, "PENDING", 0)]
    row = suggest_time(make_jobs(*rows).filter(pl.col("outcome") != "waiting")).row(0, named=True)
    assert (row["user"], row["request"]) == ("ann", "8 GPUs, 1 instance")
    assert (row["n"], row["successes"], row["at_limit"]) == (100, 90, 10)
    assert (row["suggested_s"], row["requested_s"], row["reason"]) == (1800, 3600, None)
    # The first tenth makes the first quantile, the second its widening; in each later tenth, all that succeed fit.
    assert (row["tested"], row["fitted_share"]) == (80, pytest.approx(0.9))
    assert row["gpu_hours"] == pytest.approx(10 * 8 * 2000 / 3600)


def test_failures_and_running_jobs_are_censored_too():
    rows = [("ann", 1, "COMPLETED", 100)] * 17 + [("ann", 1, "FAILED", 10)] * 2 + [("ann", 1, "TIMEOUT", 200)]
    assert suggest_time(make_jobs(*rows))["reason"].to_list() == [UNTESTED]
    assert suggest_time(make_jobs(*4 * rows))["suggested_s"].to_list() == [100]
    rows = [("ann", 1, "COMPLETED", 100)] * 8 + [("ann", 1, "RUNNING", 0), ("ann", 1, "TIMEOUT", 200)]
    row = suggest_time(make_jobs(*rows)).row(0, named=True)
    assert (row["n"], row["suggested_s"], row["reason"]) == (10, None, CENSORED)


@pytest.mark.parametrize("status", ["TIMEOUT", "DeadlineExceeded"])
def test_few_jobs_and_several_runs_suggest_nothing(status):
    rows = [("ann", 1, "COMPLETED", 100)] * 8 + [("ann", 1, status, 200)]
    row = suggest_time(make_jobs(*rows)).row(0, named=True)
    assert (row["n"], row["suggested_s"], row["reason"]) == (9, None, "fewer than 10 jobs")
    assert suggest_time(make_jobs(*rows, attempts=2)).height == 0
    assert suggest_time(make_jobs(*rows[:8])).height == 0


def test_memory_by_hand():
    """Ten times peaks of 2 to 18 GiB of 20 GiB requested; one job each ran out of memory at 20 GiB."""
    rows = [("ann", 1, "OUT_OF_MEMORY" if i > 18 else "COMPLETED", 60) for _ in range(10) for i in range(2, 21, 2)]
    jobs = make_jobs(*rows).with_columns(
        mem_mib=pl.lit(20 * 1024), mem_peak_mib=pl.Series(10 * [None if i > 18 else 1024 * i for i in range(2, 21, 2)])
    )
    table = SUGGESTED_MEMORY.conform(suggest(jobs, list_profile(AT_SUBMISSION, jobs.columns), SUGGESTED_MEMORY)[0])
    SUGGESTED_MEMORY.check(table)
    row = table.row(0, named=True)
    # The request of memory is no part of the group.
    assert (row["request"], row["n"], row["at_limit"], row["suggested_mib"]) == (
        "1 GPU, 1 instance",
        100,
        10,
        18 * 1024,
    )


@pytest.mark.parametrize("has_user", [True, False])
def test_compute_says_what_is_missing(tmp_path, has_user):
    rows = [("ann", 1, "COMPLETED", 100)] * 78 + [("ann", 1, "TIMEOUT", 200), ("ann", 1, "OUT_OF_MEMORY", 9)]
    jobs = make_jobs(*rows).drop("gpu_time", *([] if has_user else ["user", "gpu_milli", "size"]))
    jobs = jobs.with_columns(gpu_milli=1000, size=1)
    jobs.write_parquet(tmp_path / "jobs.parquet")
    settings = {"at_submission": AT_SUBMISSION if has_user else []}
    tables = dict(compute(Inputs({"jobs": tmp_path / "jobs.parquet"}, {}, settings)))
    for contract in (SUGGESTED_TIME_LIMITS, SUGGESTED_MEMORY, LIMIT_ENDS):
        contract.check(tables[contract.name])
    assert tables["suggested_time_limits"]["suggested_s"].to_list() == [100]
    time, memory = tables["limit_ends"].to_dicts()
    assert (time["jobs"], time["requests"], time["suggested"], time["fitted_share"]) == (1, 1, 1, 46 / 47)
    assert (memory["jobs"], memory["requests"], memory["reason"]) == (1, None, NO_PEAK)


def test_new_jobs_learn_only_from_earlier_ones():
    rows = [("ann", 1, "COMPLETED", 100)] * 58 + [("ann", 1, "TIMEOUT", 200)] + [("ann", 1, "COMPLETED", 9000)] * 400
    record = make_jobs(*rows).drop("gpu_time").lazy()
    new = pl.DataFrame({"job_id": ["a", "b", "c"], "user": ["ann", "bob", None], "gpu_milli": [1000, 1000, 1000]})
    early = suggest_next(record, new.with_columns(submit_s=60 * 86_400), AT_SUBMISSION)
    assert early["suggested_time_limit_s"].to_list() == [100, None, None]
    late = suggest_next(record, new.with_columns(submit_s=500 * 86_400), AT_SUBMISSION)
    assert late["suggested_time_limit_s"].to_list() == [9000, None, None]
    assert late["suggested_memory_mib"].null_count() == 3
    # A file without users, or with texts as the population of the model holds them.
    assert suggest_next(record, new.drop("user").with_columns(submit_s=60 * 86_400), AT_SUBMISSION).height == 3
    categorical = new.with_columns(pl.col("user").cast(pl.Categorical), submit_s=60 * 86_400)
    assert suggest_next(record, categorical, AT_SUBMISSION).equals(early)
