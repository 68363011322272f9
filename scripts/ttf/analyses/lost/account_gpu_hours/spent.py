"""GPU time of attempts by what became of it, by account, partition and month: exact sums of milli-GPU seconds."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from ttf.analyses.lost import account_gpu_hours as category
from ttf.analyses.lost.measure_losses.lost_work import WINDOW_S, has_calendar, month_name, next_month_s
from ttf.records.infra import PROXY
from ttf.records.jobs import choose_text

# What each stretch of an attempt is counted by.
KEYS = ("category", "account", "partition", "month")


@dataclass(frozen=True)
class Months:
    """The months of the calendar (UTC) from begin_s to end_s, or windows of 28 days where the clock has no calendar.

    edges_s: begin_s, when each further month begins, end_s.
    """

    begin_s: int
    end_s: int

    @property
    def edges_s(self) -> list[int]:
        edges = [self.begin_s]
        while (following := next_month_s(edges[-1], self.begin_s)) < self.end_s:
            edges.append(following)
        return [*edges, self.end_s]

    @property
    def names(self) -> list[str]:
        return [month_name(at, self.begin_s) for at in self.edges_s[:-1]]

    def of(self, at_s: pl.Expr) -> pl.Expr:
        """The number of the month that a moment is in, from 0 on."""
        if not has_calendar(self.begin_s):
            return (at_s - self.begin_s) // WINDOW_S

        def number(at: pl.Expr) -> pl.Expr:
            at = pl.from_epoch(at, time_unit="s")
            return at.dt.year().cast(pl.Int64) * 12 + at.dt.month()

        return number(at_s) - number(pl.lit(self.begin_s))


def timed(runs: pl.LazyFrame) -> pl.LazyFrame:
    """The runs that held GPUs for a known time: from `start_s` to below `until_s`."""
    until_s = pl.col("start_s") + pl.col("runtime_s")
    return runs.with_columns(until_s=until_s).filter(pl.col("gpu_milli") > 0, pl.col("start_s") < pl.col("until_s"))


def category_of() -> pl.Expr:
    """What a run was for, by how it ended; that of one ended by infrastructure is parted in `stretches`."""
    is_proxy = pl.col("basis") == PROXY
    by_outcome = {"success": category.PRODUCTIVE, "cancelled": category.CANCELLED, "running": category.RUNNING}
    ended = pl.col("outcome").replace_strict(by_outcome, default=category.UNKNOWN, return_dtype=pl.String)
    failed_or_stopped = {
        category.INFRA_KEPT: _is_infra(),
        category.TIME_LIMIT: pl.col("timed_out"),
        category.PREEMPTED: pl.col("preempted"),
        category.FAILED_UNRECORDED: pl.col("failed") & is_proxy,
        category.FAILED: pl.col("failed"),
    }
    return pl.coalesce(choose_text(failed_or_stopped), ended.fill_null(category.UNKNOWN))


def _is_infra() -> pl.Expr:
    return pl.col("infra") & (pl.col("basis") != PROXY)


def stretches(runs: pl.LazyFrame, checkpoint_interval_s: int, restart_s: int) -> pl.LazyFrame:
    """category, from_s, to_s and what else a run (`timed`) has, of each stretch of it; together the whole run.

    What infrastructure ended lost the last half of a checkpoint interval, or all of a shorter run, as
    `measure_losses.lost_work` has it, in whole seconds. Of a job that runs again the first `restart_s` of what is left
    are its restart.
    """
    half = pl.min_horizontal("runtime_s", pl.lit(checkpoint_interval_s // 2))
    runs = runs.with_columns(category=category_of(), lost_s=pl.when(_is_infra()).then(half).otherwise(0))
    again = pl.min_horizontal(pl.col("runtime_s") - pl.col("lost_s"), pl.lit(restart_s))
    runs = runs.with_columns(restart_s=pl.when("again").then(again).otherwise(0))
    worked_s, lost_s = pl.col("start_s") + pl.col("restart_s"), pl.col("until_s") - pl.col("lost_s")
    parts = [
        runs.with_columns(category=pl.lit(category.RESTART), from_s=pl.col("start_s"), to_s=worked_s),
        runs.with_columns(from_s=worked_s, to_s=lost_s),
        runs.with_columns(category=pl.lit(category.INFRA_LOST), from_s=lost_s, to_s=pl.col("until_s")),
    ]
    return pl.concat(parts).filter(pl.col("from_s") < pl.col("to_s"))


def spent(runs: pl.LazyFrame, months: Months, checkpoint_interval_s: int, restart_s: int) -> pl.DataFrame:
    """KEYS, milli_s (Int128), attempts, begins: GPU time of the runs (`timed`), which also have account and partition.

    attempts: with a stretch in the month, of which those that last longer are in several; begins: whose stretch begins
    in it, so that each counts once.
    """
    parts = stretches(runs, checkpoint_interval_s, restart_s).with_columns(
        month=pl.int_ranges(months.of(pl.col("from_s")), months.of(pl.col("to_s") - 1) + 1)
    )
    edges = pl.Series(months.edges_s)
    begins, ends = (dict(enumerate(part)) for part in (edges[:-1], edges[1:]))
    parts = parts.explode("month").with_columns(
        is_first=pl.col("month") == months.of(pl.col("from_s")),
        from_s=pl.max_horizontal("from_s", pl.col("month").replace_strict(begins, return_dtype=pl.Int64)),
        to_s=pl.min_horizontal("to_s", pl.col("month").replace_strict(ends, return_dtype=pl.Int64)),
    )
    sums = parts.group_by(*KEYS).agg(
        milli_s=(pl.col("gpu_milli").cast(pl.Int128) * (pl.col("to_s") - pl.col("from_s"))).sum(),
        attempts=pl.len().cast(pl.Int64),
        begins=pl.col("is_first").sum().cast(pl.Int64),
    )
    return sums.collect()


def put_together(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """The sums of all runs, from `spent` of some."""
    return pl.concat(parts).group_by(*KEYS).agg(pl.all().sum()).sort(KEYS)
