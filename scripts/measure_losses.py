"""Rule measure_losses: what failures cost, whose they are, how they repeat, and what would have saved some of it."""

from ttf.entry import run_rule

OF_JOBS = (
    *("user", "account", "recurrence_group", "outcome", "gpu_milli", "size"),
    *("submit_s", "start_s", "end_s", "runtime_s", "trace_end_s"),
)

# Jobs looked at together for how failures repeat.
PARTITION_ROWS = 1 << 21


def main(snakemake):
    import polars as pl
    from ttf.charts.figure import Study
    from ttf.charts.lost_work import concentration_chart, lost_work_chart, what_if_chart
    from ttf.charts.saving import save_charts
    from ttf.partitions import partitions_of, spill_beside
    from ttf.runs import runs, with_reasons
    from ttf.stats.lost_work import loss_sums, lost_work, lost_work_by_month
    from ttf.stats.owners import concentration, failures_by_owner, owner_counts
    from ttf.stats.repeats import repeats
    from ttf.stats.what_if import what_if
    from ttf.tables import scan_columns, write_csv

    given = dict(snakemake.input.items())
    attempts = pl.read_parquet(given["attempts"]) if "attempts" in given else None
    # Nothing but attempts and reasons is found by the names of jobs.
    names = ["job_id", "task"] if {"attempts", "reasons"} & given.keys() else []
    jobs = scan_columns(given["jobs"], [*OF_JOBS, *names])
    if "reasons" in given:
        jobs, attempts = with_reasons(jobs.collect(), attempts, pl.read_parquet(given["reasons"]))
        jobs = jobs.lazy()
    of_jobs = runs(jobs, attempts, scan_columns(given["infra_lives"], ["event", "state", "basis"]))
    owners = owner_counts(jobs, of_jobs)
    settings = snakemake.params.settings
    begin_s = pl.min_horizontal(pl.col("submit_s").min(), pl.col("start_s").min())
    begin_s, end_s = jobs.select(begin_s, pl.col("trace_end_s").max()).collect(engine="streaming").row(0)
    sums = loss_sums(of_jobs, settings["checkpoint_interval_s"], settings["preemption_window_s"], begin_s)
    with spill_beside(snakemake.output.repeats) as spilled:
        of_repeats = repeats(jobs, of_jobs, partitions_of([jobs], PARTITION_ROWS, spilled))
    tables = {
        "lost_work": lost_work(sums),
        "lost_work_by_month": lost_work_by_month(sums, begin_s, end_s),
        "failures_by_owner": failures_by_owner(owners, settings["owners"]),
        "failure_concentration": concentration(owners),
        "repeats": of_repeats,
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
    return f"{sums['runs'].sum():,} runs, {sums['failed_runs'].sum():,} failed"


run_rule(main, snakemake)
