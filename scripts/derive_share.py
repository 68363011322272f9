"""Rule derive_share: make one share of the jobs of a large trace, for derive_runtimes to combine."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from pathlib import Path

    from ttf.engine.storage.partitions import partitions_of, spill_beside, write_results
    from ttf.formats.protocol import format_and_source

    format_, source = format_and_source(snakemake.input.raw, **snakemake.params.derivation_options)
    share, shares = int(snakemake.wildcards.share), snakemake.resources.shares
    with spill_beside(snakemake.output[0]) as spilled:
        partitions = partitions_of(source.raw.values(), snakemake.resources.partition_rows, spilled, share, shares)
        write_results(format_.by_partition, source.raw, partitions, Path(snakemake.output[0]))
    return f"share {share + 1} of {shares}"


run_rule(main, snakemake)
