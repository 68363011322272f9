"""Rule derive_share: some of the jobs of a large trace, for derive_runtimes and derive_placements to put together."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    import polars as pl
    from ttf.partitions import partitions_of, spill_beside, write_results

    # The format is one of a closed list: the registry's schema admits no other.
    format_ = importlib.import_module(f"ttf.traces.{snakemake.params.format}")
    folder = Path(snakemake.input.raw)
    raw = {table: pl.scan_parquet(folder / f"{table}.parquet") for table in snakemake.params.tables}
    share, shares = int(snakemake.wildcards.share), snakemake.resources.shares
    with spill_beside(snakemake.output[0]) as spilled:
        partitions = partitions_of(raw.values(), snakemake.resources.partition_rows, spilled, share, shares)
        for make in (format_.task_totals, format_.instance_tasks):
            write_results(make, raw, partitions, Path(snakemake.output[0]))
    return f"share {share + 1} of {shares}"


run_rule(main, snakemake)
