"""Rule split_outcomes: jobs -> success, failure, unresolved, cancelled, and the tables of outcomes and run times."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.outcomes import SPLIT, observed_times, outcome_table, runtime_quantiles, split_outcomes
    from ttf.tables import stream_parquet, write_csv

    jobs = pl.scan_parquet(snakemake.input.jobs)
    for name, part in split_outcomes(jobs).items():
        stream_parquet(part, snakemake.output[name])
    times_of = observed_times(jobs)
    words = snakemake.params.words
    outcomes = outcome_table(jobs, times_of, words)
    write_csv(outcomes, snakemake.output.outcomes)
    # Published shares are mostly of the jobs that asked for a GPU.
    write_csv(outcome_table(jobs.filter(pl.col("gpu_milli") > 0), words=words), snakemake.output.outcomes_gpu)
    write_csv(runtime_quantiles(times_of), snakemake.output.quantiles)
    counts = dict(outcomes.select("outcome", "jobs").iter_rows())
    return ", ".join(f"{sum(counts.get(word, 0) for word in words):,} {name}" for name, words in SPLIT.items())


run_rule(main, snakemake)
