"""Rule describe_workload: run times, delays, submissions, requests, measured use and recurrence by kind of job."""

from ttf.entry import run_rule

OF_JOBS = (
    *("task", "user", "account", "recurrence_group", "outcome", "gpu_type"),
    *("submit_s", "start_s", "queue_s", "runtime_s", "wall_s", "trace_end_s"),
    *("gpu_milli", "cpu_milli", "mem_mib", "size", "gpu_used_milli", "cpu_used_milli", "mem_used_mib"),
)


def main(snakemake):
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

    jobs = read_columns(snakemake.input.jobs, OF_JOBS)
    nodes = pl.read_parquet(snakemake.input.nodes)
    output, params = snakemake.output, snakemake.params
    raw = {}
    if folder := dict(snakemake.input.items()).get("raw"):
        raw = {name: pl.scan_parquet(Path(folder) / f"{name}.parquet") for name in params.tables}
    tables = {
        "percentiles": workload.percentiles(jobs),
        "gpu_requests": workload.gpu_requests(jobs),
        "request_use": workload.request_against_use(jobs),
        "recurrence": workload.recurrence(jobs),
        "submissions": submissions(jobs, params.zone),
        "roles": population.roles(jobs),
        "activity": population.activity(jobs),
        "gangs": population.gangs(jobs),
        "request_percentiles": population.request_percentiles(jobs),
        "wait_share": wait_share(jobs),
        "machines": population.machines(nodes),
        "job_status": population.job_status(raw["job"].collect() if "job" in raw else None),
        "machine_load": machine_load(raw),
    }
    for name, table in tables.items():
        write_csv(table, output[name])
    study = Study(params.unit, params.synthetic)
    drawn = {name: draw(tables, study) for name, draw in (CHARTS | of_population.CHARTS).items()}
    save_charts(drawn, output.specs, output.index)
    return f"{tables['percentiles'].height:,} groups"


run_rule(main, snakemake)
