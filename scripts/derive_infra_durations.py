"""Rule derive_infra_durations: make durations to infrastructure failures from attempts and jobs, or from components."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    import polars as pl
    from ttf.engine.storage.on_disk import scan_parquet
    from ttf.engine.storage.tables import read_blocks_with_attempts, write_product
    from ttf.raw.extra_table_reader import health_events
    from ttf.records.infra import (
        ENDED_BY,
        EVENT,
        INFRA_JOB_COLUMNS,
        attribute_to_errors,
        first_attempt_end,
        infra_durations,
        infra_durations_in_blocks,
        infra_durations_of_components,
    )
    from ttf.records.inputs import Inputs
    from ttf.records.record_contracts import DURATIONS_INFRA

    inputs = Inputs(snakemake.input, {}, {})
    if "durations" in inputs:
        durations = infra_durations_of_components(inputs.read("durations"), snakemake.params.causes).lazy()
    else:
        events = health_events(inputs.path("events")) if "events" in inputs else None
        outages = inputs.read("outages") if "outages" in inputs else None
        errors = attribute_to_errors(inputs.read("attributions")) if "attributions" in inputs else None
        settings = snakemake.params.rules, events, outages, snakemake.params.block_days, errors
        if "attempts" in inputs:
            tables = inputs.scan("jobs", INFRA_JOB_COLUMNS), inputs.scan("attempts")
            first_end = first_attempt_end(tables[1])
            durations = infra_durations_in_blocks(lambda: read_blocks_with_attempts(*tables), first_end, *settings)
        else:
            jobs = inputs.scan("jobs", INFRA_JOB_COLUMNS)
            durations = infra_durations(jobs if events is outages is None else jobs.collect(), None, *settings).lazy()
    write_product(durations, DURATIONS_INFRA, snakemake.output.durations)
    infra_failures = (pl.col("event") == EVENT).sum()
    counted = scan_parquet(snakemake.output.durations).select(pl.len(), infra_failures, pl.col("basis").first())
    count, ended, basis = counted.collect(engine="streaming").row(0)
    return f"{count:,} at risk, {ended:,} {ENDED_BY[basis]}" if count else "none at risk"


run_rule(main, snakemake)
