"""Findings on GPU and host use: a dozen attempts and a few readings, compared with a snapshot."""

import polars as pl
from tested_claims import check_computed, claims_of
from ttf.analyses.queue.measure_use.compute import gpu_use_by_kind, host_use
from ttf.page.replication.scorecard import scorecard

CLAIMS = claims_of(__file__)

# (outcome, GPUs of the job, servers of the attempt). Attempt i runs on GPU 0 of machine mi for three minutes.
MICRO = [
    *((outcome, gpus, 1) for outcome in ("success", "failure", "cancelled") for gpus in (1, 4)),
    ("success", 8, 1),
    ("failure", 8, 2),
    ("cancelled", 8, 1),
    ("success", 16, 2),
    ("failure", 16, 4),
    ("cancelled", 16, 8),
    ("success", 16, 8),
    ("success", 2, 1),
]
# Readings of attempt i in %. Minute 3 is after its end.
READINGS = [(0, i * i // 2, 40 + i, 99) for i in range(len(MICRO))]


def tables() -> dict[str, pl.DataFrame]:
    allocations = pl.DataFrame(
        [(i, 0, f"m{i}", 0, 0, 180, *attempt) for i, attempt in enumerate(MICRO)],
        schema=["owner", "attempt", "machine", "gpu", "start_s", "end_s", "outcome", "gpus", "servers"],
        orient="row",
    )
    blank = [pl.lit(None, dtype=pl.Int64).alias(f"gpu{gpu}_mpct") for gpu in range(1, 8)]
    rows = [(60 * minute, f"m{i}", 1000 * value) for i, row in enumerate(READINGS) for minute, value in enumerate(row)]
    gpus = pl.LazyFrame(rows, schema=["time_s", "machine", "gpu0_mpct"], orient="row").with_columns(blank)
    # CPU use equals GPU use in %, and the free share of 1,000 kB equals it too.
    cpu = gpus.select("time_s", "machine", cpu_mpct="gpu0_mpct")
    free = gpus.select("time_s", "machine", mem_total_kb=1000, mem_free_kb=pl.col("gpu0_mpct") // 100)
    return {"gpu_use": gpu_use_by_kind(allocations, gpus), "host_use": host_use(allocations, cpu, free)}


def test_the_quantity_of_each_claim():
    frames = tables()
    micro_claims = [claim | {"of": "micro"} for claim in CLAIMS]
    check_computed("use", scorecard(micro_claims, {"micro": ["micro"]}, lambda _, table: frames[table]))
