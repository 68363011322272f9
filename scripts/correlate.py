"""Rule correlate: failure share and mean run time by feature value, and their correlations."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.stats.correlation import groups_and_correlations
    from ttf.stats.shares import failure_share
    from ttf.tables import write_csv

    jobs = pl.scan_parquet(snakemake.input.jobs)
    cutoffs = [None, *snakemake.params.cutoffs_s]
    write_csv(failure_share(jobs), snakemake.output.failure_share)
    groups, table = groups_and_correlations(jobs, cutoffs, snakemake.params.significance)
    write_csv(groups, snakemake.output.runtime_by_group)
    write_csv(table, snakemake.output.correlations)
    return f"{table['estimate'].count():,} of {table.height:,} correlations can be computed"


run_rule(main, snakemake)
