"""Rule describe_workload: run times, delays, submissions, requests, measured use and recurrence by kind of job."""

from ttf.entry import run_rule

# What each table is made from, where the trace has it.
OF_JOBS = {
    "percentiles": (
        *("outcome", "gpu_type", "account", "gpu_milli", "size"),
        *("runtime_s", "queue_s", "wall_s"),
    ),
    "gpu_requests": ("gpu_type", "gpu_milli"),
    "request_use": ("gpu_milli", "cpu_milli", "mem_mib", "gpu_used_milli", "cpu_used_milli", "mem_used_mib"),
    "recurrence": ("recurrence_group", "user"),
    "submissions": ("submit_s",),
    "roles": ("task", "outcome"),
    "activity": ("user", "outcome", "gpu_milli", "size", "start_s", "runtime_s", "trace_end_s"),
    "gangs": ("size", "outcome"),
    "request_percentiles": ("gpu_milli", "cpu_milli", "mem_mib", "size"),
    "wait_share": ("queue_s", "runtime_s"),
}


def main(snakemake):
    from functools import partial
    from pathlib import Path

    import polars as pl
    from ttf.charts import population as of_population
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.charts.workload import CHARTS
    from ttf.stats import population, workload
    from ttf.stats.machine_load import machine_load
    from ttf.stats.submissions import submissions
    from ttf.stats.waits import wait_share
    from ttf.tables import read_columns, write_csv

    nodes = pl.read_parquet(snakemake.input.nodes)
    output, params = snakemake.output, snakemake.params
    raw = {}
    if folder := dict(snakemake.input.items()).get("raw"):
        raw = {name: pl.scan_parquet(Path(folder) / f"{name}.parquet") for name in params.tables}
    of_jobs = {
        "percentiles": workload.percentiles,
        "gpu_requests": workload.gpu_requests,
        "request_use": workload.request_against_use,
        "recurrence": workload.recurrence,
        "submissions": partial(submissions, zone=params.zone),
        "roles": population.roles,
        "activity": population.activity,
        "gangs": population.gangs,
        "request_percentiles": population.request_percentiles,
        "wait_share": wait_share,
    }
    # Only the columns of one table are held at a time.
    tables = {name: find(read_columns(snakemake.input.jobs, OF_JOBS[name])) for name, find in of_jobs.items()}
    tables |= {
        "machines": population.machines(nodes),
        "job_status": population.job_status(raw.get("job")),
        "machine_load": machine_load(raw),
    }
    for name, table in tables.items():
        write_csv(table, output[name])
    study = Study(params.unit, params.synthetic)
    drawn = {name: draw(tables, study) for name, draw in (CHARTS | of_population.CHARTS).items()}
    save_charts(drawn, output.specs, output.index)
    return f"{tables['percentiles'].height:,} groups"


run_rule(main, snakemake)
