"""Drift: windows and traces are compared by exact counts, and the chart agrees with the table."""

import numpy as np
import polars as pl
import pytest
from drawn_figures import draw_svg
from statsmodels.stats.multitest import multipletests
from ttf.analyses.quality.measure_drift import DRIFT
from ttf.analyses.quality.measure_drift.charts import drift_chart
from ttf.analyses.quality.measure_drift.compute import by_window, compare_traces, drift_table
from ttf.display.charts.figure import Study
from ttf.engine.storage.tables import read_table, write_csv
from ttf.records.clusters import add_clusters
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.stats.clustered_differences import compare_cells, compare_means
from ttf.stats.differences import compare_distributions

DAY = 86_400


def make_jobs_of_users(seed, users=60, n=1500, days=14, spread=1.0):
    """Make two weeks of jobs of users who differ in requests, run times and failures, without drift."""
    random = np.random.default_rng(seed)
    weights = np.arange(1, users + 1) ** -0.9
    user = random.choice(users, n, p=weights / weights.sum())
    # A user is active for some days.
    day = (random.integers(0, days, users)[user] + random.integers(0, 4, n)) % days
    effect = spread * random.normal(size=users)[user]
    frame = pl.DataFrame(
        {
            "user": [f"u{number}" for number in user],
            "job_id": [f"{i}" for i in range(n)],
            "submit_s": day * DAY + random.integers(0, DAY, n),
            "outcome": np.where(random.random(n) < 1 / (1 + np.exp(1 - effect)), "failure", "success"),
            "gpu_type": np.array(["T4", "P100", "V100"])[(user + (random.random(n) < 0.2)) % 3],
            "runtime_s": (600 * np.exp(effect + random.normal(size=n))).astype(np.int64),
            "gpu_milli": np.array([500, 1000, 2000])[user % 3],
        }
    )
    return add_clusters(conform(frame, JOB_COLUMNS))


@pytest.fixture(scope="module")
def rows_without_drift():
    return [row for seed in range(60) for row in by_window(make_jobs_of_users(seed), "week")]


@pytest.mark.parametrize(
    ("statistic", "column"), [("failure_share", "outcome"), ("distribution", "gpu_type"), ("median", "runtime_s")]
)
def test_users_who_come_and_go_are_seldom_drift(rows_without_drift, statistic, column):
    """The same users are active throughout; the exact tests reject most of these true nulls."""
    rows = [row for row in rows_without_drift if (row["statistic"], row["column"]) == (statistic, column)]
    assert len(rows) == 60
    assert sum(row["p_clustered"] < 0.05 for row in rows) <= 8
    assert sum(row["p_value"] < 0.05 for row in rows) > 24


def test_a_user_in_both_windows_counts_once():
    """Every user fails more in the second week, so the difference is clear although users differ widely."""
    early, n = np.array([1.0, 5, 20, 60, 30, 8, 90, 45]), np.full(8, 100.0)
    late = early + np.array([8.0, 9, 8, 9, 8, 9, 8, 9])
    assert compare_means(early, n, late, n)["p_clustered"] < 1e-3
    # The same difference between other users says nothing.
    separate = [np.concatenate(pair) for pair in ((early, 0 * n), (n, 0 * n), (0 * n, late), (0 * n, n))]
    assert compare_means(*separate)["p_clustered"] > 0.3


def test_two_cells_are_one_share():
    random = np.random.default_rng(8)
    counts_before, counts_after = random.poisson(30, (25, 2)).astype(float), random.poisson(33, (25, 2)).astype(float)
    _, cells, chi2 = compare_distributions(counts_before.sum(axis=0).astype(int), counts_after.sum(axis=0).astype(int))
    cell_test = compare_cells(counts_before, counts_after, cells, chi2)
    share = compare_means(counts_before[:, 0], counts_before.sum(axis=1), counts_after[:, 0], counts_after.sum(axis=1))
    assert cell_test["p_clustered"] == pytest.approx(share["p_clustered"], rel=1e-9)
    assert compare_cells(counts_before[:3], counts_after[:3], cells, chi2).keys() == {"clusters"}


def jobs(n, seed=1, days=30, failures=0.3, runtime=600):
    random = np.random.default_rng(seed)
    outcome = random.choice(["success", "failure", "running"], n, p=[0.8 - failures, failures, 0.2])
    frame = pl.DataFrame(
        {
            "job_id": [f"{seed}-{i}" for i in range(n)],
            "submit_s": random.integers(0, days * DAY, n),
            "outcome": outcome,
            "gpu_type": random.choice(["T4", "P100", "V100"], n, p=[0.6, 0.35, 0.05]),
            "runtime_s": random.exponential(runtime, n).astype(np.int64),
            "gpu_milli": random.choice([500, 1000, 2000], n),
        }
    )
    return conform(frame, JOB_COLUMNS)


