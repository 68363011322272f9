"""Rule split_outcomes: jobs -> success, failure, unresolved, cancelled, and the tables of outcomes and run times."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.outcomes import outcome_table, runtime_quantiles, split_outcomes
    from ttf.tables import write_csv, write_parquet

    jobs = pl.read_parquet(snakemake.input.jobs)
    parts = split_outcomes(jobs)
    for name, frame in parts.items():
        write_parquet(frame, snakemake.output[name])
    write_csv(outcome_table(jobs), snakemake.output.outcomes)
    # Published shares are mostly of the jobs that asked for a GPU.
    write_csv(outcome_table(jobs.filter(pl.col("gpu_milli") > 0)), snakemake.output.outcomes_gpu)
    write_csv(runtime_quantiles(jobs), snakemake.output.quantiles)
    return ", ".join(f"{frame.height:,} {name}" for name, frame in parts.items())


run_rule(main, snakemake)
