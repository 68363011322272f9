"""GPU time lost to failures, by size of the run and by month (Kokolis et al., HPCA'25, figure 8).

A run that ends at a random moment between two checkpoints loses half an interval on average, and never more than it
ran: loss = min(run time, interval / 2) x GPUs. First order: runs that ended in an infra failure. Second order: runs
preempted because such a run was to restart. All sums are integers (milli-GPU half seconds, so half of an odd interval
is an integer). Hours are computed at the end, with one rounding.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.analyses.lost.measure_losses import LOST_WORK, LOST_WORK_ALL, LOST_WORK_BY_MONTH, SMALL_GPUS
from ttf.records.jobs import Frame, doubling_bucket
from ttf.records.months import month_name, month_start, next_month_s
from ttf.records.runs import GPU_HOUR, gpu_time
from ttf.stats.shares import divide

# An hour of one GPU, in milli-GPU half seconds.
_GPU_HOUR = 2 * GPU_HOUR

_KEYS = ("gpus_high", "start_s", "infra_basis", "checkpoint_interval_s")
_COUNTS = ("runs", "failed_runs", "failed_without_time", "infra_failures", "infra_without_time")

NO_PREEMPTION = "no attempt is recorded as preempted"
NO_NODES = "no job ran again on known nodes after an infrastructure failure: no preemption can be linked to one"
NO_TIME = "no GPU time was seen"
NO_END = "attempts without a recorded end: no GPU time, no month"


def loss_parts(runs: Frame, checkpoint_interval_s: int, begin_s: int | None = None) -> dict[str, pl.DataFrame]:
    """Return the parts from which `loss_sums` of a whole trace is made, for the runs of some of its jobs.

    runs: `ttf.records.runs.build_runs`. begin_s: first moment of the trace, on its clock. sums: by size of the run and
    month. preempted, restarts: the runs that `linked_preemptions` reads.
    """
    keys = {
        "gpus_high": doubling_bucket((pl.col("gpu_milli") + 999) // 1000),
        "start_s": month_start(begin_s),
        "infra_basis": pl.col("basis"),
        "checkpoint_interval_s": pl.lit(checkpoint_interval_s),
    }
    # Loss of a run if it were interrupted, in milli-GPU half seconds; blank if its run time is.
    half_s = pl.min_horizontal(2 * pl.col("runtime_s"), pl.lit(checkpoint_interval_s))
    loss = pl.when(pl.col("runtime_s").is_not_null()).then(pl.col("gpu_milli").cast(pl.Int128) * half_s)
    queries = {
        "sums": runs.lazy().select(**keys, **_run_terms(loss)).group_by(*keys).agg(pl.all().sum()),
        "preempted": runs.lazy().filter("preempted").select(**keys, linked=loss, end_s="end_s", node_list="node_list"),
        "restarts": runs.lazy()
        .with_columns(failed_s=pl.col("end_s").shift(1), again_s="start_s")
        .filter("after_infra")
        .select("failed_s", "again_s", "node_list"),
    }
    return dict(zip(queries, pl.collect_all(queries.values()), strict=True))


def loss_sums(parts: Sequence[Mapping[str, pl.DataFrame]], link_window_s: int) -> pl.DataFrame:
    """Return the sums from which `lost_work` and `lost_work_by_month` are made, by size of the run and month.

    parts: `loss_parts` of all jobs, in their order. gpus_high: see `lost_work`. start_s: start of the month.
    infra_basis, checkpoint_interval_s: constant. Other columns add up: counts, and amounts in milli-GPU half seconds.
    """
    sums, preempted, restarts = (pl.concat(part[name] for part in parts) for name in ("sums", "preempted", "restarts"))
    if preempted.height and sums["restarts"].sum():
        preempted = preempted.with_row_index("run")
        linked = preempted.filter(pl.col("run").is_in(linked_preemptions(preempted, restarts, link_window_s).implode()))
        linked = linked.select(*_KEYS, "linked", linked_preemptions=pl.lit(1, pl.Int64))
        sums = pl.concat([sums, linked], how="diagonal")
    return sums.group_by(*_KEYS).agg(pl.all().sum())


def _run_terms(loss: pl.Expr) -> dict[str, pl.Expr]:
    """Return what each run adds to each sum: counts, and amounts in milli-GPU half seconds."""
    failed, infra, preempted = (pl.col(name) for name in ("failed", "infra", "preempted"))
    has_no_time, gpu = pl.col("runtime_s").is_null(), 2 * gpu_time()
    return {
        "runs": pl.lit(1, dtype=pl.Int64),
        "gpu": gpu,
        "failed_runs": failed,
        "failed_without_time": failed & has_no_time,
        "failed_gpu": pl.when(failed).then(gpu),
        "infra_failures": infra,
        "infra_without_time": infra & has_no_time,
        "infra_gpu": pl.when(infra).then(gpu),
        "first_order": pl.when(infra).then(loss),
        "preemptions": preempted,
        "second_order": pl.when(preempted).then(loss),
        "linked_preemptions": pl.lit(0, dtype=pl.Int64),
        "linked": pl.lit(0, dtype=pl.Int128),
        "restarts": pl.col("after_infra") & pl.col("node_list").is_not_null(),
    }


def lost_work(sums: pl.DataFrame) -> pl.DataFrame:
    """Return the cost of failures, a row per size of the run in GPUs that occurs (LOST_WORK), ascending.

    sums: `loss_sums`. gpus_low, gpus_high: 0, 1, 2, 3-4, 5-8 ... GPUs; a share of one GPU counts as 1. Shares are of
    the GPU time of all runs. failed_gpu_hours: whole GPU time of failed runs; infra_gpu_hours: of those that ended in
    an infra failure. infra_basis: how these are identified (`ttf.records.infra`; `proxy`: every failure counts as one).
    first_order_gpu_hours: lost by infra failures. second_order_gpu_hours: lost by all preemptions, an upper bound,
    because accounting does not record for whom a run was preempted. linked_gpu_hours: lost by the preemptions that
    `linked_preemptions` attributes to a failed run; first_and_linked_gpu_hours: these and the first order. Runs without
    a known run time count, but have no GPU time; failed_without_time and infra_without_time are their numbers. Blank
    cells have a reason.
    """
    size_sums = _sum_by(sums, "gpus_high")
    total = sum(size_sums["gpu"].to_list())
    return LOST_WORK.frame(
        {"gpus_low": high // 2 + 1 if (high := row["gpus_high"]) > 1 else high, "gpus_high": high}
        | _loss_cells(row, total, sums)
        for row in size_sums.iter_rows(named=True)
    )


def lost_work_all(sums: pl.DataFrame) -> pl.DataFrame:
    """Return the cost of failures in all runs (LOST_WORK_ALL); no row without runs. sums: `loss_sums`."""
    if not sums.height:
        return LOST_WORK_ALL.frame([])
    (totals,) = sums.select(pl.exclude(_KEYS).sum()).iter_rows(named=True)
    large_failed = sum(sums.filter(pl.col("gpus_high") > SMALL_GPUS)["failed_gpu"].to_list())
    row = _loss_cells(totals, totals["gpu"], sums)
    row["first_order_gpu_hours_share"] = divide(totals["first_order"], totals["gpu"])
    row["failed_above_8_gpus_share"] = divide(large_failed, totals["failed_gpu"])
    return LOST_WORK_ALL.frame([row])


def lost_work_by_month(sums: pl.DataFrame, begin_s: int | None, end_s: int | None) -> pl.DataFrame:
    """Return the cost of failures by month (LOST_WORK_BY_MONTH), in order of time; months without a run have no row.

    sums: `loss_sums` from begin_s on. begin_s, end_s: first and last moment of the trace, on its clock. A run counts,
    with all its GPU time, in the month in which it ended or was last seen. gpu_hours_share is of all GPU time; the
    other shares are of that of the month's runs. Months are those of the calendar (UTC) if the clock counts from 1970,
    else windows of 28 days from the trace's first moment. complete: the trace covers the whole month. Runs without an
    end are in a last row without a month. The columns of losses are those of `lost_work`.
    """
    month_sums = _sum_by(sums, "start_s")
    total = sum(month_sums["gpu"].to_list())
    rows = []
    for row in month_sums.iter_rows(named=True):
        losses = _loss_cells(row, row["gpu"], sums) | {"gpu_hours_share": divide(row["gpu"], total)}
        from_s, trace_start_s = row["start_s"], begin_s or 0
        if from_s is None:
            rows.append(losses | {"reason": "; ".join(filter(None, [NO_END, losses["reason"]]))})
            continue
        to_s = next_month_s(from_s, begin_s)
        complete = trace_start_s <= from_s and end_s is not None and to_s <= end_s
        rows.append(
            {"window": month_name(from_s, begin_s), "start_s": from_s, "end_s": to_s, "complete": complete} | losses
        )
    return LOST_WORK_BY_MONTH.frame(rows)


def linked_preemptions(preempted: pl.DataFrame, restarts: pl.DataFrame, window_s: int) -> pl.Series:
    """Return the runs that were preempted for a job that an infra failure had ended.

    preempted: run (a number), end_s, node_list. restarts: runs whose previous run ended in an infra failure: failed_s
    (end of that run), again_s (their start) and node_list.

    A preemption is linked if, within `window_s` after it, such a job restarts on one of the run's nodes, and the
    failure was not after the preemption. Runs without a list of nodes are not linked. The rule is our own: the paper
    does not say how Slurm's logs link the two.
    """

    def explode_nodes(runs: pl.DataFrame, *times: str) -> pl.DataFrame:
        return runs.select("node_list", *times).explode("node_list").drop_nulls().sort(*times, "node_list")

    next_restarts = explode_nodes(preempted, "end_s", "run").join_asof(
        explode_nodes(restarts, "again_s", "failed_s"),
        left_on="end_s",
        right_on="again_s",
        by="node_list",
        strategy="forward",
        tolerance=window_s,
        check_sortedness=False,
    )
    return next_restarts.filter(pl.col("failed_s") <= pl.col("end_s"))["run"].unique().sort()


def _sum_by(sums: pl.DataFrame, column: str) -> pl.DataFrame:
    """Add up the sums of `loss_sums` by one of their keys, ascending."""
    return sums.group_by(column).agg(pl.exclude(_KEYS).sum()).sort(column, nulls_last=True)


def _loss_cells(row: dict, total: int, sums: pl.DataFrame) -> dict:
    """Return the columns of losses of one group; total: the GPU time of which its shares are."""
    has_preemptions = bool(sums["preemptions"].sum())
    has_links = has_preemptions and bool(sums["restarts"].sum())
    reasons = [] if total else [NO_TIME]
    losses = {name: row[name] for name in _COUNTS} | {
        "infra_basis": sums["infra_basis"].first(),
        "checkpoint_interval_s": sums["checkpoint_interval_s"].first(),
        "first_order_gpu_hours": row["first_order"] / _GPU_HOUR,
    }
    for name in ("gpu", "failed_gpu", "infra_gpu"):
        losses[f"{name}_hours"] = row[name] / _GPU_HOUR
        losses[f"{name}_hours_share"] = divide(row[name], total)
    if has_preemptions:
        losses |= {"preemptions": row["preemptions"], "second_order_gpu_hours": row["second_order"] / _GPU_HOUR}
    else:
        reasons.append(NO_PREEMPTION)
    if has_links:
        losses |= {"linked_preemptions": row["linked_preemptions"], "linked_gpu_hours": row["linked"] / _GPU_HOUR}
        losses["first_and_linked_gpu_hours"] = (row["first_order"] + row["linked"]) / _GPU_HOUR
    elif has_preemptions:
        reasons.append(NO_NODES)
    return losses | {"reason": "; ".join(reasons) or None}
