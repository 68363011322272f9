"""Rule derive_lives: jobs, or the raw tables of components -> lives, the one thing that survival rules read."""

from ttf.entry import run_rule


def main(snakemake):
    import polars as pl
    from ttf.formats.protocol import format_and_source
    from ttf.lives import READ_OF_JOBS, lives_of_jobs
    from ttf.stages import LIVES
    from ttf.tables import scan_columns, write_product

    given = snakemake.input[0]
    if snakemake.params.gives == "jobs":
        lives = lives_of_jobs(scan_columns(given, READ_OF_JOBS))
    else:
        format_, source = format_and_source(given, **snakemake.params.derived_by)
        lives = format_.lives(source).lazy().with_columns(trace=pl.lit(snakemake.wildcards.trace))
    write_product(lives, LIVES, snakemake.output.lives)
    number, ended = pl.scan_parquet(snakemake.output.lives).select(pl.len(), pl.col("event").count()).collect().row(0)
    return f"{number:,} at risk, {ended:,} ended"


run_rule(main, snakemake)
