"""At which of its epochs a training job came to its lowest loss, and how long it went on for the last bit of it.

The question of figure 8 of Jeon et al. 2019 (ATC'19), asked of a loss log that a person gives beside a trace.
"""

import math

import polars as pl

from ttf.analyses.replication.measure_epochs import EPOCHS, EPOCHS_SUMMARY
from ttf.raw import extra_table_reader
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.inputs import Inputs
from ttf.stats.clustered import CLUSTERED, beside, clustered_shares
from ttf.stats.shares import part_of, with_wilson

OUTCOMES = ("success", "cancelled", "failure")
# So near to the lowest loss counts as having come to it.
NEAR = 0.001
# Quantity -> the column of `best_epochs` with the epoch's place.
QUANTITIES = {"lowest": "lowest_at", "within_0.1_percent": "near_at"}
TENTHS = range(1, 11)


def compute(given: Inputs) -> dict:
    best = of_jobs(extra_table_reader.losses(given.path("losses")), given.read("jobs"))
    return {"epochs": epochs_table(best), "epochs_summary": epochs_summary(best)}


def best_epochs(losses: pl.DataFrame) -> pl.DataFrame:
    """Per job of the log, by its id: job, epochs, lowest_at, near_at, near_s, last_s; losses: of
    `ttf.raw.extra_table_reader`.

    An epoch that stands there several times (a job that began again from a checkpoint) counts once, by what was logged
    last. lowest_at: which of the epochs, from 1 and in order of their numbers, has the lowest loss; near_at: the first
    that is at most NEAR above it, as a share of its size. near_s, last_s: when that one and the last ended. A loss that
    is no finite number belongs to an epoch that ran, and is never the lowest; of a job without any other the places are
    blank.
    """
    # Numbers in the order of the ids: sorted in a fraction of the time.
    ids = losses.select("job").unique().sort("job").with_row_index("number")
    numbered = losses.join(ids, on="job", how="left", maintain_order="left").drop("job")
    epochs = numbered.sort("number", "epoch", "time_s", maintain_order=True)
    again = pl.struct("number", "epoch").shift(-1) == pl.struct("number", "epoch")
    epochs = epochs.filter(~again.fill_null(False))
    finite = pl.when(pl.col("loss").is_finite()).then("loss")
    lowest = finite.min().over("number")
    epochs = epochs.select(
        "number",
        "time_s",
        place=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("number"),
        is_lowest=(finite == lowest).fill_null(False),
        is_near=(finite <= lowest + NEAR * lowest.abs()).fill_null(False),
    )
    near = epochs.filter("is_near").unique("number", keep="first", maintain_order=True)
    return (
        epochs.group_by("number")
        .agg(epochs=pl.len().cast(pl.Int64), last_s=pl.col("time_s").max())
        .join(
            epochs.filter("is_lowest").group_by("number").agg(lowest_at=pl.col("place").min()), on="number", how="left"
        )
        .join(near.select("number", near_at="place", near_s="time_s"), on="number", how="left")
        .join(ids, on="number")
        .sort("number")
        .select("job", "epochs", "lowest_at", "near_at", "near_s", "last_s")
    )


