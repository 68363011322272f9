"""Rule derive_runtimes: typed raw tables -> the common job record, with run times; and the nodes."""

from ttf.entry import run_rule


def main(snakemake):
    import importlib
    from pathlib import Path

    import polars as pl
    from ttf.agreement import runtime_agreement
    from ttf.jobs import nodes, with_parts
    from ttf.tables import write_csv, write_parquet

    trace = snakemake.wildcards.trace
    # The format is one of a closed list: the registry's schema admits no other.
    format_ = importlib.import_module(f"ttf.traces.{snakemake.params.format}")
    folder = Path(snakemake.input.raw)
    raw = {table: pl.scan_parquet(folder / f"{table}.parquet") for table in snakemake.params.tables}
    entry = snakemake.params.entry
    jobs = (format_.jobs(raw, entry) if entry else format_.jobs(raw)).with_columns(trace=pl.lit(trace))
    jobs = with_parts(jobs, snakemake.params.parts)
    write_parquet(jobs, snakemake.output.jobs)
    of_nodes = format_.nodes(raw) if hasattr(format_, "nodes") else nodes(raw, format_.NODE_TABLE)
    write_parquet(of_nodes, snakemake.output.nodes)
    write_csv(runtime_agreement(jobs), snakemake.output.agreement)
    return f"{jobs.height:,} jobs, {jobs['runtime_s'].count():,} with a run time"


run_rule(main, snakemake)
