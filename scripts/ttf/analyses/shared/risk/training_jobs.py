"""Load the jobs that a failure risk is learnt from: the outcome of each, and when the outcome became known."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from ttf.engine.size_unit import GPU, SizeUnit
from ttf.records.clusters import level_names
from ttf.records.jobs import observed_s, size_milli
from ttf.stats.basics.order import number_rows, sort_order

# Failure is a recorded failure; every other outcome counts as not failed.
ENDED_OUTCOMES = ("success", "failure", "cancelled", "unknown")
# A job without a recorded end counts as known after this quantile of the time that jobs of its outcome took to end.
LATE_QUANTILE = 0.99
# The quantile is computed again after the first hour, and whenever the trace is a tenth older.
FIRST_STEP_S, STEP_FACTOR = 3600, 1.1
BASE_COLUMNS = ("submit_s", "trace_end_s", "user", "gpu_type", "part", "cluster", "group")
NEVER = np.iinfo(np.int64).max
EARLIER = "earlier"


@dataclass(frozen=True)
class Population:
    """n jobs in the order of submission; arrays have shape (n,).

    jobs: their columns; ended, failed, running: boolean masks; known_s: when the outcome became known (NEVER for jobs
    that run or wait); started_s, ended_s: NEVER if not started, not ended or not recorded; hours: observed run time,
    NaN if unknown; gpus: GPUs of all instances, 0 if none was requested; cluster: cluster number for clustered
    intervals, -1 if the trace names none; cluster_by: what a cluster is; exclusions: reason -> number of excluded jobs.
    """

    jobs: pl.DataFrame
    ended: np.ndarray
    failed: np.ndarray
    running: np.ndarray
    submit_s: np.ndarray
    started_s: np.ndarray
    ended_s: np.ndarray
    known_s: np.ndarray
    hours: np.ndarray
    gpus: np.ndarray
    cluster: np.ndarray
    cluster_by: str | None
    exclusions: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ended)

    def latest(self, count: int) -> "Population":
        """Return the `count` jobs submitted last."""
        if len(self) <= count:
            return self
        changes: dict[str, Any] = {"exclusions": self.exclusions | {EARLIER: len(self) - count}}
        for name in (column.name for column in fields(self)):
            if isinstance(value := getattr(self, name), pl.DataFrame | np.ndarray):
                changes[name] = value[-count:]
        return replace(self, **changes)

    def codes(self, column: str) -> np.ndarray | None:
        """Return an integer code of each job's value in a column, 0 if blank; None if the column is absent or blank."""
        if column not in self.jobs.columns or self.jobs[column].null_count() == len(self):
            return None
        return encode_values(self.jobs[column])


def encode_values(values: pl.Series) -> np.ndarray:
    """Return an integer code for each value, 0 if blank; the order of codes has no meaning."""
    if values.dtype == pl.String:
        values = values.cast(pl.Categorical)
    if values.dtype.is_integer():
        smallest: Any = values.min()
        filled = values.cast(pl.Int64).fill_null((smallest or 0) - 1)
        return number_rows(filled.to_numpy()) + (values.null_count() == 0)
    codes = values.to_physical() if values.dtype == pl.Categorical else values.rank("dense") - 1
    return (codes.cast(pl.Int64) + 1).fill_null(0).to_numpy()


