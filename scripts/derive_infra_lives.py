"""Rule derive_infra_lives: attempts and jobs, or the lives of components -> lives that infrastructure failures end."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.infra import EVENT, INFRA_READ_OF_JOBS, infra_lives, infra_lives_of_components, read_health_events
    from ttf.tables import read_columns, write_parquet

    given = dict(snakemake.input.items())
    if "lives" in given:
        lives = infra_lives_of_components(pl.read_parquet(given["lives"]), snakemake.params.causes)
    else:
        attempts = pl.read_parquet(given["attempts"]) if "attempts" in given else None
        events = read_health_events(given["events"]) if "events" in given else None
        jobs = read_columns(given["jobs"], INFRA_READ_OF_JOBS)
        lives = infra_lives(jobs, attempts, snakemake.params.rules, events)
    write_parquet(lives, snakemake.output.lives)
    return f"{lives.height:,} lives, {lives.filter(pl.col('event') == EVENT).height:,} ended by infrastructure"


run_rule(main, snakemake)
