"""Rule derive_infra_lives: attempts and jobs, or the lives of components -> lives that infrastructure failures end."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.given_reader import health_events
    from ttf.infra import ENDED_BY, EVENT, INFRA_READ_OF_JOBS, infra_lives
    from ttf.infra import infra_lives_of_components as of_components
    from ttf.on_disk import read_parquet, scan_parquet
    from ttf.stages import LIVES_INFRA
    from ttf.tables import scan_columns, write_product

    given = dict(snakemake.input.items())
    if "lives" in given:
        lives = of_components(read_parquet(given["lives"]), snakemake.params.causes)
    else:
        attempts = read_parquet(given["attempts"]) if "attempts" in given else None
        events = health_events(given["events"]) if "events" in given else None
        outages = read_parquet(given["outages"]) if "outages" in given else None
        jobs = scan_columns(given["jobs"], INFRA_READ_OF_JOBS)
        alone = attempts is None and events is None and outages is None
        lives = infra_lives(jobs if alone else jobs.collect(), attempts, snakemake.params.rules, events, outages)
    write_product(lives.lazy(), LIVES_INFRA, snakemake.output.lives)
    of_infra = (pl.col("event") == EVENT).sum()
    counted = scan_parquet(snakemake.output.lives).select(pl.len(), of_infra, pl.col("basis").first())
    number, ended, basis = counted.collect(engine="streaming").row(0)
    return f"{number:,} at risk, {ended:,} {ENDED_BY[basis]}" if number else "none at risk"


run_rule(main, snakemake)
