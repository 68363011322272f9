"""Intervals that hold when clusters differ: against closed forms, independent libraries, and what must not be."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy.stats import t
from ttf.clusters import with_clusters
from ttf.stats.clustered import CLUSTERED, FEWEST, Clusters, beside, by_cluster, clustered_ratios, clustered_shares


def alone(members):
    """One stratum with clusters of so many members."""
    members = np.asarray(members, dtype=float)
    return Clusters(np.zeros(members.size, dtype=np.int64), members, 1)


def test_kish_counts_equal_clusters_whole_and_unequal_ones_less():
    assert alone([3, 3, 3, 3]).effective == pytest.approx([4])
    assert alone([97, 1, 1, 1]).effective == pytest.approx([100**2 / (97**2 + 3)])


def test_share_of_clusters_of_one_size_is_student_on_their_shares():
    """With m clusters of equal size the spread is that of m numbers, over 1 - 1/m."""
    part, size = np.array([2.0, 5, 3, 8, 1]), 10.0
    shares, m = part / size, part.size
    p = shares.mean()
    se = np.sqrt(((shares - p) ** 2).sum()) / m / (1 - 1 / m) / (p * (1 - p))
    away = t.ppf(0.975, m - 1) * se
    low, high = alone(np.full(m, size)).proportion(part, np.full(m, size), 0.95)
    logit = np.log(p / (1 - p))
    assert low == pytest.approx([1 / (1 + np.exp(away - logit))])
    assert high == pytest.approx([1 / (1 + np.exp(-away - logit))])


def test_mean_is_near_the_cluster_robust_regression_of_statsmodels():
    """A mean is a regression on 1; statsmodels' sandwich lacks the 1 - h, so that ours is a little wider."""
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(3)
    cluster = rng.integers(0, 200, 5_000)
    values = np.exp(rng.normal(size=200)[cluster] + rng.normal(size=5_000))
    robust = sm.OLS(values, np.ones(5_000)).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    n, total = np.bincount(cluster), np.bincount(cluster, weights=values)
    clusters = alone(n)
    of_top, of_bottom = clusters.share(total), clusters.share(n)
    ours = clusters.se(of_top - of_bottom, of_bottom)[0] * values.mean()
    assert robust.bse[0] < ours < 1.02 * robust.bse[0]


def test_a_mean_time_to_failure_is_the_inverse_of_its_rate():
    rng = np.random.default_rng(1)
    exposure, failures = rng.gamma(2, 50, 12), rng.poisson(5, 12) + 1.0
    clusters = alone(np.full(12, 10))
    low, high = clusters.ratio(exposure, failures, 0.95, both=True)
    rate_low, rate_high = clusters.ratio(failures, exposure, 0.95, both=True)
    assert low == pytest.approx(1 / rate_high)
    assert high == pytest.approx(1 / rate_low)


def test_an_interval_of_the_median_lies_about_the_middle():
    rng = np.random.default_rng(5)
    n = rng.integers(5, 40, 30).astype(float)
    below = np.floor(n / 2) + rng.integers(-2, 3, 30)
    low, high = alone(n).around_the_middle(below, n, 0.95)
    assert low + high == pytest.approx([1])
    assert 0.3 < low[0] < 0.5


def jobs(users, failed, **columns):
    return pl.DataFrame({"user": users, "failed": failed} | columns)


PART, WHOLE = pl.col("failed").sum(), pl.len()


def test_fewer_than_four_effective_clusters_have_no_interval():
    rows = with_clusters(jobs(list("aabbcc"), [True, False] * 3))
    found = clustered_shares(rows, [], PART, WHOLE).row(0, named=True)
    assert found["clusters"] == pytest.approx(3)
    assert found["ci_low_clustered"] is None
    assert found["why_not"] == f"3.0 effective clusters by user, fewer than {FEWEST}: no clustered interval"


def test_clusters_that_do_not_differ_leave_the_spread_unknown():
    rows = with_clusters(jobs(list("aabbccddee"), [True, False] * 5))
    found = clustered_shares(rows, [], PART, WHOLE).row(0, named=True)
    assert found["ci_low_clustered"] is None
    assert "no spread" in found["why_not"]


