"""Rule derive_lives: jobs, or the raw tables of components -> lives, the one thing that survival rules read."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    import polars as pl
    from ttf.lives import READ_OF_JOBS, lives_of_jobs
    from ttf.tables import read_columns, write_parquet

    source = Path(snakemake.input[0])
    if snakemake.params.gives == "jobs":
        lives = lives_of_jobs(read_columns(source, READ_OF_JOBS))
    else:
        # The format is one of a closed list: the registry's schema admits no other.
        format_ = importlib.import_module(f"ttf.traces.{snakemake.params.format}")
        raw = {table: pl.scan_parquet(source / f"{table}.parquet") for table in snakemake.params.tables}
        lives = format_.lives(raw).with_columns(trace=pl.lit(snakemake.wildcards.trace))
    write_parquet(lives, snakemake.output.lives)
    return f"{lives.height:,} lives, {lives['event'].count():,} ended"


run_rule(main, snakemake)
