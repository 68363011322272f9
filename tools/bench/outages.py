"""Measure time and memory of a million outages: merging the records, their tables, bursts, and simulations.

usage as one side: outages.py make FILE FILE | merge RECORDS EXPOSURE FOLDER | tables FOLDER | bursts FOLDER | simulate
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":  # before NumPy and Polars are imported: one thread each, as in the rules of the study
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")} | {"POLARS_MAX_THREADS": "1"}

import numpy as np
from clock import machine, measure_cost, measure_in_turn, report

RECORDS, UNITS, SPAN_S, SEED = 1_000_000, 20_000, 5 * 365 * 86_400, 2026
# Size of the simulation.
NODES, REPLICATES = 10_000, 1000
# The products of the merge.
PRODUCTS = ("outages", "outage_records", "exposure")


def compare(folder: Path, rounds: int) -> dict:
    """Measure the merge of a million records and the tables of the outages."""
    folder.mkdir(parents=True, exist_ok=True)
    script = [sys.executable, str(Path(__file__).resolve())]
    records, exposure = folder / "made.csv", folder / "units.csv"
    report(f"making {RECORDS:,} records of outages")
    measure_cost([*script, "make", str(records), str(exposure)], folder)
    sides = {"merge": [*script, "merge", str(records), str(exposure), str(folder)], "simulate": [*script, "simulate"]}
    sides |= {name: [*script, name, str(folder)] for name in ("tables", "bursts")}
    costs = {name: vars(cost) for name, cost in measure_in_turn(sides, folder, rounds).items()}
    return {
        "records": RECORDS,
        "units": UNITS,
        "nodes": NODES,
        "replicates": REPLICATES,
        "machine": machine("polars", "numpy"),
    } | costs


def make(records: str, exposure: str) -> None:
    """Write outages of lognormal length; one in five continues with another reason, as Slurm writes it."""
    import polars as pl

    rng = np.random.default_rng(SEED)
    unit, start = rng.integers(0, UNITS, RECORDS), rng.integers(1, SPAN_S, RECORDS)
    length_s = np.exp(9 + 1.5 * rng.normal(size=RECORDS)).astype(np.int64)
    follow_ups = np.flatnonzero(np.arange(RECORDS) % 5 == 1)
    unit[follow_ups], start[follow_ups] = unit[follow_ups - 1], start[follow_ups - 1] + length_s[follow_ups - 1]
    names = [f"node{number:05d}" for number in range(UNITS)]
    frame = pl.DataFrame({"unit": unit, "start_s": start, "end_s": start + length_s})
    cause_index = pl.Series(rng.integers(0, 40, RECORDS))
    frame.select(
        pl.lit(pl.Series(names)).gather("unit").alias("unit_id"),
        "start_s",
        pl.when(pl.int_range(pl.len()) % 1000 > 0).then("end_s").alias("end_s"),
        level=pl.lit(pl.Series([f"level {number}" for number in range(4)])).gather(cause_index % 4),
        cause=pl.lit(pl.Series([f"cause {number}" for number in range(40)])).gather(cause_index),
    ).write_csv(records)
    units = pl.DataFrame({"unit_id": names, "from_s": 0, "until_s": SPAN_S})
    units.with_columns(group=pl.format("group {}", pl.int_range(pl.len()) % 12)).write_csv(exposure)


def merge(records: str, exposure: str, folder: str) -> None:
    import polars as pl
    from ttf.records.outages.outage_causes import apply_rules
    from ttf.records.outages.outage_records import build_exposure, merge_records

    watched = build_exposure("t", pl.read_csv(exposure))
    frames = *merge_records("t", apply_rules(pl.read_csv(records), []), watched), watched
    for name, frame in zip(PRODUCTS, frames, strict=True):
        frame.write_parquet(Path(folder, f"{name}.parquet"))


def tables(folder: str) -> None:
    from ttf.analyses.outages.measure_availability.compute import compute as measure
    from ttf.analyses.outages.track_outages.compute import compute as follow
    from ttf.records.inputs import Inputs

    inputs = Inputs({name: str(Path(folder, f"{name}.parquet")) for name in PRODUCTS}, {}, {"block_days": 7})
    for compute in (measure, follow):
        for name, table in compute(inputs).items():
            table.write_csv(Path(folder, f"{name}.csv"))


def bursts(folder: str) -> None:
    from ttf.analyses.outages.find_bursts.compute import compute as find
    from ttf.analyses.outages.size_spares.compute import compute as size
    from ttf.records.inputs import Inputs

    files = {name: str(Path(folder, f"{name}.parquet")) for name in PRODUCTS}
    # No runs with spares.
    settings = {"seed": SEED, "simulations": 1000, "block_days": 7, "jitter_s": 43_200, "sizes": []}
    for compute in (size, find):
        for name, table in compute(Inputs(files, {}, settings)).items():
            table.write_csv(Path(folder, f"{name}.csv"))


def simulate() -> None:
    """Simulate a year of 10,000 nodes 1,000 times at InfiniteHBD's rates: each down 1.5 times for five days."""
    from ttf.stats.outages.outage_simulation import Exponential, batches, simulate_renewals

    rng, year, up, repair = (
        np.random.default_rng(SEED),
        365 * 86_400,
        Exponential(234 * 86_400),
        Exponential(5 * 86_400),
    )
    for size in batches(NODES, REPLICATES):
        simulate_renewals(rng, NODES, size, year, up, repair)


if __name__ == "__main__":
    sides = {side.__name__: side for side in (make, merge, tables, bursts, simulate)}
    sides[sys.argv[1]](*sys.argv[2:])
