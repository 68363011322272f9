"""Rule measure_ettr: what the time of job runs with their attempts went into, beside what the model expects."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.charts.ettr import ettr_measured
    from ttf.charts.figure import Study
    from ttf.charts.saving import save_charts
    from ttf.stats.job_runs import job_runs, measured_table
    from ttf.stats.plans import Habits, node_rate
    from ttf.tables import read_csv, write_csv

    params, output = snakemake.params, snakemake.output
    asked = params.ettr
    attempts, jobs = (pl.read_parquet(snakemake.input[name]) for name in ("lives", "jobs"))
    # The waits are those of the trace here, whatever is planned with.
    habits = Habits(
        asked["checkpoint_intervals_s"][0], asked["checkpoint_write_s"], asked["restart_s"], 0, asked["productive_s"]
    )
    rate = node_rate(*(read_csv(snakemake.input[name]) for name in ("rate", "by_gpus")))
    runs = job_runs(attempts, jobs, asked["run_key"], asked["run_at_least_s"], habits)
    measured = measured_table(runs, rate, habits)
    write_csv(measured, output.ettr_measured)
    drawn = {"ettr_measured": ettr_measured(measured, Study(params.unit, params.synthetic))}
    save_charts(drawn, output.specs, output.index)
    return f"{runs.height:,} job runs"


run_rule(main, snakemake)
