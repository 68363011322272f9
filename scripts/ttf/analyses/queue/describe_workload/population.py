"""Tables of roles, active users, gangs, requests, machines and times of submission."""

from collections import Counter

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
from ttf.engine.counts import Rows, count_rows, text_codes
from ttf.engine.exact_sums import group_sums
from ttf.records.jobs import OUTCOMES, gpu_seconds_milli, whole_gpus
from ttf.stats.clustered import clustered_failure_shares, join_clustered, sum_ended
from ttf.stats.shares import divide, failure_share_columns

# If a trace has more roles, the least frequent have no row.
MOST_ROLES = 100
# Shares of the users in percent, the most active first; at least one user.
TOP_PERCENT = (1, 2, 5, 10)
AT_LEAST = (1, 2, 10, 100, 1000)
PERCENTS = (50, 75, 90, 95, 99)
_MILLI_S_PER_HOUR = 3_600_000
# A percentile is searched in up to 2^16 ranges of values at a time.
_RANGE_BITS = 16

# Resource -> its column per instance, the unit of the table, and the number of the column's units in one of these.
REQUESTS = {"cpu": ("cpu_milli", "cores", 1000), "gpu": ("gpu_milli", "GPUs", 1000), "memory": ("mem_mib", "GiB", 1024)}

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Names of the values of a clock unit, which are numbered from 0.
CLOCK_UNITS = {"hour": [str(hour) for hour in range(24)], "weekday": WEEKDAYS}
NO_CLOCK = "the trace's times count from an origin that is not told: they have no hour of day"
NO_TIME = "no submission has a time"


def count_roles(jobs: Rows) -> pl.DataFrame:
    """Count jobs and failures by role, the name of a task: the MOST_ROLES most frequent, ties by name (ROLES).

    jobs: task (jobs whose task is null have no row), outcome, and CLUSTER_COLUMNS if they have them.
    """
    jobs_with_role = jobs.lazy().rename({"task": "role"}).filter(pl.col("role").is_not_null())
    ended = sum_ended(jobs_with_role, "role")
    role_counts = ended.group_by("role").agg(pl.col("jobs", "ended", "failures").sum())
    role_counts = role_counts.sort("jobs", "role", descending=[True, False])
    n, failures, n_roles = int(role_counts["jobs"].sum()), int(role_counts["failures"].sum()), role_counts.height
    role_counts = role_counts.head(MOST_ROLES)
    no_failure_reason = pl.when(pl.lit(failures == 0)).then(pl.lit("no failure in any role"))
    role_counts = role_counts.with_columns(
        n=pl.lit(n),
        roles=pl.lit(n_roles),
        jobs_share=pl.col("jobs") / n,
        **failure_share_columns(role_counts),
        reason=pl.when(ended=0).then(pl.lit("none of them ended")).otherwise(no_failure_reason),
    )
    shares = clustered_failure_shares(jobs_with_role, ["role"], ended)
    return ROLES.conform(join_clustered(role_counts, shares, ["role"]))


