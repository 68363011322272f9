"""Losses of a whole trace, computed from its runs as one part."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from made_runs import add_job_rows
from ttf.analyses.lost.measure_losses import lost_work, owners, repeats, what_if
from ttf.engine.storage.partitions import Partitions
from ttf.records.jobs import Frame
from ttf.records.runs import add_end_columns, build_runs

# One partition, in memory.
WHOLE = Partitions(Path())


def make_runs(jobs: pl.DataFrame, attempts: pl.DataFrame | None, durations: Frame) -> pl.LazyFrame:
    return build_runs(jobs, None if attempts is None else add_job_rows(jobs, attempts), add_end_columns(durations))


def loss_sums(run_rows: Frame, interval_s: int, window_s: int, begin_s: int | None = None) -> pl.DataFrame:
    return lost_work.loss_sums([lost_work.loss_parts(run_rows, interval_s, begin_s)], window_s)


def linked_preemptions(run_rows: Frame, window_s: int) -> pl.Series:
    parts = lost_work.loss_parts(run_rows, 3600)
    return lost_work.linked_preemptions(parts["preempted"].with_row_index("run"), parts["restarts"], window_s)


def owner_counts(jobs: Frame, run_rows: Frame) -> dict[str, pl.DataFrame]:
    return owners.owner_counts([owners.owner_sums(jobs, run_rows)])


def repeats_table(jobs: pl.LazyFrame, run_rows: Frame, partitions: Partitions = WHOLE) -> pl.DataFrame:
    return repeats.repeats(jobs, repeats.times_of_runs(run_rows), partitions)


def what_if_table(run_rows: Frame, trials_s: Sequence[int]) -> pl.DataFrame:
    return what_if.what_if(what_if.what_if_sums(run_rows, trials_s), trials_s)
