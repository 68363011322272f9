"""The numbers of outcomes and of their median run times."""

import polars as pl

from ttf.inputs import Inputs
from ttf.jobs import OUTCOMES
from ttf.numbers.metrics import Metrics
from ttf.stats.counts import Counted, Rows, counts
from ttf.stats.median import median_interval
from ttf.stats.shares import wilson_interval


def numbers(metrics: Metrics, given: Inputs) -> None:
    of_outcomes(metrics, given["outcomes"])
    of_median_run_times(metrics, given.scan("jobs"))


def of_outcomes(metrics: Metrics, outcomes: pl.DataFrame) -> None:
    """Jobs, shares and run times by outcome; the share of failures among the jobs that ended, with its interval.

    timeouts: failures that a time limit ended; timeout_share: of the failures. failure_share_without_timeout: the other
    failures among the jobs that ended otherwise, (failures - timeouts) / (ended - timeouts).
    """
    source = "tables/outcomes.csv"
    jobs, at_limit = dict.fromkeys(OUTCOMES, 0), None
    for row in outcomes.iter_rows(named=True):
        outcome = row["outcome"]
        jobs[outcome] = row["jobs"]
        at_limit = row["at_time_limit"] if outcome == "failure" else at_limit
        metrics.put(f"outcomes.{outcome}.jobs", row["jobs"], "jobs", source)
        metrics.put(f"outcomes.{outcome}.jobs_share", row["jobs_share"], "share", source, outcomes["jobs"].sum())
        units = {"gpu_hours": "GPU hours", "gpu_hours_share": "share"}
        units |= dict.fromkeys(("runtime_mean_s", "runtime_median_s", "runtime_p90_s"), "s")
        metrics.put_row(f"outcomes.{outcome}", row, units, source, row["n"])
        metrics.put(f"outcomes.{outcome}.with_runtime", row["n"], "jobs", source, row["jobs"])
    ended = jobs["success"] + jobs["failure"]
    metrics.put("outcomes.ended", ended, "jobs", source)
    if every := sum(jobs.values()):
        metrics.put("outcomes.ended_share", ended / every, "share", source, every)
    if ended:
        low, high = wilson_interval([jobs["failure"]], [ended])
        metrics.put("outcomes.failure_share", jobs["failure"] / ended, "share", source, ended)
        metrics.put("outcomes.failure_share_low", float(low[0]), "share", source, ended)
        metrics.put("outcomes.failure_share_high", float(high[0]), "share", source, ended)
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
    """The interval of the median run time of successes and of failures."""
    for outcome in ("success", "failure"):
        times = Counted.of(counts(jobs.filter(pl.col("outcome") == outcome), time=pl.col("runtime_s")), "time")
        for end, value in zip(("low", "high"), median_interval(times.size, times.at), strict=True):
            metrics.put(f"outcomes.{outcome}.runtime_median_{end}_s", value, "s", "jobs.parquet", times.size)
