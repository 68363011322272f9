"""When jobs are submitted: by hour of the day and by weekday, on the clock of the people who submit them."""

import polars as pl

from ttf.analyses.describe_workload import SUBMISSIONS
from ttf.stats.counts import Rows

BY = ("hour", "weekday")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NO_CLOCK = "the trace's times count from an origin that is not told: they have no hour of day"
NO_TIME = "no submission has a time"


def submissions(jobs: Rows, zone: str | None) -> pl.DataFrame:
    """Submissions by hour of the day (0 to 23) and by weekday (SUBMISSIONS).

    jobs: submit_s (Int64 seconds since 1970, null where not known). zone: whose wall clock gives the hour; None for a
    trace whose times have no known origin, which gets a row of `by` with the reason. n: jobs with a time. clock_hours:
    how many hours of that kind the trace has from the hour of its first submission to that of its last, both
    included; jobs_per_hour divides by them. first_submit_s: of those submissions the first in the order of the jobs.
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
                reason=pl.when(~seen)
                .then(pl.lit("the trace has no such hour"))
                .when(pl.col("jobs") == 0)
                .then(pl.lit("no submission then")),
            )
        )
    return pl.concat(parts).cast(SUBMISSIONS.schema)


def _hours_between(first_s: int, last_s: int, zone: str) -> pl.DataFrame:
    """hour and weekday of every hour of the zone's clock from that of the first second to that of the last."""
    ends = pl.from_epoch(pl.Series([first_s, last_s]), time_unit="s")
    low, high = ends.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.truncate("1h")
    every = pl.datetime_range(low, high, "1h", time_zone=zone, eager=True).alias("at")
    return every.to_frame().select(hour=pl.col("at").dt.hour(), weekday=pl.col("at").dt.weekday())
