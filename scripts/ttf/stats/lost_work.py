"""GPU time that failures cost, by size of the run and by month (Kokolis et al., HPCA'25, their figure 8).

A run that ends at a random moment between two checkpoints loses half an interval in the mean, and never more than it
ran: loss = min(run time, interval / 2) x GPUs. First order: runs that ended in an infra failure. Second order: runs
preempted because such a run was to start anew. Every sum is one of integers (milli-GPU seconds, twice over, so that
half of an odd interval is whole); hours are made of it at the end, with one rounding.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import polars as pl

from ttf.runs import gpu_time

# An hour of one GPU, in milli-GPU half seconds.
_GPU_HOUR = 2 * 1000 * 3600
WINDOW_S = 28 * 86_400
# A clock that shows a later moment than this when the trace begins counts from 1970: no trace is 30 years long.
YEAR_2000_S = 946_684_800

_COUNTS = ("runs", "failed_runs", "failed_without_time", "infra_failures", "infra_without_time")
LOSS_COLUMNS = {
    "runs": pl.Int64,
    "gpu_hours": pl.Float64,
    "gpu_hours_share": pl.Float64,
    "failed_runs": pl.Int64,
    "failed_without_time": pl.Int64,
    "failed_gpu_hours": pl.Float64,
    "failed_gpu_hours_share": pl.Float64,
    "infra_basis": pl.String,
    "infra_failures": pl.Int64,
    "infra_without_time": pl.Int64,
    "infra_gpu_hours": pl.Float64,
    "infra_gpu_hours_share": pl.Float64,
    "checkpoint_interval_s": pl.Int64,
    "first_order_gpu_hours": pl.Float64,
    "preemptions": pl.Int64,
    "second_order_gpu_hours": pl.Float64,
    "linked_preemptions": pl.Int64,
    "linked_gpu_hours": pl.Float64,
    "first_and_linked_gpu_hours": pl.Float64,
    "reason": pl.String,
}
BY_GPUS_SCHEMA = {"gpus_low": pl.Int64, "gpus_high": pl.Int64, **LOSS_COLUMNS}
BY_MONTH_SCHEMA = {
    "window": pl.String,
    "start_s": pl.Int64,
    "end_s": pl.Int64,
    "complete": pl.Boolean,
    **LOSS_COLUMNS,
}

NO_PREEMPTION = "no run is recorded as preempted"
NO_NODES = "no job ran again on known nodes after an infra failure: no preemption can be linked to one"
NO_TIME = "no GPU time was seen"
NO_END = "runs without a written end: no GPU time, no month"


def lost_work(runs: pl.DataFrame, checkpoint_interval_s: int, link_window_s: int) -> pl.DataFrame:
    """What failures cost, a row per size of the run in GPUs that occurs (BY_GPUS_SCHEMA), ascending.

    runs: `ttf.runs.runs`. gpus_low, gpus_high: 0, 1, 2, 3-4, 5-8 ... GPUs, a share of one GPU counting as 1. Shares are
    of the GPU time of all runs. failed_gpu_hours: whole GPU time of runs that failed, infra_gpu_hours of those that
    ended in an infra failure; infra_basis says how these are known (`ttf.infra`; `proxy`: every failure is taken for
    one). first_order_gpu_hours: lost by infra failures. second_order_gpu_hours: lost by all preemptions, whatever
    their cause: an upper bound, as accounting does not say for whom a run was preempted. linked_gpu_hours: of those
    that `linked_preemptions` lays to a failed run; first_and_linked_gpu_hours: these and the first order together.
    Runs without a known run time count, but have no GPU time: failed_without_time and infra_without_time say how many
    these are.
    What cannot be given is blank, with a reason.
    Raises ValueError when the interval or the window is negative.
    """
    measured = _measured(runs, checkpoint_interval_s, link_window_s)
    limits = np.concatenate([[0], 2 ** np.arange(40, dtype=np.int64)])
    gpus = -(-measured["gpu_milli"].to_numpy() // 1000)
    place = np.searchsorted(limits, gpus, side="left")
    sums = _sums(measured.with_columns(place=pl.Series(place, dtype=pl.Int64)), "place").sort("place")
    total = sum(sums["gpu"].to_list())
    rows = [
        {
            "gpus_low": int(limits[row["place"] - 1]) + 1 if row["place"] else 0,
            "gpus_high": int(limits[row["place"]]),
            **_losses(row, total, measured, checkpoint_interval_s),
        }
        for row in sums.iter_rows(named=True)
    ]
    return pl.DataFrame(rows, schema=BY_GPUS_SCHEMA, orient="row")


def lost_work_by_month(
    runs: pl.DataFrame, begin_s: int | None, end_s: int | None, checkpoint_interval_s: int, link_window_s: int
) -> pl.DataFrame:
    """What failures cost month by month (BY_MONTH_SCHEMA), in the order of time; months without a run have no row.

    begin_s, end_s: the first and the last moment of the trace, on its clock. A run counts, with all its GPU time, in
    the month in which it ended or was last seen; gpu_hours_share is of all GPU time, the other shares of that of the
    month's runs. Months are those of
    the calendar (UTC) where the clock counts from 1970, else windows of 28 days from the trace's first moment.
    complete: the trace covers the month from its first to its last second. Runs that have no end are in a last row
    without a month. The columns of losses are those of `lost_work`.
    """
    measured = _measured(runs, checkpoint_interval_s, link_window_s)
    calendar = begin_s is not None and begin_s >= YEAR_2000_S
    at = pl.col("end_s")
    if calendar:
        start = pl.from_epoch(at, time_unit="s").dt.truncate("1mo").dt.epoch("s")
    else:
        begin_s = begin_s or 0
        start = begin_s + (at - begin_s) // WINDOW_S * WINDOW_S
    by_window = _sums(measured.with_columns(window_s=start), "window_s").sort("window_s", nulls_last=True)
    total = sum(by_window["gpu"].to_list())
    rows = []
    for row in by_window.iter_rows(named=True):
        losses = _losses(row, row["gpu"], measured, checkpoint_interval_s)
        losses["gpu_hours_share"] = row["gpu"] / total if total else None
        if row["window_s"] is None:
            rows.append(losses | {"reason": "; ".join(filter(None, [NO_END, losses["reason"]]))})
            continue
        first = row["window_s"]
        after = _next_month(first) if calendar else first + WINDOW_S
        rows.append(
            {
                "window": _window_name(first, begin_s, calendar),
                "start_s": first,
                "end_s": after,
                "complete": begin_s <= first and end_s is not None and after <= end_s,
                **losses,
            }
        )
    names = list(BY_MONTH_SCHEMA)
    return pl.DataFrame([{name: row.get(name) for name in names} for row in rows], schema=BY_MONTH_SCHEMA)


def linked_preemptions(runs: pl.DataFrame, window_s: int) -> pl.Series:
    """Whether each run was preempted for a job that an infra failure had ended: Boolean, in the runs' order.

    It was, as far as accounting shows, where within `window_s` after the preemption, on one of the run's nodes, a job
    started again whose run before ended in an infra failure, and not after the preemption. Runs without a list of
    nodes are not linked. The rule is ours: how Slurm's own logs link the two is not known from the paper.
    """
    restarts = (
        runs.with_columns(failed_s=pl.col("end_s").shift(1))
        .filter(_is_restart())
        .select("node_list", "failed_s", again_s="start_s")
        .explode("node_list")
        .drop_nulls()
        .sort("again_s", "failed_s", "node_list")
    )
    preempted = (
        runs.with_row_index("run")
        .filter("preempted")
        .select("run", "node_list", "end_s")
        .explode("node_list")
        .drop_nulls()
        .sort("end_s", "run", "node_list")
    )
    found = preempted.join_asof(
        restarts,
        left_on="end_s",
        right_on="again_s",
        by="node_list",
        strategy="forward",
        tolerance=window_s,
        check_sortedness=False,
    ).filter(pl.col("failed_s") <= pl.col("end_s"))
    return pl.Series(np.isin(np.arange(runs.height), found["run"].to_numpy()), dtype=pl.Boolean)


def _measured(runs: pl.DataFrame, interval_s: int, link_window_s: int) -> pl.DataFrame:
    """The runs with what each of them adds to the sums, in milli-GPU half seconds."""
    if interval_s < 0 or link_window_s < 0:
        raise ValueError("a checkpoint interval and a window of time cannot be negative")
    loss = pl.col("gpu_milli").cast(pl.Int128) * pl.min_horizontal(2 * pl.col("runtime_s"), pl.lit(interval_s))
    loss = pl.when(pl.col("runtime_s").is_not_null()).then(loss)
    return runs.with_columns(
        gpu=2 * gpu_time(),
        loss=loss,
        linked=linked_preemptions(runs, link_window_s),
        is_known=pl.col("preempted").any(),
        is_linkable=pl.col("preempted").any() & (_is_restart() & pl.col("node_list").is_not_null()).any(),
    )


def _is_restart() -> pl.Expr:
    """Whether the run before, of the same job, ended in an infra failure."""
    return (pl.col("job") == pl.col("job").shift(1)) & pl.col("infra").shift(1)


def _sums(measured: pl.DataFrame, by: str) -> pl.DataFrame:
    failed, infra, preempted, linked = (pl.col(name) for name in ("failed", "infra", "preempted", "linked"))
    return measured.group_by(by).agg(
        runs=pl.len(),
        gpu=pl.col("gpu").sum(),
        failed_runs=failed.sum(),
        failed_without_time=(failed & pl.col("runtime_s").is_null()).sum(),
        failed_gpu=pl.col("gpu").filter(failed).sum(),
        infra_failures=infra.sum(),
        infra_without_time=(infra & pl.col("runtime_s").is_null()).sum(),
        infra_gpu=pl.col("gpu").filter(infra).sum(),
        first_order=pl.col("loss").filter(infra).sum(),
        preemptions=preempted.sum(),
        second_order=pl.col("loss").filter(preempted).sum(),
        linked_preemptions=linked.sum(),
        linked=pl.col("loss").filter(linked).sum(),
    )


def _losses(row: dict, total: int, measured: pl.DataFrame, interval_s: int) -> dict:
    """The columns of losses of one group; total: the GPU time that its shares are of."""
    known, linkable, basis = (measured[name].first() for name in ("is_known", "is_linkable", "basis"))
    reasons = [] if total else [NO_TIME]
    losses = {name: row[name] for name in _COUNTS} | {
        "infra_basis": basis,
        "checkpoint_interval_s": interval_s,
        "first_order_gpu_hours": row["first_order"] / _GPU_HOUR,
    }
    for name in ("gpu", "failed_gpu", "infra_gpu"):
        losses[f"{name}_hours"] = row[name] / _GPU_HOUR
        losses[f"{name}_hours_share"] = row[name] / total if total else None
    losses |= dict.fromkeys(("preemptions", "second_order_gpu_hours", "linked_preemptions", "linked_gpu_hours"))
    losses["first_and_linked_gpu_hours"] = None
    if known:
        losses |= {
            "preemptions": row["preemptions"],
            "second_order_gpu_hours": row["second_order"] / _GPU_HOUR,
        }
    else:
        reasons.append(NO_PREEMPTION)
    if linkable:
        losses |= {"linked_preemptions": row["linked_preemptions"], "linked_gpu_hours": row["linked"] / _GPU_HOUR}
        losses["first_and_linked_gpu_hours"] = (row["first_order"] + row["linked"]) / _GPU_HOUR
    elif known:
        reasons.append(NO_NODES)
    losses["reason"] = "; ".join(reasons) or None
    return {name: losses[name] for name in LOSS_COLUMNS}


def _next_month(first_s: int) -> int:
    month = datetime.fromtimestamp(first_s, UTC)
    year, number = divmod(month.year * 12 + month.month, 12)
    return int(datetime(year, number + 1, 1, tzinfo=UTC).timestamp())


def _window_name(first_s: int, begin_s: int, calendar: bool) -> str:
    if calendar:
        return datetime.fromtimestamp(first_s, UTC).strftime("%Y-%m")
    day = (first_s - begin_s) // 86_400
    return f"days {day + 1} to {day + 28}"


def last_complete(by_month: pl.DataFrame) -> dict | None:
    """The last row of `lost_work_by_month` that the trace covers whole, if there is one."""
    rows: Sequence[dict] = by_month.filter(pl.col("complete").fill_null(False)).tail(1).to_dicts()
    return rows[0] if rows else None
