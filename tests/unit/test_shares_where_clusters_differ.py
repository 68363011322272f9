"""Clustered intervals of shares, means, medians and rates against brute force and closed forms."""

import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from trace_losses import owner_counts
from ttf.analyses.factors.correlate.compute import failure_share
from ttf.analyses.large_runs.measure_ettr.compute import _clustered_interval as clustered_ettr
from ttf.analyses.lost.measure_losses.owners import failures_by_owner
from ttf.analyses.queue.describe_attempts.retries import (
    build_failed_attempts,
    build_retries,
    count_ended_jobs,
    count_failed_attempts,
)
from ttf.analyses.queue.describe_workload.population import count_roles
from ttf.analyses.queue.reconstruct_occupancy.delay_causes import CAUSES, DelayCauses
from ttf.analyses.replication.measure_epochs import EPOCHS
from ttf.analyses.replication.measure_epochs.compute import epochs_summary, epochs_table
from ttf.analyses.replication.repeat_study.compute import rate_ratio
from ttf.records.clusters import add_clusters
from ttf.records.jobs import GPU_BUCKETS, JOB_COLUMNS, conform
from ttf.records.runs import RUN_COLUMNS
from ttf.stats.clustered import CLUSTERED, clustered_ratios, clustered_shares
from ttf.stats.job_features import FEATURES
from ttf.stats.shares import ENDED

BOUNDS = ["ci_low_clustered", "ci_high_clustered"]


