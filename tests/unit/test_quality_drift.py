"""Drift: the tests are scipy's, the counts are exact, and the chart says what the table says."""

import json
import math

import numpy as np
import polars as pl
import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_effectsize, proportions_ztest
from ttf.analyses.measure_drift import DRIFT
from ttf.analyses.measure_drift import compute as drift
from ttf.analyses.measure_drift.charts import drift_chart
from ttf.analyses.measure_drift.compute import (
    between,
    by_window,
    compare_distributions,
    compare_medians,
    compare_shares,
    drift_table,
)
from ttf.analyses.measure_drift.differing import of_cells, of_means
from ttf.charts.figure import Study
from ttf.clusters import with_clusters
from ttf.jobs import JOB_COLUMNS, conform
from ttf.stats.p_value import SMALLEST_P, TINY_P
from ttf.tables import read_table, write_csv

DAY = 86_400


def users_who_differ(seed, users=60, n=1500, days=14, spread=1.0):
    """Two weeks of users who differ in what they ask for, how long they run and how often they fail, and no drift."""
    random = np.random.default_rng(seed)
    often = np.arange(1, users + 1) ** -0.9
    user = random.choice(users, n, p=often / often.sum())
    # A user is about for some days.
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
    return with_clusters(conform(frame, JOB_COLUMNS))


@pytest.mark.parametrize(
    ("statistic", "column"), [("failure_share", "outcome"), ("distribution", "gpu_type"), ("median", "runtime_s")]
)
def test_users_who_come_and_go_are_seldom_drift(statistic, column):
    """The same users throughout, about for some days each: the exact tests reject most of these true nulls."""
    clustered = exact = 0
    for seed in range(100):
        rows = by_window(users_who_differ(seed), "week")
        (row,) = (row for row in rows if (row["statistic"], row["column"]) == (statistic, column))
        clustered += row["p_clustered"] < 0.05
        exact += row["p_value"] < 0.05
    assert clustered <= 12
    assert exact > 40


def test_a_user_in_both_windows_counts_once():
    """Every user fails more in the second week: users differ widely, and there is no doubt all the same."""
    before, n = np.array([1.0, 5, 20, 60, 30, 8, 90, 45]), np.full(8, 100.0)
    after = before + np.array([8.0, 9, 8, 9, 8, 9, 8, 9])
    assert of_means(before, n, after, n)["p_clustered"] < 1e-3
    # The same difference between other users says nothing.
    apart = [np.concatenate(pair) for pair in ((before, 0 * n), (n, 0 * n), (0 * n, after), (0 * n, n))]
    assert of_means(*apart)["p_clustered"] > 0.3


def test_two_cells_are_one_share():
    random = np.random.default_rng(8)
    before, after = random.poisson(30, (25, 2)).astype(float), random.poisson(33, (25, 2)).astype(float)
    _, cells, chi2 = compare_distributions(before.sum(axis=0).astype(int), after.sum(axis=0).astype(int))
    of_both = of_cells(before, after, cells, chi2)
    share = of_means(before[:, 0], before.sum(axis=1), after[:, 0], after.sum(axis=1))
    assert of_both["p_clustered"] == pytest.approx(share["p_clustered"], rel=1e-9)
    assert of_cells(before[:3], after[:3], cells, chi2).keys() == {"clusters"}


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


def moved():
    """A month of jobs: in its last week they fail more and run longer."""
    later = jobs(300, 2, 7, failures=0.6, runtime=6000).with_columns(pl.col("submit_s") + 28 * DAY)
    both = pl.concat([jobs(1200, 1, 28), later])
    return with_clusters(both.with_columns(user=(pl.int_range(pl.len()) % 60).cast(pl.String)))


def counts_of(values, sample):
    return np.array([sample.count(value) for value in values], dtype=np.int64)


samples = st.lists(st.integers(0, 12), min_size=8, max_size=40)


