"""Rule derive_outages: make outages, their records, and the observed time of each unit from the raw tables."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from dataclasses import replace

    from ttf.engine.storage.on_disk import scan_parquet
    from ttf.engine.storage.tables import write_product
    from ttf.formats.protocol import load_format_and_source
    from ttf.records.outages.outage_causes import apply_rules
    from ttf.records.outages.outage_records import build_exposure, merge_records
    from ttf.records.record_contracts import EXPOSURE, OUTAGE_RECORDS, OUTAGES

    trace, inputs, output = snakemake.wildcards.trace, dict(snakemake.input.items()), snakemake.output
    format_, source = load_format_and_source(inputs["raw"], **snakemake.params.derivation_options)
    if "placements" in inputs:
        source = replace(source, placements=scan_parquet(inputs["placements"]))
    records = apply_rules(format_.outage_records(source), snakemake.params.rules)
    exposure = build_exposure(trace, format_.exposure(source)) if hasattr(output, "exposure") else None
    outages, records = merge_records(trace, records, exposure)
    write_product(outages, OUTAGES, output.outages)
    write_product(records, OUTAGE_RECORDS, output.records)
    if exposure is not None:
        write_product(exposure, EXPOSURE, output.exposure)
    units = f", {exposure['unit_id'].n_unique():,} units watched" if exposure is not None else ""
    return f"{outages.height:,} outages of {records.height:,} records{units}"


run_rule(main, snakemake)
