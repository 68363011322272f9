"""The way from raw CSV to jobs, and on to the report, at a tenth of the full size, at 1, 3 and 10 times.

A trace larger than the full size comes in parts of that size, each made with a seed of its own. Every size is run once,
but for the jobs up to the full size: of these the medians of three, as what is larger is held against them.
Tenfold is 33 GB of CSV, and its study leaves a third of that.
"""

import statistics
from dataclasses import asdict
from pathlib import Path

from clock import cost_of, machine, tell
from full_size import JOBS, REPORT
from runs import FULL_SIZE, forget_products, make_tables, required_tables, snakemake

TIMES = (0.1, 1, 3, 10)
SEED = 2020


def compare(folder: Path, times: tuple[float, ...] = TIMES) -> dict:
    """Costs by size, of jobs and of the whole study; the products of the largest study are left in the folder."""
    rows = []
    for factor in times:
        parts = _parts(folder, factor)
        required = [required_tables(part, part.with_name(f"{part.name}_required")) for part in parts]
        megabytes = sum(file.stat().st_size for part in parts for file in part.iterdir()) / 1e6
        row = {"times": factor, "tasks": round(FULL_SIZE * factor), "megabytes": megabytes}
        rounds = 3 if factor <= 1 else 1
        row["jobs"] = _cost(folder, snakemake(folder, JOBS, required), f"{factor:g} times, jobs", rounds)
        row["study"] = _cost(folder, snakemake(folder, REPORT, parts), f"{factor:g} times, study")
        rows.append(row)
    return {"sizes": rows, "machine": machine("polars", "snakemake")}


def _parts(folder: Path, factor: float) -> list[Path]:
    """The folders of the raw tables: one smaller than the full size, or so many of that size."""
    folder.mkdir(parents=True, exist_ok=True)
    if factor < 1:
        return [make_tables(folder / f"part_of_{factor:g}", round(FULL_SIZE * factor), SEED)]
    return [make_tables(folder / f"part{number:02}", FULL_SIZE, SEED + number) for number in range(factor)]


def _cost(folder: Path, command: list[str], what: str, rounds: int = 1) -> dict:
    costs = []
    for _ in range(rounds):
        forget_products(folder)
        costs.append(asdict(cost_of(command, folder)))
        tell(f"{what}: {costs[-1]['seconds']:.1f} s, {costs[-1]['gigabytes']:.2f} GB")
    return {key: statistics.median(cost[key] for cost in costs) for key in costs[0]}
