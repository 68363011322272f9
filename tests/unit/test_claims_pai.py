"""Findings on PAI 2020 beyond study 1, and on openb: each quantity on a trace of a dozen tasks."""

import polars as pl
from memory_tables import outcome_table
from tested_claims import check_computed, claims_of
from ttf.analyses.queue.describe_workload.population import (
    activity,
    count_roles,
    gangs,
    job_status,
    machines,
    request_percentiles,
    submissions,
)
from ttf.analyses.queue.describe_workload.workload import gpu_requests, percentiles, wait_share
from ttf.page.replication.scorecard import scorecard
from ttf.records.jobs import JOB_COLUMNS

MIDNIGHT_S = 57_600  # in Shanghai

# (role, user, outcome, submitted, delay, run time, GPU type, GPU request in % of one, cores, GiB, instances)
MICRO = [
    ("worker", "a", "success", 90_000, 3, 100, "T4", 25, 1, 1, 1),
    ("worker", "a", "success", MIDNIGHT_S + 86_400, 9, 300, "MISC", 50, 2, 2, 2),
    ("ps", "a", "success", MIDNIGHT_S, 27, 500, "P100", 100, 3, 3, 1),
    ("ps", "b", "success", 120_000, 81, 700, "V100", 200, 4, 4, 3),
    ("ps", "c", "success", 130_000, 2, 900, "V100M32", 800, 5, 5, 1),
    ("chief", "d", "failure", 140_000, 600, 50, "T4", 10, 6, 6, 2),
    ("chief", "d", "failure", 150_000, 30, 20, "MISC", 100, 7, 7, 4),
    ("chief", "d", "failure", 160_000, 1, 60, "P100", 25, 8, 8, 1),
    ("chief", "d", "failure", 170_000, 5, 40, None, None, 9, 9, 1),
    ("M1", "e", "running", 180_000, 7, None, "V100", 100, 10, 10, 1),
    ("M1", "e", "success", 190_000, 2000, 10, "V100", 100, 11, 11, 1),
    ("R2", "f", "waiting", 200_000, None, None, None, None, 12, 12, None),
]
JOB = [("Terminated", 1, 5), ("Terminated", 1, 6), ("Failed", 2, None), ("Failed", 2, 9), ("Failed", 3, None)]
JOB += [("Running", 4, 8), ("Running", 4, None), ("Waiting", None, None)]
MACHINES = [("T4", 2), ("T4", 2), ("MISC", 8), ("P100", 2), ("V100", 8), ("V100M32", 8), ("CPU", 0), ("CPU", 0)]


def micro_tables() -> dict[str, pl.DataFrame]:
    names = ("task", "user", "outcome", "submit_s", "queue_s", "runtime_s", "gpu_type")
    names += ("gpu_milli", "cpu_milli", "mem_mib", "size")
    rows = [(*row[:7], None if row[7] is None else row[7] * 10, row[8] * 1000, row[9] * 1024, row[10]) for row in MICRO]
    frame = pl.DataFrame(rows, schema={name: JOB_COLUMNS[name] for name in names}, orient="row")
    blank = {name: pl.lit(None, dtype=dtype) for name, dtype in JOB_COLUMNS.items() if name not in names}
    jobs = frame.with_columns(**blank).select(*JOB_COLUMNS)
    return {
        "percentiles": percentiles(jobs),
        "gpu_requests": gpu_requests(jobs),
        "outcomes_gpu": outcome_table(jobs.filter(pl.col("gpu_milli") > 0)),
        "submissions": submissions(jobs, "Asia/Shanghai"),
        "roles": count_roles(jobs),
        "activity": activity(jobs),
        "gangs": gangs(jobs),
        "request_percentiles": request_percentiles(jobs),
        "wait_share": wait_share(jobs),
        "machines": machines(pl.DataFrame(MACHINES, schema=["gpu_type", "gpu_count"], orient="row")),
        "row_account": pl.DataFrame({"table": ["pods", "nodes"], "rows_read": [13, 9]}),
        "job_status": job_status(pl.LazyFrame(JOB, schema=["status", "start_s", "end_s"], orient="row")),
    }


PAI_CLAIMS = claims_of(__file__)


def test_the_quantity_of_each_claim():
    frames = micro_tables()
    micro_claims = [claim | {"of": "micro"} for claim in PAI_CLAIMS]
    check_computed("pai", scorecard(micro_claims, {"micro": ["micro"]}, lambda _, table: frames[table]))