def load_population(jobs: pl.LazyFrame, columns: Sequence[str] = (), unit: SizeUnit = GPU) -> Population:
    """Load the jobs of a trace that have a submission and did not end before it.

    A job without a recorded end counts as known once 99% of the jobs of its outcome that had ended by then took less
    time. An earlier use of its outcome would leak the future.

    Parameters
    ----------
    jobs : the common job record
    columns : columns to read in addition to BASE_COLUMNS
    unit : the unit of `gpus`
    """
    available = jobs.collect_schema().names()
    selected = [name for name in dict.fromkeys([*BASE_COLUMNS, *columns]) if name in available]
    order, exclusions = _order_by_submission(jobs)

    def read(column: str | pl.Expr) -> pl.Series:
        """Return a column of the accepted jobs, in the order of submission."""
        # Categoricals, because the texts of a million jobs would take most of the memory.
        frame = jobs.select(column).with_columns(cs.string().cast(pl.Categorical)).collect()
        # A column in one piece takes a third of the time.
        return frame.to_series().rechunk()[order]

    # Column by column, so that memory never holds two copies of all jobs.
    accepted = pl.DataFrame([read(name) for name in selected])
    submit_s, ended_s = accepted["submit_s"].to_numpy(), read("end_s").fill_null(NEVER).to_numpy()
    outcome, known_s = read("outcome"), ended_s.copy()
    ended_with = {name: (outcome == name).to_numpy() for name in ENDED_OUTCOMES}
    for has_outcome in ended_with.values():
        dated, undated = (np.flatnonzero(has_outcome & (has_end == (ended_s < NEVER))) for has_end in (True, False))
        if len(undated):
            known_s[undated] = _infer_known_times(submit_s[undated], submit_s[dated], ended_s[dated])
    known_s = np.where(known_s == NEVER, accepted["trace_end_s"].fill_null(NEVER).to_numpy(), known_s)
    ended = np.any(list(ended_with.values()), axis=0)
    hours = read(observed_s()).cast(pl.Float64).to_numpy() / 3600
    # The size of all jobs may be one literal.
    size = pl.when(pl.col("submit_s").is_not_null()).then(size_milli(unit, available))
    gpus = read(size).fill_null(0).to_numpy() / 1000
    cluster_by, group_by, _ = level_names(jobs)
    cluster = np.full(accepted.height, -1)
    if cluster_by is not None and accepted.height:
        cluster = accepted["cluster"].cast(pl.Int64).to_numpy()
        if cluster.max() == 0 and cluster.min() == 0:
            cluster_by, cluster = group_by, accepted["group"].cast(pl.Int64).to_numpy()
    return Population(
        jobs=accepted,
        ended=ended,
        failed=ended_with["failure"],
        running=(outcome == "running").to_numpy(),
        submit_s=submit_s,
        started_s=read("start_s").fill_null(NEVER).to_numpy(),
        ended_s=ended_s,
        known_s=np.where(ended, known_s, NEVER),
        hours=hours,
        gpus=gpus,
        cluster=cluster,
        cluster_by=cluster_by,
        exclusions={reason: count for reason, count in exclusions.items() if count},
    )


def _order_by_submission(jobs: pl.LazyFrame) -> tuple[pl.Series, dict[str, int]]:
    """Return the rows of the accepted jobs in the order of submission, and why and how many others are excluded."""
    times = jobs.select("submit_s", "end_s").collect()
    has_submission, ends_early = times["submit_s"].is_not_null(), (times["end_s"] < times["submit_s"]).fill_null(False)
    rows = np.flatnonzero(has_submission & ~ends_early)
    order = rows[sort_order(times["submit_s"][rows].to_numpy())]
    exclusions = {"no submission": ~has_submission, "ended before it was submitted": ends_early}
    counts = {reason: int(is_excluded.sum()) for reason, is_excluded in exclusions.items()}
    return pl.Series(order, dtype=pl.get_index_type()), counts


def _infer_known_times(submit_s: np.ndarray, ended_submit_s: np.ndarray, ended_s: np.ndarray) -> np.ndarray:
    """Infer when unrecorded ends became known, from jobs of the same outcome (`ended_submit_s`, `ended_s`).

    submit_s: ascending. Each value uses only ends before it. NEVER if no job of the outcome has ended.
    """
    known_s = np.full(len(submit_s), NEVER)
    order = np.argsort(ended_s, kind="stable")
    sorted_end_s, durations_s = ended_s[order], (ended_s - ended_submit_s)[order]
    if not len(sorted_end_s):
        return known_s
    first_s = min(int(ended_submit_s.min()), int(submit_s[0]))
    last_s = max(int(sorted_end_s[-1]), int(submit_s[-1])) + 1
    steps = int(np.log(max(1.0, (last_s - first_s) / FIRST_STEP_S)) / np.log(STEP_FACTOR)) + 2
    steps_s = first_s + (FIRST_STEP_S * STEP_FACTOR ** np.arange(steps)).astype(np.int64)
    for step_s, next_step_s in zip(steps_s, [*steps_s[1:], NEVER], strict=True):
        ended_count = int(np.searchsorted(sorted_end_s, step_s))
        if not ended_count:
            continue
        rank = int(np.ceil(LATE_QUANTILE * (ended_count - 1)))
        late_s = submit_s + int(np.partition(durations_s[:ended_count], rank)[rank])
        is_pending = (known_s == NEVER) & (late_s < next_step_s)
        known_s[is_pending] = np.maximum(late_s[is_pending], step_s)
    return known_s
