"""Measure the run from raw CSV to jobs and to the report at 0.1, 1, 3 and 10 times the full size.

A trace larger than the full size has parts of that size, each with its own seed. Every size runs once, except the jobs
up to the full size: they run three times, because larger sizes are compared with their median. Ten times the full size
is 33 GB of CSV, and its products take a third of that.
"""

import statistics
from dataclasses import asdict
from pathlib import Path

from clock import machine, measure_cost, report
from full_size import JOBS, REPORT
from runs import FULL_SIZE, make_tables, remove_products, required_tables, snakemake

TIMES = (0.1, 1, 3, 10)
SEED = 2020


def compare(folder: Path, times: tuple[float, ...] = TIMES) -> dict:
    """Measure the costs of jobs and of the whole study by size; the products of the largest study stay."""
    rows = []
    for factor in times:
        parts = _make_parts(folder, factor)
        required = [required_tables(part, part.with_name(f"{part.name}_required")) for part in parts]
        megabytes = sum(file.stat().st_size for part in parts for file in part.iterdir()) / 1e6
        row = {"times": factor, "tasks": round(FULL_SIZE * factor), "megabytes": megabytes}
        rounds = 3 if factor <= 1 else 1
        row["jobs"] = _median_cost(folder, snakemake(folder, JOBS, required), f"{factor:g} times, jobs", rounds)
        row["study"] = _median_cost(folder, snakemake(folder, REPORT, parts), f"{factor:g} times, study")
        rows.append(row)
    return {"sizes": rows, "machine": machine("polars", "snakemake")}


def _make_parts(folder: Path, factor: float) -> list[Path]:
    """Make the folders of raw tables: one smaller than the full size, or `factor` of that size."""
    folder.mkdir(parents=True, exist_ok=True)
    if factor < 1:
        return [make_tables(folder / f"part_of_{factor:g}", round(FULL_SIZE * factor), SEED)]
    return [make_tables(folder / f"part{number:02}", FULL_SIZE, SEED + number) for number in range(factor)]


def _median_cost(folder: Path, command: list[str], label: str, rounds: int = 1) -> dict:
    costs = []
    for _ in range(rounds):
        remove_products(folder)
        costs.append(asdict(measure_cost(command, folder)))
        report(f"{label}: {costs[-1]['seconds']:.1f} s, {costs[-1]['gigabytes']:.2f} GB")
    return {key: statistics.median(cost[key] for cost in costs) for key in costs[0]}
