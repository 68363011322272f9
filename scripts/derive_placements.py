"""Rule derive_placements: make placements, the parts of a job on one machine, from the typed raw tables and jobs."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from dataclasses import replace

    from ttf.engine.process.memory import keep_freed_memory

    keep_freed_memory()  # before Polars is imported
    from ttf.engine.storage.on_disk import scan_parquet
    from ttf.formats.common_tables import write_placements
    from ttf.formats.protocol import load_format_and_source

    format_, source = load_format_and_source(snakemake.input.raw, **snakemake.params.derivation_options)
    source = replace(source, jobs=scan_parquet(snakemake.input.jobs))
    return write_placements(format_, source, snakemake.wildcards.trace, snakemake.output.placements)


run_rule(main, snakemake)
