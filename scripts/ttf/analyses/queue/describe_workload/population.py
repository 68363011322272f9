"""Who and what the jobs are: roles, active users, gangs, requests, machines; and when they are submitted."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_workload import (
    ACTIVITY,
    GANGS,
    JOB_STATUS,
    MACHINES,
    REQUEST_PERCENTILES,
    ROLES,
    SUBMISSIONS,
)
from ttf.engine.counts import Rows, code, counts
from ttf.records.jobs import OUTCOMES, choose_text, gpu_seconds_milli, whole_gpus
from ttf.stats.clustered import beside, clustered_shares
from ttf.stats.shares import ENDED, failure_shares, part_of

# Of a trace that has more roles the rest is in no row.
MOST_ROLES = 100
# Most active first: these shares of the users, in per cent, at least one of them.
TOP_PERCENT = (1, 2, 5, 10)
AT_LEAST = (1, 2, 10, 100, 1000)
PERCENTS = (50, 75, 90, 95, 99)
_MILLI_S_AN_HOUR = 3_600_000

# Resource -> its column per instance, the unit people use, and how many of the column's units make one of it.
REQUESTS = {"cpu": ("cpu_milli", "cores", 1000), "gpu": ("gpu_milli", "GPUs", 1000), "memory": ("mem_mib", "GiB", 1024)}


BY = ("hour", "weekday")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NO_CLOCK = "the trace's times count from an origin that is not told: they have no hour of day"
NO_TIME = "no submission has a time"


def roles(jobs: Rows) -> pl.DataFrame:
    """What the tasks are there for, by their names (ROLES): the MOST_ROLES most frequent, equal ones by name.

    jobs: task (null where jobs have no parts: these have no row), outcome, CLUSTER_COLUMNS where they have them.
    """
    found = (
        jobs.lazy()
        .filter(pl.col("task").is_not_null())
        .group_by(role="task")
        .agg(jobs=pl.len().cast(pl.Int64), **ENDED)
        .collect(engine="streaming")
        .sort("jobs", "role", descending=[True, False])
    )
    n, failures, every = int(found["jobs"].sum()), int(found["failures"].sum()), found.height
    found = found.head(MOST_ROLES)
    no_failure = pl.when(pl.lit(failures == 0)).then(pl.lit("no failure in any role"))
    found = found.with_columns(
        n=pl.lit(n),
        roles=pl.lit(every),
        jobs_share=pl.col("jobs") / n,
        **failure_shares(found),
        failures_share=pl.when(pl.lit(failures > 0)).then(pl.col("failures") / max(failures, 1)),
        reason=pl.when(ended=0).then(pl.lit("none of them ended")).otherwise(no_failure),
    )
    theirs = jobs.lazy().filter(pl.col("task").is_in(found["role"].implode())).with_columns(role="task")
    shares = clustered_shares(theirs, ["role"], ENDED["failures"], ENDED["ended"])
    return ROLES.typed(beside(found, shares, ["role"]))


def activity(jobs: Rows) -> pl.DataFrame:
    """Which share of the jobs and of the GPU time (`gpu_seconds_milli`) the most active users have (ACTIVITY).

    A row per ranking and TOP_PERCENT of the users, rounded up to whole users; equal ones by name.
    """
    owners = (
        jobs.lazy()
        .select("user", gpu=gpu_seconds_milli())
        .filter(pl.col("user").is_not_null())
        .group_by("user")
        .agg(jobs=pl.len().cast(pl.Int64), gpu_hours=pl.col("gpu").sum())
        .collect(engine="streaming")
        .sort("user")
    )
    if not owners.height:
        return ACTIVITY.frame([])
    # Python's integers of any size are divided with one rounding.
    totals = {name: sum(owners[name].to_list()) for name in ("jobs", "gpu_hours")}
    rows = []
    for ranked_by in totals:
        if not totals[ranked_by]:
            continue
        ranked = owners.sort(ranked_by, "user", descending=[True, False])
        for percent in TOP_PERCENT:
            top = ranked.head(-(-percent * ranked.height // 100))
            jobs_of, gpu = sum(top["jobs"].to_list()), sum(top["gpu_hours"].to_list())
            row = {"owner_by": "user", "ranked_by": ranked_by, "top_share": percent / 100}
            row |= {"owners": ranked.height, "owners_in_top": top.height}
            row |= {"jobs": jobs_of, "n": totals["jobs"], "jobs_share": jobs_of / totals["jobs"]}
            row |= {"gpu_hours": gpu / _MILLI_S_AN_HOUR, "gpu_hours_share": part_of(gpu, totals["gpu_hours"])}
            rows.append(row | {"reason": None if totals["gpu_hours"] else "no job has GPU time"})
    return ACTIVITY.frame(rows)


def gangs(jobs: Rows) -> pl.DataFrame:
    """How many jobs, and how many instances, are in jobs of at least so many instances (GANGS)."""
    known = counts(jobs, size=pl.col("size"), outcome=code("outcome", OUTCOMES)).with_columns(
        # Of so many jobs of a size all the instances, 128 bits wide.
        instances=pl.col("size").cast(pl.Int128) * pl.col("n"),
        ended=pl.col("outcome").is_in([OUTCOMES.index("success"), OUTCOMES.index("failure")]),
        failed=pl.col("outcome") == OUTCOMES.index("failure"),
    )
    n, every = known["n"].sum(), int(known["instances"].sum())
    rows = []
    for at_least in AT_LEAST:
        chosen = known.filter(pl.col("size") >= at_least)
        if not chosen.height:
            continue
        found, instances = chosen["n"].sum(), int(chosen["instances"].sum())
        ended = int(chosen.filter("ended")["instances"].sum())
        failed = int(chosen.filter("failed")["instances"].sum())
        row = {"at_least": at_least, "jobs": found, "n": n, "jobs_share": found / n}
        row |= {"instances": instances, "instances_share": instances / every}
        row |= {"instances_ended": ended, "instances_failed": failed, "instances_failed_share": part_of(failed, ended)}
        rows.append(row | {"reason": None if ended else "none of them ended"})
    return GANGS.frame(rows)


def request_percentiles(jobs: Rows) -> pl.DataFrame:
    """What is asked for, in the unit people use (REQUEST_PERCENTILES), over jobs and over instances.

    Who asked for none (blank or 0) is excluded; a job counts as often as it has instances, or once.
    """
    asked = {resource: (pl.col(column), unit, per) for resource, (column, unit, per) in REQUESTS.items()}
    rows = []
    for resource, (value, unit, per) in (asked | {"gpus": (whole_gpus(), "GPUs", 1)}).items():
        counted = (
            jobs.lazy()
            .filter(value > 0)
            .group_by(value=value)
            .agg(jobs=pl.len().cast(pl.Int64), instances=pl.col("size").fill_null(1).sum())
            .collect(engine="streaming")
            .sort("value")
        )
        for weighted_by in ("jobs", "instances") if resource in REQUESTS else ("jobs",):
            about = {"resource": resource, "unit": unit, "weighted_by": weighted_by}
            rows.append(about | _of(counted["value"], counted[weighted_by], per))
    return REQUEST_PERCENTILES.frame(rows)


def _of(values: pl.Series, weights: pl.Series, per: int) -> dict:
    n = int(weights.sum())
    if not n:
        return {"n": 0, "reason": "nobody requested it, or the trace does not say"}
    found = weighted_percentiles(values.to_numpy(), weights.to_numpy(), PERCENTS)
    named = {f"p{percent}": value / per for percent, value in zip(PERCENTS, found, strict=True)}
    return {"n": n, **named, "largest": values[-1] / per}


def weighted_percentiles(ascending: np.ndarray, weights: np.ndarray, percents: Sequence[int]) -> list[int]:
    """The smallest value at or below which so many per cent of the weight lie; whole values and whole weights.

    At least one weight has to be positive, and their sum times 100 has to fit 64 bits.
    """
    below = np.cumsum(weights)
    return [int(ascending[np.searchsorted(below * 100, percent * below[-1])]) for percent in percents]


def machines(nodes: pl.DataFrame) -> pl.DataFrame:
    """Machines and their GPUs by GPU type (MACHINES), those without a type last; nodes as in nodes.parquet."""
    if not nodes.height:
        return MACHINES.frame([])
    gpus = int(nodes["gpu_count"].fill_null(0).sum())
    found = nodes.group_by("gpu_type").agg(nodes=pl.len(), gpus=pl.col("gpu_count").fill_null(0).sum())
    found = found.sort("gpu_type", nulls_last=True).with_columns(
        nodes_share=pl.col("nodes") / nodes.height,
        gpus_share=pl.when(pl.lit(gpus > 0)).then(pl.col("gpus") / max(gpus, 1)),
        reason=pl.when(pl.lit(gpus == 0)).then(pl.lit("no machine has its GPUs written")),
    )
    return MACHINES.typed(found)


def job_status(job: pl.LazyFrame | None) -> pl.DataFrame:
    """How many rows of a trace's table of whole jobs have each status, and a start and an end (JOB_STATUS).

    job: status, start_s, end_s; None where there is no such table.
    """
    if job is None:
        return JOB_STATUS.frame([])
    sums = {"jobs": pl.len(), "with_start": pl.col("start_s").count(), "with_end": pl.col("end_s").count()}
    found = job.group_by("status").agg(**sums).collect(engine="streaming")
    n = pl.col("jobs").sum()
    found = found.sort("jobs", "status", descending=[True, False]).with_columns(n=n, jobs_share=pl.col("jobs") / n)
    return JOB_STATUS.typed(found)


def submissions(jobs: Rows, zone: str | None) -> pl.DataFrame:
    """Submissions by hour of the day (0 to 23) and by weekday (SUBMISSIONS).

    jobs: submit_s (Int64 seconds since 1970, null where not known). zone: whose wall clock gives the hour; None for a
    trace whose times have no known origin, which gets a row of `by` with the reason. clock_hours: from the hour of the
    first submission to that of the last, both included.
    """
    times = jobs.lazy().select("submit_s").drop_nulls()
    ends = times.select(first=pl.col("submit_s").min(), last=pl.col("submit_s").max(), n=pl.len())
    first, last, n = ends.collect(engine="streaming").row(0)
    if zone is None or not n:
        blank = {"zone": zone, "jobs": 0, "n": n, "reason": NO_CLOCK if zone is None else NO_TIME}
        return SUBMISSIONS.frame({"by": by} | blank for by in BY)
    clock = pl.from_epoch("submit_s", time_unit="s").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    of_jobs = (
        times.with_row_index("row")
        .group_by(hour=clock.dt.hour(), weekday=clock.dt.weekday())
        .agg(jobs=pl.len(), row=pl.col("row").min(), first_submit_s=pl.col("submit_s").first())
        .sort("row")
        .collect(engine="streaming")
    )
    every = _hours_between(first, last, zone)
    parts = []
    for by, values in (("hour", range(24)), ("weekday", range(1, 8))):
        # Within a group Polars keeps the order of the rows, so that the first is the first of the jobs.
        found = of_jobs.group_by(by).agg(pl.col("jobs").sum(), pl.col("first_submit_s").first())
        of_clock = every.group_by(by).agg(clock_hours=pl.len())
        table = (
            pl.DataFrame({by: values}, schema={by: pl.Int8})
            .join(found, on=by, how="left", maintain_order="left")
            .join(of_clock, on=by, how="left", maintain_order="left")
            .with_columns(pl.col("jobs", "clock_hours").fill_null(0).cast(pl.Int64))
        )
        names = [str(value) if by == "hour" else WEEKDAYS[value - 1] for value in values]
        seen = pl.col("clock_hours") > 0
        parts.append(
            table.select(
                by=pl.lit(by),
                value=pl.Series(names),
                zone=pl.lit(zone),
                jobs="jobs",
                n=pl.lit(n, dtype=pl.Int64),
                jobs_share=pl.col("jobs") / n,
                clock_hours="clock_hours",
                jobs_per_hour=pl.when(seen).then(pl.col("jobs") / pl.col("clock_hours")),
                first_submit_s="first_submit_s",
                reason=choose_text({"the trace has no such hour": ~seen, "no submission then": pl.col("jobs") == 0}),
            )
        )
    return pl.concat(parts).cast(SUBMISSIONS.schema)


def _hours_between(first_s: int, last_s: int, zone: str) -> pl.DataFrame:
    """hour and weekday of every hour of the zone's clock from that of the first second to that of the last."""
    ends = pl.from_epoch(pl.Series([first_s, last_s]), time_unit="s")
    low, high = ends.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.truncate("1h")
    every = pl.datetime_range(low, high, "1h", time_zone=zone, eager=True).alias("at")
    return every.to_frame().select(hour=pl.col("at").dt.hour(), weekday=pl.col("at").dt.weekday())
