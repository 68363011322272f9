"""Rule derive_lives: make durations from jobs, outages or raw tables of components, for survival analyses."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.engine.storage.on_disk import read_parquet, scan_parquet
    from ttf.engine.storage.tables import scan_columns, write_product
    from ttf.formats.protocol import format_and_source
    from ttf.records.lives import READ_OF_JOBS, lives_of_jobs
    from ttf.records.outages.outage_lives import lives_of_outages
    from ttf.records.record_contracts import LIVES

    inputs = dict(snakemake.input.items())
    if "jobs" in inputs:
        lives = lives_of_jobs(scan_columns(inputs["jobs"], READ_OF_JOBS))
    elif "outages" in inputs:
        outages, exposure = read_parquet(inputs["outages"]), read_parquet(inputs["exposure"])
        lives = lives_of_outages(outages, exposure, **snakemake.params.outage_options)
    else:
        format_, source = format_and_source(inputs["raw"], **snakemake.params.derivation_options)
        lives = format_.lives(source)
    write_product(lives.lazy().with_columns(trace=pl.lit(snakemake.wildcards.trace)), LIVES, snakemake.output.lives)
    count, ended = scan_parquet(snakemake.output.lives).select(pl.len(), pl.col("event").count()).collect().row(0)
    return f"{count:,} at risk, {ended:,} ended"


run_rule(main, snakemake)
