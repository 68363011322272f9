"""Compare the study with plain pandas and DuckDB on a PAI trace of full size and of a tenth of it."""

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

from clock import ROOT, machine, measure_in_turn
from runs import FULL_SIZE, longest_jobs, make_tables, remove_products, required_tables, snakemake

PEERS = ROOT / "tools/bench/peers"
JOBS = "results/bench/jobs.parquet"
REPORT = "results/studies/bench/report/index.html"


def compare(folder: Path, rounds: int) -> dict:
    """Measure the costs by size and command, and the slowest rules of the largest study; add the machine."""
    rows, sizes = [], (FULL_SIZE // 10, FULL_SIZE)
    for tasks in sizes:
        size_folder = folder / f"{tasks}"
        size_folder.mkdir(parents=True, exist_ok=True)
        tables = make_tables(size_folder / "raw", tasks)
        required = required_tables(tables, size_folder / "required")
        commands = {
            "pandas": [sys.executable, str(PEERS / "pandas_notebook.py"), str(tables)],
            "duckdb": [sys.executable, str(PEERS / "duckdb_jobs.py"), str(tables), str(size_folder / "duckdb.parquet")],
            "jobs": snakemake(size_folder, JOBS, required),
            "study": snakemake(size_folder, REPORT, tables),
        }
        costs = measure_in_turn(commands, size_folder, rounds, partial(remove_products, size_folder))
        rows.append({"tasks": tasks} | {name: asdict(cost) for name, cost in costs.items()})
    for tasks in sizes:  # only now: memory of this process would count as its children's
        check_against_duckdb(folder / f"{tasks}" / JOBS, folder / f"{tasks}" / "duckdb.parquet")
    return {"sizes": rows, "profile": longest_jobs(size_folder), "machine": machine("pandas", "duckdb", "polars")}


def check_against_duckdb(study_file: Path, duckdb_file: Path) -> None:
    """Exit unless both have the same number of jobs and the same sum of run times from instances."""
    import polars as pl

    study_jobs = pl.scan_parquet(study_file)
    instance_run_time = pl.col("runtime_s").filter(pl.col("runtime_from").is_in(["instance", "siblings"]))
    totals = study_jobs.select(pl.len(), instance_run_time.sum()).collect().row(0)
    duckdb_jobs = pl.scan_parquet(duckdb_file)
    run_time = pl.col("runtime_s").filter(pl.col("runtime_s") >= 0)
    duckdb_totals = duckdb_jobs.select(pl.len(), run_time.sum()).collect().row(0)
    if totals != duckdb_totals:
        raise SystemExit(f"jobs and seconds of run time differ: {totals} here, {duckdb_totals} in DuckDB")
