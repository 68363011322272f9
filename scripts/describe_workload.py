"""Rule describe_workload: run times, delays, requests, measured use and recurrence by kind of job."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.charts.workload import CHARTS
    from ttf.stats import workload
    from ttf.tables import write_csv

    jobs = pl.read_parquet(snakemake.input.jobs)
    output = snakemake.output
    tables = {
        "percentiles": workload.percentiles(jobs),
        "gpu_requests": workload.gpu_requests(jobs),
        "request_use": workload.request_against_use(jobs),
        "recurrence": workload.recurrence(jobs),
    }
    for name, table in tables.items():
        write_csv(table, output[name])
    study = Study(snakemake.params.unit, snakemake.params.synthetic)
    drawn = {name: draw(tables, study) for name, draw in CHARTS.items()}
    save_charts(drawn, output.specs, output.index)
    return f"{tables['percentiles'].height:,} groups"


run_rule(main, snakemake)
