"""Make synthetic weekly `sacct` dumps, one file each.

A dump has every job that ran, waited or ended in its week, in its state at the end of the week. So a job that crosses a
week's end is in several dumps, each time in a later state. A requeued job keeps its id, maybe in the next week.
"""

from pathlib import Path

import numpy as np
import polars as pl

STATES = ["COMPLETED", "FAILED", "CANCELLED by 1007", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "REQUEUED", "PREEMPTED"]
DAY_S = 86_400
WEEK_S = 7 * DAY_S
FIRST_S = 1_704_067_200  # 2024-01-01 UTC, a Monday
USERS, NODES, GPUS_A_NODE = 600, 1_000, 8
# GPUs of a job -> jobs per 1,000: the mix of the embedded Slurm sample.
GPUS = {1: 435, 2: 85, 4: 85, 8: 300, 16: 18, 32: 14, 64: 14, 128: 14, 256: 25, 512: 10}
CONTINUED = ("REQUEUED", "PREEMPTED")


def write_weeks(folder: Path, weeks: int, jobs: int, seed: int = 7) -> Path:
    """Write `weeks` dumps of about `jobs` jobs each to `folder`, unless it exists; return the folder."""
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    random, running, first_id = np.random.default_rng(seed), None, 1_000_000
    user_odds, weights = np.exp(random.normal(0, 1, (2, USERS)))
    users = user_odds, weights / weights.sum()
    for week in range(weeks):
        begin_s = FIRST_S + week * WEEK_S
        new = _records(random, jobs, begin_s, first_id, *users)
        first_id += jobs
        records = new if running is None else pl.concat([running, new])
        end_s = begin_s + WEEK_S
        submitted = records.filter(pl.col("submit") < end_s)
        _write(submitted, end_s, folder / f"week{week:02}.txt")
        running = records.filter(pl.col("end") >= end_s)
    return folder


def _records(
    random: np.random.Generator, jobs: int, begin_s: int, first_id: int, user_odds: np.ndarray, user_shares: np.ndarray
) -> pl.DataFrame:
    """Draw the records of the jobs submitted in a week, and the later run of each requeued one, in order."""
    user = random.choice(USERS, jobs, p=user_shares)
    failed = random.random(jobs) < 0.2 * user_odds[user] / (1 + 0.2 * user_odds[user])
    state = np.where(failed, random.choice([1, 3, 4, 5], jobs, p=[0.7, 0.2, 0.05, 0.05]), 0)
    state = np.where(random.random(jobs) < 0.1, 2, state)
    run = np.minimum(random.lognormal(6, 2, jobs), 20 * DAY_S).astype(np.int64) + 1
    # Mostly long runs are requeued or preempted.
    state = np.where(random.random(jobs) < 0.02 + 0.4 * (run > DAY_S // 4), random.choice([6, 7], jobs), state)
    gpus = random.choice(list(GPUS), jobs, p=np.array(list(GPUS.values())) / 1000)
    table = pl.DataFrame(
        {
            "id": first_id + np.arange(jobs),
            "user": user,
            "state": np.array(STATES)[state],
            "submit": begin_s + np.sort(random.integers(0, WEEK_S, jobs)),
            "wait": random.exponential(600, jobs).astype(np.int64),
            "run": run,
            "gpus": gpus,
            "first": random.integers(0, NODES, jobs),
        }
    )
    continued = table.filter(pl.col("state").is_in(CONTINUED))
    later_runs = continued.with_columns(
        submit=pl.col("submit") + pl.col("wait") + pl.col("run"), state=pl.lit("COMPLETED"), run=pl.col("run") // 2 + 1
    )
    records = pl.concat([table, later_runs]).with_columns(start=pl.col("submit") + pl.col("wait"))
    return records.with_columns(end=pl.col("start") + pl.col("run")).sort("submit", "id")


def _write(records: pl.DataFrame, seen_s: int, file: Path) -> None:
    """Write the records as sacct prints them at `seen_s`."""
    nodes = (pl.col("gpus") + GPUS_A_NODE - 1) // GPUS_A_NODE
    waits, runs = pl.col("start") >= seen_s, (pl.col("start") < seen_s) & (pl.col("end") >= seen_s)
    first = pl.col("first") % (NODES + 1 - nodes)
    single = pl.format("gpu{}", first.cast(pl.String).str.zfill(4))
    bounds = (number.cast(pl.String).str.zfill(4) for number in (first, first + nodes - 1))
    several = pl.format("gpu[{}-{}]", *bounds)
    tres = pl.format("billing={},cpu={},gres/gpu:a100={},gres/gpu={},mem={}G,node={}", *[pl.col("gpus")] * 5, nodes)
    unknown = pl.lit("Unknown")
    cells = {
        "JobIDRaw": pl.col("id"),
        "JobID": pl.col("id"),
        "Cluster": pl.lit("main"),
        "User": pl.format("u{}", "user"),
        "Account": pl.format("lab{}", pl.col("user") % 40),
        "Partition": pl.lit("gpu"),
        "QOS": pl.lit("normal"),
        "State": pl.when(waits).then(pl.lit("PENDING")).when(runs).then(pl.lit("RUNNING")).otherwise("state"),
        "ExitCode": pl.when(pl.col("state") == "FAILED").then(pl.lit("1:0")).otherwise(pl.lit("0:0")),
        "DerivedExitCode": pl.lit("0:0"),
        "Submit": pl.col("submit"),
        "Eligible": pl.col("submit"),
        "Start": pl.when(waits).then(unknown).otherwise(pl.col("start").cast(pl.String)),
        "End": pl.when(waits | runs).then(unknown).otherwise(pl.col("end").cast(pl.String)),
        "ElapsedRaw": pl.when(waits).then(0).when(runs).then(seen_s - pl.col("start")).otherwise("run"),
        "Suspended": pl.lit("00:00:00"),
        "TimelimitRaw": pl.lit("28800"),
        "NNodes": nodes,
        "NodeList": pl.when(waits).then(pl.lit("None assigned")).when(nodes > 1).then(several).otherwise(single),
        "ReqTRES": tres,
        "AllocTRES": pl.when(waits).then(pl.lit("")).otherwise(tres),
        "Reason": pl.lit("None"),
        "Flags": pl.lit("SchedMain"),
    }
    records.select(**cells).write_csv(file, separator="|", quote_style="never")
