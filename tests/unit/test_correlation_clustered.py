"""Clustered correlations: influences agree with brute force, and true nulls are rarely rejected."""

import math

import numpy as np
import polars as pl
import pytest
from memory_tables import correlations
from scipy import stats
from ttf.analyses.factors.correlate.clustered_correlations import INFLUENCES, NO_MEAN_CLUSTERS
from ttf.analyses.factors.correlate.run_times import iterate_samples
from ttf.records.clusters import Level, add_clusters
from ttf.stats.clustered import FEWEST

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}


def jobs_of(users: np.ndarray, sizes: np.ndarray, runtimes: np.ndarray, outcome: str = "success") -> pl.DataFrame:
    columns = {"user": [f"u{user}" for user in users], "size": sizes, "runtime_s": runtimes}
    return pl.DataFrame(columns | {"outcome": [outcome] * len(sizes)}).cast({"size": pl.Int64, "runtime_s": pl.Int64})


def tied_jobs(seed: int = 11, users: int = 40, jobs: int = 900) -> pl.DataFrame:
    """Jobs with tied sizes and run times of users that differ in both."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, jobs)
    level = rng.normal(size=users)[user]
    sizes = np.exp(1 + 0.6 * level + 0.7 * rng.normal(size=jobs)).astype(int) + 1
    runtimes = np.exp(2 + 0.5 * level + 0.8 * rng.normal(size=jobs)).astype(int)
    return add_clusters(jobs_of(user, sizes, runtimes))


def correlation_row(frame: pl.DataFrame, method: str) -> dict:
    table = correlations(frame, [None]).filter(outcome_set="success", feature="size", unit="job", method=method)
    return table.row(0, named=True)


def arrays(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(frame[name].to_numpy() for name in ("cluster", "size", "runtime_s"))


@pytest.mark.parametrize("method", SCIPY)
def test_an_influence_is_the_derivative_in_a_cluster_weight(method):
    """Compare with numerical derivatives of the weighted coefficient in the weight of each cluster."""
    frame = tied_jobs()
    cluster, x, y = arrays(frame)
    sample = next(
        s for s in iterate_samples(frame, [None], Level.from_jobs(frame).number) if s.outcome_set == "success"
    )
    r = float(SCIPY[method](x, y).statistic)
    influence, leverage = INFLUENCES[method](sample, r).sum_by_cluster(sample)
    assert leverage.sum() == pytest.approx(1)
    members = np.bincount(cluster)
    influence -= influence.sum() * members / x.size
    step = 1e-5
    for user in range(40):
        raised, lowered = (weighted(x, y, 1 + change * (cluster == user), method) for change in (step, -step))
        assert influence[user] == pytest.approx((raised - lowered) / (2 * step), rel=1e-5, abs=1e-9)


def weighted(x: np.ndarray, y: np.ndarray, weights: np.ndarray, method: str) -> float:
    if method == "spearman":
        x, y = (np.array([weights[v < value].sum() + weights[v == value].sum() / 2 for value in v]) for v in (x, y))
    x, y = (v - np.average(v, weights=weights) for v in (x, y))
    products = ((weights * a * b).sum() for a, b in ((x, y), (x, x), (y, y)))
    xy, xx, yy = products
    return xy / math.sqrt(xx * yy)


@pytest.mark.parametrize("method", SCIPY)
def test_the_interval_is_near_that_of_a_jackknife_over_users(method):
    frame = tied_jobs()
    cluster, x, y = arrays(frame)
    row = correlation_row(frame, method)
    leave_one_out = [SCIPY[method](x[cluster != user], y[cluster != user]).statistic for user in range(40)]
    deltas = np.arctanh(leave_one_out) - math.atanh(row["estimate"])
    members = np.bincount(cluster)
    effective = members.sum() ** 2 / (members**2).sum()
    assert (row["cluster_by"], row["clusters"]) == ("user", pytest.approx(effective))
    margin = stats.t.ppf(0.975, effective - 1) * math.sqrt((deltas**2).sum())
    width = math.atanh(row["ci_high_clustered"]) - math.atanh(row["ci_low_clustered"])
    assert width == pytest.approx(2 * margin, rel=0.04)
    assert row["ci_low_clustered"] < row["ci_low"] < row["ci_high"] < row["ci_high_clustered"]
    se = width / 2 / stats.t.ppf(0.975, effective - 1)
    p = 2 * stats.t.sf(abs(math.atanh(row["estimate"])) / se, effective - 1)
    assert row["p_clustered"] == pytest.approx(p)


def test_weeks_that_shift_sizes_and_run_times_widen_the_interval():
    """All jobs of a week share a level; users do not differ. The interval holds no correlation within weeks."""
    rng = np.random.default_rng(3)
    user, week = rng.integers(0, 60, 1_200), rng.integers(0, 16, 1_200)
    x, y = (shared[week] + rng.normal(size=1_200) for shared in rng.normal(size=(2, 16)))
    jobs = add_clusters(jobs_of(user, np.exp(x + 5).astype(int), np.exp(y + 5).astype(int)))
    by_user = correlation_row(jobs, "spearman")
    by_both = correlation_row(jobs.with_columns(block=pl.Series(week), block_by=pl.lit("week")), "spearman")
    assert (by_user["cluster_by"], by_both["cluster_by"]) == ("user", "user and week")
    assert by_user["p_clustered"] < 0.01 < by_both["p_clustered"]
    assert by_both["ci_low_clustered"] < by_user["ci_low_clustered"] < by_user["ci_high_clustered"]


def test_a_null_is_rarely_rejected_when_users_differ():
    """50 users differ at random. Intervals that assume independence reject too many nulls."""
    rng = np.random.default_rng(8)
    rejected = {(method, p): 0 for method in SCIPY for p in ("p_value", "p_clustered")}
    rounds = 100
    for _ in range(rounds):
        user = np.repeat(np.arange(50), rng.integers(5, 40, 50))
        x, y = (rng.normal(size=50)[user] + rng.normal(size=user.size) for _ in range(2))
        frame = add_clusters(jobs_of(user, (100 * (x + 9)).astype(int), np.exp(y + 5).astype(int)))
        table = correlations(frame, [None]).filter(outcome_set="success", unit="job")
        for row in table.iter_rows(named=True):
            for p in ("p_value", "p_clustered"):
                rejected[row["method"], p] += row[p] < 0.05
    for method in SCIPY:
        assert rejected[method, "p_clustered"] / rounds <= 0.09
        assert rejected[method, "p_value"] / rounds > 0.2


def test_blank_results_have_a_reason():
    three_users = tied_jobs(users=3)
    row = correlation_row(three_users, "spearman")
    assert row["clusters"] < FEWEST
    assert row["ci_low_clustered"] is row["p_clustered"] is row["reject_clustered"] is None
    assert row["reason"].endswith("fewer than 4: no clustered interval")
    means = correlations(tied_jobs(), [None]).filter(outcome_set="success", unit="group_mean")
    assert means["reason"].str.contains(NO_MEAN_CLUSTERS).all()
    assert means["ci_low_clustered"].null_count() == means.height
