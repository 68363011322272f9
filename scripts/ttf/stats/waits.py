"""How much of the time to completion is waiting."""

import polars as pl

WAIT_SCHEMA = {
    "group_by": pl.String,
    "group": pl.String,
    "limit_s": pl.Float64,
    "n": pl.Int64,
    "over_half": pl.Int64,
    "over_half_share": pl.Float64,
    "wait_median_share": pl.Float64,
}


def wait_share(jobs: pl.DataFrame) -> pl.DataFrame:
    """How many jobs wait for more than half of their time to completion, with WAIT_SCHEMA.

    Completion: queueing delay and run time together. Groups: all; run_length, `short` where a job ran no longer than
    the median (limit_s) and `long` otherwise. n: jobs with both times, not both 0. wait_median_share: the median of the
    delay over the time to completion. A group without jobs has no row.
    """
    known = jobs.filter((pl.col("queue_s") + pl.col("runtime_s")) > 0).select("queue_s", "runtime_s")
    limit = known["runtime_s"].median()
    groups = {("all", "all"): known}
    if known.height:
        groups["run_length", "short"] = known.filter(pl.col("runtime_s") <= limit)
        groups["run_length", "long"] = known.filter(pl.col("runtime_s") > limit)
    rows = []
    for (group_by, group), part in groups.items():
        if not part.height:
            continue
        over = int((part["queue_s"] > part["runtime_s"]).sum())
        share = part.select(pl.col("queue_s") / (pl.col("queue_s") + pl.col("runtime_s"))).to_series()
        rows.append(
            {
                "group_by": group_by,
                "group": group,
                "limit_s": limit if group_by == "run_length" else None,
                "n": part.height,
                "over_half": over,
                "over_half_share": over / part.height,
                "wait_median_share": share.median(),
            }
        )
    return pl.DataFrame(rows, schema=WAIT_SCHEMA)
