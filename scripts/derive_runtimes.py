"""Rule derive_runtimes: make the common job record with run times, and the nodes, from the typed raw tables."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from ttf.engine.process.memory import keep_freed_memory

    keep_freed_memory()  # before Polars is imported
    from ttf.engine.storage.partitions import make_spill_folder
    from ttf.formats.common_tables import add_partition_results, write_jobs
    from ttf.formats.protocol import load_format_and_source

    output, params = snakemake.output, snakemake.params
    format_, source = load_format_and_source(snakemake.input.raw, **params.derivation_options)
    with make_spill_folder(output.jobs) as spilled:
        rows = snakemake.resources.partition_rows
        source = add_partition_results(format_, source, snakemake.input.get("shares", []), rows, spilled)
        settings = params.parts, params.node_table, params.block_days
        return write_jobs(format_, source, snakemake.wildcards.trace, *settings, spilled, output)


run_rule(main, snakemake)
