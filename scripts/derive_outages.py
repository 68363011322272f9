"""Rule derive_outages: make outages, their records, and the observed time of each unit from the raw tables."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    from dataclasses import replace

    from ttf.engine.storage.on_disk import scan_parquet
    from ttf.engine.storage.tables import write_product
    from ttf.formats.protocol import format_and_source
    from ttf.records.outages.outage_causes import with_rules
    from ttf.records.outages.outage_records import exposure_of, outages_of
    from ttf.records.record_contracts import EXPOSURE, OUTAGE_RECORDS, OUTAGES

    trace, inputs, output = snakemake.wildcards.trace, dict(snakemake.input.items()), snakemake.output
    format_, source = format_and_source(inputs["raw"], **snakemake.params.derivation_options)
    if "placements" in inputs:
        source = replace(source, placements=scan_parquet(inputs["placements"]))
    records = with_rules(format_.outage_records(source), snakemake.params.rules)
    exposure = exposure_of(trace, format_.exposure(source)) if hasattr(output, "exposure") else None
    outages, records = outages_of(trace, records, exposure)
    write_product(outages, OUTAGES, output.outages)
    write_product(records, OUTAGE_RECORDS, output.records)
    if exposure is not None:
        write_product(exposure, EXPOSURE, output.exposure)
    units = f", {exposure['unit_id'].n_unique():,} units watched" if exposure is not None else ""
    return f"{outages.height:,} outages of {records.height:,} records{units}"


run_rule(main, snakemake)
