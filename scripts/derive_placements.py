"""Rule derive_placements: typed raw tables -> every part of an attempt on one machine."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    import polars as pl
    from ttf.partitions import partitions_of, read_results, results_of, spill_beside
    from ttf.tables import stream_parquet

    # The format is one of a closed list: the registry's schema admits no other.
    format_ = importlib.import_module(f"ttf.traces.{snakemake.params.format}")
    folder = Path(snakemake.input.raw)
    raw = {table: pl.scan_parquet(folder / f"{table}.parquet") for table in snakemake.params.tables}
    with spill_beside(snakemake.output.placements) as spilled:
        given = []
        if hasattr(format_, "instance_tasks"):
            partitions = partitions_of(raw.values(), snakemake.resources.partition_rows, spilled)
            shares = read_results(format_.instance_tasks, snakemake.input.get("shares", []))
            given = [shares or results_of(format_.instance_tasks, raw, partitions)]
        placements = format_.placements(raw, *given).select(pl.lit(snakemake.wildcards.trace).alias("trace"), pl.all())
        stream_parquet(placements, snakemake.output.placements)
    rows = pl.scan_parquet(snakemake.output.placements).select(pl.len()).collect().item()
    return f"{rows:,} placements"


run_rule(main, snakemake)
