"""At which of its epochs a training job reached its lowest loss, and how long it ran for the last 0.1%.

The question of figure 8 of Jeon et al. 2019 (ATC'19), for a loss log that the user adds to a trace.
"""

import math

import polars as pl

from ttf.analyses.replication.measure_epochs import EPOCHS, EPOCHS_SUMMARY
from ttf.raw import extra_table_reader
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.inputs import Inputs
from ttf.stats.clustered import CLUSTERED, clustered_shares, join_clustered
from ttf.stats.shares import add_wilson, divide

OUTCOMES = ("success", "cancelled", "failure")
# A loss within this share of the lowest one counts as near.
NEAR_SHARE = 0.001
# Quantity -> the column of `best_epochs` with the epoch's position.
QUANTITIES = {"lowest": "lowest_at", "within_0.1_percent": "near_at"}
TENTHS = range(1, 11)


def compute(inputs: Inputs) -> dict:
    """Return the tables of the analysis: epochs and epochs_summary."""
    best = match_jobs(extra_table_reader.losses(inputs.path("losses")), inputs.read("jobs"))
    return {"epochs": epochs_table(best), "epochs_summary": epochs_summary(best)}


def best_epochs(losses: pl.DataFrame) -> pl.DataFrame:
    """Return a row per job id of the log: job, epochs, lowest_at, near_at, near_s, last_s.

    losses: of `ttf.raw.extra_table_reader`. An epoch that occurs several times (a job restarted from a checkpoint)
    counts once, with its last entry. lowest_at: position of the epoch with the lowest loss, from 1 in order of epoch
    numbers. near_at: the first epoch whose loss is at most NEAR_SHARE above it, as a share of its size. near_s, last_s:
    when that epoch and the last ended. An epoch without a finite loss counts as run but is never the lowest; if a job
    has no finite loss, its positions are blank.
    """
    # Numbers in the order of the ids sort in a fraction of the time.
    ids = losses.select("job").unique().sort("job").with_row_index("number")
    numbered = losses.join(ids, on="job", how="left", maintain_order="left").drop("job")
    epochs = numbered.sort("number", "epoch", "time_s", maintain_order=True)
    is_repeated = pl.struct("number", "epoch").shift(-1) == pl.struct("number", "epoch")
    epochs = epochs.filter(~is_repeated.fill_null(False))
    finite_loss = pl.when(pl.col("loss").is_finite()).then("loss")
    lowest = finite_loss.min().over("number")
    epochs = epochs.select(
        "number",
        "time_s",
        order=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("number"),
        is_lowest=(finite_loss == lowest).fill_null(False),
        is_near=(finite_loss <= lowest + NEAR_SHARE * lowest.abs()).fill_null(False),
    )
    near_epochs = epochs.filter("is_near").unique("number", keep="first", maintain_order=True)
    return (
        epochs.group_by("number")
        .agg(epochs=pl.len().cast(pl.Int64), last_s=pl.col("time_s").max())
        .join(
            epochs.filter("is_lowest").group_by("number").agg(lowest_at=pl.col("order").min()), on="number", how="left"
        )
        .join(near_epochs.select("number", near_at="order", near_s="time_s"), on="number", how="left")
        .join(ids, on="number")
        .sort("number")
        .select("job", "epochs", "lowest_at", "near_at", "near_s", "last_s")
    )