def test_a_stratum_of_one_cluster_is_divided_by_its_groups():
    rows = with_clusters(
        jobs(
            ["a"] * 6 + ["b", "c", "d", "e"], [True, False] * 5, qos=list("pqrstu") + ["p"] * 4, kind=[1] * 6 + [2] * 4
        )
    )
    found = by_cluster(rows, ["kind"], n=pl.len())
    assert found.filter(kind=1)["cluster_by"].unique().to_list() == ["request profile of one user"]
    assert found.filter(kind=1).height == 6
    assert found.filter(kind=2)["cluster_by"].unique().to_list() == ["user"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc"), st.integers(1, 3), st.booleans())))
def test_sums_at_hand_are_those_of_the_rows(rows):
    columns = {"user": pl.String, "account": pl.String, "gpu_milli": pl.Int64, "failed": pl.Boolean}
    frame = with_clusters(pl.DataFrame(rows, schema=columns, orient="row"))
    sums = {"n": pl.len(), "failures": pl.col("failed").sum()}
    summed = frame.group_by("gpu_milli", "account", "cluster").agg(**sums)
    for by in ([], ["account"], ["account", "gpu_milli"]):
        assert by_cluster(frame, by, summed=summed, **sums).equals(by_cluster(frame, by, **sums))


def test_a_trace_without_anything_in_common_has_no_clusters():
    rows = with_clusters(pl.DataFrame({"failed": [True, False]}))
    assert rows["cluster_by"].null_count() == 2
    found = clustered_shares(rows, [], PART, WHOLE)
    assert not found.height
    table = pl.DataFrame(
        {"stratum": ["all"], "ci_low": [0.1], "reason": [None]}, schema_overrides={"reason": pl.String}
    )
    told = beside(table, found.with_columns(stratum=pl.lit("all")), ["stratum"])
    assert told.columns == ["stratum", "ci_low", "reason", *CLUSTERED]
    assert "nothing in the trace" in told["reason"].item()


@pytest.mark.parametrize(
    ("columns", "cluster_by", "group_by"),
    [
        ({"user": ["u"], "recurrence_group": ["g"], "qos": ["q"]}, "user", "recurrence group"),
        ({"user": ["u"], "account": ["a"], "qos": ["q"]}, "user", "request profile of one user"),
        ({"user": ["u"]}, "user", "user"),
        ({"user": [None], "recurrence_group": ["g"], "qos": ["q"]}, "recurrence group", "recurrence group"),
        ({"user": [None], "gpu_milli": [1], "account": ["a"]}, "request profile", "request profile"),
        ({"account": ["a"]}, "account", "account"),
    ],
)
def test_what_repeats_is_the_first_that_the_trace_gives(columns, cluster_by, group_by):
    row = with_clusters(pl.DataFrame(columns)).row(0, named=True)
    assert (row["cluster_by"], row["group_by"]) == (cluster_by, group_by)


def test_clusters_are_numbered_as_they_appear_and_blank_ones_are_one():
    frame = pl.DataFrame({"user": ["b", None, "a", "b", None]})
    lazy = with_clusters(frame.lazy()).collect()
    assert_frame_equal(lazy, with_clusters(frame))
    assert lazy["cluster"].to_list() == [0, 1, 2, 0, 1]
    # Later jobs, of users whose names come first, change none of these numbers.
    more = with_clusters(pl.concat([frame, pl.DataFrame({"user": ["0", "a"]})]))
    assert more["cluster"].to_list() == [0, 1, 2, 0, 1, 3, 2]


def test_limits_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(2)
    rows = with_clusters(
        jobs([f"u{u}" for u in rng.integers(0, 30, 900)], rng.random(900) < 0.3, s=rng.integers(1, 99, 900))
    )
    args = ([], pl.col("s").sum(), PART, WHOLE)
    assert_frame_equal(
        clustered_ratios(rows, *args), clustered_ratios(rows.sample(fraction=1, shuffle=True, seed=4), *args)
    )
