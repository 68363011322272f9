"""Rule derive_durations: make durations from jobs, outages or raw tables of components, for survival analyses."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    import polars as pl
    from ttf.engine.storage.on_disk import read_parquet, scan_parquet
    from ttf.engine.storage.tables import scan_columns, write_product
    from ttf.formats.protocol import load_format_and_source
    from ttf.records.durations import JOB_DURATION_COLUMNS, durations_of_jobs
    from ttf.records.outages.outage_durations import durations_of_outages
    from ttf.records.record_contracts import DURATIONS

    inputs = dict(snakemake.input.items())
    if "jobs" in inputs:
        durations = durations_of_jobs(scan_columns(inputs["jobs"], JOB_DURATION_COLUMNS))
    elif "outages" in inputs:
        outages, exposure = read_parquet(inputs["outages"]), read_parquet(inputs["exposure"])
        durations = durations_of_outages(outages, exposure, **snakemake.params.outage_options)
    else:
        format_, source = load_format_and_source(inputs["raw"], **snakemake.params.derivation_options)
        durations = format_.durations(source)
    write_product(
        durations.lazy().with_columns(trace=pl.lit(snakemake.wildcards.trace)), DURATIONS, snakemake.output.durations
    )
    count, ended = scan_parquet(snakemake.output.durations).select(pl.len(), pl.col("event").count()).collect().row(0)
    return f"{count:,} at risk, {ended:,} ended"


run_rule(main, snakemake)