@settings(deadline=None)
@given(samples, samples)
def test_mann_whitney_is_that_of_scipy(before, after):
    values = sorted({*before, *after})
    row = compare_medians(np.array(values), counts_of(values, before), counts_of(values, after))
    assert (row["before"], row["after"]) == (np.median(before), np.median(after))
    greater = sum((b > a) - (b < a) for a in before for b in after)
    assert row["effect"] == greater / (len(before) * len(after))
    if len(values) == 1:
        assert (row["p_value"], row["reason"]) == (None, drift.ALL_EQUAL)
    else:
        expected = stats.mannwhitneyu(after, before, method="asymptotic", use_continuity=True)
        assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)


@settings(deadline=None)
@given(st.integers(8, 500), st.integers(8, 500), st.floats(0, 1), st.floats(0, 1))
def test_shares_are_those_of_statsmodels(n_before, n_after, p_before, p_after):
    hits = round(p_before * n_before), round(p_after * n_after)
    row = compare_shares(hits[0], n_before, hits[1], n_after)
    assert (row["before"], row["after"]) == (hits[0] / n_before, hits[1] / n_after)
    if row["effect"] is not None:
        effect = proportion_effectsize(hits[1] / n_after, hits[0] / n_before)
        assert row["effect"] == pytest.approx(effect, abs=1e-12)
    expected = min(sum(hits), n_before + n_after - sum(hits)) * min(n_before, n_after) / (n_before + n_after)
    assert (row["p_value"] is None) == (expected < drift.FEWEST_EXPECTED)
    if row["p_value"] is not None:
        _, p = proportions_ztest(hits, (n_before, n_after))
        assert row["p_value"] == pytest.approx(max(p, SMALLEST_P), rel=1e-6)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(10, 500), st.integers(10, 500)), min_size=2, max_size=8))
def test_distributions_are_those_of_scipy(cells):
    before, after = (np.array(side) for side in zip(*cells, strict=True))
    row = compare_distributions(before, after)[0]
    table = np.array([before, after])
    expected = stats.chi2_contingency(table, correction=False)
    if expected.expected_freq.min() >= 5:
        assert row["p_value"] == pytest.approx(max(expected.pvalue, SMALLEST_P), rel=1e-6)
        assert row["effect"] == pytest.approx(stats.contingency.association(table, "cramer"), abs=1e-9)


def test_rare_values_are_taken_together():
    row = compare_distributions(np.array([50, 40, 3, 3, 0]), np.array([40, 50, 3, 4, 1]))[0]
    table = np.array([[50, 40, 6], [40, 50, 8]])
    assert row["p_value"] == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)
    row = compare_distributions(np.array([50, 40, 1]), np.array([40, 50, 0]))[0]
    table = np.array([[51, 40], [40, 50]])
    assert row["p_value"] == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (compare_shares(0, 0, 5, 10), drift.NOT_THERE),
        (compare_shares(1, 7, 5, 10), drift.TOO_FEW),
        (compare_shares(0, 100, 0, 100), drift.ALL_EQUAL),
        (compare_shares(1, 100, 0, 100), drift.TOO_RARE),
        (compare_shares(0, 10**6, 10**6, 10**6), TINY_P),
        (compare_distributions(np.array([5, 0]), np.array([0, 0]))[0], drift.NOT_THERE),
        (compare_distributions(np.array([9]), np.array([9]))[0], drift.ALL_EQUAL),
        (compare_distributions(np.array([99, 1]), np.array([99, 1]))[0], drift.TOO_RARE),
        (compare_distributions(np.array([10**6, 0]), np.array([0, 10**6]))[0], TINY_P),
        (compare_medians(np.array([1]), np.array([0]), np.array([9])), drift.NOT_THERE),
        (compare_medians(np.array([1]), np.array([7]), np.array([9])), drift.TOO_FEW),
        (compare_medians(np.array([1, 2]), np.array([10**6, 0]), np.array([0, 10**6])), TINY_P),
    ],
)
def test_a_blank_has_its_reason(row, reason):
    assert row["reason"] == reason
    told = row["effect"] is not None and row["p_value"] is not None
    assert told == (reason == TINY_P)


