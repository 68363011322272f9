"""Splitting the time of units by week, and intervals clustered by unit and week."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outage_traces import DAY
from ttf.records.clusters import (
    add_block_columns,
    add_clusters,
    add_levels,
    split_into_blocks,
    steps_by_block,
    sum_step_runs,
)
from ttf.records.durations import durations_of_jobs
from ttf.records.infra import EVENT, infra_durations
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.stats.clustered import Clusters, clustered_shares
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.shares import ENDED

WEEK = 7 * DAY
SPANS = st.lists(st.tuples(st.integers(-3 * WEEK, 3 * WEEK), st.integers(0, 4 * WEEK)), min_size=1, max_size=8)


@given(SPANS | st.lists(st.tuples(st.sampled_from([-WEEK, 0, WEEK]), st.sampled_from([0, 1, WEEK, 2 * WEEK]))))
def test_parts_add_up_and_each_lies_in_its_block(spans):
    rows = pl.DataFrame(spans, schema={"from_s": pl.Int64, "lasts_s": pl.Int64}, orient="row").with_row_index("row")
    parts = split_into_blocks(rows, pl.col("from_s"), pl.col("from_s") + pl.col("lasts_s"), 7)
    sums = parts.group_by("row", maintain_order=True).agg(pl.col("block_s", "is_first", "is_last").sum())
    assert sums["block_s"].to_list() == rows["lasts_s"].to_list()
    assert (sums["is_first"] == 1).all() and (sums["is_last"] == 1).all()
    assert parts["block_s"].is_between(0, WEEK).all()
    for row, start_s, block in parts.filter("is_first").select("row", "from_s", "block").iter_rows():
        assert block == start_s // WEEK, row


def units(seed=1, unit_count=40, weeks=20, shared=1.0):
    """Consecutive durations of units between failures. `shared` scales the variation between weeks."""
    rng = np.random.default_rng(seed)
    rate = np.exp(shared * rng.normal(size=weeks)) * 0.15
    rows = []
    for unit in range(unit_count):
        start_s = 0
        for week, failures in enumerate(rng.poisson(rate)):
            for failure_s in np.unique(rng.integers(week * WEEK, (week + 1) * WEEK, failures)).tolist():
                rows.append((unit, start_s, failure_s - start_s, "failure"))
                start_s = failure_s
        rows.append((unit, start_s, weeks * WEEK - start_s, None))
    durations = pl.DataFrame(rows, schema=["unit_id", "start_s", "duration_s", "event"], orient="row")
    durations = durations.filter(pl.col("duration_s") > 0).with_columns(
        nodes=pl.lit(1), gpu_milli=pl.lit(None, pl.Int64)
    )
    return add_levels(durations, {"node": ["unit_id"]})


def test_weeks_change_only_the_interval_of_a_mean_time():
    durations = units()
    unsplit, parts = (mean_time_to_failure(durations.lazy(), "failure", ["all"], block_days=days) for days in (None, 7))
    plain = [name for name in unsplit.columns if "cluster" not in name]
    assert unsplit.select(plain).equals(parts.select(plain))
    assert parts["cluster_by"].to_list() == ["node and week"] * 2
    # By hand: failures and time per unit and week.
    failed = durations.filter(pl.col("event").is_not_null())
    end_s = failed["start_s"] + failed["duration_s"]
    failures = np.zeros((40, 20))
    np.add.at(failures, (failed["unit_id"].to_numpy(), ((end_s - 1) // WEEK).to_numpy()), 1)
    time = np.full(failures.shape, float(WEEK))
    unit, week = (indices.ravel() for indices in np.indices(failures.shape))
    clusters = Clusters(np.zeros(unit.size, np.int64), time.ravel(), 1, unit, week)
    low, high, effective = clusters.ratio(time.ravel(), failures.ravel(), 0.95, has_mean_leverage=True)
    row = parts.row(1, named=True)
    assert (row["ci_low_clustered_s"], row["ci_high_clustered_s"]) == pytest.approx((low[0], high[0]))
    assert row["clusters"] == pytest.approx(effective[0])
    ratio = unsplit["ci_high_clustered_s"][1] / unsplit["ci_low_clustered_s"][1]
    assert row["ci_high_clustered_s"] / row["ci_low_clustered_s"] > 1.15 * ratio


@given(SPANS)
def test_runs_of_steps_are_the_sums_of_the_parts(spans):
    rows = pl.DataFrame(spans, schema={"from_s": pl.Int64, "lasts_s": pl.Int64}, orient="row")
    rows = rows.with_columns(key=pl.int_range(pl.len()) % 3, present=1, began=pl.int_range(pl.len()), ended=2)
    start_s, end_s = pl.col("from_s"), pl.col("from_s") + pl.col("lasts_s")
    steps = steps_by_block(rows, ["key"], start_s, end_s, 7, "s", ["present"], ["began"], ["ended"])
    runs = sum_step_runs(steps.lazy())
    values = ("present", "s", "began", "ended")
    blocks = runs.with_columns(block=pl.int_ranges("block", pl.col("block") + pl.col("blocks"))).explode("block")
    sums_by_name = {"s": "block_s", "present": "present"}
    edge_sums_by_name = {"began": pl.col("began") * pl.col("is_first"), "ended": pl.col("ended") * pl.col("is_last")}
    parts = split_into_blocks(rows, start_s, end_s, 7).with_columns(**sums_by_name, **edge_sums_by_name)
    sums = parts.group_by("key", "block").agg(pl.col(values).sum()).sort("key", "block")
    assert blocks.select(sums.columns).rows() == sums.rows()


def test_a_row_of_several_blocks_equals_several_rows():
    """Cover two strata; in one of them some units are not observed in the last blocks."""
    rng = np.random.default_rng(3)
    stratum, unit = np.repeat([0, 1], 90), np.tile(np.repeat(np.arange(15), 6), 2)
    blocks = rng.integers(1, 5, stratum.size)
    block = np.concatenate([np.cumsum(block_counts) - block_counts for block_counts in blocks.reshape(-1, 6)]) + 7
    time, events = rng.integers(1, 9, stratum.size).astype(float), rng.poisson(1.0, stratum.size).astype(float)
    row_index = np.repeat(np.arange(stratum.size), blocks)
    single_block = block[row_index] + np.arange(row_index.size) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    runs = Clusters(stratum, time, 2, unit, block, blocks)
    rows = Clusters(stratum[row_index], time[row_index], 2, unit[row_index], single_block)
    assert runs.counts_blocks.all() and rows.counts_blocks.all()
    for actual, expected in zip(
        (
            *runs.ratio(time, events, 0.95, has_mean_leverage=True),
            *runs.proportion(time, time + events, 0.95, by_influence=True),
        ),
        (
            *rows.ratio(time[row_index], events[row_index], 0.95, has_mean_leverage=True),
            *rows.proportion(time[row_index], (time + events)[row_index], 0.95, by_influence=True),
        ),
        strict=True,
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-11)


@pytest.mark.parametrize(("weeks_ended", "cluster_by"), [(7, "user"), (8, "user and week")])
def test_ratios_and_mean_times_count_weeks_together(weeks_ended, cluster_by):
    """Jobs without a result add weeks to the mean time to failure, but not to the failure share."""
    week, user = pl.col("job_id") // 8, pl.col("job_id") % 8
    failed, start_s = (user + 3 * week * (user % 2)) % 5 < 2, week * WEEK + 1_000
    ended = pl.when(failed).then(pl.lit("failure")).otherwise(pl.lit("success"))
    outcome = pl.when(week < weeks_ended).then(ended).otherwise(pl.lit("unknown"))
    frame = pl.DataFrame({"job_id": range(96)}).with_columns(
        user=user, outcome=outcome, start_s=start_s, end_s=start_s + 3_600, runtime_s=3_600, trace_end_s=20 * WEEK
    )
    jobs = add_block_columns(add_clusters(conform(frame, JOB_COLUMNS).lazy()), 7).collect()
    share = clustered_shares(jobs, [], ENDED["failures"], ENDED["ended"]).row(0, named=True)
    mean = mean_time_to_failure(durations_of_jobs(jobs), "failure", ["all"]).row(0, named=True)
    runs = infra_durations(jobs, None, {}, block_days=7)
    infra = mean_time_to_failure(runs, EVENT, ["all"]).row(0, named=True)
    assert [share["cluster_by"], mean["cluster_by"], infra["cluster_by"]] == [cluster_by] * 3
    assert None not in (share["ci_low_clustered"], mean["ci_low_clustered_s"], infra["ci_low_clustered_s"])
