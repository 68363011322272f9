"""Rule summarise: every number that the report's prose uses, with its unit, n and source table."""

from ttf.entry import run_rule


def main(snakemake):
    import json
    from pathlib import Path

    import polars as pl
    from ttf.numbers import jobs as of_jobs
    from ttf.numbers import lives as of_lives
    from ttf.numbers.analyses import NUMBERS
    from ttf.numbers.metrics import Metrics
    from ttf.numbers.quality import of_quality
    from ttf.tables import Tables

    tables = Tables(dict(snakemake.input.items()))
    metrics, curve = Metrics(), of_lives.curve_of_all(pl.scan_parquet(snakemake.input.curves))
    of_jobs.of_rows(metrics, tables["account"])
    of_quality(metrics, tables["anomalies"], tables["statistics"], tables["validation"])
    if "jobs" in dict(snakemake.input.items()):
        jobs = pl.scan_parquet(snakemake.input.jobs)
        of_jobs.of_jobs(metrics, jobs, pl.read_parquet(snakemake.input.nodes))
        of_jobs.of_agreement(metrics, tables["agreement"])
        of_jobs.of_outcomes(metrics, tables["outcomes"])
        of_jobs.of_median_run_times(metrics, jobs)
        of_jobs.of_failure_share(metrics, tables["failure_share"])
        of_jobs.of_run_times(metrics, tables["runtime_by_group"])
        of_jobs.of_correlations(metrics, tables["correlations"])
        of_lives.of_steps(metrics, curve, jobs)
    else:
        of_lives.of_lives(metrics, pl.read_parquet(snakemake.input.lives))
    of_lives.of_survival(metrics, tables["summary"], curve)
    of_lives.of_mttf(metrics, tables["mttf"], tables["without_end"])
    of_lives.of_models(metrics, tables["models"])
    for analysis in snakemake.params.analyses:
        NUMBERS[analysis](metrics, tables)
    of_lives.of_mttf_range(metrics)
    text = json.dumps(metrics, indent=1, ensure_ascii=False, allow_nan=False)
    Path(snakemake.output.metrics).write_text(text + "\n", encoding="utf-8")
    return f"{len(metrics):,} numbers"


run_rule(main, snakemake)
