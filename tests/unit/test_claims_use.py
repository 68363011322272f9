"""Findings on GPU and host use: a dozen attempts and a few readings, computed in plain Python."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from claims_tested import ELSEWHERE
from of_claims import CLAIMS as SHIPPED
from ttf.analyses.queue.measure_use.compute import gpu_use_by_kind, host_use
from ttf.page.replication.scorecard import scorecard

ID_PREFIXES = tuple(prefix for prefix, file in ELSEWHERE.items() if file == Path(__file__).name)
CLAIMS = [claim for claim in SHIPPED if claim["id"].startswith(ID_PREFIXES) and "quantity" in claim]

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
STATUS = {"passed": "success", "killed": "cancelled", "unsuccessful": "failure", "all": None}


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


def pool(match) -> list[float]:
    return [value / 100 for run, row in zip(MICRO, READINGS, strict=True) if match(*run) for value in row[:3]]


def expected_values() -> dict[str, float]:
    answers = {}
    for gpus in ("1", "4", "8", "16", "all"):
        for word, status in STATUS.items():
            use = pool(
                lambda outcome, size, _, gpus=gpus, status=status: (
                    gpus in ("all", str(size)) and status in (None, outcome)
                )
            )
            answers[f"philly-gpu-use-{gpus}-{word}"] = np.mean(use)
            answers[f"philly-notebook-gpu-use-{gpus}-{word}-idle"] = use.count(0) / len(use)
            answers[f"philly-notebook-gpu-use-{gpus}-{word}-p50"] = np.median(use)
    for servers in (2, 4, 8):
        use = pool(lambda _, size, spread, servers=servers: (size, spread) == (16, servers))
        start = f"philly-gpu-use-16-on-{servers}"
        answers[f"{start}-mean"] = np.mean(use)
        answers |= {f"{start}-p{percent}": np.percentile(use, percent) for percent in (50, 90, 95)}
    for gpus, servers in ((8, 1), (16, 2)):
        use = pool(lambda _, size, spread, shape=(gpus, servers): (size, spread) == shape)
        answers[f"philly-notebook-dedicated-{gpus}-idle"] = use.count(0) / len(use)
        answers[f"philly-notebook-dedicated-{gpus}-p50"] = answers[f"philly-dedicated-{gpus}-p50"] = np.median(use)
    all_readings = [value / 100 for values in READINGS for value in values]
    allocated = pool(lambda *_: True)
    answers["philly-notebook-host-cpu-p50"] = np.median(all_readings)
    answers["philly-notebook-host-memory-p50"] = 1 - np.median(all_readings)
    answers["philly-host-cpu-p50"] = np.median(allocated)
    answers["philly-host-memory-p50"] = 1 - np.median(allocated)
    return answers


TABLES, ANSWERS = tables(), expected_values()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["id"])
def test_the_quantity_of_each_claim(claim):
    (row,) = scorecard([claim | {"trace": "micro"}], ["micro"], lambda _, name: TABLES[name]).iter_rows(named=True)
    assert row["computed"] == pytest.approx(ANSWERS[claim["id"]], rel=1e-9), row


def test_the_answers_differ():
    """Equal answers could hide that two claims read the same quantity."""
    means = [answer for name, answer in ANSWERS.items() if name.startswith("philly-gpu-use-") and "-on-" not in name]
    assert len({round(mean, 12) for mean in means}) >= len(means) - 1
    assert len(CLAIMS) == 66
