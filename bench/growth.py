"""The way from raw CSV to jobs, and on to the report, at a tenth of the full size, at 1, 3 and 10 times.

A trace larger than the full size comes in parts of that size, each made with a seed of its own. Every size is run once:
tenfold is 32 GB of CSV, which is removed as soon as it has been run.
"""

import shutil
from dataclasses import asdict
from pathlib import Path

from clock import cost_of, machine, tell
from full_size import JOBS, REPORT
from study import FULL_SIZE, forget_products, make_tables, required_tables, snakemake

TIMES = (0.1, 1, 3, 10)
SEED = 2020


def compare(folder: Path, times: tuple[float, ...] = TIMES, largest_study: float = 10) -> dict:
    """Costs by size, of jobs and, up to `largest_study` times the full size, of the whole study."""
    rows = []
    for factor in times:
        place = folder / f"{factor:g}"
        place.mkdir(parents=True, exist_ok=True)
        tasks = round(FULL_SIZE * min(factor, 1))
        parts = [make_tables(place / f"part{n:02}", tasks, SEED + n) for n in range(max(1, round(factor)))]
        required = [required_tables(part, part.with_name(f"{part.name}_required")) for part in parts]
        row = {"times": factor, "tasks": tasks * len(parts), "megabytes": _megabytes(parts)}
        forget_products(place)
        row["jobs"] = asdict(cost_of(snakemake(place, JOBS, required), place))
        tell(f"{factor:g} times, jobs: {row['jobs']}")
        if factor <= largest_study:
            forget_products(place)
            row["study"] = asdict(cost_of(snakemake(place, REPORT, parts), place))
            tell(f"{factor:g} times, study: {row['study']}")
        rows.append(row)
        shutil.rmtree(place)
    return {"sizes": rows, "machine": machine("polars", "snakemake")}


def _megabytes(parts: list[Path]) -> float:
    return sum(file.stat().st_size for part in parts for file in part.iterdir()) / 1e6