def make_jobs(users: int = 25, n: int = 800, seed: int = 6) -> pl.DataFrame:
    """Make jobs of users that differ in failures, requests and run times."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, n)
    failure_rate = rng.beta(2, 3, users)[user]
    gpus = 1 + rng.poisson(rng.gamma(1, 2, users)[user])
    runtime = np.exp(5 + rng.normal(size=users)[user] + rng.normal(size=n)).astype(int)
    frame = pl.DataFrame(
        {
            "job_id": [f"j{row}" for row in range(n)],
            "user": [f"u{index:02d}" for index in user],
            "account": [f"a{index % 3}" for index in user],
            "task": [("worker", "ps")[index % 2] for index in range(n)],
            "outcome": np.where(rng.random(n) < failure_rate, "failure", "success"),
            "gpu_milli": 1000 * gpus,
            "size": 1,
            "start_s": 0,
            "runtime_s": runtime,
            "attempts": 1 + rng.poisson(rng.gamma(1, 0.5, users)[user]),
            "trace_end_s": 10**6,
        }
    )
    return add_clusters(conform(frame, JOB_COLUMNS))


JOBS = make_jobs()


def approx_bounds(interval: pl.DataFrame) -> list[float]:
    (row,) = interval.select(BOUNDS).rows()
    assert None not in row
    return pytest.approx(list(row))


def test_failure_shares_have_one_clustered_interval_in_every_analysis():
    one_gpu = clustered_shares(JOBS.filter(gpu_milli=1000), [], ENDED["failures"], ENDED["ended"])
    request_shares = failure_share(JOBS).filter(feature="gpu_request", value="100")
    assert request_shares.select(BOUNDS).rows()[0] == approx_bounds(one_gpu)
    all_jobs = clustered_shares(JOBS, [], ENDED["failures"], ENDED["ended"])
    retries = build_retries(count_ended_jobs(JOBS))
    assert retries.filter(group_by="all").select(BOUNDS).rows()[0] == approx_bounds(all_jobs)
    assert retries.filter(group="1", group_by="gpus").select(BOUNDS).rows()[0] == approx_bounds(one_gpu)
    workers = clustered_shares(JOBS.filter(task="worker"), [], ENDED["failures"], ENDED["ended"])
    assert count_roles(JOBS).filter(role="worker").select(BOUNDS).rows()[0] == approx_bounds(workers)


def test_a_mean_of_retries_is_a_ratio_of_sums():
    expected = clustered_ratios(JOBS, [], (pl.col("attempts") - 1).sum(), pl.len(), pl.len())
    row = build_retries(count_ended_jobs(JOBS)).filter(group_by="all")
    assert row.select("retries_ci_low_clustered", "retries_ci_high_clustered").rows()[0] == approx_bounds(expected)


def test_users_with_failed_attempts_are_each_a_cluster():
    attempts = JOBS.with_row_index("job").select("job", "user", failed=pl.col("outcome") == "failure", is_proxy=False)
    table = build_failed_attempts(count_failed_attempts(JOBS, attempts), attempts)
    users = table.filter(group_by="user", at_least=10).row(0, named=True)
    assert (users["cluster_by"], users["clusters"]) == ("user", users["n"])
    logit, n = math.log(users["groups"] / (users["n"] - users["groups"])), users["n"]
    half = stats.t.ppf(0.975, n - 1) / math.sqrt(users["groups_share"] * (1 - users["groups_share"]) * n) / (1 - 1 / n)
    assert users["ci_low_clustered"] == pytest.approx(1 / (1 + math.exp(half - logit)))
    assert table.filter(at_least=1)["ci_low_clustered"].null_count() == 3


def test_an_owner_is_clustered_by_user_or_request_profile():
    runs = conform(JOBS.with_columns(failed=pl.col("outcome") == "failure"), RUN_COLUMNS).lazy()
    table = failures_by_owner(owner_counts(JOBS.lazy(), runs), 50, JOBS)
    assert set(table.filter(owner_by="account")["cluster_by"]) == {"user"}
    assert set(table.filter(owner_by="user")["cluster_by"]) == {"request profile of one user"}


def test_the_ratio_of_rates_agrees_with_a_jackknife_of_users():
    size = next(feature for feature in FEATURES if feature.name == "gpu_request")
    ratio = rate_ratio(JOBS, size)
    above = (JOBS["gpu_milli"] > 10 * float(ratio["split_value"])).to_numpy()
    failed, time = (JOBS["outcome"] == "failure").to_numpy(), JOBS["runtime_s"].to_numpy()
    cluster = JOBS["cluster"].to_numpy()

    def log_ratio(selected: np.ndarray) -> float:
        rates = [failed[selected & part].sum() / time[selected & part].sum() for part in (above, ~above)]
        return math.log(rates[0] / rates[1])

    log_ratio_all = log_ratio(np.ones(above.size, bool))
    assert math.log(ratio["rate_ratio"]) == pytest.approx(log_ratio_all)
    se = math.sqrt(sum((log_ratio(cluster != user) - log_ratio_all) ** 2 for user in range(25)))
    effective = min(
        np.bincount(cluster[part]).sum() ** 2 / (np.bincount(cluster[part]) ** 2).sum() for part in (above, ~above)
    )
    assert ratio["rate_clusters"] == pytest.approx(effective)
    width = math.log(ratio["rate_ci_high_clustered"] / ratio["rate_ci_low_clustered"])
    assert width == pytest.approx(2 * se * stats.t.ppf(0.975, effective - 1), rel=0.05)
    p = 2 * stats.t.sf(abs(log_ratio_all) / (width / 2 / stats.t.ppf(0.975, effective - 1)), effective - 1)
    assert ratio["rate_p_clustered"] == pytest.approx(p)


def test_causes_of_waits_are_shares_of_the_jobs_that_waited():
    rng = np.random.default_rng(2)
    n, shape = 500, (len(GPU_BUCKETS), len(CAUSES))
    cluster, bucket = rng.integers(0, 20, n), rng.integers(0, shape[0], n)
    cause = rng.integers(0, shape[1], n) * rng.integers(0, 2, 20)[cluster]
    cells = np.unique(cluster * shape[0] * shape[1] + bucket * shape[1] + cause, return_counts=True)
    shares = DelayCauses._clustered_shares(SimpleNamespace(_cluster_by="user"), np.stack(cells), shape)
    rows = add_clusters(pl.DataFrame({"user": cluster.astype(str), "bucket": bucket, "cause": cause}))
    for group, group_rows in (("all", rows), ("2-4", rows.filter(bucket=list(GPU_BUCKETS).index("2-4")))):
        expected = clustered_shares(group_rows, [], (pl.col("cause") == 1).sum(), pl.len())
        assert shares.filter(group=group, cause=CAUSES[1]).select(BOUNDS).rows()[0] == approx_bounds(expected)


def test_epochs_are_shares_of_jobs():
    rng = np.random.default_rng(9)
    n = 300
    epochs = rng.integers(1, 30, n)
    frame = {"user": rng.integers(0, 15, n).astype(str), "outcome": ["success"] * n, "epochs": epochs}
    frame |= dict.fromkeys(("lowest_at", "near_at"), np.minimum(rng.integers(1, 30, n), epochs))
    jobs = add_clusters(pl.DataFrame(frame)).with_columns(run_s=None, after_s=None, gpu_milli=None)
    table = epochs_table(jobs)
    EPOCHS.check(table)
    expected_lowest = clustered_shares(jobs, [], (pl.col("lowest_at") * 2 <= pl.col("epochs")).sum(), pl.len())
    assert table.filter(quantity="lowest", epochs_share=0.5).select(BOUNDS).rows()[0] == approx_bounds(expected_lowest)
    expected_last = clustered_shares(jobs, [], (pl.col("lowest_at") == pl.col("epochs")).sum(), pl.len())
    assert epochs_summary(jobs).filter(outcome="success").select(BOUNDS).rows()[0] == approx_bounds(expected_last)


def test_equal_users_of_measured_runs_give_students_interval():
    """The spread on the logit scale is that of the users' means, over 1 - 1/m."""
    rng = np.random.default_rng(3)
    m, k = 8, 5
    ettr = rng.uniform(0.5, 1, (m, k))
    runs = pl.DataFrame({"user": np.repeat([f"u{user}" for user in range(m)], k), "ettr": ettr.ravel()})
    row = clustered_ettr(add_clusters(runs))
    p, se = ettr.mean(), math.sqrt(((ettr.mean(axis=1) - ettr.mean()) ** 2).sum()) / m / (1 - 1 / m)
    margin = stats.t.ppf(0.975, m - 1) * se / (p * (1 - p))
    logit = math.log(p / (1 - p))
    limits = [1 / (1 + math.exp(-(logit + sign * margin))) for sign in (-1, 1)]
    assert [row[name] for name in CLUSTERED] == ["user", pytest.approx(m), *map(pytest.approx, limits)]