def activity(jobs: Rows) -> pl.DataFrame:
    """Return the share of jobs and of GPU time (`gpu_seconds_milli`) of the most active users (ACTIVITY).

    A row per ranking and per TOP_PERCENT of the users, rounded up to whole users; ties by name.
    """
    owners = (
        jobs.lazy()
        .select("user", gpu_time=gpu_seconds_milli())
        .filter(pl.col("user").is_not_null())
        .group_by("user")
        .agg(jobs=pl.len().cast(pl.Int64), gpu_hours=pl.col("gpu_time").sum())
        .collect(engine="streaming")
        .sort("user")
    )
    if not owners.height:
        return ACTIVITY.frame([])
    # Python divides integers of any size with one rounding.
    totals = {name: sum(owners[name].to_list()) for name in ("jobs", "gpu_hours")}
    rows = []
    for ranked_by, total in totals.items():
        if not total:
            continue
        ranked = owners.sort(ranked_by, "user", descending=[True, False])
        for percent in TOP_PERCENT:
            top = ranked.head(-(-percent * ranked.height // 100))
            top_jobs, top_gpu = sum(top["jobs"].to_list()), sum(top["gpu_hours"].to_list())
            row = {"owner_by": "user", "ranked_by": ranked_by, "top_share": percent / 100}
            row |= {"owners": ranked.height, "owners_in_top": top.height}
            row |= {"jobs": top_jobs, "n": totals["jobs"], "jobs_share": top_jobs / totals["jobs"]}
            row |= {"gpu_hours": top_gpu / _MILLI_S_PER_HOUR, "gpu_hours_share": divide(top_gpu, totals["gpu_hours"])}
            rows.append(row | {"reason": None if totals["gpu_hours"] else "no job has GPU time"})
    return ACTIVITY.frame(rows)


def gangs(jobs: Rows) -> pl.DataFrame:
    """Count the jobs of at least AT_LEAST instances, and the instances in them (GANGS)."""
    job_counts = count_rows(jobs, size=pl.col("size"), outcome=text_codes("outcome", OUTCOMES)).with_columns(
        # All instances of these jobs: the product may exceed 64 bits.
        instances=pl.col("size").cast(pl.Int128) * pl.col("n"),
        has_ended=pl.col("outcome").is_in([OUTCOMES.index("success"), OUTCOMES.index("failure")]),
        has_failed=pl.col("outcome") == OUTCOMES.index("failure"),
    )
    n, n_instances = int(job_counts["n"].sum()), int(job_counts["instances"].sum())
    rows = []
    for at_least in AT_LEAST:
        gang_counts = job_counts.filter(pl.col("size") >= at_least)
        if not gang_counts.height:
            continue
        n_gangs, instances = int(gang_counts["n"].sum()), int(gang_counts["instances"].sum())
        ended = int(gang_counts.filter("has_ended")["instances"].sum())
        failed = int(gang_counts.filter("has_failed")["instances"].sum())
        row: dict = {"at_least": at_least, "jobs": n_gangs, "n": n, "jobs_share": n_gangs / n}
        row |= {"instances": instances, "instances_share": instances / n_instances}
        row["instances_failed_share"] = divide(failed, ended)
        rows.append(row | {"reason": None if ended else "none of them ended"})
    return GANGS.frame(rows)


def request_percentiles(jobs: Rows) -> pl.DataFrame:
    """Return percentiles of the requests, over jobs and over instances (REQUEST_PERCENTILES).

    Jobs that request none (blank or 0) are excluded. A job counts once, or as often as it has instances.
    """
    requests = {resource: (pl.col(column), unit, scale) for resource, (column, unit, scale) in REQUESTS.items()}
    rows = []
    for resource, (value, unit, scale) in (requests | {"gpus": (whole_gpus(), "GPUs", 1)}).items():
        value_counts = (
            jobs.lazy()
            .filter(value > 0)
            .group_by(value=value)
            .agg(jobs=pl.len().cast(pl.Int64), instances=pl.col("size").fill_null(1).sum())
            .collect(engine="streaming")
            .sort("value")
        )
        for weighted_by in ("jobs", "instances") if resource in REQUESTS else ("jobs",):
            keys = {"resource": resource, "unit": unit, "weighted_by": weighted_by}
            rows.append(keys | _percentile_cells(value_counts["value"], value_counts[weighted_by], scale))
    return REQUEST_PERCENTILES.frame(rows)


def _percentile_cells(values: pl.Series, weights: pl.Series, scale: int) -> dict:
    """Return n, percentiles and the largest of ascending values, divided by `scale`; weights: number of each."""
    n = int(weights.sum())
    if not n:
        return {"n": 0, "reason": "nobody requested it, or the trace does not say"}
    weighted = values.to_numpy(), weights.to_numpy()
    columns = {f"p{percent}": weighted_percentile(*weighted, percent) / scale for percent in PERCENTS}
    return {"n": n, **columns, "largest": values[-1] / scale}


def weighted_percentile(values: np.ndarray, weights: np.ndarray, percent: int) -> int:
    """Return the smallest value at or below which this percentage of the weight lies.

    values: whole numbers in any order. weights: whole weight of each value, at least one positive. percent: from 0 to
    100. Raises OverflowError if the sum of the weights might not fit 64 bits.
    """
    # Sums by ranges of values, then within one range, are much faster than sorting all values.
    low, bits, rest = int(values.min()), int(np.ptp(values)).bit_length(), None
    while True:
        shift = max(bits - _RANGE_BITS, 0)
        index = (values - low) >> shift
        cumulative = np.cumsum(group_sums(index, weights, 1 << (bits - shift)))
        rest = -(-percent * int(cumulative[-1]) // 100) if rest is None else rest
        position = int(np.searchsorted(cumulative, rest))
        low += position << shift
        if not shift:
            return low
        rest -= int(cumulative[position - 1]) if position else 0
        values, weights, bits = values[index == position], weights[index == position], shift


def machines(nodes: pl.DataFrame) -> pl.DataFrame:
    """Count machines and their GPUs by GPU type, those without a type last (MACHINES); nodes: as in nodes.parquet."""
    type_counts = nodes.group_by("gpu_type").agg(nodes=pl.len(), gpus=pl.col("gpu_count").fill_null(0).sum())
    return MACHINES.conform(type_counts.sort("gpu_type", nulls_last=True))


def job_status(job: pl.LazyFrame | None) -> pl.DataFrame:
    """Count the rows of each status in a trace's table of whole jobs, and those with a start and an end (JOB_STATUS).

    job: status, start_s, end_s; None if the trace has no such table.
    """
    if job is None:
        return JOB_STATUS.frame([])
    sums = {"jobs": pl.len(), "with_start": pl.col("start_s").count(), "with_end": pl.col("end_s").count()}
    table = job.group_by("status").agg(**sums).collect(engine="streaming")
    n = pl.col("jobs").sum()
    table = table.sort("jobs", "status", descending=[True, False]).with_columns(n=n, jobs_share=pl.col("jobs") / n)
    return JOB_STATUS.conform(table)


def submissions(jobs: Rows, zone: str | None) -> pl.DataFrame:
    """Count submissions by hour of the day (0 to 23) and by weekday (SUBMISSIONS).

    jobs: submit_s (Int64 seconds since 1970, null if unknown). zone: time zone of the clock; None if the times have no
    known origin: each clock unit has one row with the reason.

    Returns SUBMISSIONS; clock_hours runs from the hour of the first submission to that of the last, both included.
    """
    times = jobs.lazy().select("submit_s").drop_nulls()
    time_range = times.select(first=pl.col("submit_s").min(), last=pl.col("submit_s").max(), n=pl.len())
    first, last, n = time_range.collect(engine="streaming").row(0)
    if zone is None or not n:
        blank = {"zone": zone, "jobs": 0, "n": n, "reason": NO_CLOCK if zone is None else NO_TIME}
        return SUBMISSIONS.frame({"by": clock_unit} | blank for clock_unit in CLOCK_UNITS)
    clock_jobs = (
        times.with_row_index("row")
        .group_by(**_clock_values(_zone_time(pl.col("submit_s"), zone)))
        .agg(jobs=pl.len(), row=pl.col("row").min(), first_submit_s=pl.col("submit_s").first())
        .sort("row")
        .collect(engine="streaming")
    )
    clock_hours = _hours_between(first, last, zone)
    rows = []
    for clock_unit, names in CLOCK_UNITS.items():
        # Polars keeps the order of rows in a group, so `first` is the first job.
        unit_jobs = clock_jobs.group_by(clock_unit).agg(pl.col("jobs").sum(), pl.col("first_submit_s").first())
        jobs_by_value = {value: cells for value, *cells in unit_jobs.iter_rows()}
        hours_by_value = Counter(clock_hours[clock_unit])
        for value, name in enumerate(names):
            n_jobs, first_submit_s = jobs_by_value.get(value, (0, None))
            hours = hours_by_value[value]
            row = {"by": clock_unit, "value": name, "zone": zone, "jobs": n_jobs, "n": n}
            row |= {"clock_hours": hours, "jobs_per_hour": divide(n_jobs, hours), "first_submit_s": first_submit_s}
            reason = None if n_jobs else "no submission then"
            rows.append(row | {"reason": reason if hours else "the trace has no such hour"})
    return SUBMISSIONS.frame(rows).with_columns(jobs_share=pl.col("jobs") / n)


def _zone_time(seconds: pl.Expr, zone: str) -> pl.Expr:
    return pl.from_epoch(seconds, time_unit="s").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


def _clock_values(moment: pl.Expr) -> dict[str, pl.Expr]:
    """Return the hour and the weekday of a moment, both from 0."""
    return {"hour": moment.dt.hour(), "weekday": moment.dt.weekday() - 1}


def _hours_between(first_s: int, last_s: int, zone: str) -> pl.DataFrame:
    """Return hour and weekday of each hour of the zone's clock, from that of the first second to that of the last."""
    low, high = (_zone_time(pl.lit(second), zone).dt.truncate("1h") for second in (first_s, last_s))
    return pl.select(hour_start=pl.datetime_range(low, high, "1h")).select(**_clock_values(pl.col("hour_start")))
