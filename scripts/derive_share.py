"""Rule derive_share: some of the jobs of a large trace, for derive_runtimes and derive_placements to put together."""

from ttf.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.formats.protocol import code_of, typed_tables
    from ttf.partitions import partitions_of, spill_beside, write_results

    raw = typed_tables(snakemake.input.raw, snakemake.params.tables)
    share, shares = int(snakemake.wildcards.share), snakemake.resources.shares
    with spill_beside(snakemake.output[0]) as spilled:
        partitions = partitions_of(raw.values(), snakemake.resources.partition_rows, spilled, share, shares)
        for make in code_of(snakemake.params.code).by_partition.values():
            write_results(make, raw, partitions, Path(snakemake.output[0]))
    return f"share {share + 1} of {shares}"


run_rule(main, snakemake)
