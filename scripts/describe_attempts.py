"""Rule describe_attempts: queueing delays, retries, run time to failure and overtaking, of jobs with attempts."""

from ttf.entry import run_rule

OF_JOBS = ("job_id", "user", "account", "outcome", "gpu_milli", "size", "attempts", "submit_s", "start_s")
OF_ATTEMPTS = ("job_id", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "nodes")


def main(snakemake):
    from ttf.charts.figure import Study
    from ttf.charts.queueing import CHARTS
    from ttf.charts.saving import save_charts
    from ttf.stats import queueing, retries
    from ttf.tables import read_columns, write_csv

    jobs = read_columns(snakemake.input.jobs, OF_JOBS)
    output, window = snakemake.output, snakemake.params.window
    placed = queueing.placed(jobs, read_columns(snakemake.input.attempts, OF_ATTEMPTS))
    jobs = jobs.drop("job_id")
    waits, tries = queueing.waits(placed), retries.tries(placed)
    tables = {
        "delays": queueing.delays(waits, queueing.busiest(jobs)),
        "delay_by_nodes": queueing.delay_by_nodes(waits),
        "out_of_order": queueing.out_of_order(jobs),
        "retries": retries.retries(jobs),
        "runtime_to_failure": retries.runtime_to_failure(tries),
        "failed_attempts": retries.failed_attempts(jobs, tries),
        "outcomes_window": retries.outcomes_window(jobs, tries, tuple(window) if window else None),
    }
    for name, table in tables.items():
        write_csv(table, output[name])
    study = Study(snakemake.params.unit, snakemake.params.synthetic)
    drawn = {name: draw(tables, study) for name, draw in CHARTS.items()}
    save_charts(drawn, output.specs, output.index)
    return f"{waits.height:,} attempts"


run_rule(main, snakemake)
