"""Rule derive_infra_lives: attempts and jobs, or the lives of components -> lives that infrastructure failures end."""

from ttf.engine.process.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.engine.storage.on_disk import scan_parquet
    from ttf.engine.storage.tables import blocks_with_attempts, write_product
    from ttf.raw.extra_table_reader import health_events
    from ttf.records.infra import (
        ENDED_BY,
        EVENT,
        INFRA_READ_OF_JOBS,
        first_end_of_runs,
        infra_lives,
        infra_lives_in_blocks,
    )
    from ttf.records.infra import infra_lives_of_components as of_components
    from ttf.records.inputs import Inputs
    from ttf.records.record_contracts import LIVES_INFRA

    given = Inputs(snakemake.input, {}, {})
    if "lives" in given:
        lives = of_components(given.read("lives"), snakemake.params.causes).lazy()
    else:
        events = health_events(given.path("events")) if "events" in given else None
        outages = given.read("outages") if "outages" in given else None
        about = snakemake.params.rules, events, outages, snakemake.params.block_days
        if "attempts" in given:
            tables = given.scan("jobs", INFRA_READ_OF_JOBS), given.scan("attempts")
            first_end = first_end_of_runs(tables[1])
            lives = infra_lives_in_blocks(lambda: blocks_with_attempts(*tables), first_end, *about)
        else:
            jobs = given.scan("jobs", INFRA_READ_OF_JOBS)
            lives = infra_lives(jobs if events is outages is None else jobs.collect(), None, *about).lazy()
    write_product(lives, LIVES_INFRA, snakemake.output.lives)
    of_infra = (pl.col("event") == EVENT).sum()
    counted = scan_parquet(snakemake.output.lives).select(pl.len(), of_infra, pl.col("basis").first())
    number, ended, basis = counted.collect(engine="streaming").row(0)
    return f"{number:,} at risk, {ended:,} {ENDED_BY[basis]}" if number else "none at risk"


run_rule(main, snakemake)
