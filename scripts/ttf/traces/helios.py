"""The Helios traces (SenseTime, 2020; Hu et al., SC'21): one row of a cluster's Slurm log is one job.

No placement, no attempts and no use were published, so these stay blank. gpu_num and cpu_num are those of the whole
job: it is one instance (`size` 1). More than half of the jobs ask for no GPU; they are kept, with gpu_milli 0.
"""

import polars as pl

from ttf.jobs import JOB_COLUMNS, conform, outcome_of

# No table names a node.
NODE_TABLE = None
# TIMEOUT and NODE_FAIL count as failed, as in the paper; status_raw keeps them apart.
OUTCOMES = {
    "COMPLETED": "success",
    "CANCELLED": "cancelled",
    "FAILED": "failure",
    "TIMEOUT": "failure",
    "NODE_FAIL": "failure",
}
# A virtual cluster that the publishers' own scripts leave out as one for tests.
TEST_VC = "vc7Bz"
DAY_S = 86_400


def jobs(raw: dict[str, pl.LazyFrame]) -> pl.DataFrame:
    """One row per job, in file order, with the columns of the common job record and these extras:

    duration_s: the run time as the file gives it; duration_differs: whether it is not end - start (blank where one of
    the two is not known); test_vc: the job ran in the virtual cluster for tests. Where the table gpu_number is there,
    cluster_gpus: the GPUs of the cluster on the day the job started, which change from day to day.

    account is the virtual cluster as it was written: those renamed or merged later are not renamed here. Run time and
    queueing delay are recomputed from the three times.
    """
    log = raw["log"].with_columns(
        runtime_s=pl.col("end_s") - pl.col("start_s"),
        trace_end_s=pl.max_horizontal("submit_s", "start_s", "end_s").max(),
    )
    capacity = []
    if "gpu_number" in raw:
        capacity = ["cluster_gpus"]
        log = _with_capacity(log, raw["gpu_number"])
    return conform(
        log.select(
            job_id="job_id",
            user="user",
            account="vc",
            submit_s="submit_s",
            start_s="start_s",
            end_s="end_s",
            queue_s=pl.col("start_s") - pl.col("submit_s"),
            runtime_s="runtime_s",
            outcome=outcome_of("state", OUTCOMES),
            status_raw="state",
            gpu_milli=pl.col("gpu_num") * 1000,
            cpu_milli=pl.col("cpu_num") * 1000,
            size=pl.lit(1, dtype=pl.Int64),
            nodes="node_num",
            trace_end_s="trace_end_s",
            file="file",
            duration_s="duration_s",
            duration_differs=pl.col("runtime_s") != pl.col("duration_s"),
            test_vc=(pl.col("vc") == TEST_VC).fill_null(False),
            **{name: name for name in capacity},
        ).collect(),
        JOB_COLUMNS,
    )


def _with_capacity(log: pl.LazyFrame, gpu_number: pl.LazyFrame) -> pl.LazyFrame:
    """The jobs with `cluster_gpus`: the total of the day they started; blank for a day the table does not have.

    China keeps one clock all year: every day begins a whole number of days after any other.
    """
    days = gpu_number.select("day_s", cluster_gpus="total")
    any_midnight = days.select(pl.col("day_s").min()).collect().item()
    since_midnight = (pl.col("start_s") - any_midnight) % DAY_S
    return log.with_columns(day_s=pl.col("start_s") - since_midnight).join(
        days, on="day_s", how="left", maintain_order="left"
    )
