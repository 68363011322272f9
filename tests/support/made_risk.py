"""Job records with a known risk of failure, in the columns of jobs.parquet, for the tests of failure risk.

Further columns: recurrence_group; true_risk, the probability that the job fails if it ends. Users and groups arrive
over time, so late jobs have new users, new groups and a new GPU type.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from ttf.analyses.shared.risk.features import CATEGORY, CLOCK, HASHED, HISTORY, NUMERIC, Feature
from ttf.analyses.shared.risk.model import TrainingData, train_model
from ttf.records.clusters import add_clusters
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.stats.regression.design import Design

WEEK_S = 7 * 86_400
FIRST_S = 1_700_000_000
GPU_TYPES = ("A", "B", "C")  # the last occurs only in the last third of the weeks
GPUS = (1, 2, 4, 8)

SHARE = 0.25  # approximate failure share of the jobs that end
USER_LOG_SD, GROUP_LOG_SD, GPU_LOG_ODDS = 1.2, 0.5, 1.0
# Run times are lognormal: median of a job of one GPU, and growth of its logarithm per doubling of GPUs.
FAILED_MEDIAN_S, OTHER_MEDIAN_S = 900.0, 5_400.0
BY_DOUBLING, RUN_LOG_SD = 0.4, 1.3
# Shares of the jobs that end: cancelled, unknown outcome. Share of the failures: without an end.
CANCELLED, UNKNOWN = 0.08, 0.02
NO_END = 0.1

# The features that a trace declares, and one feature of each kind.
FEATURES = {
    "gpus": {"kind": "numeric", "column": "gpu_milli"},
    "gpu_type": {"kind": "category", "column": "gpu_type", "vocabulary": 12},
    "clock": {"kind": "clock"},
    "history": {"kind": "history", "keys": [["user"], ["recurrence_group"]]},
}
OF_EACH_KIND = [
    Feature("gpus", NUMERIC, "gpu_milli"),
    Feature("gpu_type", CATEGORY, "gpu_type", size=2),
    Feature("group", HASHED, "recurrence_group", size=8),
    Feature("clock", CLOCK),
    Feature("history", HISTORY, keys=(("user",), ("recurrence_group",))),
]


@dataclass(frozen=True)
class Sent:
    """Properties of jobs known before they run, in order of submission; submit_s counts from FIRST_S."""

    submit_s: np.ndarray
    user: np.ndarray
    group: np.ndarray
    gpu_type: np.ndarray
    gpus: np.ndarray


def with_users(n: int, seed: int, weeks: int = 8) -> pl.DataFrame:
    """Return `n` jobs; the failure odds of users and groups vary by lognormal factors."""
    rng = np.random.default_rng([seed, 0])
    sent = _sent(rng, n, weeks)
    risk = _risk(rng, sent)
    return _records(rng, sent, risk, rng.random(n) < risk, weeks)


def with_requests(n: int, seed: int, weeks: int = 8) -> pl.DataFrame:
    """Return the jobs of `with_users` with odds of failure that also grow with each doubling of GPUs."""
    rng = np.random.default_rng([seed, 3])
    sent = _sent(rng, n, weeks)
    risk = _risk(rng, sent, GPU_LOG_ODDS)
    return _records(rng, sent, risk, rng.random(n) < risk, weeks)


def coin(n: int, seed: int, weeks: int = 8) -> pl.DataFrame:
    """Return `n` jobs that fail with probability SHARE, independent of all features."""
    rng = np.random.default_rng([seed, 1])
    sent = _sent(rng, n, weeks)
    return _records(rng, sent, np.full(n, SHARE), rng.random(n) < SHARE, weeks)


def shuffle_failures(n: int, seed: int, window: int, weeks: int = 8) -> pl.DataFrame:
    """Return the jobs of `with_users` with the failures of one week permuted among its jobs.

    window: the number of the week, from 0. The true risk of its jobs is the share of them that fail.
    """
    rng = np.random.default_rng([seed, 0])
    sent = _sent(rng, n, weeks)
    risk = _risk(rng, sent)
    fails = rng.random(n) < risk
    rows = np.flatnonzero(sent.submit_s // WEEK_S == window)
    fails[rows] = np.random.default_rng([seed, 2]).permutation(fails[rows])
    risk[rows] = fails[rows].mean()
    return _records(rng, sent, risk, fails, weeks)


def _sent(rng: np.random.Generator, n: int, weeks: int) -> Sent:
    """Draw jobs: few users and groups have most; a group has one user, type and size for some weeks."""
    end_s = weeks * WEEK_S
    users, groups = max(20, n // 150), max(60, n // 20)
    arrival_s = np.where(np.arange(users) < users // 2, 0.0, rng.random(users) * end_s)
    group_users = _uneven(rng, groups, users)
    group_start_s = arrival_s[group_users] + rng.random(groups) ** 2 * (end_s - arrival_s[group_users])
    group_length_s = np.minimum(end_s - group_start_s, (0.2 + rng.random(groups)) * 3 * WEEK_S)
    is_late = group_start_s > 2 * end_s / 3
    group_gpu_types = np.where(is_late & (rng.random(groups) < 0.5), 2, rng.integers(0, 2, groups))
    group_gpus = np.array(GPUS)[_uneven(rng, groups, len(GPUS))]
    group = rng.permutation(groups)[_uneven(rng, n, groups)]
    submit_s = (group_start_s[group] + rng.random(n) * group_length_s[group]).astype(np.int64)
    order = np.argsort(submit_s, kind="stable")
    group = group[order]
    return Sent(submit_s[order], group_users[group], group, group_gpu_types[group], group_gpus[group])


def _uneven(rng: np.random.Generator, n: int, kinds: int) -> np.ndarray:
    return (kinds * rng.random(n) * rng.random(n)).astype(np.int64)


def _risk(rng: np.random.Generator, sent: Sent, gpu_log_odds: float = 0.0) -> np.ndarray:
    log_odds = np.log(SHARE / (1 - SHARE)) - 0.1 + gpu_log_odds * np.log2(sent.gpus)
    log_odds = log_odds + USER_LOG_SD * rng.standard_normal(int(sent.user.max()) + 1)[sent.user]
    log_odds += GROUP_LOG_SD * rng.standard_normal(int(sent.group.max()) + 1)[sent.group]
    return 1 / (1 + np.exp(-log_odds))


def _records(rng: np.random.Generator, sent: Sent, risk: np.ndarray, fails: np.ndarray, weeks: int) -> pl.DataFrame:
    """Return the records of the jobs; at the end of the trace some still run or wait."""
    n = len(fails)
    median_s = np.where(fails, FAILED_MEDIAN_S, OTHER_MEDIAN_S)
    run_s = median_s * np.exp(BY_DOUBLING * np.log2(sent.gpus) + RUN_LOG_SD * rng.standard_normal(n))
    run_s = np.maximum(1, run_s).astype(np.int64)
    start_s = sent.submit_s + (60 * rng.standard_exponential(n)).astype(np.int64)
    end_s, last_s = start_s + run_s, weeks * WEEK_S
    draws = rng.random(n)
    other_outcomes = np.select([draws < CANCELLED, draws < CANCELLED + UNKNOWN], ["cancelled", "unknown"], "success")
    outcome = np.select([start_s >= last_s, end_s >= last_s, fails], ["waiting", "running", "failure"], other_outcomes)
    has_started = pl.Series(start_s < last_s)
    has_end = pl.Series((end_s < last_s) & ~(fails & (rng.random(n) < NO_END)))
    jobs = pl.DataFrame(
        {
            "job_id": np.arange(n),
            "user": sent.user,
            "recurrence_group": sent.group,
            "submit_s": FIRST_S + sent.submit_s,
            "start_s": FIRST_S + start_s,
            "end_s": FIRST_S + end_s,
            "runtime_s": run_s,
            "outcome": outcome,
            "gpu_type": np.array(GPU_TYPES)[sent.gpu_type],
            "gpu_milli": 1_000 * sent.gpus,
            "true_risk": risk,
        }
    ).with_columns(
        pl.format("job{}", "job_id").alias("job_id"),
        pl.format("user{}", "user").alias("user"),
        pl.format("group{}", "recurrence_group").alias("recurrence_group"),
        trace=pl.lit("made"),
        start_s=pl.when(has_started).then("start_s"),
        end_s=pl.when(has_end).then("end_s"),
        runtime_s=pl.when(has_end).then("runtime_s"),
        queue_s=pl.when(has_started).then(pl.col("start_s") - pl.col("submit_s")),
        status_raw="outcome",
        size=pl.lit(1, dtype=pl.Int64),
        trace_end_s=pl.lit(FIRST_S + last_s, dtype=pl.Int64),
    )
    return add_clusters(conform(jobs, JOB_COLUMNS))


def train(jobs, job_features, features, learn, recalibrate, until_s, with_hours=True, kind=None):
    """Train on the jobs in `learn`, recalibrate on `recalibrate`; return the model or the reason for none."""
    return train_model(
        TrainingData.select(jobs, job_features, learn, recalibrate, until_s, with_hours), features, kind=kind
    )


def dense(design: Design) -> np.ndarray:
    """Return the matrix of a design, with the zeros of its dummies."""
    return design.dot(np.eye(design.width))