def test_the_windows():
    table = drift_table(by_window(moved(), "week"))
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
    frame = moved().filter(pl.col("outcome") != "running")
    before = frame.filter(pl.col("submit_s") - moved()["submit_s"].min() < 28 * DAY)
    assert last["n_before"] == before.height
    assert last["before"] == (before["outcome"] == "failure").sum() / before.height
    p = table["p_value"].drop_nulls().to_list()
    assert table["p_adjusted"].drop_nulls().to_list() == pytest.approx(list(multipletests(p, method="holm")[1]))
    blank = table.filter(pl.any_horizontal(pl.col("before", "after", "p_value", "effect").is_null()))
    assert blank["reason"].null_count() == 0


def test_order_and_threads_change_no_bit(tmp_path):
    frame = moved()
    write_csv(drift_table(by_window(frame, "day")), tmp_path / "a.csv")
    write_csv(drift_table(by_window(frame.sample(fraction=1, shuffle=True, seed=3), "day")), tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert read_table(tmp_path / "a.csv", DRIFT).equals(drift_table(by_window(frame, "day")))


def test_two_traces():
    table = drift_table(between(jobs(500, 1), jobs(400, 2, failures=0.5), ("old", "new")))
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
    drift_table(between(frame, frame, ("a", "b")))


def test_the_rows_are_bounded(monkeypatch):
    whole = drift_table(by_window(moved(), "week"))
    monkeypatch.setattr(drift, "MOST_ROWS", 10)
    assert drift_table(by_window(moved(), "week")).equals(whole.head(10))


def test_a_million_equal_jobs_do_not_overflow():
    counts = np.array([3_000_000, 1], dtype=np.int64)
    row = compare_medians(np.array([0, 1]), counts, counts)
    assert 0.9 < row["p_value"] <= 1
    assert row["effect"] == 0


# The chart ------------------------------------------------------------------------------------------------


def svg(figure):
    return vl_convert.vegalite_to_svg(json.dumps(figure.spec(validate=True)), allowed_base_urls=[])


def test_the_chart_of_windows():
    table = drift_table(by_window(moved(), "week"))
    drawn = drift_chart({"drift": table}, Study("task", synthetic=True))
    assert drawn.empty is None
    assert drawn.title == "Change of shares and medians over time"
    most = drawn.datasets["drift"][0]
    assert (most["measure"], most["window"], most["against"]) == ("median run time", "week 5", "week 4")
    assert {row["against"] for row in drawn.datasets["drift"]} == {"week 1", "week 2", "week 3", "week 4"}
    assert svg(drawn)
    assert drawn.spec() == drift_chart({"drift": table}, Study("task", synthetic=True)).spec()
    both = drift_table([*by_window(moved(), "week"), *between(jobs(500), moved(), ("old", "new"))])
    assert "The comparison with the other trace is in drift.csv." in drift_chart({"drift": both}, Study()).caption


def test_the_chart_of_two_traces_and_of_nothing():
    hostile = jobs(400, 2).with_columns(gpu_type=pl.lit("<script>\u202e\x00'; datum.x"))
    drawn = drift_chart({"drift": drift_table(between(jobs(500, 1), hostile, ("old", "new")))}, Study())
    assert "<script>\u202e" not in svg(drawn)
    assert drawn.datasets["drift"][0]["window"] == "new"
    assert drift_chart({"drift": drift_table([])}, Study()).empty
    few = drift_table(by_window(jobs(8, days=8), "week"))
    assert drift_chart({"drift": few}, Study()).empty
    alone = drift_chart({"drift": drift_table(between(jobs(500), jobs(500), ("old", "new")))}, Study())
    assert "0 significant (adjusted p < 0.05, not tested, as no clusters are known)" in alone.caption
    users = users_who_differ(1)
    same = drift_chart({"drift": drift_table(between(users, users, ("old", "new")))}, Study())
    assert ", 0 significant (adjusted p < 0.05, clustered by user)" in same.caption
    assert all(math.isfinite(row["effect"]) for row in same.datasets["drift"])
