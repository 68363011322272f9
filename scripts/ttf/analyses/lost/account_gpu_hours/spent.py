"""Exact sums of GPU time of attempts by category, account, partition and month, in milli-GPU seconds."""

from collections.abc import Iterable

import polars as pl

from ttf.analyses.lost import account_gpu_hours as category
from ttf.records.infra import PROXY
from ttf.records.jobs import choose_text
from ttf.records.months import Months

# Group columns of the sums.
KEYS = ("category", "account", "partition", "month")
# Whether infrastructure ended a run; not known on the basis `proxy`.
_IS_INFRA = pl.col("infra") & (pl.col("basis") != PROXY)


def with_known_time(runs: pl.LazyFrame) -> pl.LazyFrame:
    """Select the runs that held GPUs for a known time, from `start_s` to below `until_s`."""
    until_s = pl.col("start_s") + pl.col("runtime_s")
    return runs.with_columns(until_s=until_s).filter(pl.col("gpu_milli") > 0, pl.col("start_s") < pl.col("until_s"))


def run_category() -> pl.Expr:
    """Return the category of a run by how it ended; `split_runs` splits runs that infrastructure ended."""
    is_proxy = pl.col("basis") == PROXY
    outcome_categories = {"success": category.PRODUCTIVE, "cancelled": category.CANCELLED, "running": category.RUNNING}
    ended = pl.col("outcome").replace_strict(outcome_categories, default=category.UNKNOWN, return_dtype=pl.String)
    conditions = {
        category.INFRA_KEPT: _IS_INFRA,
        category.TIME_LIMIT: pl.col("timed_out"),
        category.PREEMPTED: pl.col("preempted"),
        category.FAILED_UNRECORDED: pl.col("failed") & is_proxy,
        category.FAILED: pl.col("failed"),
    }
    return pl.coalesce(choose_text(conditions), ended.fill_null(category.UNKNOWN))


def split_runs(runs: pl.LazyFrame, checkpoint_interval_s: int, restart_s: int) -> pl.LazyFrame:
    """Split each run of `with_known_time` into parts with `category`, `from_s` and `to_s`.

    A run that infrastructure ended lost the last half of a checkpoint interval, or all of a shorter run, in whole
    seconds, as in `measure_losses.lost_work`. The first `restart_s` of the rest of a retry are its restart.
    """
    longest_lost_s = pl.min_horizontal("runtime_s", pl.lit(checkpoint_interval_s // 2))
    runs = runs.with_columns(category=run_category(), lost_s=pl.when(_IS_INFRA).then(longest_lost_s).otherwise(0))
    longest_restart_s = pl.min_horizontal(pl.col("runtime_s") - pl.col("lost_s"), pl.lit(restart_s))
    runs = runs.with_columns(restart_s=pl.when("again").then(longest_restart_s).otherwise(0))
    worked_s, lost_s = pl.col("start_s") + pl.col("restart_s"), pl.col("until_s") - pl.col("lost_s")
    parts = [
        runs.with_columns(category=pl.lit(category.RESTART), from_s=pl.col("start_s"), to_s=worked_s),
        runs.with_columns(from_s=worked_s, to_s=lost_s),
        runs.with_columns(category=pl.lit(category.INFRA_LOST), from_s=lost_s, to_s=pl.col("until_s")),
    ]
    return pl.concat(parts).filter(pl.col("from_s") < pl.col("to_s"))


def sum_gpu_time(runs: pl.LazyFrame, months: Months, checkpoint_interval_s: int, restart_s: int) -> pl.DataFrame:
    """Sum the GPU time of the runs of `with_known_time` by KEYS: milli_s (Int128), attempts, begins.

    The runs also have account and partition. `attempts` counts each attempt in every month that it runs in, `begins`
    in the month in which the part begins, so each part counts once.
    """
    parts = split_runs(runs, checkpoint_interval_s, restart_s).with_columns(
        month=pl.int_ranges(months.index_at(pl.col("from_s")), months.index_at(pl.col("to_s") - 1) + 1)
    )
    edges = pl.Series(months.edges_s)
    begin_s_by_month, end_s_by_month = (dict(enumerate(times_s)) for times_s in (edges[:-1], edges[1:]))
    parts = parts.explode("month").with_columns(
        is_first=pl.col("month") == months.index_at(pl.col("from_s")),
        from_s=pl.max_horizontal("from_s", pl.col("month").replace_strict(begin_s_by_month, return_dtype=pl.Int64)),
        to_s=pl.min_horizontal("to_s", pl.col("month").replace_strict(end_s_by_month, return_dtype=pl.Int64)),
    )
    sums = parts.group_by(*KEYS).agg(
        milli_s=(pl.col("gpu_milli").cast(pl.Int128) * (pl.col("to_s") - pl.col("from_s"))).sum(),
        attempts=pl.len().cast(pl.Int64),
        begins=pl.col("is_first").sum().cast(pl.Int64),
    )
    return sums.collect()


def merge_sums(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Add up the results of `sum_gpu_time` for several blocks of jobs."""
    return pl.concat(parts).group_by(*KEYS).agg(pl.all().sum()).sort(KEYS)
