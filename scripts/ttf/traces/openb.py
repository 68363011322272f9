"""The openb trace (Alibaba cluster-trace-gpu-v2023): one pod is one job, one attempt, one instance on one node."""

import polars as pl

from ttf.jobs import JOB_COLUMNS, conform, ended_unrecorded, outcome_of

NODE_TABLE = "nodes"
OUTCOMES = {"Succeeded": "success", "Failed": "failure", "Running": "running", "Pending": "waiting"}


def jobs(raw: dict[str, pl.LazyFrame]) -> pl.DataFrame:
    """One row per pod, in file order, with the columns of the common job record and `qos`, `num_gpu`.

    Run time is deletion - scheduled. A pod last seen Running had not failed when it was deleted, and how it ended is
    not recorded: its outcome is unknown; one that was not deleted before the trace's end is running. A Pending pod
    never started. gpu_milli is the share of the one GPU where
    num_gpu is 1, and 1000 for each GPU of a pod with several. gpu_type is the set of types the pod accepts, as written.
    """
    # A Pending pod has not started, whatever time it carries.
    waits = pl.col("outcome") == "waiting"
    pods = (
        raw["pods"]
        .with_columns(outcome=outcome_of("pod_phase", OUTCOMES), trace_end_s=_trace_end())
        .with_columns(start_s=pl.when(~waits).then("start_s"))
        .collect()
    )
    started = pl.col("start_s").is_not_null()
    return conform(
        pods.select(
            job_id="name",
            submit_s="submit_s",
            start_s="start_s",
            end_s=pl.when(started).then("end_s"),
            queue_s=pl.col("start_s") - pl.col("submit_s"),
            runtime_s=pl.col("end_s") - pl.col("start_s"),
            outcome=ended_unrecorded(pl.col("outcome"), pl.col("end_s"), pl.col("trace_end_s")),
            status_raw="pod_phase",
            gpu_type="gpu_type",
            gpu_milli=pl.when(pl.col("num_gpu") == 1).then("gpu_milli").otherwise(pl.col("num_gpu") * 1000),
            cpu_milli="cpu_milli",
            mem_mib="mem_mib",
            size=pl.lit(1, dtype=pl.Int64),
            nodes=pl.when(started).then(pl.lit(1, dtype=pl.Int64)),
            attempts=pl.when(started).then(pl.lit(1, dtype=pl.Int64)),
            trace_end_s="trace_end_s",
            qos="qos",
            num_gpu="num_gpu",
            file="file",
        ),
        JOB_COLUMNS,
    )


def _trace_end() -> pl.Expr:
    """The last moment seen, seconds on the trace's clock."""
    return pl.max_horizontal("submit_s", "start_s", "end_s").max()
