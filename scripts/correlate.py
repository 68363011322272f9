"""Rule correlate: failure share and mean run time by feature value, and their correlations."""

from ttf.entry import run_rule


def main(snakemake):
    from ttf.stats.correlation import groups_and_correlations
    from ttf.stats.features import FEATURES
    from ttf.stats.shares import failure_share
    from ttf.tables import read_columns, write_csv

    of_features = [feature.column for feature in FEATURES]
    jobs = read_columns(snakemake.input.jobs, ["outcome", "runtime_s", *of_features])
    cutoffs = [None, *snakemake.params.cutoffs_s]
    write_csv(failure_share(jobs), snakemake.output.failure_share)
    groups, table = groups_and_correlations(jobs, cutoffs, snakemake.params.significance)
    write_csv(groups, snakemake.output.runtime_by_group)
    write_csv(table, snakemake.output.correlations)
    return f"{table['estimate'].count():,} of {table.height:,} correlations can be computed"


run_rule(main, snakemake)
