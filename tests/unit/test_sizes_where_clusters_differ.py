"""Job sizes of users that differ, against statsmodels' cluster-robust Poisson regression; invariances."""

import math

import numpy as np
import polars as pl
import pytest
from ttf.analyses.scaling.measure_sizes import MTTF_BY_GPUS, NODE_FAILURE_RATE, SIZE_LAW
from ttf.analyses.scaling.measure_sizes.clustered_sizes import clustered_slope, compare_with_other_sizes, interval
from ttf.analyses.scaling.measure_sizes.sizes import (
    mttf_by_gpus,
    node_failure_rate,
    poisson_line,
    select_job_runs,
    size_law,
    sums_by_cluster,
    sums_by_nodes,
)
from ttf.records.clusters import add_clusters
from ttf.stats.large_runs.projection import ProjectionLimit

DAY = 86_400
UNLIMITED = ProjectionLimit(10**6, 10**6, "", "")


def make_runs(seed, users=40, jobs=2_000, spread=1.0, per_node_day=0.05, by_user=False):
    """Make durations of jobs of 1 to 32 nodes; with `by_user`, of 1 or 2 nodes, fixed for each user."""
    rng = np.random.default_rng(seed)
    weight = np.arange(1, users + 1) ** -0.9
    user = rng.choice(users, jobs, p=weight / weight.sum())
    nodes = 1 + rng.permutation(users)[user] % 2 if by_user else 2 ** rng.integers(0, 6, jobs)
    rate = per_node_day * nodes * np.exp(spread * rng.normal(size=users)[user])
    limit = rng.exponential(2.0, jobs)
    failure = rng.exponential(1 / rate)
    durations = pl.DataFrame(
        {
            "user": [f"u{number}" for number in user],
            "gpu_count": 8 * nodes,
            "duration_s": (DAY * np.minimum(limit, failure)).astype(np.int64) + 1,
            "event": ["infra_failure" if failed else None for failed in failure < limit],
        }
    )
    return select_job_runs(add_clusters(durations), 8)


def test_the_slope_has_the_sandwich_of_statsmodels_a_little_widened():
    sm = pytest.importorskip("statsmodels.api")
    jobs = make_runs(1)
    by_cluster, sums = sums_by_cluster(jobs), sums_by_nodes(jobs)
    fit = poisson_line(*(sums[name].to_numpy() for name in ("failures", "nodes", "exposure_s")))
    clustered = clustered_slope(by_cluster, dict(zip(sums["nodes"], fit.fitted.tolist(), strict=True)))
    design = sm.add_constant(np.log(by_cluster["nodes"].to_numpy()))
    robust = sm.GLM(
        by_cluster["failures"].to_numpy(),
        design,
        family=sm.families.Poisson(),
        offset=np.log(by_cluster["exposure_s"].to_numpy()),
    ).fit(cov_type="cluster", cov_kwds={"groups": by_cluster["cluster"].to_numpy(), "use_correction": False})
    assert fit.slope == pytest.approx(robust.params[1], rel=1e-6)
    assert robust.bse[1] < clustered["slope_se"] < 1.7 * robust.bse[1]
    assert clustered["df"] == pytest.approx(clustered["clusters"] - 2)


def test_tables_keep_their_contract_and_state_the_wider_interval():
    jobs = make_runs(2, spread=1.5)
    by_cluster, sums = sums_by_cluster(jobs), sums_by_nodes(jobs)
    law = size_law(sums, "state", by_cluster)
    SIZE_LAW.check(law)
    assert law["model"].to_list() == ["poisson", "quasi_poisson", "clustered"]
    rate = node_failure_rate(sums, "state", 8, "trace", 0, UNLIMITED, by_cluster)
    NODE_FAILURE_RATE.check(rate)
    assert rate["ci_low_clustered"].max() < 0.8 * rate["ci_low"].min()
    assert rate["ci_high_clustered"].min() > 1.2 * rate["ci_high"].max()
    table = mttf_by_gpus(sums, rate, 8, by_cluster)
    MTTF_BY_GPUS.check(table)
    row, rate_row = table.row(0, named=True), rate.row(0, named=True)
    assert row["projected_low_s"] == pytest.approx(1000 * DAY / rate_row["ci_high_clustered"])
    assert row["p_clustered"] > row["p_value"] or row["p_clustered"] > 0.01


def test_two_sizes_of_the_same_users_are_compared_within_users():
    """Each user fails twice as often at the second size. The test detects it though users differ a hundredfold."""
    failures = np.array([1, 5, 20, 100, 300, 40, 8, 60])
    rows = [
        (nodes, user, 10, ratio * k, DAY * 100) for nodes, ratio in ((1, 1), (2, 4)) for user, k in enumerate(failures)
    ]
    sums = pl.DataFrame(rows, schema=["nodes", "cluster", "jobs", "failures", "exposure_s"], orient="row").with_columns(
        cluster_by=pl.lit("user"), block_by=None, block=None
    )
    jitter = sums.with_columns(failures=pl.col("failures") + pl.Series([0, 1] * 8))
    assert compare_with_other_sizes(jitter, 2, 2) < 1e-4
    one_size = interval(sums.filter(nodes=1), "failures", "node_s", 0.95)
    assert one_size["ci_high_clustered"] / one_size["ci_low_clustered"] > 4


def test_no_clusters_no_interval():
    jobs = make_runs(3).drop("cluster_by", "cluster", "group_by", "group")
    by_cluster, sums = sums_by_cluster(jobs), sums_by_nodes(jobs)
    assert not by_cluster.height
    assert interval(by_cluster, "failures", "node_s", 0.9) == {}
    assert compare_with_other_sizes(by_cluster, 1, 1) is None
    assert size_law(sums, "state", by_cluster)["model"].to_list() == ["poisson", "quasi_poisson"]


def test_equal_sizes_are_seldom_distinguished():
    """Test true nulls at 0.05, with a log SD of 1 among users and too few failures to shorten exposures."""
    rejected_clustered = rejected_exact = 0
    for seed in range(60):
        jobs = make_runs(100 + seed, per_node_day=0.02, by_user=True)
        by_cluster, sums = sums_by_cluster(jobs), sums_by_nodes(jobs)
        rate = node_failure_rate(sums, "state", 8, "trace", 0, UNLIMITED, by_cluster)
        row = mttf_by_gpus(sums, rate, 8, by_cluster).row(0, named=True)
        rejected_clustered += (row["p_clustered"] if row["p_clustered"] is not None else math.inf) < 0.05
        rejected_exact += row["p_value"] < 0.05
    assert rejected_clustered <= 7
    assert rejected_exact > 4 * rejected_clustered
