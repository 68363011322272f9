"""Rule split_outcomes: jobs -> success, failure, unresolved, cancelled, and the tables of outcomes and run times."""

from ttf.entry import run_rule

OF_JOBS = ("outcome", "start_s", "runtime_s", "trace_end_s", "gpu_milli", "size")


def main(snakemake):
    import polars as pl
    from ttf.outcomes import SPLIT, outcome_table, runtime_quantiles, split_outcomes
    from ttf.tables import read_columns, stream_parquet, write_csv

    for name, part in split_outcomes(pl.scan_parquet(snakemake.input.jobs)).items():
        stream_parquet(part, snakemake.output[name])
    jobs = read_columns(snakemake.input.jobs, OF_JOBS)
    write_csv(outcome_table(jobs), snakemake.output.outcomes)
    # Published shares are mostly of the jobs that asked for a GPU.
    write_csv(outcome_table(jobs.filter(pl.col("gpu_milli") > 0)), snakemake.output.outcomes_gpu)
    write_csv(runtime_quantiles(jobs), snakemake.output.quantiles)
    counts = dict(jobs["outcome"].value_counts().iter_rows())
    return ", ".join(f"{sum(counts.get(word, 0) for word in words):,} {name}" for name, words in SPLIT.items())


run_rule(main, snakemake)
