"""How much of the time to completion is waiting."""

import polars as pl

from ttf.stats.counts import Counted, Rows, counts

WAIT_SCHEMA = {
    "group_by": pl.String,
    "group": pl.String,
    "limit_s": pl.Float64,
    "n": pl.Int64,
    "over_half": pl.Int64,
    "over_half_share": pl.Float64,
    "wait_median_share": pl.Float64,
}


def wait_share(jobs: Rows) -> pl.DataFrame:
    """How many jobs wait for more than half of their time to completion, with WAIT_SCHEMA.

    Completion: queueing delay and run time together. Groups: all; run_length, `short` where a job ran no longer than
    the median (limit_s) and `long` otherwise. n: jobs with both times, not both 0. wait_median_share: the median of the
    delay over the time to completion. A group without jobs has no row.
    """
    queue, run = pl.col("queue_s"), pl.col("runtime_s")
    known = jobs.lazy().select("queue_s", "runtime_s").filter(queue + run > 0)
    times = counts(known, run=run)
    if not times.height:
        return pl.DataFrame(schema=WAIT_SCHEMA)
    limit = Counted.of(times, "run").median()
    told = known.group_by(is_long=run > limit, over=queue > run, share=queue / (queue + run))
    shares = told.agg(n=pl.len().cast(pl.Int64)).collect(engine="streaming").sort("share")
    rows = []
    for group_by, group, part in (
        ("all", "all", shares),
        ("run_length", "short", shares.filter(~pl.col("is_long"))),
        ("run_length", "long", shares.filter("is_long")),
    ):
        if not part.height:
            continue
        n, over = part["n"].sum(), part.filter("over")["n"].sum()
        rows.append(
            {
                "group_by": group_by,
                "group": group,
                "limit_s": limit if group_by == "run_length" else None,
                "n": n,
                "over_half": over,
                "over_half_share": over / n,
                "wait_median_share": Counted.of(part, "share").median(),
            }
        )
    return pl.DataFrame(rows, schema=WAIT_SCHEMA)
