"""Jobs by outcome: how many, how long, how much GPU time."""

import polars as pl

from ttf.jobs import OUTCOMES, gpu_seconds_milli, observed_s

# Which outcomes go into which file of split_outcomes.
SPLIT = {
    "success": ("success",),
    "failure": ("failure",),
    "unresolved": ("running", "waiting"),
    "cancelled": ("cancelled",),
}

OUTCOME_COLUMNS = {
    "outcome": pl.String,
    "jobs": pl.Int64,
    "jobs_share": pl.Float64,
    "gpu_hours": pl.Float64,
    "gpu_hours_share": pl.Float64,
    "runtime_mean_s": pl.Float64,
    "runtime_median_s": pl.Float64,
    "runtime_p90_s": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}


def split_outcomes(jobs: pl.LazyFrame) -> dict[str, pl.LazyFrame]:
    """The jobs by outcome: every job is in one of success, failure, unresolved, cancelled."""
    return {name: jobs.filter(pl.col("outcome").is_in(outcomes)) for name, outcomes in SPLIT.items()}


def outcome_table(jobs: pl.DataFrame) -> pl.DataFrame:
    """One row per outcome that occurs (success and failure always), in the order of OUTCOMES.

    GPU time is in GPU hours. n counts the jobs with a known time, from which the mean, median and 90th percentile
    (linear between ranks) of run time come; for running jobs that is the time observed so far.
    """
    jobs = jobs.select("outcome", observed_s=observed_s(), gpu=gpu_seconds_milli())
    gpu_all = jobs["gpu"].sum()
    rows = []
    for outcome in OUTCOMES:
        group = jobs.filter(pl.col("outcome") == outcome)
        times = group["observed_s"].drop_nulls()
        if not group.height and outcome not in ("success", "failure"):
            continue
        gpu = group["gpu"].sum()
        reasons = []
        if not group.height:
            reasons.append("no job has this outcome")
        elif outcome == "waiting":
            reasons.append("has not started, so it has no run time")
        elif not times.len():
            reasons.append("no job of this outcome has a known run time")
        if not gpu_all:
            reasons.append("no GPU time was seen")
        rows.append(
            {
                "outcome": outcome,
                "jobs": group.height,
                "jobs_share": group.height / jobs.height if jobs.height else None,
                "gpu_hours": gpu / 3_600_000,
                "gpu_hours_share": gpu / gpu_all if gpu_all else None,
                "runtime_mean_s": times.sum() / times.len() if times.len() else None,
                "runtime_median_s": times.median(),
                "runtime_p90_s": times.quantile(0.9, "linear"),
                "n": times.len(),
                "reason": "; ".join(reasons) or None,
            }
        )
    return pl.DataFrame(rows, schema=OUTCOME_COLUMNS)


def runtime_quantiles(jobs: pl.DataFrame, steps: int = 200) -> pl.DataFrame:
    """The distribution of run time by outcome: `steps` + 1 quantiles (nearest rank) of each outcome with run times.

    Columns: outcome, n, share (of the outcome's jobs that ran at most so long), runtime_s.
    """
    jobs = jobs.select("outcome", observed_s=observed_s()).drop_nulls()
    rows = []
    for outcome in OUTCOMES:
        times = jobs.filter(pl.col("outcome") == outcome)["observed_s"].sort()
        last = times.len() - 1
        rows += [
            (outcome, times.len(), step / steps, times[(last * step + steps // 2) // steps])
            for step in range(steps + 1)
            if times.len()
        ]
    schema = {"outcome": pl.String, "n": pl.Int64, "share": pl.Float64, "runtime_s": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")
