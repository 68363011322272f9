"""Summarise all jobs: how many ended and failed, concentration of failures, medians, and the period covered."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.outcomes.split_outcomes import ENDED_BY_NODE, ENDED_JOBS, JOBS_SUMMARY, OUTCOMES
from ttf.display.metrics import FEWEST_ENDED, FEWEST_FAILURES
from ttf.engine.counts import ValueCounts, count_rows
from ttf.records.clusters import DAY_S
from ttf.records.jobs import OUTCOMES as NAMES
from ttf.records.jobs import is_at_time_limit, observed_s
from ttf.stats.basics.median import median_interval
from ttf.stats.clustered import clustered_failure_shares, clustered_medians
from ttf.stats.shares import ENDED, add_wilson, divide

# The GPUs of a common node.
SMALL_GPUS = 8
EQUAL_TIMES = "every start equals its submission, so no waiting is computed"


def add_median_intervals(
    outcomes: pl.DataFrame, times_by_outcome: Mapping[str, ValueCounts], jobs: pl.LazyFrame
) -> pl.DataFrame:
    """Return OUTCOMES with intervals of the median run times of success and failure. jobs: with CLUSTER_COLUMNS."""
    times_by_outcome = {outcome: times_by_outcome[outcome] for outcome in ("success", "failure")}
    limits = [(outcome, *median_interval(times.size, times.at)) for outcome, times in times_by_outcome.items()]
    names = ("outcome", "runtime_median_low_s", "runtime_median_high_s")
    exact = pl.DataFrame(limits, {name: OUTCOMES.schema[name] for name in names}, strict=False, orient="row")
    clustered = clustered_medians(jobs, "outcome", "runtime_s", times_by_outcome).select(
        *("outcome", "cluster_by", "clusters"),
        **{f"runtime_median_{bound}_clustered_s": f"ci_{bound}_clustered" for bound in ("low", "high")},
    )
    for intervals in (exact, clustered):
        outcomes = outcomes.join(intervals, on="outcome", how="left", maintain_order="left")
    return OUTCOMES.conform(outcomes)


def ended_jobs(outcomes: pl.DataFrame, jobs: pl.LazyFrame, ended_by_size: pl.DataFrame) -> pl.DataFrame:
    """Return ENDED_JOBS, one row: ended jobs, failures, share, its bounds.

    outcomes: OUTCOMES; jobs: with CLUSTER_COLUMNS; ended_by_size: `ttf.stats.clustered.sum_ended` of them.
    """
    n_jobs = dict.fromkeys(NAMES, 0) | dict(outcomes.select("outcome", "jobs").iter_rows())
    total, failures, unknown = sum(n_jobs.values()), n_jobs["failure"], n_jobs["unknown"]
    ended = n_jobs["success"] + failures
    row: dict = {"jobs": total, "ended": ended, "open": n_jobs["running"] + n_jobs["waiting"], "failures": failures}
    row |= {"ended_share": divide(ended, total), "ended_or_unknown": ended + unknown}
    if total:
        # A cancelled job has ended, but neither in success nor in failure.
        row["unresolved_share"] = max(0.0, 1 - (ended / total + n_jobs["cancelled"] / total))
    row |= _failure_share_cells(jobs, ended_by_size) | _find_concentration(jobs)
    if unknown:
        row["failure_share_at_least"] = failures / (ended + unknown)
        row["failure_share_at_most"] = (failures + unknown) / (ended + unknown)
    row["timeouts"] = next(iter(outcomes.filter(outcome="failure")["at_time_limit"]), None)
    if at_limit := row["timeouts"]:
        row |= {"timeout_share": at_limit / failures, "failures_without_timeout": failures - at_limit}
        row["failure_share_without_timeout"] = (failures - at_limit) / ended
    return ENDED_JOBS.frame([row])


def ended_by_node(jobs: pl.LazyFrame, ended_by_size: pl.DataFrame) -> pl.DataFrame:
    """Return ENDED_BY_NODE: failure share of jobs on up to 8 GPUs, and on more; no rows unless both kinds ended.

    jobs, ended_by_size: as for `ended_jobs`, with gpus_high.
    """
    high = pl.col("gpus_high")
    sizes = {"up_to_8_gpus": high.is_between(1, SMALL_GPUS), "above_8_gpus": high > SMALL_GPUS}
    if not all(ended_by_size.filter(is_size)["ended"].sum() for is_size in sizes.values()):
        return ENDED_BY_NODE.frame([])
    return ENDED_BY_NODE.frame(
        {"size": size, "ended": ended_by_size.filter(is_size)["ended"].sum()}
        | _failure_share_cells(jobs.filter(is_size), ended_by_size.filter(is_size))
        for size, is_size in sizes.items()
    )


def _failure_share_cells(jobs: pl.LazyFrame, ended: pl.DataFrame) -> dict:
    """Return the share of failures among ended jobs, with its intervals. ended: `sum_ended` of jobs."""
    wilson = add_wilson("failure_share", int(ended["failures"].sum()), int(ended["ended"].sum()))
    row = {name.replace("ci", "failure_share"): value for name, value in wilson.items()}
    for interval in clustered_failure_shares(jobs, [], ended).iter_rows(named=True):
        row |= {name: interval[name] for name in ("cluster_by", "clusters")}
        row |= {f"failure_share_{bound}_clustered": interval[f"ci_{bound}_clustered"] for bound in ("low", "high")}
    return row


def _find_concentration(jobs: pl.LazyFrame) -> dict:
    """Find a user, group or request profile with more than half of the failures, and the share without it."""
    failed = jobs.filter(outcome="failure").select("cluster", "group").collect(engine="streaming")
    for level in ("cluster", "group"):
        counts = failed[level].drop_nulls().value_counts().sort("count", level, descending=[True, False])
        failures = int(counts["count"].sum())
        for number, count in counts.head(1).iter_rows():
            if not 2 * count > failures >= FEWEST_FAILURES:
                continue
            others = jobs.filter(pl.col(level) != number).select(pl.col(f"{level}_by").first(), **ENDED)
            by, ended_without, failures_without = others.collect(engine="streaming").row(0)
            if ended_without >= FEWEST_ENDED:
                return {
                    "concentrated_by": by,
                    "concentrated_failures": count,
                    "concentrated_share": count / failures,
                    "ended_without": ended_without,
                    "failure_share_without": failures_without / ended_without,
                }
    return {}


def summarise_jobs(jobs: pl.LazyFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """Return JOBS_SUMMARY, one row: jobs, users, nodes, period and times. jobs: as recorded; nodes: with gpu_count."""
    outcome_s = {name: pl.when(pl.col("outcome") == name).then(observed_s()).sum() for name in ("running", "unknown")}
    is_timeout = (pl.col("outcome") == "failure") & is_at_time_limit("status_raw") & observed_s().is_not_null()
    sums = {
        "jobs": pl.len(),
        "from_s": pl.col("submit_s").min(),
        "to_s": pl.col("trace_end_s").max(),
        "equal_times": (pl.col("submit_s") == pl.col("start_s")).sum(),
        "gpu_jobs": (pl.col("gpu_milli") > 0).sum(),
        "timed": observed_s().count(),
        "timed_s": observed_s().sum(),
        "timeouts": is_timeout.sum(),
        **outcome_s,
    }
    if "runtime_from" in jobs.collect_schema():
        sums |= {f"runtime_from_{name}": (pl.col("runtime_from") == name).sum() for name in ("task", "siblings")}
        sums |= {name: pl.col(name).sum() for name in ("negative_queue", "negative_run")}
        sums["retried"] = (pl.col("attempts") > 1).sum()
    row = jobs.select(**sums).collect(engine="streaming").row(0, named=True)
    users = jobs.group_by("user").agg(jobs=pl.len()).drop_nulls().collect(engine="streaming")
    row |= {"users": users.height or None, "jobs_of_users": int(users["jobs"].sum())}
    row |= {"nodes": nodes.height or None, "gpus": int(nodes["gpu_count"].sum()) or None}
    row["jobs_without_gpu"] = row["jobs"] - row["gpu_jobs"]
    if None not in (row["from_s"], row["to_s"]):
        row["span_s"] = row["to_s"] - row["from_s"]
        row["days"] = -(-row["span_s"] // DAY_S)
    for name in outcome_s:
        row[f"{name}_time_share"] = divide(row[name], row["timed_s"])
    waits = ValueCounts.from_frame(count_rows(jobs, queue_s=pl.col("queue_s")), "queue_s")
    row["waits"] = waits.size
    if waits.size:
        row |= {"queue_median_s": waits.median(), "queue_p90_s": waits.percentile(90)}
    elif row["equal_times"]:
        row["no_queue"] = EQUAL_TIMES
    return JOBS_SUMMARY.frame([row])
