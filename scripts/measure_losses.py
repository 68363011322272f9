"""Rule measure_losses: what failures cost, whose they are, how they repeat, and what would have saved some of it."""

from ttf.entry import run_rule

OF_JOBS = (
    *("user", "account", "recurrence_group", "outcome", "gpu_milli", "size"),
    *("submit_s", "start_s", "end_s", "runtime_s", "trace_end_s"),
)


def main(snakemake):
    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.lost_work import concentration_chart, lost_work_chart, what_if_chart
    from ttf.charts.saving import save_charts
    from ttf.runs import runs, with_reasons
    from ttf.stats.lost_work import lost_work, lost_work_by_month
    from ttf.stats.owners import concentration, failures_by_owner, owner_counts
    from ttf.stats.repeats import repeats
    from ttf.stats.what_if import what_if
    from ttf.tables import read_columns, scan_columns, write_csv

    given = dict(snakemake.input.items())
    attempts = pl.read_parquet(given["attempts"]) if "attempts" in given else None
    # Nothing but attempts and reasons is found by the names of jobs.
    names = ["job_id", "task"] if {"attempts", "reasons"} & given.keys() else []
    jobs = read_columns(given["jobs"], [*OF_JOBS, *names])
    if "reasons" in given:
        jobs, attempts = with_reasons(jobs, attempts, pl.read_parquet(given["reasons"]))
    of_jobs = runs(jobs, attempts, scan_columns(given["infra_lives"], ["event", "state", "basis"]))
    owners = owner_counts(jobs, of_jobs)
    settings = snakemake.params.settings
    cost = (settings["checkpoint_interval_s"], settings["preemption_window_s"])
    begin_s = jobs.select(pl.min_horizontal(pl.col("submit_s").min(), pl.col("start_s").min())).item()
    tables = {
        "lost_work": lost_work(of_jobs, *cost),
        "lost_work_by_month": lost_work_by_month(of_jobs, begin_s, jobs["trace_end_s"].max(), *cost),
        "failures_by_owner": failures_by_owner(owners, settings["owners"]),
        "failure_concentration": concentration(owners),
        "repeats": repeats(jobs, of_jobs),
        "what_if": what_if(of_jobs, [60 * minutes for minutes in settings["trial_minutes"]]),
    }
    for name, table in tables.items():
        write_csv(table, snakemake.output[name])
    study = Study(snakemake.params.unit, snakemake.params.synthetic)
    drawn = {
        "lost_work": lost_work_chart(tables["lost_work"], study),
        "failure_concentration": concentration_chart(tables["failure_concentration"], study),
        "what_if": what_if_chart(tables["what_if"], study),
    }
    save_charts(drawn, snakemake.output.specs, snakemake.output.index)
    return f"{of_jobs.height:,} runs, {int(of_jobs['failed'].sum()):,} failed"


run_rule(main, snakemake)
