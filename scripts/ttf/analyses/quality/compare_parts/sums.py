"""What is compared, by part and cluster: whole numbers, summed in one pass over the jobs and one over the runs.

A job counts in the part that its first record stands in, if it started a follow-up before the part's end and ended
within that time of its start: in the last part, too, every such job is known, and a job that needs longer is left out
of all parts alike. A run's time is divided at the borders of the parts, and its end counts where it ended: what a run
still going on has lost when it fails is of a later part, as in all parts before.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.quality.compare_parts.calendar import Calendar
from ttf.records.infra import EVENT
from ttf.records.lives import nodes_at_work
from ttf.records.runs import GPU_HOUR
from ttf.stats.durations.mttf import SECONDS_A_DAY

LIVES = ("start_s", "duration_s", "event", "gpu_count", "gpu_milli", "nodes", "cluster")


@dataclass(frozen=True)
class Sums:
    """Of each part (row) and cluster (column): events, and top over bottom is the measure. n: of the parts, Int64."""

    events: np.ndarray
    top: np.ndarray
    bottom: np.ndarray
    n: np.ndarray


def ended_jobs(jobs: pl.LazyFrame, calendar: Calendar) -> Sums:
    """Failures of the jobs that ended within the follow-up. jobs: part, outcome, start_s, end_s, cluster."""
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
    shape, place = _places(counts, len(calendar.names))
    n, failed = (_spread(shape, place, counts[name].to_numpy()) for name in ("n", "failed"))
    return Sums(failed, failed, n, n.sum(axis=1).astype(np.int64))


def runs_by_time(
    lives: pl.LazyFrame,
    failed: pl.LazyFrame,
    calendar: Calendar,
    above: int,
    node_gpus: int,
    node_gpus_from: str | None = None,
) -> tuple:
    """(rate, lost): Sums of infrastructure failures over node-days, and of GPU-hours of failed runs over all.

    lives: LIVES of infra lives; failed: one column of that name, a row each. Rates are of runs of more GPUs than
    `above`, by the nodes that `nodes_at_work` gives them. What lies before the first part begins is cut off. n: runs
    with time in a part.
    """
    begin_s, end_s = int(calendar.begins_s[0]), int(calendar.end_s)
    borders = pl.lit(pl.Series(calendar.begins_s[1:] - begin_s))
    until_s = pl.col("start_s") + pl.col("duration_s")
    nodes = nodes_at_work(node_gpus, node_gpus_from)
    is_large = nodes * node_gpus > above
    runs = pl.concat([lives, failed], how="horizontal").filter(
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
        whole=pl.col("duration_s"),
    )
    # The part of its first and of its last second.
    runs = runs.with_columns(
        first=borders.search_sorted(pl.col("start"), side="right").cast(pl.Int64),
        last=borders.search_sorted(pl.col("end") - 1, side="right").cast(pl.Int64),
    )
    times = {f"{what}_{at}": (pl.col(what) * pl.col(at)).sum() for what in ("gpus", "nodes") for at in ("start", "end")}
    counts = runs.group_by("cluster", "first", "last").agg(
        pl.col("gpus", "nodes", "hit", "failed").sum(),
        n_nodes=(pl.col("nodes") > 0).sum(),
        n_gpus=(pl.col("gpus") > 0).sum(),
        lost=(pl.col("gpus") * pl.col("whole")).filter("failed").sum(),
        **times,
    )
    counts = counts.collect(engine="streaming").sort("cluster", "first", "last", nulls_last=True)
    parts = len(calendar.names)
    shape, place = _places(counts, parts, "last")
    at_end = {name: _spread(shape, place, _floats(counts[name])) for name in ("hit", "failed", "lost")}
    node_s = _time_in_parts(counts, "nodes", shape, calendar)
    gpu_s = _time_in_parts(counts, "gpus", shape, calendar)
    of_nodes, of_gpus = (_runs_in_parts(counts, name, parts) for name in ("n_nodes", "n_gpus"))
    rate = Sums(at_end["hit"], at_end["hit"], node_s / SECONDS_A_DAY, of_nodes)
    return rate, Sums(at_end["failed"], at_end["lost"] / GPU_HOUR, gpu_s / GPU_HOUR, of_gpus)


def _time_in_parts(counts: pl.DataFrame, what: str, shape: tuple[int, int], calendar: Calendar) -> np.ndarray:
    """The seconds, times what, of each part and cluster. counts: sums of the runs from one part to another."""
    begins = calendar.begins_s - calendar.begins_s[0]
    ends = calendar.ends_s - calendar.begins_s[0]
    size, start, end = (_floats(counts[name]) for name in (what, f"{what}_start", f"{what}_end"))
    first, last = (counts[name].to_numpy() for name in ("first", "last"))
    whose = _whose(counts)
    found = np.zeros(shape)
    for part in range(shape[0]):
        within = (first <= part) & (part <= last)
        till = np.where(last == part, end, ends[part] * size)
        since = np.where(first == part, start, begins[part] * size)
        found[part] = np.bincount(whose[within], weights=(till - since)[within], minlength=shape[1])
    return found


def _runs_in_parts(counts: pl.DataFrame, name: str, parts: int) -> np.ndarray:
    first, last, n = (counts[column].to_numpy() for column in ("first", "last", name))
    return np.array([n[(first <= part) & (part <= last)].sum() for part in range(parts)], np.int64)


def _whose(counts: pl.DataFrame) -> np.ndarray:
    """The cluster of each row from 0 on; those without a number are one."""
    return (counts["cluster"].cast(pl.Int64).fill_null(-1).rank("dense").cast(pl.Int64) - 1).to_numpy()


def _places(counts: pl.DataFrame, parts: int, row: str = "row") -> tuple[tuple[int, int], tuple]:
    whose = _whose(counts)
    return (parts, int(whose.max(initial=0)) + 1), (counts[row].to_numpy(), whose)


def _spread(shape: tuple[int, int], place: tuple, values: np.ndarray) -> np.ndarray:
    found = np.zeros(shape)
    np.add.at(found, place, values)
    return found


def _floats(values: pl.Series) -> np.ndarray:
    return values.cast(pl.Float64).to_numpy()
