"""Correlations over jobs whose users differ: influences against brute force, and how often a null is rejected."""

import math

import numpy as np
import polars as pl
import pytest
from given_tables import correlations
from polars.testing import assert_frame_equal
from scipy import stats
from ttf.analyses.factors.correlate.clustered_correlations import INFLUENCES, NO_MEAN_CLUSTERS
from ttf.analyses.factors.correlate.run_times import iterate_samples
from ttf.records.clusters import CLUSTER_COLUMNS, Level, with_clusters
from ttf.stats.clustered import FEWEST, UNCLUSTERED

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}


def jobs_of(users: np.ndarray, sizes: np.ndarray, runtimes: np.ndarray, outcome: str = "success") -> pl.DataFrame:
    columns = {"user": [f"u{user}" for user in users], "size": sizes, "runtime_s": runtimes}
    return pl.DataFrame(columns | {"outcome": [outcome] * len(sizes)}).cast({"size": pl.Int64, "runtime_s": pl.Int64})


def tied(seed: int = 11, users: int = 40, jobs: int = 900) -> pl.DataFrame:
    """Jobs with many ties of both, of users that differ in both."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, jobs)
    level = rng.normal(size=users)[user]
    sizes = np.exp(1 + 0.6 * level + 0.7 * rng.normal(size=jobs)).astype(int) + 1
    runtimes = np.exp(2 + 0.5 * level + 0.8 * rng.normal(size=jobs)).astype(int)
    return with_clusters(jobs_of(user, sizes, runtimes))


def of_jobs(frame: pl.DataFrame, method: str) -> dict:
    found = correlations(frame, [None]).filter(outcome_set="success", feature="size", unit="job", method=method)
    return found.row(0, named=True)


def arrays(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(frame[name].to_numpy() for name in ("cluster", "size", "runtime_s"))


@pytest.mark.parametrize("method", SCIPY)
def test_an_influence_is_what_some_more_of_a_cluster_does(method: str) -> None:
    """Each cluster's weight raised by a thousandth: the coefficient of weighted jobs, ranks among them."""
    frame = tied()
    cluster, x, y = arrays(frame)
    sample = next(s for s in iterate_samples(frame, [None], Level.of(frame).number) if s.outcome_set == "success")
    r = float(SCIPY[method](x, y).statistic)
    influence, leverage = INFLUENCES[method](sample, r).sum_by_cluster(sample, 40)
    assert leverage.sum() == pytest.approx(1)
    members = np.bincount(cluster)
    influence -= influence.sum() * members / x.size
    step = 1e-5
    for of in range(40):
        up, down = (weighted(x, y, 1 + way * (cluster == of), method) for way in (step, -step))
        assert influence[of] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-9)


def weighted(x: np.ndarray, y: np.ndarray, weights: np.ndarray, method: str) -> float:
    if method == "spearman":
        x, y = (np.array([weights[of < value].sum() + weights[of == value].sum() / 2 for value in of]) for of in (x, y))
    x, y = (of - np.average(of, weights=weights) for of in (x, y))
    products = ((weights * a * b).sum() for a, b in ((x, y), (x, x), (y, y)))
    xy, xx, yy = products
    return xy / math.sqrt(xx * yy)


@pytest.mark.parametrize("method", SCIPY)
def test_the_interval_is_near_that_of_a_jackknife_that_leaves_out_a_user_each_time(method: str) -> None:
    frame = tied()
    cluster, x, y = arrays(frame)
    row = of_jobs(frame, method)
    without = [SCIPY[method](x[cluster != of], y[cluster != of]).statistic for of in range(40)]
    moved = np.arctanh(without) - math.atanh(row["estimate"])
    members = np.bincount(cluster)
    effective = members.sum() ** 2 / (members**2).sum()
    assert (row["cluster_by"], row["clusters"]) == ("user", pytest.approx(effective))
    away = stats.t.ppf(0.975, effective - 1) * math.sqrt((moved**2).sum())
    width = math.atanh(row["ci_high_clustered"]) - math.atanh(row["ci_low_clustered"])
    assert width == pytest.approx(2 * away, rel=0.04)
    assert row["ci_low_clustered"] < row["ci_low"] < row["ci_high"] < row["ci_high_clustered"]
    se = width / 2 / stats.t.ppf(0.975, effective - 1)
    p = 2 * stats.t.sf(abs(math.atanh(row["estimate"])) / se, effective - 1)
    assert row["p_clustered"] == pytest.approx(p)


