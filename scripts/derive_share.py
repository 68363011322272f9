"""Rule derive_share: make one share of the jobs of a large trace, for derive_runtimes to combine."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine.storage.partitions import choose_partitions, make_spill_folder, write_results
    from ttf.formats.protocol import load_format_and_source

    format_, source = load_format_and_source(snakemake.input.raw, **snakemake.params.derivation_options)
    share, shares = int(snakemake.wildcards.share), snakemake.resources.shares
    with make_spill_folder(snakemake.output[0]) as spilled:
        partitions = choose_partitions(source.raw.values(), snakemake.resources.partition_rows, spilled, share, shares)
        write_results(format_.by_partition, source.raw, partitions, Path(snakemake.output[0]))
    return f"share {share + 1} of {shares}"


run_rule(main, snakemake)
