"""The numbers of outcomes and of their median run times."""

import polars as pl

from ttf.clusters import READ_OF_JOBS, with_clusters
from ttf.inputs import Inputs
from ttf.jobs import OUTCOMES
from ttf.numbers.metrics import Metrics
from ttf.stats.clustered import clustered_median, clustered_shares
from ttf.stats.counts import Counted, Rows, counts
from ttf.stats.median import median_interval
from ttf.stats.shares import ENDED, with_wilson


def numbers(metrics: Metrics, given: Inputs) -> None:
    jobs = with_clusters(given.scan("jobs", [*READ_OF_JOBS, "outcome", "runtime_s"]))
    of_outcomes(metrics, given["outcomes"])
    found = clustered_shares(jobs, [], ENDED["failures"], ENDED["ended"])
    put_clustered(metrics, "outcomes", "failure_share_{}_clustered", found, "share")
    of_median_run_times(metrics, jobs)


def of_outcomes(metrics: Metrics, outcomes: pl.DataFrame) -> None:
    """Jobs, shares and run times by outcome; the share of failures among the jobs that ended, with its interval.

    failure_share_without_timeout: (failures - timeouts) / (ended - timeouts).
    """
    source = "tables/outcomes.csv"
    jobs = dict.fromkeys(OUTCOMES, 0) | dict(outcomes.select("outcome", "jobs").iter_rows())
    at_limit = next(iter(outcomes.filter(outcome="failure")["at_time_limit"]), None)
    key, outcomes = "outcomes.{outcome}", outcomes.with_columns(every=pl.col("jobs").sum())
    metrics.put_rows(key, outcomes, {"jobs": "jobs"}, source, None)
    metrics.put_rows(key, outcomes, {"jobs_share": "share"}, source, "every")
    units = {"gpu_hours": "GPU hours", "gpu_hours_share": "share"}
    units |= dict.fromkeys(("runtime_mean_s", "runtime_median_s", "runtime_p90_s"), "s")
    metrics.put_rows(key, outcomes, units, source)
    metrics.put_rows(key, outcomes, {"with_runtime": ("n", "jobs")}, source, "jobs")
    ended = jobs["success"] + jobs["failure"]
    metrics.put("outcomes.ended", ended, "jobs", source)
    if every := sum(jobs.values()):
        metrics.put("outcomes.ended_share", ended / every, "share", source, every)
    if share := with_wilson("failure_share", jobs["failure"], ended):
        ends = {f"failure_share_{end}": (f"ci_{end}", "share") for end in ("low", "high")}
        metrics.put_row("outcomes", share, {"failure_share": "share"} | ends, source, ended)
    if unknown := jobs["unknown"]:
        # Whatever became of those that ended with no result recorded.
        every = ended + unknown
        metrics.put("outcomes.failure_share_at_least", jobs["failure"] / every, "share", source, every)
        metrics.put("outcomes.failure_share_at_most", (jobs["failure"] + unknown) / every, "share", source, every)
    metrics.put("outcomes.timeouts", at_limit, "jobs", source, jobs["failure"])
    if at_limit:
        metrics.put("outcomes.timeout_share", at_limit / jobs["failure"], "share", source, jobs["failure"])
        # Time limits leave the failures and the jobs that ended alike.
        rest = ended - at_limit
        without = (jobs["failure"] - at_limit) / rest if rest else None
        metrics.put("outcomes.failure_share_without_timeout", without, "share", source, rest)


def of_median_run_times(metrics: Metrics, jobs: Rows) -> None:
    """The intervals of the median run time of successes and of failures."""
    for outcome in ("success", "failure"):
        mine, key = jobs.filter(pl.col("outcome") == outcome), f"outcomes.{outcome}"
        times = Counted.of(counts(mine, time=pl.col("runtime_s")), "time")
        for end, value in zip(("low", "high"), median_interval(times.size, times.at), strict=True):
            metrics.put(f"{key}.runtime_median_{end}_s", value, "s", "jobs.parquet", times.size)
        found = clustered_median(mine, "runtime_s", times)
        put_clustered(metrics, key, "runtime_median_{}_clustered_s", found, "s")


def put_clustered(metrics: Metrics, key: str, name: str, found: pl.DataFrame, unit: str) -> None:
    """The interval of the one stratum in `found`, and what it is clustered by; name: with braces for low and high."""
    ends = {name.format(end): (f"ci_{end}_clustered", unit) for end in ("low", "high")}
    metrics.put_rows(key, found, ends | {"cluster_by": "label", "clusters": "clusters"}, "jobs.parquet", None)
