"""Next requests of run time and memory: by hand, against lifelines and closed forms, coverage by simulation."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.utils import qth_survival_times
from scipy.stats import norm
from ttf.analyses.queue.suggest_requests import LIMIT_ENDS, SUGGESTED_MEMORY, SUGGESTED_TIME_LIMITS
from ttf.analyses.queue.suggest_requests.compute import CENSORED, NO_PEAK, compute, list_profile, suggest, suggest_next
from ttf.records.inputs import Inputs
from ttf.stats.durations.quantiles import INDEPENDENT, survival_quantiles

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
        suggest(jobs, list_profile(AT_SUBMISSION, jobs.columns), SUGGESTED_TIME_LIMITS)
    )
    SUGGESTED_TIME_LIMITS.check(table)
    return table


def durations(seconds, ended, number=0, cluster=None):
    columns = {"number": number, "duration_s": np.asarray(seconds, dtype=np.int64), "ended": np.asarray(ended, bool)}
    frame = pl.DataFrame(columns).with_columns(event=pl.when("ended").then(pl.lit("success")))
    if cluster is None:
        return frame
    return frame.with_columns(
        *(pl.Series(name, cluster, dtype=pl.UInt32) for name in ("cluster", "group")),
        cluster_by=pl.lit("week"),
        group_by=pl.lit("week"),
        block_by=pl.lit("week"),
    )


def test_without_censoring_the_quantile_is_an_order_statistic():
    seconds = np.random.default_rng(1).permutation(np.arange(1, 101))
    row = survival_quantiles(durations(seconds, np.ones(100)), "success", "number", 0.9).row(0, named=True)
    assert (row["n"], row["events"], row["quantile"], row["interval_by"]) == (100, 100, 90, INDEPENDENT)
    # log(-log S) +- z sqrt(G) / -log S, where Greenwood's sum G is (1 - S) / (n S) without censoring.
    survival = 1 - np.arange(1, 100) / 100
    spread = np.exp(norm.ppf(0.975) * np.sqrt((1 - survival) / (100 * survival)) / -np.log(survival))
    assert row["low"] == 1 + np.flatnonzero(survival**spread <= 0.1)[0]
    assert row["high"] == 1 + np.flatnonzero(survival ** (1 / spread) <= 0.1)[0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=60),
    st.sampled_from([0.5, 0.75, 0.9]),
)
def test_quantiles_and_limits_are_those_of_lifelines(rows, share):
    seconds, ended = map(np.array, zip(*rows, strict=True))
    row = survival_quantiles(durations(seconds, ended), "success", "number", share).row(0, named=True)
    fitter = KaplanMeierFitter().fit(seconds, ended)
    # As in `survival_quantiles`, a tolerance for products of many factors.
    expected = qth_survival_times(1 - share + 1e-10, fitter.survival_function_)
    assert (math.inf if row["quantile"] is None else row["quantile"]) == expected
    for name, column in (("low", "KM_estimate_lower_0.95"), ("high", "KM_estimate_upper_0.95")):
        curve = fitter.confidence_interval_[column]
        positive = fitter.survival_function_["KM_estimate"] > 0
        reached = curve.index[positive & (curve <= 1 - share + 1e-10)]
        assert row[name] == (None if reached.empty else reached[0])


@pytest.mark.parametrize(("spread", "is_clustered", "low", "high"), [(0, False, 0.92, 0.97), (0.7, True, 0.9, 0.97)])
def test_intervals_cover_the_quantile(spread, is_clustered, low, high):
    n, strata, weeks = 200, 400, 20
    rng = np.random.default_rng(3)
    number, week = np.repeat(np.arange(strata), n), rng.integers(0, weeks, n * strata)
    effect = rng.normal(0, spread, (strata, weeks))[number, week]
    need, limit = np.exp(8 + effect + rng.normal(0, 1, number.size)), np.exp(rng.normal(10.5, 0.7, number.size))
    # Whole seconds, rounded up: a job of 0.5 s has ended within 1 s.
    seconds, ended = np.ceil(np.minimum(need, limit)), need <= limit
    frame = durations(seconds, ended, number, week if is_clustered else None)
    quantiles = survival_quantiles(frame, "success", "number", 0.9)
    truth = math.exp(8 + math.sqrt(1 + spread**2) * norm.ppf(0.9))
    assert set(quantiles["interval_by"]) == {"week" if is_clustered else INDEPENDENT}
    is_covered = (pl.col("low").fill_null(0) <= truth) & (pl.col("high").fill_null(2**62) >= truth)
    assert low <= quantiles.select(is_covered.mean()).item() <= high
    assert quantiles["quantile"].log().mean() == pytest.approx(math.log(truth), abs=0.03)


def test_weeks_that_differ_need_the_clustered_interval():
    """Ignoring them covers the quantile far too rarely: this is why weeks are the clusters."""
    rng = np.random.default_rng(4)
    number, week = np.repeat(np.arange(200), 200), rng.integers(0, 8, 40_000)
    need = np.exp(8 + rng.normal(0, 0.7, (200, 8))[number, week] + rng.normal(0, 1, number.size))
    truth = math.exp(8 + math.sqrt(1.49) * norm.ppf(0.9))
    quantiles = survival_quantiles(durations(np.ceil(need), np.ones(number.size), number), "success", "number", 0.9)
    assert quantiles.select(pl.lit(truth).is_between("low", "high").mean()).item() < 0.75


def test_a_time_limit_by_hand():
    """20 jobs of 100 to 2,000 s, of which those at 1,900 and 2,000 s were stopped by their limits."""
    rows = [("ann", 8, "TIMEOUT" if i > 18 else "COMPLETED", 100 * i) for i in range(1, 21)]
    rows += [("ann", 4, "COMPLETED", 50), ("bob", 8, "COMPLETED", 50), ("ann", 8, "PENDING", 0)]
    row = suggest_time(make_jobs(*rows).filter(pl.col("outcome") != "waiting")).row(0, named=True)
    assert (row["user"], row["request"], row["n"], row["successes"], row["at_limit"]) == (
        "ann",
        "8 GPUs, 1 instance",
        20,
        18,
        2,
    )
    assert (row["suggested_s"], row["requested_s"]) == (1800, 3600)
    assert row["gpu_hours"] == pytest.approx(8 * (1900 + 2000) / 3600)


def test_a_stopped_job_is_censored_and_the_rest_tells_more():
    """Without censoring, the limits of 500 s would be taken for needs, and the suggestion would be too short."""
    rng = np.random.default_rng(0)
    limits = rng.choice([500, 20_000], 400)
    needs = np.ceil(rng.exponential(1000, 400)).astype(int)
    rows = [
        ("ann", 1, "COMPLETED" if need <= limit else "TIMEOUT", int(min(need, limit)))
        for need, limit in zip(needs, limits, strict=True)
    ]
    row = suggest_time(make_jobs(*rows)).row(0, named=True)
    truth = 1000 * math.log(10)
    assert row["low_s"] < truth < row["high_s"] and row["interval_by"] == "week"
    assert np.quantile([row[3] for row in rows], 0.9) < 0.8 * truth


def test_failures_and_running_jobs_are_censored_too():
    rows = [("ann", 1, "COMPLETED", 100)] * 17 + [("ann", 1, "FAILED", 10)] * 2 + [("ann", 1, "TIMEOUT", 200)]
    assert suggest_time(make_jobs(*rows))["suggested_s"].to_list() == [100]
    rows = [("ann", 1, "COMPLETED", 100)] * 8 + [("ann", 1, "RUNNING", 0), ("ann", 1, "TIMEOUT", 200)]
    row = suggest_time(make_jobs(*rows)).row(0, named=True)
    assert (row["n"], row["suggested_s"], row["reason"]) == (10, None, CENSORED)


@pytest.mark.parametrize("status", ["TIMEOUT", "DEADLINE", "timeout", "DeadlineExceeded"])
def test_few_jobs_and_several_runs_suggest_nothing(status):
    rows = [("ann", 1, "COMPLETED", 100)] * 8 + [("ann", 1, status, 200)]
    row = suggest_time(make_jobs(*rows)).row(0, named=True)
    assert (row["n"], row["suggested_s"], row["reason"]) == (9, None, "fewer than 10 jobs")
    assert suggest_time(make_jobs(*rows, attempts=2)).height == 0
    assert suggest_time(make_jobs(*rows[:8])).height == 0


def test_memory_by_hand():
    """Peaks of 1 to 18 GiB of 20 GiB requested; two jobs ran out of memory at 20 GiB."""
    rows = [("ann", 1, "OUT_OF_MEMORY" if i > 18 else "COMPLETED", 60) for i in range(1, 21)]
    jobs = make_jobs(*rows).with_columns(
        mem_mib=pl.lit(20 * 1024), mem_peak_mib=pl.Series([None if i > 18 else 1024 * i for i in range(1, 21)])
    )
    table = SUGGESTED_MEMORY.conform(suggest(jobs, list_profile(AT_SUBMISSION, jobs.columns), SUGGESTED_MEMORY))
    SUGGESTED_MEMORY.check(table)
    row = table.row(0, named=True)
    # The request of memory is no part of the group.
    assert (row["request"], row["n"], row["at_limit"], row["suggested_mib"]) == ("1 GPU, 1 instance", 20, 2, 18 * 1024)


@pytest.mark.parametrize("has_user", [True, False])
def test_compute_says_what_is_missing(tmp_path, has_user):
    rows = [("ann", 1, "COMPLETED", 100)] * 18 + [("ann", 1, "TIMEOUT", 200), ("ann", 1, "OUT_OF_MEMORY", 9)]
    jobs = make_jobs(*rows).drop("gpu_time", *([] if has_user else ["user", "gpu_milli", "size"]))
    jobs = jobs.with_columns(gpu_milli=1000, size=1)
    jobs.write_parquet(tmp_path / "jobs.parquet")
    settings = {"at_submission": AT_SUBMISSION if has_user else []}
    tables = dict(compute(Inputs({"jobs": tmp_path / "jobs.parquet"}, {}, settings)))
    for contract in (SUGGESTED_TIME_LIMITS, SUGGESTED_MEMORY, LIMIT_ENDS):
        contract.check(tables[contract.name])
    assert tables["suggested_time_limits"]["suggested_s"].to_list() == [100]
    time, memory = tables["limit_ends"].to_dicts()
    assert (time["jobs"], time["requests"], time["suggested"], time["reason"]) == (1, 1, 1, None)
    assert (memory["jobs"], memory["requests"], memory["reason"]) == (1, None, NO_PEAK)


def test_new_jobs_learn_only_from_earlier_ones():
    rows = [("ann", 1, "COMPLETED", 100)] * 18 + [("ann", 1, "TIMEOUT", 200)] + [("ann", 1, "COMPLETED", 9000)] * 80
    record = make_jobs(*rows).drop("gpu_time").lazy()
    new = pl.DataFrame({"job_id": ["a", "b", "c"], "user": ["ann", "bob", None], "gpu_milli": [1000, 1000, 1000]})
    early = suggest_next(record, new.with_columns(submit_s=20 * 86_400), AT_SUBMISSION)
    assert early["suggested_time_limit_s"].to_list() == [100, None, None]
    late = suggest_next(record, new.with_columns(submit_s=200 * 86_400), AT_SUBMISSION)
    assert late["suggested_time_limit_s"].to_list() == [9000, None, None]
    assert late["suggested_memory_mib"].null_count() == 3
    # A file without users, or with texts as the population of the model holds them.
    assert suggest_next(record, new.drop("user").with_columns(submit_s=20 * 86_400), AT_SUBMISSION).height == 3
    categorical = new.with_columns(pl.col("user").cast(pl.Categorical), submit_s=20 * 86_400)
    assert suggest_next(record, categorical, AT_SUBMISSION).equals(early)