def match_jobs(losses: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """Join `best_epochs` with each job's outcome and, if known, its times since its start and its GPU time.

    outcome: blank if no job of the trace has the id, or if several have. run_s: from the job's first start to its last
    epoch's end; after_s: from the near epoch's end on. Both are blank unless the start is known and before that end.
    gpu_milli: of the whole job. CLUSTER_COLUMNS if jobs have them.
    """
    levels = CLUSTER_COLUMNS if "cluster_by" in jobs.columns else ()
    unique_jobs = jobs.select("job_id", "outcome", "start_s", *levels, gpu_milli=pl.col("gpu_milli") * pl.col("size"))
    unique_jobs = unique_jobs.filter(pl.col("job_id").is_unique())
    has_time = pl.col("start_s") < pl.col("near_s")
    return (
        best_epochs(losses)
        .join(unique_jobs, left_on="job", right_on="job_id", how="left", maintain_order="left")
        .with_columns(
            run_s=pl.when(has_time).then(pl.col("last_s") - pl.col("start_s")),
            after_s=pl.when(has_time).then(pl.col("last_s") - pl.col("near_s")),
        )
    )


def epochs_table(best: pl.DataFrame) -> pl.DataFrame:
    """Return EPOCHS from `match_jobs`: jobs at their lowest loss, and near it, by tenths of their epochs."""
    rows, lowest = [], best.drop_nulls("lowest_at")
    for outcome in OUTCOMES:
        scored = lowest.filter(outcome=outcome)
        for quantity, column in QUANTITIES.items() if scored.height else ():
            for tenths in TENTHS:
                jobs, n = int((scored[column] * 10 <= scored["epochs"] * tenths).sum()), scored.height
                row = {"outcome": outcome, "quantity": quantity, "epochs_share": tenths / 10, "jobs": jobs, "n": n}
                rows.append(row | add_wilson("jobs_share", jobs, n))
    grid = pl.DataFrame({"quantity": list(QUANTITIES)}).join(pl.DataFrame({"tenths": list(TENTHS)}), how="cross")
    position = pl.coalesce(pl.when(quantity=quantity).then(column) for quantity, column in QUANTITIES.items())
    job_tenths = lowest.join(grid, how="cross").with_columns(
        epochs_share=pl.col("tenths") / 10, has_reached=position * 10 <= pl.col("epochs") * pl.col("tenths")
    )
    keys = ["outcome", "quantity", "epochs_share"]
    clustered = clustered_shares(job_tenths, keys, pl.col("has_reached").sum(), pl.len())
    return EPOCHS.conform(join_clustered(EPOCHS.frame(rows).drop(CLUSTERED), clustered, keys))


def epochs_summary(best: pl.DataFrame) -> pl.DataFrame:
    """Return by outcome the share of jobs that needed all epochs, and the time after the near epoch (EPOCHS_SUMMARY).

    best: `match_jobs`. after_near_share_mean: mean over jobs of the share of run time after the near epoch.
    after_near_gpu_time_share: that share of the GPU time of all jobs together. A job holds its GPUs all the time, so a
    share of its time is one of its GPU time.
    """
    rows = []
    for outcome in OUTCOMES:
        entries = best.filter(outcome=outcome)
        scored = entries.drop_nulls("lowest_at")
        row = {"outcome": outcome, "jobs_logged": entries.height, "n": scored.height, "epochs": scored["epochs"].sum()}
        if not scored.height:
            reason = "no loss of theirs is a number" if entries.height else "no such job in the loss log"
            rows.append(row | {"reason": reason})
            continue
        n_needing_all = int((scored["lowest_at"] == scored["epochs"]).sum())
        timed_jobs = scored.drop_nulls("run_s")
        # Integers up to the last division, and an exact sum, so order does not matter.
        shares = [after_s / run_s for after_s, run_s in timed_jobs.select("after_s", "run_s").iter_rows()]
        weights = timed_jobs.select("gpu_milli", "after_s", "run_s").drop_nulls("gpu_milli").rows()
        total = sum(gpus * run_s for gpus, _, run_s in weights)
        row |= {"needing_all": n_needing_all, **add_wilson("needing_all_share", n_needing_all, scored.height)}
        row |= {"timed_jobs": timed_jobs.height, "after_near_share_mean": divide(math.fsum(shares), len(shares))}
        row["after_near_gpu_time_share"] = divide(sum(gpus * after_s for gpus, after_s, _ in weights), total)
        untimed = None if shares else "no start of theirs is known to lie before that epoch's end"
        rows.append(row | {"reason": untimed})
    if n_unmatched := best["outcome"].null_count():
        reason = "no job of the trace has this id, or several have"
        rows.append({"outcome": "not_in_trace", "jobs_logged": n_unmatched, "n": 0, "reason": reason})
    is_last = (pl.col("lowest_at") == pl.col("epochs")).sum()
    clustered = clustered_shares(best.drop_nulls("lowest_at"), ["outcome"], is_last, pl.len())
    return EPOCHS_SUMMARY.conform(join_clustered(EPOCHS_SUMMARY.frame(rows).drop(CLUSTERED), clustered, ["outcome"]))
