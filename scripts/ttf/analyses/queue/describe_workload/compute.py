"""Requests, submissions, waiting and run times, and the use of machines."""

import polars as pl

from ttf.analyses.queue.describe_workload import population, workload
from ttf.analyses.queue.describe_workload.machine_load import machine_load
from ttf.analyses.queue.describe_workload.population import submissions
from ttf.engine.storage.on_disk import scan_parquet
from ttf.records.inputs import Inputs


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    raw = {}
    if "raw" in inputs:
        raw = {name: scan_parquet(inputs.path("raw") / f"{name}.parquet") for name in inputs.settings.tables}
    jobs = inputs.scan_as_recorded("jobs")
    sized_jobs = inputs.scan("jobs")
    return {
        "percentiles": workload.percentiles(sized_jobs),
        "gpu_requests": workload.gpu_requests(jobs),
        "request_use": workload.request_against_use(jobs),
        "recurrence": workload.recurrence(jobs),
        "submissions": submissions(jobs, inputs.settings.zone),
        "roles": population.count_roles(jobs),
        "activity": population.activity(sized_jobs),
        "gangs": population.gangs(jobs),
        "request_percentiles": population.request_percentiles(jobs),
        "wait_share": workload.wait_share(jobs),
        "machines": population.machines(inputs.read("nodes")),
        "job_status": population.job_status(raw.get("job")),
        "machine_load": machine_load(raw),
    }