def test_jobs_that_are_each_a_cluster_have_the_interval_of_independent_ones() -> None:
    rng = np.random.default_rng(4)
    n = 4_000
    x = rng.normal(size=n)
    y = 0.4 * x + rng.normal(size=n)
    frame = with_clusters(jobs_of(np.arange(n), (1e4 * (x + 9)).astype(int), (1e4 * (y + 9)).astype(int)))
    row = of_jobs(frame, "pearson")
    assert row["clusters"] == n
    for end in ("low", "high"):
        assert row[f"ci_{end}_clustered"] == pytest.approx(row[f"ci_{end}"], abs=0.004)


def test_a_null_is_rarely_rejected_when_users_differ() -> None:
    """Run times and sizes of 50 users that differ at random: taken as independent, most nulls would be rejected."""
    rng = np.random.default_rng(8)
    rejected = {(method, p): 0 for method in SCIPY for p in ("p_value", "p_clustered")}
    rounds = 200
    for _ in range(rounds):
        user = np.repeat(np.arange(50), rng.integers(5, 40, 50))
        x, y = (rng.normal(size=50)[user] + rng.normal(size=user.size) for _ in range(2))
        frame = with_clusters(jobs_of(user, (100 * (x + 9)).astype(int), np.exp(y + 5).astype(int)))
        table = correlations(frame, [None]).filter(outcome_set="success", unit="job")
        for row in table.iter_rows(named=True):
            for p in ("p_value", "p_clustered"):
                rejected[row["method"], p] += row[p] < 0.05
    for method in SCIPY:
        assert rejected[method, "p_clustered"] / rounds <= 0.09
        assert rejected[method, "p_value"] / rounds > 0.3


def test_what_is_blank_has_a_reason() -> None:
    of_three = tied(users=3)
    row = of_jobs(of_three, "spearman")
    assert row["clusters"] < FEWEST
    assert row["ci_low_clustered"] is row["p_clustered"] is row["reject_clustered"] is None
    assert row["reason"].endswith("fewer than 4: no clustered interval")
    row = of_jobs(of_three.drop("cluster", "cluster_by", "group", "group_by"), "spearman")
    assert (row["cluster_by"], row["reason"]) == (None, UNCLUSTERED)
    means = correlations(tied(), [None]).filter(outcome_set="success", unit="group_mean")
    assert means["reason"].str.contains(NO_MEAN_CLUSTERS).all()
    assert means["ci_low_clustered"].null_count() == means.height


def test_jobs_of_a_single_user_are_taken_by_their_groups() -> None:
    frame = tied().with_columns(pl.lit("one").alias("user"), qos=pl.lit("q") + pl.col("cluster").cast(str))
    frame = frame.drop(CLUSTER_COLUMNS)
    row = of_jobs(with_clusters(frame), "pearson")
    assert row["cluster_by"] == "request profile of one user"
    assert row["ci_low_clustered"] is not None


def test_a_cut_off_is_a_sample_of_its_own() -> None:
    frame = tied()
    cut = correlations(frame, [20]).filter(outcome_set="success", unit="job")
    alone = correlations(frame.filter(pl.col("runtime_s") < 20), [None]).filter(outcome_set="success", unit="job")
    assert_frame_equal(cut.drop("cutoff_s"), alone.drop("cutoff_s"))


def test_holm_is_over_the_features_of_one_family() -> None:
    frame = tied().with_columns(gpu_milli=pl.col("runtime_s") % 7 * 100)
    table = correlations(frame, [None]).filter(outcome_set="success", unit="job", method="pearson")
    first, last = table.sort("p_clustered").iter_rows(named=True)
    assert first["p_adjusted_clustered"] == pytest.approx(2 * first["p_clustered"])
    assert last["p_adjusted_clustered"] == pytest.approx(max(last["p_clustered"], 2 * first["p_clustered"]))
    assert first["reject_clustered"] == (first["p_adjusted_clustered"] < 0.05)