def drifted_jobs():
    """A month of jobs: in its last week they fail more and run longer."""
    later = jobs(300, 2, 7, failures=0.6, runtime=6000).with_columns(pl.col("submit_s") + 28 * DAY)
    all_jobs = pl.concat([jobs(1200, 1, 28), later])
    return add_clusters(all_jobs.with_columns(user=(pl.int_range(pl.len()) % 60).cast(pl.String)))


def test_the_windows():
    rows = by_window(drifted_jobs(), "week")
    table = drift_table(rows)
    DRIFT.check(table)
    pairs = set(table.select("window", "against").unique().rows())
    assert pairs == {("week 2", "week 1")} | {
        (f"week {n}", against) for n in (3, 4, 5) for against in (f"week {n - 1}", "all before")
    }
    effects = table["effect"].abs()
    assert effects.drop_nulls().is_sorted(descending=True)
    assert table["effect"].tail(table["effect"].null_count()).null_count() == table["effect"].null_count()
    first = table.row(0, named=True)
    assert (first["window"], first["column"], first["statistic"]) == ("week 5", "runtime_s", "median")
    failed = table.filter((pl.col("statistic") == "failure_share") & (pl.col("against") == "all before"))
    assert failed["window"][0] == "week 5"
    last = failed.row(0, named=True)
    frame = drifted_jobs().filter(pl.col("outcome") != "running")
    jobs_before = frame.filter(pl.col("submit_s") - drifted_jobs()["submit_s"].min() < 28 * DAY)
    assert last["n_before"] == jobs_before.height
    assert last["before"] == (jobs_before["outcome"] == "failure").sum() / jobs_before.height
    p = [row["p_value"] for row in rows if row["p_value"] is not None]
    adjusted = table["p_adjusted"].drop_nulls().sort().to_list()
    assert adjusted == pytest.approx(sorted(multipletests(p, method="holm")[1]))
    blank = table.filter(pl.any_horizontal(pl.col("before", "after", "p_adjusted", "effect").is_null()))
    assert blank["reason"].null_count() == 0


def test_order_and_threads_change_no_bit(tmp_path):
    frame = drifted_jobs()
    write_csv(drift_table(by_window(frame, "day")), tmp_path / "a.csv")
    write_csv(drift_table(by_window(frame.sample(fraction=1, shuffle=True, seed=3), "day")), tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert read_table(tmp_path / "a.csv", DRIFT).equals(drift_table(by_window(frame, "day")))


def test_two_traces():
    table = drift_table(compare_traces(jobs(500, 1), jobs(400, 2, failures=0.5), ("old", "new")))
    assert set(table.select("window", "against").rows()) == {("new", "old")}
    share = table.filter(pl.col("statistic") == "failure_share").row(0, named=True)
    assert share["after"] > share["before"]
    assert share["p_adjusted"] < 0.05
    assert set(table.filter(pl.col("column") == "gpu_type")["value"]) == {"T4", "P100", "V100", None}


@pytest.mark.parametrize("frame", [jobs(0), jobs(1), jobs(20, days=1).with_columns(submit_s=pl.lit(None, pl.Int64))])
def test_nothing_to_compare(frame):
    table = drift_table(by_window(frame, "month"))
    DRIFT.check(table)
    assert table.is_empty()
    drift_table(compare_traces(frame, frame, ("a", "b")))


# The chart ------------------------------------------------------------------------------------------------


def test_the_chart_of_two_traces_and_of_nothing():
    hostile = jobs(400, 2).with_columns(gpu_type=pl.lit("<script>\u202e\x00'; datum.x"))
    drawn = drift_chart({"drift": drift_table(compare_traces(jobs(500, 1), hostile, ("old", "new")))}, Study())
    assert "<script>\u202e" not in draw_svg(drawn)
    assert drawn.datasets["drift"][0]["window"] == "new"
    assert drift_chart({"drift": drift_table(by_window(jobs(8, days=8), "week"))}, Study()).empty
    without_clusters = drift_chart(
        {"drift": drift_table(compare_traces(jobs(500), jobs(500), ("old", "new")))}, Study()
    )
    assert "0 significant (adjusted p < 0.05, not tested, as no clusters are known)" in without_clusters.caption
