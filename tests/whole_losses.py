"""Losses of a whole trace, put together from its runs as one part."""

from collections.abc import Sequence

import polars as pl
from made_runs import with_jobs
from ttf.analyses.lost.measure_losses import lost_work, owners, repeats, what_if
from ttf.engine.storage.partitions import Partitions
from ttf.records.jobs import Frame
from ttf.records.runs import ended, runs


def runs_of(jobs: pl.DataFrame, attempts: pl.DataFrame | None, lives: Frame) -> pl.LazyFrame:
    return runs(jobs, None if attempts is None else with_jobs(jobs, attempts), ended(lives))


def loss_sums(of_runs: Frame, interval_s: int, window_s: int, begin_s: int | None = None) -> pl.DataFrame:
    return lost_work.loss_sums([lost_work.loss_parts(of_runs, interval_s, begin_s)], window_s)


def linked_preemptions(of_runs: Frame, window_s: int) -> pl.Series:
    """The places of the linked among those preempted."""
    parts = lost_work.loss_parts(of_runs, 3600)
    return lost_work.linked_preemptions(parts["preempted"].with_row_index("run"), parts["restarts"], window_s)


def owner_counts(jobs: Frame, of_runs: Frame) -> dict[str, pl.DataFrame]:
    return owners.owner_counts([owners.owner_sums(jobs, of_runs)])


def repeats_of(jobs: pl.LazyFrame, of_runs: Frame, partitions: Partitions = repeats.WHOLE) -> pl.DataFrame:
    return repeats.repeats(jobs, repeats.times_of_runs(of_runs), partitions)


def what_if_of(of_runs: Frame, trials_s: Sequence[int]) -> pl.DataFrame:
    return what_if.what_if(what_if.what_if_sums(of_runs, trials_s), trials_s)
