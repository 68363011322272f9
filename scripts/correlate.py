"""Rule correlate: failure share and mean run time by feature value, and their correlations."""

from ttf.entry import run_rule


def main(snakemake):
    from ttf.stats.correlation import correlations
    from ttf.stats.features import FEATURES
    from ttf.stats.run_times import runtime_by_group
    from ttf.stats.shares import failure_share
    from ttf.tables import read_columns, write_csv

    of_features = [feature.column for feature in FEATURES]
    jobs = read_columns(snakemake.input.jobs, ["outcome", "runtime_s", *of_features])
    cutoffs = [None, *snakemake.params.cutoffs_s]
    write_csv(failure_share(jobs), snakemake.output.failure_share)
    write_csv(runtime_by_group(jobs, cutoffs), snakemake.output.runtime_by_group)
    table = correlations(jobs, cutoffs, snakemake.params.significance)
    write_csv(table, snakemake.output.correlations)
    return f"{table['estimate'].count():,} of {table.height:,} correlations can be computed"


run_rule(main, snakemake)
