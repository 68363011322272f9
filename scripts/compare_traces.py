"""Rule compare_traces: the jobs and lives of every trace of the study, side by side: tables, charts and numbers."""

from ttf.entry import run_rule


def main(snakemake):
    import json
    from pathlib import Path

    import polars as pl
    from ttf import compare
    from ttf.charts.compare import BUILDERS
    from ttf.charts.saving import save_charts
    from ttf.tables import write_csv

    subjects, populations = [], {}
    parts = {name: [] for name in compare.SCHEMAS}
    jobs_files = iter(snakemake.input.jobs)
    for (trace, about), lives_file in zip(snakemake.params.about.items(), snakemake.input.lives, strict=True):
        reason = outcomes = None
        of_jobs = about["gives"] == "jobs"
        if of_jobs:
            outcomes = frozenset(about["outcomes"])
        subject = compare.Subject(trace, about["unit"], about["gives"], about["synthetic"], outcomes)
        subjects.append(subject)
        if of_jobs:
            jobs = pl.read_parquet(next(jobs_files), columns=compare.JOBS_READ)
            populations[trace] = compare.population(jobs)
            reason = compare.no_gpu_jobs(jobs)
            for name, table in compare.compared_jobs(subject, jobs).items():
                parts[name].append(table)
        lives = pl.read_parquet(lives_file, columns=compare.LIVES_READ)
        parts["mttf"].append(compare.compared_lives(subject, lives, reason))
    tables = compare.side_by_side(parts)
    for name, table in tables.items():
        write_csv(table, snakemake.output[name])

    metrics = compare.metrics_of(subjects, populations, tables)
    text = json.dumps(metrics, indent=1, ensure_ascii=False, allow_nan=False)
    Path(snakemake.output.metrics).write_text(text + "\n", encoding="utf-8")

    drawn = {name: build(tables) for name, build in BUILDERS.items()}
    save_charts(drawn, snakemake.output.specs, snakemake.output.index)
    return f"{len(subjects)} traces, {len(populations)} of them with jobs"


run_rule(main, snakemake)
