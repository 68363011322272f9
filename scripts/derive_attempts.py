"""Rule derive_attempts: make jobs, attempts and placements from the typed raw tables."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from dataclasses import replace

    from ttf.engine.storage.on_disk import scan_parquet
    from ttf.engine.storage.partitions import make_spill_folder
    from ttf.formats.common_tables import write_attempts, write_jobs, write_placements
    from ttf.formats.protocol import load_format_and_source
    from ttf.raw.extra_table_reader import health_events

    output, params, trace = snakemake.output, snakemake.params, snakemake.wildcards.trace
    format_, source = load_format_and_source(snakemake.input.raw, **params.derivation_options)
    inputs = dict(snakemake.input.items())
    events = health_events(inputs["events"]) if "events" in inputs else None
    with make_spill_folder(output.jobs) as spilled:
        source = replace(source, spilled=spilled)
        source = replace(source, records=format_.records(source))
        settings = params.parts, params.node_table, params.block_days
        jobs = write_jobs(format_, source, trace, *settings, spilled, output)
        attempts = write_attempts(format_, source, trace, output.attempts, params.rules, events)
        if format_.placements_of_attempts:
            source = replace(source, records=None, attempts=scan_parquet(output.attempts))
        placements = write_placements(format_, source, trace, output.placements)
    return f"{jobs}; {attempts}, {placements}"


run_rule(main, snakemake)
