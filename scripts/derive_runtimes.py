"""Rule derive_runtimes: make the common job record with run times, and the nodes, from the typed raw tables."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from ttf.engine.storage.partitions import spill_beside
    from ttf.formats.common_tables import with_results, write_jobs
    from ttf.formats.protocol import format_and_source

    output, params = snakemake.output, snakemake.params
    format_, source = format_and_source(snakemake.input.raw, **params.derivation_options)
    with spill_beside(output.jobs) as spilled:
        rows = snakemake.resources.partition_rows
        source = with_results(format_, source, snakemake.input.get("shares", []), rows, spilled)
        settings = params.parts, params.node_table, params.block_days
        return write_jobs(format_, source, snakemake.wildcards.trace, *settings, spilled, output)


run_rule(main, snakemake)