def of_jobs(losses: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """`best_epochs` with the job's outcome and, where they are known, its times since its start and GPU time.

    outcome: blank for an id that no job of the trace has, or several. run_s: from the job's first start to its last
    epoch's end; after_s: from the near epoch's end on; both blank where the start is unknown or not before that.
    gpu_milli: of the whole job. CLUSTER_COLUMNS where jobs have them.
    """
    alike = CLUSTER_COLUMNS if "cluster_by" in jobs.columns else ()
    known = jobs.select("job_id", "outcome", "start_s", *alike, gpu_milli=pl.col("gpu_milli") * pl.col("size"))
    known = known.filter(pl.col("job_id").is_unique())
    timed = pl.col("start_s") < pl.col("near_s")
    return (
        best_epochs(losses)
        .join(known, left_on="job", right_on="job_id", how="left", maintain_order="left")
        .with_columns(
            run_s=pl.when(timed).then(pl.col("last_s") - pl.col("start_s")),
            after_s=pl.when(timed).then(pl.col("last_s") - pl.col("near_s")),
        )
    )


def epochs_table(best: pl.DataFrame) -> pl.DataFrame:
    """How many jobs came to their lowest loss, and near it, by each tenth of their epochs (EPOCHS); best: `of_jobs`."""
    rows, lowest = [], best.drop_nulls("lowest_at")
    for outcome in OUTCOMES:
        known = lowest.filter(outcome=outcome)
        for quantity, place in QUANTITIES.items() if known.height else ():
            for tenths in TENTHS:
                jobs, n = int((known[place] * 10 <= known["epochs"] * tenths).sum()), known.height
                row = {"outcome": outcome, "quantity": quantity, "epochs_share": tenths / 10, "jobs": jobs, "n": n}
                rows.append(row | with_wilson("jobs_share", jobs, n))
    places = pl.DataFrame({"quantity": list(QUANTITIES)}).join(pl.DataFrame({"tenths": list(TENTHS)}), how="cross")
    come = pl.coalesce(pl.when(quantity=quantity).then(place) for quantity, place in QUANTITIES.items())
    every = lowest.join(places, how="cross").with_columns(
        epochs_share=pl.col("tenths") / 10, come=come * 10 <= pl.col("epochs") * pl.col("tenths")
    )
    keys = ["outcome", "quantity", "epochs_share"]
    alike = clustered_shares(every, keys, pl.col("come").sum(), pl.len())
    return EPOCHS.typed(beside(EPOCHS.frame(rows).drop(CLUSTERED), alike, keys))


def epochs_summary(best: pl.DataFrame) -> pl.DataFrame:
    """Per outcome: which share of jobs needed all epochs, and how much time went into the last bit (EPOCHS_SUMMARY).

    best: `of_jobs`. after_near_share_mean: the mean over jobs of the share of the time since the start that came after
    the near epoch; after_near_gpu_time_share: the same of all their GPU time together. A job holds its GPUs all the
    time, so that a share of its time is one of its GPU time.
    """
    rows = []
    for outcome in OUTCOMES:
        logged = best.filter(outcome=outcome)
        known = logged.drop_nulls("lowest_at")
        row = {"outcome": outcome, "jobs_logged": logged.height, "n": known.height, "epochs": known["epochs"].sum()}
        if not known.height:
            reason = "no loss of theirs is a number" if logged.height else "no such job in the loss log"
            rows.append(row | {"reason": reason})
            continue
        needing_all = int((known["lowest_at"] == known["epochs"]).sum())
        timed = known.drop_nulls("run_s")
        # Whole numbers up to the last division, and a sum that does not depend on their order.
        shares = [after / run for after, run in timed.select("after_s", "run_s").iter_rows()]
        weights = timed.select("gpu_milli", "after_s", "run_s").drop_nulls("gpu_milli").rows()
        total = sum(gpus * run for gpus, _, run in weights)
        row |= {"needing_all": needing_all} | with_wilson("needing_all_share", needing_all, known.height)
        row |= {"timed_jobs": timed.height, "after_near_share_mean": part_of(math.fsum(shares), len(shares))}
        row["after_near_gpu_time_share"] = part_of(sum(gpus * after for gpus, after, _ in weights), total)
        reason = None if shares else "no start of theirs is known to lie before that epoch's end"
        rows.append(row | {"reason": reason})
    if unknown := best["outcome"].null_count():
        reason = "no job of the trace has this id, or several have"
        rows.append({"outcome": "not_in_trace", "jobs_logged": unknown, "n": 0, "reason": reason})
    needs_all = (pl.col("lowest_at") == pl.col("epochs")).sum()
    alike = clustered_shares(best.drop_nulls("lowest_at"), ["outcome"], needs_all, pl.len())
    return EPOCHS_SUMMARY.typed(beside(EPOCHS_SUMMARY.frame(rows).drop(CLUSTERED), alike, ["outcome"]))
