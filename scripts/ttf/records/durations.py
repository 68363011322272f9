"""Durations: exposure of one unit, and the event that ended it. Survival analyses read only these."""

import polars as pl

from ttf.records.clusters import CLUSTER_COLUMNS, add_clusters
from ttf.records.jobs import Frame, add_blank_columns, conform, observed_s
from ttf.records.record_contracts import DURATIONS

# Ends of a job, which are competing risks.
ENDS = ("failure", "success", "cancelled", "unknown")

DURATION_COLUMNS = DURATIONS.schema
# A column that jobs may have, and attempts never.
LONGEST = {"runtime_max_s": pl.Int64}
# Columns of jobs that `durations_of_jobs` reads.
JOB_DURATION_COLUMNS = (
    *("trace", "job_id", "task", "account", "outcome", "start_s", "end_s", "runtime_s", "runtime_max_s", "trace_end_s"),
    *("gpu_type", "gpu_milli", "cpu_milli", "size", "nodes", *CLUSTER_COLUMNS),
)


def durations_of_jobs(jobs: Frame) -> Frame:
    """Return one duration per job that no longer waits, in the order of the jobs, with the columns DURATION_COLUMNS.

    A job that ended without a start has blank durations, which no estimator counts. event: the outcome (failure,
    success, cancelled, unknown); blank for a running job, which is censored when last seen, or at the trace's end
    without such a time. gpu_milli: request of the whole job (per instance x size). gpu_count: the same in whole GPUs,
    rounded up (a share of one GPU counts as 1, none as 0). A job with an unknown end time has a blank duration_s, and
    in duration_max_s its longest possible duration (runtime_max_s, else from its start to the trace's end). Estimators
    exclude it, and report how much it could change.

    entry_s is the age at which a job came under watch, 0 if watched from its start. Few traces give the start of
    recording, and a job that ended before it is missing: an earlier start is in the trace only if the job was still
    running. At the first end in the trace recording had begun. So a job that started before that end came under watch
    at its age then, and the first end itself does not count. This holds for any earlier recording, and costs little if
    nothing was missed. Age is wall clock since the start, at most the duration: too high for a job with gaps between
    attempts. Estimators without delayed entry ignore it.
    """
    observed_jobs = add_blank_columns(add_clusters(jobs), LONGEST).filter(pl.col("outcome") != "waiting")
    return conform(observed_jobs.select(**duration_columns(first_end_s(observed_jobs))), DURATION_COLUMNS)


def first_end_s(jobs: Frame) -> int | None:
    """Return the first end in the trace (seconds on its clock); None without any."""
    return jobs.lazy().select(pl.col("end_s").min()).collect(engine="streaming").item()


def duration_columns(first_end: int | None) -> dict[str, pl.Expr]:
    """Return DURATION_COLUMNS of jobs that no longer wait, each from its own row.

    See `durations_of_jobs` and `first_end_s`. The jobs have CLUSTER_COLUMNS and LONGEST.
    """
    gpu_milli = pl.col("gpu_milli") * pl.col("size")
    is_ended = pl.col("outcome").is_in(ENDS)
    max_duration = pl.col("runtime_max_s")
    duration = pl.when(max_duration.is_null()).then(observed_s())
    age = (pl.lit(first_end, dtype=pl.Int64) - pl.col("start_s")).clip(lower_bound=0).fill_null(0)
    return {
        "trace": pl.col("trace"),
        "unit_id": pl.concat_str("job_id", "task", separator="/", ignore_nulls=True),
        "duration_id": pl.lit(0, dtype=pl.Int64),
        "entry_s": pl.min_horizontal(age, duration),
        "duration_s": duration,
        "event": pl.when(is_ended).then("outcome"),
        "gpu_count": ((gpu_milli + 999) // 1000).fill_null(0),
        "gpu_milli": gpu_milli.fill_null(0),
        "cpu_milli": pl.col("cpu_milli") * pl.col("size"),
        "nodes": pl.col("nodes"),
        "account": pl.col("account"),
        "gpu_type": pl.col("gpu_type"),
        **{name: pl.col(name) for name in CLUSTER_COLUMNS},
        "duration_max_s": pl.when(duration.is_null()).then(
            pl.coalesce(max_duration, pl.col("trace_end_s") - pl.col("start_s"))
        ),
    }


def count_nodes(node_gpus: int | None, node_gpus_from: str | None = None) -> pl.Expr:
    """Return the nodes of each duration: recorded, or computed from its GPUs.

    Recorded ones count if `node_gpus_from` is "jobs" or the units hold no GPUs. The computation rounds GPUs up to nodes
    of `node_gpus`. Both arguments are columns of node_failure_rate.csv.
    """
    if node_gpus is None:
        return pl.col("nodes")
    rounded_up = (pl.col("gpu_count") + node_gpus - 1) // node_gpus
    recorded = pl.when((pl.col("nodes") > 0) & (pl.col("gpu_count") > 0)).then("nodes")
    return pl.coalesce(recorded, rounded_up) if node_gpus_from == "jobs" else rounded_up


def find_strata(durations: pl.DataFrame | pl.LazyFrame, strata: list[str]) -> list[str]:
    """Return `all`, and those of `strata` with a value in any duration."""
    present = [name for name in strata if name in durations.lazy().collect_schema()]
    value_counts = durations.lazy().select(pl.col(present).count()).collect(engine="streaming")
    return ["all", *(name for name in present if value_counts[name].item())]


def find_ends(durations: Frame) -> list[str]:
    """Return `failure`, and those other ENDS that occur."""
    events = durations.lazy().select(pl.col("event").unique()).collect(engine="streaming")["event"]
    return [end for end in ENDS if end == "failure" or end in events]


def select_cause(durations: Frame, cause: str) -> Frame:
    """Return the durations with `cause` as their event where it applies; every other end becomes censoring."""
    return durations.with_columns(event=pl.when(pl.col(cause).fill_null(False)).then(pl.lit(cause)))
