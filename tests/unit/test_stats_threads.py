"""Every estimator gives the same bytes with one thread and with two."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
SCRIPTS = TESTS.parent / "scripts"

EVERY_TABLE = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
import numpy as np
import polars as pl
from ttf.records.clusters import add_clusters
from ttf.records.infra import infra_durations
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.analyses.factors.correlate import compute as correlate
from ttf.analyses.factors.estimate_hazards import compute as logrank, hazard_ratios, incidence_tables as incidence
from ttf.analyses.time_to_failure.fit_mttf import compute as lifetimes
from ttf.analyses.time_to_failure.judge_lifetimes import compute as verdict
from ttf.analyses.lost.measure_losses import lost_work, owners
from ttf.stats.durations import missing_ends, mttf, survival
import trace_losses

rng = np.random.default_rng(11)
n = 10_000
jobs = pl.DataFrame({
    "outcome": rng.choice(["success", "failure", "cancelled"], n),
    "runtime_s": rng.lognormal(7, 2, n).astype(np.int64),
    "gpu_type": rng.choice(["T4", "V100"], n),
    "gpu_milli": rng.choice([0, 500, 1000], n),
    "size": rng.integers(1, 50, n),
    "cpu_used_milli": rng.integers(0, 60_000, n),
})
durations = jobs.rename({"runtime_s": "duration_s", "outcome": "event", "size": "nodes"})
durations = durations.with_columns(duration_max_s=pl.col("duration_s") + 9)
strata = ["all", "gpu_type", "nodes"]
owned = jobs.with_columns(
    job_id=pl.int_range(n).cast(pl.String),
    user=pl.Series(rng.integers(0, 300, n).astype(str)),
    start_s=pl.Series(rng.integers(0, 10**7, n)),
)
owned = conform(owned.with_columns(end_s=pl.col("start_s") + pl.col("runtime_s")), JOB_COLUMNS)
runs = trace_losses.make_runs(owned, None, infra_durations(owned, None, {}))
owner_sums = trace_losses.owner_counts(owned.lazy(), runs)
curves, summary = survival.survival_tables(durations, "failure", strata)
tables = [
    correlate.failure_share(add_clusters(jobs)),
    *correlate.groups_and_correlations(add_clusters(jobs), [None, 3600]),
    curves,
    survival.thin_curves(curves, 200),
    summary,
    mttf.mean_time_to_failure(durations, "failure", strata),
    missing_ends.failures_without_end(durations, "failure", strata),
    (models := lifetimes.lifetime_models(durations, "failure", strata)),
    verdict.lifetime_verdict(models, curves),
    lost_work.lost_work(trace_losses.loss_sums(runs, 3600, 300)),
    lost_work.lost_work_by_month(trace_losses.loss_sums(runs, 3600, 300, 0), 0, 10**8),
    owners.failures_by_owner(owner_sums, 20, add_clusters(owned)),
    owners.concentration(owner_sums),
    trace_losses.repeats_table(owned.lazy(), runs),
    trace_losses.what_if_table(runs, [60, 600]),
]
tables += [
    incidence.cumulative_incidence(durations, ["failure", "success", "cancelled"], strata),
    logrank.logrank(durations, "failure", strata),
    hazard_ratios.hazard_ratios(durations, "failure", ["nodes", "gpu_type"]),
]
assert all(table.height for table in tables)
print([hashlib.sha256(table.write_csv().encode()).hexdigest() for table in tables])
"""


def digests(threads: str) -> str:
    names = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    command = [sys.executable, "-c", EVERY_TABLE, str(SCRIPTS), str(TESTS / "support")]
    env = os.environ | dict.fromkeys(names, threads)
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_threads_change_no_byte():
    assert digests("1") == digests("2") != ""
