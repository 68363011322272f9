"""Every estimator gives the same bytes with one thread and with two."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"

EVERY_TABLE = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import polars as pl
from ttf.stats import correlation, lifetimes, mttf, run_times, shares, survival

rng = np.random.default_rng(11)
n = 60_000
jobs = pl.DataFrame({
    "outcome": rng.choice(["success", "failure", "cancelled"], n),
    "runtime_s": rng.lognormal(7, 2, n).astype(np.int64),
    "gpu_type": rng.choice(["T4", "V100"], n),
    "gpu_milli": rng.choice([0, 500, 1000], n),
    "size": rng.integers(1, 50, n),
    "cpu_used_milli": rng.integers(0, 60_000, n),
})
lives = jobs.rename({"runtime_s": "duration_s", "outcome": "event", "size": "nodes"})
lives = lives.with_columns(duration_max_s=pl.col("duration_s") + 9)
strata = ["all", "gpu_type", "nodes"]
curves, summary = survival.survival_tables(lives, "failure", strata)
tables = [
    shares.failure_share(jobs),
    correlation.correlations(jobs, [None, 3600]),
    run_times.runtime_by_group(jobs, [None, 3600]),
    curves,
    survival.thin(curves, 200),
    summary,
    mttf.mean_time_to_failure(lives, "failure", strata),
    mttf.failures_without_end(lives, "failure", strata),
    lifetimes.lifetime_models(lives, "failure", strata),
]
assert all(table.height for table in tables)
print([hashlib.sha256(table.write_csv().encode()).hexdigest() for table in tables])
"""


def digests(threads: str) -> str:
    names = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    command = [sys.executable, "-c", EVERY_TABLE, str(SCRIPTS)]
    limited = os.environ | dict.fromkeys(names, threads)
    return subprocess.run(command, env=limited, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_threads_change_no_byte() -> None:
    assert digests("1") == digests("2") != ""
