"""Rule summarise: every number that the report's prose uses, with its unit, n and source table."""

from ttf.entry import run_rule


def main(snakemake):
    import json
    from pathlib import Path

    import polars as pl
    from ttf import metrics as of
    from ttf.quality.numbers import of_drift, of_quality
    from ttf.tables import read_csv

    tables = {name: read_csv(path) for name, path in snakemake.input.items() if str(path).endswith(".csv")}
    metrics = of.Metrics()
    of.of_rows(metrics, tables["account"])
    of_quality(metrics, tables["anomalies"], tables["statistics"], tables["validation"])
    if "drift" in tables:
        of_drift(metrics, tables["drift"])
    if "jobs" in dict(snakemake.input.items()):
        jobs = pl.read_parquet(snakemake.input.jobs)
        of.of_jobs(metrics, jobs, pl.read_parquet(snakemake.input.nodes))
        of.of_agreement(metrics, tables["agreement"])
        of.of_outcomes(metrics, tables["outcomes"])
        of.of_failure_share(metrics, tables["failure_share"])
        of.of_run_times(metrics, tables["runtime_by_group"])
        of.of_correlations(metrics, tables["correlations"])
    else:
        of.of_lives(metrics, pl.read_parquet(snakemake.input.lives))
    of.of_survival(metrics, tables["summary"], tables["survival"])
    of.of_mttf(metrics, tables["mttf"], tables["without_end"])
    of.of_models(metrics, tables["models"])
    text = json.dumps(metrics, indent=1, ensure_ascii=False, allow_nan=False)
    Path(snakemake.output.metrics).write_text(text + "\n", encoding="utf-8")
    return f"{len(metrics):,} numbers"


run_rule(main, snakemake)
