"""Rule derive_placements: typed raw tables -> every part of a job on one machine."""

from ttf.entry import run_rule


def main(snakemake):
    from ttf.derived import with_results, write_placements
    from ttf.formats.protocol import format_and_source
    from ttf.partitions import spill_beside

    format_, source = format_and_source(snakemake.input.raw, **snakemake.params.derived_by)
    with spill_beside(snakemake.output.placements) as spilled:
        rows = snakemake.resources.partition_rows
        source = with_results(format_, "placements", source, snakemake.input.get("shares", []), rows, spilled)
        return write_placements(format_, source, snakemake.wildcards.trace, snakemake.output.placements)


run_rule(main, snakemake)
