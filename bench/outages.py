"""Time and memory of a million outages: records merged with the time watched, the tables of them, bursts; simulations.

usage as one side: outages.py make FILE FILE | merge RECORDS EXPOSURE FOLDER | rooms FOLDER | bursts FOLDER | simulate
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":  # before NumPy and Polars are there: one thread each, as the rules of the study have
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")} | {"POLARS_MAX_THREADS": "1"}

import numpy as np
from clock import ROOT, cost_of, in_turn, machine, tell

sys.path[:0] = [str(ROOT / "scripts")]
RECORDS, UNITS, SPAN_S, SEED = 1_000_000, 20_000, 5 * 365 * 86_400, 2026
# Of the simulation.
NODES, REPLICATES = 10_000, 1000
# Of one reading, as CSV and as Parquet are the same to a merge.
PRODUCTS = ("outages", "outage_records", "exposure")


def compare(folder: Path, rounds: int) -> dict:
    """Costs of merging a million records, and of the tables made of the outages."""
    folder.mkdir(parents=True, exist_ok=True)
    me, records, exposure = [sys.executable, str(Path(__file__).resolve())], folder / "made.csv", folder / "units.csv"
    tell(f"making {RECORDS:,} records of outages")
    cost_of([*me, "make", str(records), str(exposure)], folder)
    sides = {"merge": [*me, "merge", str(records), str(exposure), str(folder)], "simulate": [*me, "simulate"]}
    sides |= {name: [*me, name, str(folder)] for name in ("rooms", "bursts")}
    found = {name: vars(cost) for name, cost in in_turn(sides, folder, rounds).items()}
    return {
        "records": RECORDS,
        "units": UNITS,
        "nodes": NODES,
        "replicates": REPLICATES,
        "machine": machine("polars", "numpy"),
    } | found


def make(records: str, exposure: str) -> None:
    """Outages of lognormal times down; one in five goes on with another reason, as Slurm writes it."""
    import polars as pl

    rng = np.random.default_rng(SEED)
    unit, start = rng.integers(0, UNITS, RECORDS), rng.integers(1, SPAN_S, RECORDS)
    lasts = np.exp(9 + 1.5 * rng.normal(size=RECORDS)).astype(np.int64)
    again = np.flatnonzero(np.arange(RECORDS) % 5 == 1)
    unit[again], start[again] = unit[again - 1], start[again - 1] + lasts[again - 1]
    names = [f"node{number:05d}" for number in range(UNITS)]
    frame = pl.DataFrame({"unit": unit, "start_s": start, "end_s": start + lasts})
    kind = pl.Series(rng.integers(0, 40, RECORDS))
    frame.select(
        pl.lit(pl.Series(names)).gather("unit").alias("unit_id"),
        "start_s",
        pl.when(pl.int_range(pl.len()) % 1000 > 0).then("end_s").alias("end_s"),
        level=pl.lit(pl.Series([f"level {number}" for number in range(4)])).gather(kind % 4),
        cause=pl.lit(pl.Series([f"cause {number}" for number in range(40)])).gather(kind),
    ).write_csv(records)
    units = pl.DataFrame({"unit_id": names, "from_s": 0, "until_s": SPAN_S})
    units.with_columns(group=pl.format("group {}", pl.int_range(pl.len()) % 12)).write_csv(exposure)


def merge(records: str, exposure: str, folder: str) -> None:
    import polars as pl
    from ttf.records.outages.outage_causes import with_rules
    from ttf.records.outages.outage_records import exposure_of, outages_of

    watched = exposure_of("t", pl.read_csv(exposure))
    frames = *outages_of("t", with_rules(pl.read_csv(records), []), watched), watched
    for name, frame in zip(PRODUCTS, frames, strict=True):
        frame.write_parquet(Path(folder, f"{name}.parquet"))


def rooms(folder: str) -> None:
    from ttf.analyses.outages.follow_outages.compute import compute as follow
    from ttf.analyses.outages.measure_availability.compute import compute as measure
    from ttf.records.inputs import Inputs

    given = Inputs({name: str(Path(folder, f"{name}.parquet")) for name in PRODUCTS}, {}, {"block_days": 7})
    for room in (measure, follow):
        for name, table in room(given).items():
            table.write_csv(Path(folder, f"{name}.csv"))


def bursts(folder: str) -> None:
    from ttf.analyses.outages.find_bursts.compute import compute as find
    from ttf.analyses.outages.size_spares.compute import compute as size
    from ttf.records.inputs import Inputs

    files = {name: str(Path(folder, f"{name}.parquet")) for name in PRODUCTS}
    settings = {"seed": SEED, "simulations": 1000, "block_days": 7, "jitter_s": 43_200}
    for room in (size, find):
        for name, table in room(Inputs(files, {}, settings)).items():
            table.write_csv(Path(folder, f"{name}.csv"))


def simulate() -> None:
    """A year of 10,000 nodes 1,000 times over, each down 1.5 times for five days: at InfiniteHBD's rates."""
    from ttf.analyses.shared.outages.outage_simulation import Exponential, batches, renewals, time_down

    rng, year, up, repair = (
        np.random.default_rng(SEED),
        365 * 86_400,
        Exponential(234 * 86_400),
        Exponential(5 * 86_400),
    )
    for size in batches(NODES, REPLICATES):
        time_down(renewals(rng, NODES, size, year, up, repair), size, year)


if __name__ == "__main__":
    sides = {side.__name__: side for side in (make, merge, rooms, bursts, simulate)}
    sides[sys.argv[1]](*sys.argv[2:])
