"""Sum the compared quantities by part and cluster, in one pass over the jobs and one over the runs.

All are whole numbers. A job counts in the part of its first record, if it started a follow-up before the end of the
part and ended within that time of its start. So every such job is known in the last part too, and longer jobs are left
out of all parts. A run's time is split at the borders of the parts, and its end counts where it ended. The loss of a
run that is still going on belongs to a later part, in all parts alike.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.quality.compare_parts.calendar import Calendar
from ttf.records.durations import count_nodes
from ttf.records.infra import EVENT
from ttf.records.runs import GPU_HOUR
from ttf.stats.durations.mttf import SECONDS_A_DAY

DURATIONS = ("start_s", "duration_s", "event", "gpu_count", "gpu_milli", "nodes", "cluster")


@dataclass(frozen=True)
class Sums:
    """Events, numerator (top) and denominator (bottom) by part (row) and cluster (column); n: by part, Int64."""

    events: np.ndarray
    top: np.ndarray
    bottom: np.ndarray
    n: np.ndarray


def sum_ended_jobs(jobs: pl.LazyFrame, calendar: Calendar) -> Sums:
    """Sum the failures of jobs that ended within the follow-up. jobs: part, outcome, start_s, end_s, cluster."""
    last_s = pl.LazyFrame({"part": calendar.names, "row": range(len(calendar.names))}).with_columns(
        last_s=pl.Series(calendar.ends_s - calendar.follow_up_s)
    )
    counts = (
        jobs.filter(
            pl.col("outcome").is_in(["success", "failure"]),
            (pl.col("end_s") - pl.col("start_s")).is_between(0, calendar.follow_up_s),
        )
        .join(last_s, on="part")
        .filter(pl.col("start_s") <= pl.col("last_s"))
        .group_by("row", "cluster")
        .agg(n=pl.len(), failed=(pl.col("outcome") == "failure").sum())
        .collect(engine="streaming")
    )
    shape, indices = _scatter_indices(counts, len(calendar.names))
    n, failed = (_scatter_sums(shape, indices, counts[name].to_numpy()) for name in ("n", "failed"))
    return Sums(failed, failed, n, n.sum(axis=1).astype(np.int64))


def sum_runs(
    durations: pl.LazyFrame,
    failed: pl.LazyFrame,
    calendar: Calendar,
    above_gpus: int,
    node_gpus: int,
    node_gpus_from: str | None = None,
) -> tuple[Sums, Sums]:
    """Return two Sums: infrastructure failures over node-days, and GPU-hours of failed runs over those of all runs.

    durations: DURATIONS of infrastructure durations; failed: a row each, one column of that name. Rates cover runs on
    more GPUs than `above_gpus`, on the nodes that `count_nodes` counts. Time before the first part is cut off. n: runs
    with time in the part.
    """
    begin_s, end_s = int(calendar.begins_s[0]), int(calendar.ends_s[-1])
    borders = pl.lit(pl.Series(calendar.begins_s[1:] - begin_s))
    until_s = pl.col("start_s") + pl.col("duration_s")
    nodes = count_nodes(node_gpus, node_gpus_from)
    is_large = nodes * node_gpus > above_gpus
    runs = pl.concat([durations, failed], how="horizontal").filter(
        pl.col("duration_s").is_not_null(), until_s > begin_s, pl.col("start_s") < end_s
    )
    runs = runs.select(
        "cluster",
        start=(pl.col("start_s") - begin_s).clip(0),
        end=(until_s.clip(upper_bound=end_s) - begin_s).clip(1),
        gpus=pl.col("gpu_milli").fill_null(0).cast(pl.Int128),
        nodes=pl.when(is_large).then(nodes).otherwise(0),
        hit=((pl.col("event") == EVENT) & is_large).fill_null(False),
        failed=(pl.col("failed") & (pl.col("gpu_milli") > 0)).fill_null(False),
        duration_s=pl.col("duration_s"),
    )
    # The part of its first and of its last second.
    runs = runs.with_columns(
        first=borders.search_sorted(pl.col("start"), side="right").cast(pl.Int64),
        last=borders.search_sorted(pl.col("end") - 1, side="right").cast(pl.Int64),
    )
    moments = ("start", "end")
    times = {f"{size}_{time}": (pl.col(size) * pl.col(time)).sum() for size in ("gpus", "nodes") for time in moments}
    part_sums = runs.group_by("cluster", "first", "last").agg(
        pl.col("gpus", "nodes", "hit", "failed").sum(),
        n_nodes=(pl.col("nodes") > 0).sum(),
        n_gpus=(pl.col("gpus") > 0).sum(),
        lost=(pl.col("gpus") * pl.col("duration_s")).filter("failed").sum(),
        **times,
    )
    counts = part_sums.collect(engine="streaming").sort("cluster", "first", "last", nulls_last=True)
    parts = len(calendar.names)
    shape, indices = _scatter_indices(counts, parts, "last")
    ended = {name: _scatter_sums(shape, indices, _to_floats(counts[name])) for name in ("hit", "failed", "lost")}
    node_s = _time_in_parts(counts, "nodes", shape, calendar)
    gpu_s = _time_in_parts(counts, "gpus", shape, calendar)
    node_runs, gpu_runs = (_count_runs_by_part(counts, name, parts) for name in ("n_nodes", "n_gpus"))
    rate = Sums(ended["hit"], ended["hit"], node_s / SECONDS_A_DAY, node_runs)
    return rate, Sums(ended["failed"], ended["lost"] / GPU_HOUR, gpu_s / GPU_HOUR, gpu_runs)


def _time_in_parts(counts: pl.DataFrame, quantity: str, shape: tuple[int, int], calendar: Calendar) -> np.ndarray:
    """Return the seconds times a quantity by part and cluster, from sums of runs by first and last part."""
    begins = calendar.begins_s - calendar.begins_s[0]
    ends = calendar.ends_s - calendar.begins_s[0]
    size, start, end = (_to_floats(counts[name]) for name in (quantity, f"{quantity}_start", f"{quantity}_end"))
    first, last = (counts[name].to_numpy() for name in ("first", "last"))
    clusters = _cluster_codes(counts)
    time = np.zeros(shape)
    for part in range(shape[0]):
        is_running = (first <= part) & (part <= last)
        ended = np.where(last == part, end, ends[part] * size)
        begun = np.where(first == part, start, begins[part] * size)
        time[part] = np.bincount(clusters[is_running], weights=(ended - begun)[is_running], minlength=shape[1])
    return time


def _count_runs_by_part(counts: pl.DataFrame, name: str, parts: int) -> np.ndarray:
    """Return the runs with time in each part. counts: by first and last part; name: column of their numbers."""
    first, last, n = (counts[column].to_numpy() for column in ("first", "last", name))
    return np.array([n[(first <= part) & (part <= last)].sum() for part in range(parts)], np.int64)


def _cluster_codes(counts: pl.DataFrame) -> np.ndarray:
    """Return the code of each row's cluster, from 0; rows without a cluster share one."""
    return (counts["cluster"].cast(pl.Int64).fill_null(-1).rank("dense").cast(pl.Int64) - 1).to_numpy()


def _scatter_indices(counts: pl.DataFrame, parts: int, row: str = "row") -> tuple[tuple[int, int], tuple]:
    """Return the shape (parts, clusters) of the sums, and the indices (part, cluster) of each row."""
    clusters = _cluster_codes(counts)
    return (parts, int(clusters.max(initial=0)) + 1), (counts[row].to_numpy(), clusters)


def _scatter_sums(shape: tuple[int, int], indices: tuple, values: np.ndarray) -> np.ndarray:
    """Return the sums of the values by part and cluster; shape, indices: from `_scatter_indices`."""
    sums = np.zeros(shape)
    np.add.at(sums, indices, values)
    return sums


def _to_floats(values: pl.Series) -> np.ndarray:
    return values.cast(pl.Float64).to_numpy()
