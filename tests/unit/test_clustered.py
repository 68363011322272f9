"""Clustered intervals agree with closed forms and independent libraries, and are blank if undefined."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy.stats import t
from ttf.engine.columns import FEWEST_BLOCKS
from ttf.engine.counts import ValueCounts
from ttf.records.clusters import add_clusters, block_columns
from ttf.stats.clustered import (
    CLUSTERED,
    FEWEST,
    Clusters,
    clustered_medians,
    clustered_shares,
    join_clustered,
    sum_by_cluster,
)


def clusters_of(sizes):
    """Return one stratum with clusters of these sizes."""
    sizes = np.asarray(sizes, dtype=float)
    return Clusters(np.zeros(sizes.size, dtype=np.int64), sizes, 1)


def test_share_of_equal_clusters_is_student_on_their_shares():
    """With m clusters of equal size the standard error is that of m numbers, divided by 1 - 1/m."""
    part, size = np.array([2.0, 5, 3, 8, 1]), 10.0
    shares, m = part / size, part.size
    p = shares.mean()
    se = np.sqrt(((shares - p) ** 2).sum()) / m / (1 - 1 / m) / (p * (1 - p))
    margin = t.ppf(0.975, m - 1) * se
    low, high, _ = clusters_of(np.full(m, size)).proportion(part, np.full(m, size), 0.95)
    logit = np.log(p / (1 - p))
    assert low == pytest.approx([1 / (1 + np.exp(margin - logit))])
    assert high == pytest.approx([1 / (1 + np.exp(-margin - logit))])


def test_a_mean_time_to_failure_is_the_inverse_of_its_rate():
    rng = np.random.default_rng(1)
    exposure, failures = rng.gamma(2, 50, 12), rng.poisson(5, 12) + 1.0
    clusters = clusters_of(np.full(12, 10))
    low, high, _ = clusters.ratio(exposure, failures, 0.95, has_mean_leverage=True)
    rate_low, rate_high, _ = clusters.ratio(failures, exposure, 0.95, has_mean_leverage=True)
    assert low == pytest.approx(1 / rate_high)
    assert high == pytest.approx(1 / rate_low)


def test_a_single_failure_shows_no_spread_between_clusters():
    clusters = Clusters(np.repeat([0, 1], 6), np.full(12, 9.0), 2)
    failures = np.array([1.0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0])
    for limits in (
        clusters.ratio(clusters.members, failures, 0.95),
        clusters.ratio(failures, clusters.members, 0.95),
        clusters.proportion(failures, clusters.members, 0.95),
        clusters.proportion(clusters.members - failures, clusters.members, 0.95),
    ):
        assert np.isfinite(limits.low).tolist() == np.isfinite(limits.high).tolist() == [False, True]


def jobs_frame(users, failed, **columns):
    return pl.DataFrame({"user": users, "failed": failed} | columns)


PART, TOTAL = pl.col("failed").sum(), pl.len()


@pytest.mark.parametrize(
    ("users", "reason"),
    [
        ("aabbcc", f"3.0 effective clusters by user, fewer than {FEWEST}: no clustered interval"),
        ("aabbccddee", "no spread"),
    ],
)
def test_too_few_clusters_and_equal_ones_have_no_interval(users, reason):
    rows = add_clusters(jobs_frame(list(users), [True, False] * (len(users) // 2)))
    row = clustered_shares(rows, [], PART, TOTAL).row(0, named=True)
    assert row["clusters"] == pytest.approx(len(users) / 2)
    assert row["ci_low_clustered"] is None and reason in row["why_not"]


def test_medians_by_stratum_count_users_not_values():
    times = {kind: [100 * kind + n % 7 for n in range(200)] for kind in (1, 2)}
    users = [f"u{n // 10}" for n in range(200)]
    rows = add_clusters(pl.DataFrame({"user": users * 2, "kind": [1] * 200 + [2] * 200, "time": times[1] + times[2]}))
    values = {kind: ValueCounts(np.sort(kind_times), np.ones(200, np.int64)) for kind, kind_times in times.items()}
    limits = clustered_medians(rows, "kind", "time", values)
    assert limits["kind"].to_list() == [1, 2]
    assert limits["clusters"].to_list() == pytest.approx([20, 20])
    assert (limits["ci_low_clustered"] <= [103, 203]).all() and (limits["ci_high_clustered"] >= [103, 203]).all()


def test_a_stratum_of_one_cluster_is_divided_by_its_groups():
    rows = add_clusters(
        jobs_frame(
            ["a"] * 6 + ["b", "c", "d", "e"], [True, False] * 5, qos=list("pqrstu") + ["p"] * 4, kind=[1] * 6 + [2] * 4
        )
    )
    sums = sum_by_cluster(rows, ["kind"], n=pl.len())
    assert sums.filter(kind=1)["cluster_by"].unique().to_list() == ["request profile of one user"]
    assert sums.filter(kind=1).height == 6
    assert sums.filter(kind=2)["cluster_by"].unique().to_list() == ["user"]


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc"), st.integers(1, 3), st.booleans())))
def test_precomputed_sums_equal_those_of_the_rows(rows):
    columns = {"user": pl.String, "account": pl.String, "gpu_milli": pl.Int64, "failed": pl.Boolean}
    frame = add_clusters(pl.DataFrame(rows, schema=columns, orient="row"))
    sums = {"n": pl.len(), "failures": pl.col("failed").sum()}
    summed = frame.group_by("gpu_milli", "account", "cluster").agg(**sums)
    for keys in ([], ["account"], ["account", "gpu_milli"]):
        assert sum_by_cluster(frame, keys, True, summed, **sums).equals(sum_by_cluster(frame, keys, **sums))


def test_a_trace_without_shared_columns_has_no_clusters():
    rows = add_clusters(pl.DataFrame({"failed": [True, False]}))
    assert rows["cluster_by"].null_count() == 2
    shares = clustered_shares(rows, [], PART, TOTAL)
    assert not shares.height
    table = pl.DataFrame(
        {"stratum": ["all"], "ci_low": [0.1], "reason": [None]}, schema_overrides={"reason": pl.String}
    )
    joined = join_clustered(table, shares.with_columns(stratum=pl.lit("all")), ["stratum"])
    assert joined.columns == ["stratum", "ci_low", "reason", *CLUSTERED]
    assert "nothing in the trace" in joined["reason"].item()


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
def test_clusters_use_the_first_column_that_repeats(columns, cluster_by, group_by):
    row = add_clusters(pl.DataFrame(columns)).row(0, named=True)
    assert (row["cluster_by"], row["group_by"]) == (cluster_by, group_by)


def test_jobs_of_one_user_are_clustered_by_request_profile():
    rows = add_clusters(pl.DataFrame({"user": ["u"] * 3, "qos": ["a", "b", "a"]}))
    assert rows["cluster_by"].unique().to_list() == ["request profile of one user"]
    assert rows["cluster"].to_list() == rows["group"].to_list() == [0, 1, 0]


def test_clusters_are_numbered_as_they_appear_and_blank_ones_are_one():
    frame = pl.DataFrame({"user": ["b", None, "a", "b", None]})
    lazy = add_clusters(frame.lazy()).collect()
    assert_frame_equal(lazy, add_clusters(frame))
    assert lazy["cluster"].to_list() == [0, 1, 2, 0, 1]
    # Later jobs of users that sort first change none of these numbers.
    extended = add_clusters(pl.concat([frame, pl.DataFrame({"user": ["0", "a"]})]))
    assert extended["cluster"].to_list() == [0, 1, 2, 0, 1, 3, 2]


def weekly_failures(seed=1, users=12, blocks=20, shared=0.0, max_exposure=3):
    """Failures and exposure per user and week. `shared` is the log SD of the weeks."""
    rng = np.random.default_rng(seed)
    exposure = rng.integers(0, max_exposure, (users, blocks)).astype(float)
    failures = rng.poisson(exposure * np.exp(shared * rng.normal(size=blocks)))
    user, block = np.nonzero(exposure)
    values = exposure[user, block], failures[user, block].astype(float)
    return user, block, *values


@pytest.mark.parametrize("lasts", [False, True])
def test_weeks_add_the_variance_that_users_share(lasts):
    """Variance by hand: user + (week - user and week) x (1 + r) / (1 - r), each divided by 1 - h.

    lasts: the rate changes once, for good, so r is at its limit, 1 - 4 / 20.
    """
    user, block, exposure, failures = weekly_failures(2, shared=1.0)
    failures = exposure * np.where(block < 10, 1, 3) if lasts else failures
    clusters = Clusters(np.zeros(user.size, np.int64), exposure, 1, user, block)
    influence, leverage = failures / failures.sum() - exposure / exposure.sum(), exposure / exposure.sum()

    def sum_by_key(keys, values):
        sums = {}
        for key, value in zip(keys, values, strict=True):
            sums[key] = sums.get(key, 0) + value
        return sums

    def adjust(keys):
        i, h = sum_by_key(keys, influence), sum_by_key(keys, leverage)
        return {key: i[key] / (1 - h[key]) for key in i}

    user_sums, week_sums, cells = (adjust(list(keys)) for keys in (user, block, zip(user, block, strict=True)))
    joint = sum(i**2 for i in week_sums.values()) - sum(i**2 for i in cells.values())
    carried = sum(week_sums[w] * week_sums[w + 1] for w in range(19))
    carried -= sum(i * cells.get((u, w + 1), 0) for (u, w), i in cells.items())
    r = (20 * carried / joint + 1) / 16
    assert joint > 0 and r > 0 and (r > 0.8) == lasts
    r = min(r, 0.8)
    variance = sum(i**2 for i in user_sums.values())
    long_run = (1 + r) / (1 - r)
    spread = clusters.spread(influence, leverage)
    assert spread.se[0] == pytest.approx(np.sqrt(variance + joint * long_run))
    weeks = np.bincount(block, exposure)
    week_df = max(weeks.sum() ** 2 / (weeks**2).sum() / long_run - 1, 3)
    degrees = spread.se[0] ** 4 / (variance**2 / (clusters.effective[0] - 1) + (joint * long_run) ** 2 / week_df)
    assert spread.degrees[0] == pytest.approx(degrees)
    assert spread.effective[0] == pytest.approx(degrees + 1)


@given(st.integers(0, 10**6), st.integers(1, 30), st.sampled_from([0.0, 0.5]))
def test_weeks_never_narrow_an_interval_and_few_weeks_do_nothing(seed, blocks, shared):
    user, block, exposure, failures = weekly_failures(seed, 12, blocks, shared)
    if not exposure.size:
        return
    stratum, influence = np.zeros(user.size, np.int64), failures - exposure * failures.sum() / exposure.sum()
    leverage = exposure / exposure.sum()
    users = Clusters(stratum, exposure, 1, user, np.zeros_like(block)).spread(influence, leverage)
    weeks = Clusters(stratum, exposure, 1, user, block).spread(influence, leverage)
    if np.unique(block).size < FEWEST_BLOCKS:
        assert np.array_equal([users.se, users.degrees], [weeks.se, weeks.degrees], equal_nan=True)
    else:
        assert np.isnan(users.se[0]) or weeks.se[0] >= users.se[0]
        assert np.isnan(weeks.degrees[0]) or weeks.degrees[0] >= FEWEST - 1


def test_the_table_names_weeks_if_they_count():
    """One of two strata spans eight weeks, the other seven."""
    rng = np.random.default_rng(8)
    n = 600
    stratum = np.arange(n) % 2
    week = rng.integers(0, 8 - stratum, n)
    frame = jobs_frame([f"u{u}" for u in rng.integers(0, 15, n)], rng.random(n) < 0.3, stratum=stratum)
    frame = frame.with_columns(block_by=pl.lit("week"), block=pl.Series(week, dtype=pl.Int64))
    weekly = clustered_shares(add_clusters(frame), ["stratum"], PART, TOTAL)
    assert weekly["cluster_by"].to_list() == ["user and week", "user"]
    plain = clustered_shares(add_clusters(frame.drop("block")), ["stratum"], PART, TOTAL)
    assert weekly.row(1) == pytest.approx(plain.row(1))


def test_a_job_is_in_the_week_in_which_it_ended():
    week = 7 * 86_400
    rows = [
        ("success", 10 * week - 1, 0, None, 20 * week),
        ("running", None, week, 0, 20 * week),
        ("failure", None, 3 * week, 0, 20 * week),
        ("waiting", None, None, 4 * week, 20 * week),
        ("failure", -1, -9, -99, 0),
    ]
    columns = dict.fromkeys(("end_s", "start_s", "submit_s", "trace_end_s"), pl.Int64)
    frame = pl.DataFrame(rows, schema={"outcome": pl.String, **columns}, orient="row")
    blocks = frame.with_columns(**block_columns(7))
    assert blocks["block"].to_list() == [9, 20, 3, 4, -1]
    assert blocks["block_by"].unique().to_list() == ["week"]
    assert frame.with_columns(**block_columns(14))["block_by"][0] == "14 days"
