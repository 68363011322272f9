"""A PAI trace of full size and of a tenth of it: the study, plain pandas and DuckDB on the same files."""

import sys
from dataclasses import asdict
from pathlib import Path

from clock import ROOT, in_turn, machine
from runs import FULL_SIZE, forget_products, longest_jobs, make_tables, required_tables, snakemake

PEERS = ROOT / "bench" / "peers"
JOBS = "results/bench/jobs.parquet"
REPORT = "results/studies/bench/report/index.html"


def compare(folder: Path, rounds: int, sizes: tuple[int, ...] = (FULL_SIZE // 10, FULL_SIZE)) -> dict:
    """Costs by size and by what is run, which rules of the largest study took longest, and the machine."""
    rows = []
    for tasks in sizes:
        place = folder / f"{tasks}"
        place.mkdir(parents=True, exist_ok=True)
        tables = make_tables(place / "raw", tasks)
        required = required_tables(tables, place / "required")
        commands = {
            "pandas": [sys.executable, str(PEERS / "pandas_notebook.py"), str(tables)],
            "duckdb": [sys.executable, str(PEERS / "duckdb_jobs.py"), str(tables), str(place / "duckdb.parquet")],
            "jobs": snakemake(place, JOBS, required),
            "study": snakemake(place, REPORT, tables),
        }
        costs = in_turn(commands, place, rounds, lambda place=place: forget_products(place))
        rows.append({"tasks": tasks} | {name: asdict(cost) for name, cost in costs.items()})
    for tasks in sizes:  # not before: what this process reads would count as memory of those it starts
        check_against_duckdb(folder / f"{tasks}" / JOBS, folder / f"{tasks}" / "duckdb.parquet")
    return {"sizes": rows, "profile": longest_jobs(place), "machine": machine("pandas", "duckdb", "polars")}


def check_against_duckdb(ours: Path, theirs: Path) -> None:
    """Both came to the same jobs and, where instances have them, to the same run times; else the benchmark ends."""
    import polars as pl

    mine = pl.scan_parquet(ours)
    of_instances = pl.col("runtime_s").filter(pl.col("runtime_from").is_in(["instance", "siblings"]))
    counted = mine.select(pl.len(), of_instances.sum()).collect().row(0)
    peer = pl.scan_parquet(theirs).select(pl.len(), pl.col("runtime_s").filter(pl.col("runtime_s") >= 0).sum())
    if counted != peer.collect().row(0):
        raise SystemExit(f"jobs and seconds of run time differ: {counted} here, {peer.collect().row(0)} in DuckDB")
