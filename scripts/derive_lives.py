"""Rule derive_lives: jobs, or the raw tables of components -> lives, the one thing that survival rules read."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    import polars as pl
    from ttf.lives import READ_OF_JOBS, lives_of_jobs
    from ttf.tables import scan_columns, stream_parquet

    source = Path(snakemake.input[0])
    if snakemake.params.gives == "jobs":
        lives = lives_of_jobs(scan_columns(source, READ_OF_JOBS))
    else:
        # The format is one of a closed list: the registry's schema admits no other.
        format_ = importlib.import_module(f"ttf.traces.{snakemake.params.format}")
        raw = {table: pl.scan_parquet(source / f"{table}.parquet") for table in snakemake.params.tables}
        lives = format_.lives(raw).with_columns(trace=pl.lit(snakemake.wildcards.trace)).lazy()
    stream_parquet(lives, snakemake.output.lives)
    number, ended = pl.scan_parquet(snakemake.output.lives).select(pl.len(), pl.col("event").count()).collect().row(0)
    return f"{number:,} lives, {ended:,} ended"


run_rule(main, snakemake)
