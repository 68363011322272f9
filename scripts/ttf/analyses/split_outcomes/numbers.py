"""The numbers of outcomes and of their median run times."""

import polars as pl

from ttf.clusters import READ_OF_JOBS, with_clusters
from ttf.inputs import Inputs
from ttf.jobs import OUTCOMES, whole_gpus
from ttf.numbers.metrics import FEWEST_ENDED, FEWEST_FAILURES, Metrics, ends
from ttf.stats.clustered import clustered_median, clustered_shares
from ttf.stats.counts import Counted, Rows, counts
from ttf.stats.median import median_interval
from ttf.stats.shares import ENDED, with_wilson

# The GPUs of a common node.
SMALL_GPUS = 8


def numbers(metrics: Metrics, given: Inputs) -> None:
    jobs = with_clusters(given.scan("jobs", [*READ_OF_JOBS, "outcome", "runtime_s", "gpu_milli", "size"]))
    of_outcomes(metrics, given["outcomes"])
    found = clustered_shares(jobs, [], ENDED["failures"], ENDED["ended"])
    put_clustered(metrics, "outcomes", "failure_share_{}_clustered", found, "share")
    of_concentration(metrics, jobs)
    of_sizes(metrics, given["outcomes_by_gpus"], jobs)
    of_median_run_times(metrics, jobs)


def of_outcomes(metrics: Metrics, outcomes: pl.DataFrame) -> None:
    """Jobs, shares and run times by outcome; the share of failures among the jobs that ended, with its interval.

    failure_share_without_timeout: (failures - timeouts) / ended.
    """
    source = "tables/outcomes.csv"
    jobs = dict.fromkeys(OUTCOMES, 0) | dict(outcomes.select("outcome", "jobs").iter_rows())
    at_limit = next(iter(outcomes.filter(outcome="failure")["at_time_limit"]), None)
    key, outcomes = "outcomes.{outcome}", outcomes.with_columns(every=pl.col("jobs").sum())
    metrics.put_rows(key, outcomes, {"jobs": "jobs"}, source, None)
    metrics.put_rows(key, outcomes, {"jobs_share": "share"}, source, "every")
    units = {"gpu_hours": "GPU-hours", "gpu_hours_share": "share"}
    units |= dict.fromkeys(("runtime_mean_s", "runtime_median_s", "runtime_p90_s"), "s")
    metrics.put_rows(key, outcomes, units, source)
    metrics.put_rows(key, outcomes, {"with_runtime": ("n", "jobs")}, source, "jobs")
    ended = jobs["success"] + jobs["failure"]
    metrics.put("outcomes.jobs", sum(jobs.values()), "jobs", source)
    metrics.put("outcomes.ended", ended, "jobs", source)
    metrics.put("outcomes.open", jobs["running"] + jobs["waiting"], "jobs", source)
    if every := sum(jobs.values()):
        metrics.put("outcomes.ended_share", ended / every, "share", source, every)
    if share := with_wilson("failure_share", jobs["failure"], ended):
        limits = {f"failure_share_{end}": (f"ci_{end}", "share") for end in ("low", "high")}
        metrics.put_row("outcomes", share, {"failure_share": "share"} | limits, source, ended)
    if unknown := jobs["unknown"]:
        # Whatever became of those that ended with no result recorded.
        every = ended + unknown
        metrics.put("outcomes.failure_share_at_least", jobs["failure"] / every, "share", source, every)
        metrics.put("outcomes.failure_share_at_most", (jobs["failure"] + unknown) / every, "share", source, every)
    metrics.put("outcomes.timeouts", at_limit, "jobs", source, jobs["failure"])
    if at_limit:
        metrics.put("outcomes.timeout_share", at_limit / jobs["failure"], "share", source, jobs["failure"])
        rest = jobs["failure"] - at_limit
        metrics.put("outcomes.failures_without_timeout", rest, "jobs", source, ended)
        metrics.put("outcomes.failure_share_without_timeout", rest / ended, "share", source, ended)


def of_concentration(metrics: Metrics, jobs: pl.LazyFrame) -> None:
    """The one user, group or request profile of whom more than half of the failures are, and the share without it."""
    for level in ("cluster", "group"):
        counts = jobs.group_by(level, by=f"{level}_by").agg(**ENDED).collect(engine="streaming").drop_nulls(level)
        every, ended = int(counts["failures"].sum()), int(counts["ended"].sum())
        for row in counts.sort("failures", level, descending=[True, False]).head(1).iter_rows(named=True):
            rest, failures = ended - row["ended"], row["failures"]
            if 2 * failures <= every or every < FEWEST_FAILURES or rest < FEWEST_ENDED:
                continue
            key, source = "outcomes.concentration", "jobs.parquet"
            metrics.put(f"{key}.by", row["by"], "label", source)
            metrics.put(f"{key}.failures", failures, "failures", source, every)
            metrics.put(f"{key}.share", failures / every, "share", source, every)
            metrics.put(f"{key}.failure_share_without", (every - failures) / rest, "share", source, rest)
            return


def of_sizes(metrics: Metrics, sizes: pl.DataFrame, jobs: Rows) -> None:
    """How many sizes have enough ended jobs; the share of failures on at most SMALL_GPUS GPUs, on more, and on none."""
    spoken_of = sizes.filter((pl.col("ended") >= FEWEST_ENDED) & (pl.col("gpus_high") > 0))
    source = "tables/outcomes_by_gpus.csv"
    metrics.put("outcomes.sizes", spoken_of.height, "sizes", source)
    none = sizes.filter(pl.col("ended") >= FEWEST_ENDED, gpus_high=0)
    metrics.put_rows(
        "outcomes.no_gpu", none, {"ended": "jobs", "failure_share": "share"} | ends("share"), source, "ended"
    )
    gpus = whole_gpus()
    both = {
        "up_to_8_gpus": (sizes.filter(pl.col("gpus_high").is_between(1, SMALL_GPUS)), gpus.is_between(1, SMALL_GPUS)),
        "above_8_gpus": (sizes.filter(pl.col("gpus_high") > SMALL_GPUS), gpus > SMALL_GPUS),
    }
    if not all(mine["ended"].sum() for mine, _ in both.values()):
        return
    for name, (mine, members) in both.items():
        key, ended = f"outcomes.{name}", int(mine["ended"].sum())
        share = with_wilson("failure_share", int(mine["failures"].sum()), ended)
        limits = {f"failure_share_{end}": (f"ci_{end}", "share") for end in ("low", "high")}
        metrics.put(f"{key}.ended", ended, "jobs", source)
        metrics.put_row(key, share, {"failure_share": "share"} | limits, source, ended)
        found = clustered_shares(jobs.filter(members), [], ENDED["failures"], ENDED["ended"])
        put_clustered(metrics, key, "failure_share_{}_clustered", found, "share")


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
    limits = {name.format(end): (f"ci_{end}_clustered", unit) for end in ("low", "high")}
    metrics.put_rows(key, found, limits | {"cluster_by": "label", "clusters": "clusters"}, "jobs.parquet", None)
