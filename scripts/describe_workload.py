"""Rule describe_workload: run times, delays, submissions, requests, measured use and recurrence by kind of job."""

from ttf.entry import run_rule


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
    from ttf.tables import write_csv

    nodes = pl.read_parquet(snakemake.input.nodes)
    output, params = snakemake.output, snakemake.params
    raw = {}
    if folder := dict(snakemake.input.items()).get("raw"):
        raw = {name: pl.scan_parquet(Path(folder) / f"{name}.parquet") for name in params.tables}
    jobs = pl.scan_parquet(snakemake.input.jobs)
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
