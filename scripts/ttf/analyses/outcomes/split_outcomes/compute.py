"""Split jobs by outcome: numbers, run times and GPU time."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.outcomes.split_outcomes import OUTCOMES_BY_GPUS, OUTCOMES_GPU, RUNTIME_QUANTILES
from ttf.analyses.outcomes.split_outcomes.summaries import (
    add_median_intervals,
    ended_by_node,
    ended_jobs,
    summarise_jobs,
)
from ttf.engine.counts import Rows, ValueCounts, count_rows, text_codes
from ttf.records.clusters import JOB_CLUSTER_COLUMNS, add_clusters
from ttf.records.inputs import Inputs
from ttf.records.jobs import (
    OUTCOMES,
    TIME_LIMITS,
    doubling_bucket,
    gpu_seconds_milli,
    is_at_time_limit,
    observed_s,
    whole_gpus,
)
from ttf.stats.clustered import clustered_failure_shares, join_clustered, sum_ended
from ttf.stats.shares import divide, failure_share_columns

# File -> the outcomes in it.
SPLIT = {
    "success": ("success",),
    "failure": ("failure",),
    "unresolved": ("unknown", "running", "waiting"),
    "cancelled": ("cancelled",),
}
_SIZED = ("outcome", "gpu_milli", "size")
_HAS_GPU = (pl.col("gpu_milli") > 0).fill_null(False)
NO_LIMITS = "no status of the format says that a time limit ended the job"


def compute(inputs: Inputs) -> dict[str, pl.DataFrame | pl.LazyFrame]:
    jobs, has_limits = inputs.scan("jobs"), not set(TIME_LIMITS).isdisjoint(inputs.settings.words)
    sums, time_counts = sum_outcomes(jobs), count_times(jobs)
    clustered = inputs.scan("jobs", [*JOB_CLUSTER_COLUMNS, *_SIZED, "runtime_s"])
    clustered = add_clusters(clustered).with_columns(gpus_high=doubling_bucket(whole_gpus().fill_null(0)))
    ended_by_size = sum_ended(clustered, "gpus_high")
    outcomes, times_by_outcome = outcome_table(sums, time_counts, has_limits), split_times(time_counts)
    # Published shares mostly refer to jobs that requested a GPU.
    gpu_sums, gpu_time_counts = (rows.filter(has_gpu=1) for rows in (sums, time_counts))
    return split_outcomes(jobs) | {
        "outcomes": add_median_intervals(outcomes, times_by_outcome, clustered),
        "outcomes_gpu": outcome_table(gpu_sums, gpu_time_counts, has_limits),
        "outcomes_by_gpus": outcomes_by_gpus(clustered, ended_by_size),
        "ended_jobs": ended_jobs(outcomes, clustered, ended_by_size),
        "ended_by_node": ended_by_node(clustered, ended_by_size),
        "jobs_summary": summarise_jobs(inputs.scan_as_recorded("jobs"), inputs.read("nodes")),
        "runtime_quantiles": runtime_quantiles(times_by_outcome),
    }


def split_outcomes(jobs: pl.LazyFrame) -> dict[str, pl.LazyFrame]:
    """Split jobs into success, failure, unresolved and cancelled; every job is in exactly one."""
    return {name: jobs.filter(pl.col("outcome").is_in(outcomes)) for name, outcomes in SPLIT.items()}


def sum_outcomes(jobs: Rows) -> pl.DataFrame:
    """Sum jobs by outcome and has_gpu: jobs, gpu (milli-GPU seconds), at_limit (jobs that a time limit ended)."""
    sums = {"jobs": pl.len(), "gpu": gpu_seconds_milli().sum(), "at_limit": is_at_time_limit("status_raw").sum()}
    return jobs.lazy().group_by("outcome", has_gpu=_HAS_GPU).agg(**sums).collect(engine="streaming")


def count_times(jobs: Rows) -> pl.DataFrame:
    """Count the known run times (`ttf.records.jobs.observed_s`) by outcome (index in OUTCOMES), time and has_gpu."""
    return count_rows(jobs, outcome=text_codes("outcome", OUTCOMES), time=observed_s(), has_gpu=_HAS_GPU)


def split_times(time_counts: pl.DataFrame) -> dict[str, ValueCounts]:
    """Return the run times of `count_times` of each outcome."""
    return {
        outcome: ValueCounts.from_frame(time_counts.filter(outcome=index), "time")
        for index, outcome in enumerate(OUTCOMES)
    }


def outcome_table(sums: pl.DataFrame, time_counts: pl.DataFrame, has_limits: bool = False) -> pl.DataFrame:
    """Return a row per outcome that occurs (success and failure always), in the order of ttf.records.jobs.OUTCOMES.

    sums: `sum_outcomes` of the jobs; time_counts: their `count_times`. has_limits: whether a status word of the trace's
    format is in TIME_LIMITS; else at_time_limit is blank.
    """
    outcome_sums = sums.group_by("outcome").agg(pl.col("jobs", "gpu", "at_limit").sum())
    totals = {outcome: values for outcome, *values in outcome_sums.iter_rows()}
    jobs_all, gpu_all, _ = (sum(values) for values in zip((0, 0, 0), *totals.values(), strict=True))
    times_by_outcome = split_times(time_counts)
    rows = []
    for outcome in OUTCOMES:
        count, gpu, n_at_limit = totals.get(outcome, (0, 0, 0))
        times = times_by_outcome[outcome]
        if not count and outcome not in ("success", "failure"):
            continue
        no_time_reason = None if times.size else "no job of this outcome has a known run time"
        if not count:
            no_time_reason = "no job has this outcome"
        elif outcome == "waiting":
            no_time_reason = "has not started, so it has no run time"
        reasons = [no_time_reason, None if gpu_all else "no GPU time was seen", None if has_limits else NO_LIMITS]
        row = {"outcome": outcome, "jobs": count, "jobs_share": divide(count, jobs_all), "n": times.size}
        row |= {"gpu_hours": gpu / 3_600_000, "gpu_hours_share": divide(gpu, gpu_all)}
        row |= {"at_time_limit": n_at_limit if has_limits else None, "reason": "; ".join(filter(None, reasons)) or None}
        if times.size:
            row |= {"runtime_mean_s": times.mean(), "runtime_median_s": times.median()}
            row["runtime_p90_s"] = times.percentile(90)
        rows.append(row)
    return OUTCOMES_GPU.frame(rows)


def outcomes_by_gpus(jobs: Rows, ended_by_size: pl.DataFrame) -> pl.DataFrame:
    """Return OUTCOMES_BY_GPUS: ended jobs and failures by GPUs requested, ascending, for the sizes that occur.

    jobs: outcome, gpus_high and CLUSTER_COLUMNS; without the latter no interval is clustered. ended_by_size:
    `ttf.stats.clustered.sum_ended` of them.
    """
    high = pl.col("gpus_high")
    counts_by_size = ended_by_size.group_by("gpus_high").agg(pl.col("jobs", "ended", "failures").sum())
    counts_by_size = counts_by_size.sort("gpus_high")
    shares = counts_by_size.with_columns(
        **failure_share_columns(counts_by_size),
        gpus_low=pl.when(high > 1).then(high // 2 + 1).otherwise(high),
        reason=pl.when(ended=0).then(pl.lit("no job of this size ended")),
    )
    intervals = clustered_failure_shares(jobs, ["gpus_high"], ended_by_size)
    return OUTCOMES_BY_GPUS.conform(join_clustered(shares, intervals, ["gpus_high"]))


def runtime_quantiles(times_by_outcome: Mapping[str, ValueCounts], steps: int = 200) -> pl.DataFrame:
    """Return `steps` + 1 quantiles (nearest rank) of the run times of each outcome that has any."""
    rows = [
        (outcome, times.size, step / steps, times.at(((times.size - 1) * step + steps // 2) // steps))
        for outcome, times in times_by_outcome.items()
        for step in range(steps + 1)
        if times.size
    ]
    return pl.DataFrame(rows, schema=RUNTIME_QUANTILES.schema, orient="row")
