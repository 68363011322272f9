"""A small random trace of jobs, with or without attempts; runs of a few columns."""

import numpy as np
import polars as pl
from ttf.records.clusters import add_clusters
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.records.runs import RUN_COLUMNS

STATES = {"COMPLETED": "success", "FAILED": "failure", "NODE_FAIL": "failure", "PREEMPTED": "cancelled"}
ATTEMPTS = {
    "job_id": pl.String,
    "attempt": pl.Int64,
    "start_s": pl.Int64,
    "end_s": pl.Int64,
    "runtime_s": pl.Int64,
    "state": pl.String,
    "outcome": pl.String,
    "gpu_milli": pl.Int64,
    "nodes": pl.Int64,
    "node_list": pl.List(pl.String),
}


def make_trace(seed: int, n: int, with_attempts: bool) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return jobs, some waiting or running, and the attempts of those that do not wait."""
    rng = np.random.default_rng(seed)
    state = rng.choice(list(STATES), n)
    jobs = pl.DataFrame(
        {
            "job_id": [f"j{number}" for number in rng.permutation(n)],
            "user": rng.choice(["ana", "bo", None], n).tolist(),
            "account": rng.choice(["x", "y"], n),
            "gpu_type": rng.choice(["A", "B"], n),
            "submit_s": np.sort(rng.integers(0, 9_000, n)),
            "gpu_milli": rng.choice([0, 500, 4000], n),
            "size": rng.integers(1, 3, n),
            "status_raw": state,
            "trace_end_s": np.full(n, 20_000),
        },
        schema_overrides={"user": pl.String},
    )
    outcome = pl.col("status_raw").replace_strict(STATES)
    fate = pl.Series(rng.choice(["waiting", "running", "ended"], n, p=[0.1, 0.1, 0.8]))
    jobs = jobs.with_columns(
        outcome=pl.when(fate == "ended").then(outcome).otherwise(fate),
        start_s=pl.when(fate != "waiting").then("submit_s"),
        runtime_s=pl.when(fate == "ended").then(pl.Series(rng.integers(0, 9_000, n))),
    )
    jobs = add_clusters(conform(jobs.with_columns(end_s=pl.col("start_s") + pl.col("runtime_s")), JOB_COLUMNS))
    if not with_attempts:
        return jobs, None
    rows = []
    for row in jobs.filter(pl.col("outcome") != "waiting").iter_rows(named=True):
        tries = int(rng.integers(1, 4))
        for number in range(tries):
            state = row["status_raw"] if number == tries - 1 else str(rng.choice(["NODE_FAIL", "PREEMPTED", "FAILED"]))
            start_s, runtime_s = row["start_s"] + 1_000 * number, int(rng.integers(0, 999))
            rows.append(
                {
                    "job_id": row["job_id"],
                    "attempt": number,
                    "start_s": start_s if rng.random() > 0.05 else None,
                    "end_s": start_s + runtime_s,
                    "runtime_s": runtime_s,
                    "state": state,
                    "outcome": STATES[state] if number == tries - 1 or rng.random() > 0.3 else None,
                    "gpu_milli": int(rng.choice([1000, 8000])) if rng.random() > 0.3 else None,
                    "nodes": 1,
                    "node_list": [f"n{rng.integers(3)}"],
                }
            )
    return jobs, add_job_rows(jobs, pl.DataFrame(rows, schema=ATTEMPTS))


def add_job_rows(jobs: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """Add `job`, the row of its job, to each attempt; both frames have job_id."""
    rows = jobs.select("job_id").with_row_index("job")
    return attempts.drop("job", strict=False).join(rows, on="job_id", how="left", maintain_order="left", validate="m:1")


def make_run_rows(rows: list[dict], **defaults) -> pl.LazyFrame:
    """Make runs, each of a job of its own on one GPU; unset columns are `defaults`, and failures are of any cause."""
    flags = dict.fromkeys(("infra", "timed_out", "preempted", "again"), False)
    blank = {"attempt": 0, "start_s": 0, "gpu_milli": 1000, **flags, **defaults}
    records = [blank | {"job": number} | row for number, row in enumerate(rows)]
    return pl.LazyFrame([row | {"failed": row["outcome"] == "failure"} for row in records], schema=RUN_COLUMNS)
