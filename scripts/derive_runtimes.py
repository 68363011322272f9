"""Rule derive_runtimes: typed raw tables -> the common job record, with run times; and the nodes."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    import polars as pl
    from ttf.agreement import runtime_agreement
    from ttf.jobs import nodes, with_parts
    from ttf.partitions import partitions_of, read_results, results_of, spill_beside
    from ttf.tables import stream_parquet, write_csv, write_parquet

    # The format is one of a closed list: the registry's schema admits no other.
    format_ = importlib.import_module(f"ttf.traces.{snakemake.params.format}")
    folder = Path(snakemake.input.raw)
    raw = {table: pl.scan_parquet(folder / f"{table}.parquet") for table in snakemake.params.tables}
    given = [snakemake.params.entry] if snakemake.params.entry else []
    with spill_beside(snakemake.output.jobs) as spilled:
        if hasattr(format_, "task_totals"):
            partitions = partitions_of(raw.values(), snakemake.resources.partition_rows, spilled)
            shares = read_results(format_.task_totals, snakemake.input.get("shares", []))
            given = [shares or results_of(format_.task_totals, raw, partitions)]
        jobs = format_.jobs(raw, *given).lazy().with_columns(trace=pl.lit(snakemake.wildcards.trace))
        stream_parquet(with_parts(jobs, snakemake.params.parts), snakemake.output.jobs)
    of_nodes = format_.nodes(raw) if hasattr(format_, "nodes") else nodes(raw, format_.NODE_TABLE)
    write_parquet(of_nodes, snakemake.output.nodes)
    jobs = pl.scan_parquet(snakemake.output.jobs)
    write_csv(runtime_agreement(jobs), snakemake.output.agreement)
    rows, timed = jobs.select(pl.len(), pl.col("runtime_s").count()).collect(engine="streaming").row(0)
    return f"{rows:,} jobs, {timed:,} with a run time"


run_rule(main, snakemake)
