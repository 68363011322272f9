"""Rule derive_attempts: typed raw tables -> every try at a job, in sequence."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    import polars as pl
    from ttf.tables import write_parquet

    # The format is one of a closed list: the registry's schema admits no other.
    format_ = importlib.import_module(f"ttf.traces.{snakemake.params.format}")
    folder = Path(snakemake.input.raw)
    raw = {table: pl.scan_parquet(folder / f"{table}.parquet") for table in snakemake.params.tables}
    entry = snakemake.params.entry
    attempts = format_.attempts(raw, entry) if entry else format_.attempts(raw)
    attempts = attempts.select(pl.lit(snakemake.wildcards.trace).alias("trace"), pl.all())
    write_parquet(attempts, snakemake.output.attempts)
    return f"{attempts.height:,} attempts"


run_rule(main, snakemake)
