"""Rule derive_runtimes: typed raw tables -> the common job record, with run times; and the nodes."""

from ttf.entry import run_rule


def main(snakemake):
    from ttf.derived import with_results, write_jobs
    from ttf.formats.protocol import Source, code_of, typed_tables
    from ttf.partitions import spill_beside

    output, params = snakemake.output, snakemake.params
    format_ = code_of(params.code)
    source = Source(typed_tables(snakemake.input.raw, params.tables), params.meaning)
    with spill_beside(output.jobs) as spilled:
        rows = snakemake.resources.partition_rows
        source = with_results(format_, "jobs", source, snakemake.input.get("shares", []), rows, spilled)
        return write_jobs(format_, source, snakemake.wildcards.trace, params.parts, params.node_table, output)


run_rule(main, snakemake)
