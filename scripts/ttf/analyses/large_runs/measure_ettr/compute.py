"""The effective training time of job runs of several attempts, as they went."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from scipy.special import stdtrit

from ttf.analyses.large_runs.measure_ettr import ETTR_MEASURED, ETTR_MEASURED_ALL
from ttf.engine.errors import StudyError
from ttf.engine.storage.tables import blocks
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.stats.clustered import UNCLUSTERED, in_strata, with_limits
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import ettr_renewal
from ttf.stats.large_runs.plans import Habits, NodeRate, habits_asked, node_rate

CONFIDENCE = 0.95
LIVES = (
    *("unit_id", "life_id", "submit_s", "start_s", "duration_s", "gpu_count", "nodes", "event"),
    *CLUSTER_COLUMNS,
)


def compute(given: Inputs) -> dict:
    asked = given.settings.ettr
    # The waits are those of the trace here, whatever is planned with.
    habits = habits_asked(asked, 0)[0]
    rate = node_rate(given["node_failure_rate"], given["mttf_by_gpus"])
    attempts, jobs = given.scan("lives_infra", LIVES), given.scan("jobs")
    runs = job_runs(attempts, jobs, asked["run_key"], asked["run_at_least_s"], habits)
    measured = measured_table(runs, rate, habits)
    return {"ettr_measured": measured, "ettr_measured_all": all_runs(measured)}


def all_runs(measured: pl.DataFrame) -> pl.DataFrame:
    """The one row of ETTR_MEASURED_ALL; measured: ETTR_MEASURED."""
    row = {"runs": int(measured["runs"].sum())}
    if row["runs"]:
        row["interruptions"] = int(measured["interruptions"].sum())
        columns = {
            "mean": "ettr_mean",
            "expected": "expected_ettr",
            "if_all_interrupted": "ettr_if_all_interrupted_mean",
        }
        for name, column in columns.items():
            if not measured[column].null_count():
                row[name] = float((measured[column] * measured["runs"]).sum()) / row["runs"]
    return ETTR_MEASURED_ALL.frame([row])


def job_runs(
    attempts: pl.LazyFrame, jobs: pl.LazyFrame, run_key: Sequence[str], at_least_s: int, habits: Habits
) -> pl.DataFrame:
    """A row per job run that ran for `at_least_s` or longer, by its first start: what its time went into.

    attempts: a row per attempt that ran: unit_id (its job_id), life_id, submit_s (when it began to wait), start_s,
    duration_s (Int64 s), gpu_count, nodes, event. jobs: job_id and the columns that `run_key` names. Attempts of jobs
    with the same values of all of these are one run; where a value is blank, the job is a run of its own. Attempts
    without a GPU are excluded, unless none has one; so are those of unknown length.

    An attempt counts as interrupted if another one of its run follows, or if infrastructure ended it. Lost in each is
    the start-up, and in an interrupted one half an interval besides, at most all of it: min(duration, u0 + dt / 2).
    What is left is work and the writing of checkpoints, w for every dt. Columns: gpus, nodes (the most of an attempt),
    attempts, interruptions, runtime_s, queue_s (the waits together), ettr: work / (runtime_s + queue_s);
    ettr_if_all_interrupted: the same, if every attempt had been interrupted, as the paper takes it; CLUSTER_COLUMNS,
    where attempts have them, of the first attempt.
    Neither is held, unless a run may be of several jobs: then all attempts are, as none is known to be of a short one.
    Raises StudyError where jobs have no such column.
    """
    there = jobs.collect_schema().names()
    missing = [name for name in run_key if name not in there]
    if missing:
        raise StudyError(
            f"ettr.run_key: the jobs of this trace have no column {', '.join(missing)}; "
            f"expected some of {', '.join(there)}"
        )
    keys = [f"key_{name}" for name in run_key]
    # Codes of the job's place in place of blanks, so that nothing unknown is taken for the same.
    known = _known(attempts, at_least_s if "job_id" in run_key and not _has_tasks(jobs) else 0)
    named = (
        jobs.with_row_index("place")
        .join(known.lazy(), left_on="job_id", right_on="unit_id", how="semi")
        .select(
            "place",
            pl.col("job_id").alias("unit_id"),
            *(pl.col(name).alias(key) for name, key in zip(run_key, keys, strict=True)),
            alone=pl.when(pl.any_horizontal(pl.col(name).is_null() for name in run_key)).then("place"),
        )
        .collect(engine="streaming")
        .sort("place")
        .unique("unit_id", keep="first", maintain_order=True)
        .drop("place")
    )
    keys.append("alone")
    half, start_up = int(habits.interval_s), 2 * int(habits.restart_s)
    doubled = 2 * pl.col("duration_s")
    tries = (
        known.join(named, on="unit_id", how="left", maintain_order="left")
        .sort("start_s", "unit_id", "life_id")
        .with_columns(
            interrupted=(pl.col("event") == EVENT).fill_null(False)
            | (pl.int_range(pl.len()).over(keys) < pl.len().over(keys) - 1),
            wait_s=(pl.col("start_s") - pl.col("submit_s")).clip(lower_bound=0).fill_null(0),
        )
        .with_columns(lost=pl.min_horizontal(doubled, start_up + half * pl.col("interrupted").cast(pl.Int64)))
    )
    runs = (
        tries.group_by(keys, maintain_order=True)
        .agg(
            gpus=pl.col("gpu_count").max(),
            nodes=pl.col("nodes").max(),
            attempts=pl.len().cast(pl.Int64),
            interruptions=pl.col("interrupted").sum().cast(pl.Int64),
            runtime_s=pl.col("duration_s").sum(),
            queue_s=pl.col("wait_s").sum(),
            # Twice the seconds lost, so that half an interval is whole and the sums are exact.
            lost=pl.col("lost").sum(),
            lost_at_most=pl.min_horizontal(doubled, start_up + half).sum(),
            **{name: pl.col(name).first() for name in CLUSTER_COLUMNS if "cluster_by" in tries.columns},
        )
        .filter((pl.col("runtime_s") >= at_least_s) & (pl.col("runtime_s") > 0))
    )
    working = 1 + habits.write_s / habits.interval_s
    wall = (pl.col("runtime_s") + pl.col("queue_s")) * working

    def ratio(lost: str) -> pl.Expr:
        return (pl.col("runtime_s") - pl.col(lost) / 2) / wall

    return runs.with_columns(ettr=ratio("lost"), ettr_if_all_interrupted=ratio("lost_at_most")).drop(
        *keys, "lost", "lost_at_most"
    )


def _has_tasks(jobs: pl.LazyFrame) -> bool:
    """Whether a unit may be a part of a job."""
    return (
        "task" in jobs.collect_schema() and jobs.select(pl.col("task").count()).collect(engine="streaming").item() > 0
    )


def _known(attempts: pl.LazyFrame, at_least_s: int) -> pl.DataFrame:
    """The attempts that count, without those that are all of a job and shorter."""
    has_time = pl.col("duration_s").is_not_null() & pl.col("start_s").is_not_null()
    has_gpu = attempts.select((has_time & (pl.col("gpu_count") > 0)).any()).collect(engine="streaming").item()
    counts = has_time & (pl.col("gpu_count") > 0) if has_gpu else has_time
    # Attempts of one job stand together. Next to the first and the last of a block there may be others.
    unit = pl.col("unit_id")
    is_alone = ((unit != unit.shift(1)) & (unit != unit.shift(-1))).fill_null(False)
    long_enough = (pl.col("duration_s") >= at_least_s) | ~is_alone
    return pl.concat([attempts.clear().collect(), *(block.filter(counts & long_enough) for block in blocks(attempts))])


def measured_table(runs: pl.DataFrame, rate: NodeRate, habits: Habits) -> pl.DataFrame:
    """Job runs by size, each bucket up to twice the GPUs of the one before: the mean ratio beside the expected one.

    runs: see `job_runs`. ci_low, ci_high: Student's 95% CI of the mean, within 0 and 1; the clustered one is
    that of a share (`Clusters.proportion`), as a ratio lies between 0 and 1. expected_ettr: the mean of the exact form
    over the same runs, with the work of each, at the rate of a node, as far as it may be projected, and the mean wait
    of an attempt.
    """
    rows = []
    upper = 2 ** np.ceil(np.log2(np.maximum(runs["gpus"].to_numpy(), 1))).astype(np.int64)
    for high in np.unique(upper).tolist():
        mine = runs.filter(upper == high)
        expected, why_not = _expected(mine, rate, habits, runs)
        alike = _clustered(mine)
        unclustered = alike.pop("why_not") if mine.height > 1 else "one run: no interval"
        reasons = filter(None, (unclustered, why_not))
        rows.append(
            {"gpus_low": high // 2 + 1, "gpus_high": high, "runs": mine.height}
            | {name: mine[name].sum() for name in ("attempts", "interruptions")}
            | {"ettr_if_all_interrupted_mean": mine["ettr_if_all_interrupted"].mean()}
            | _mean(mine["ettr"].to_numpy())
            | alike
            | {"expected_ettr": expected, "reason": "; ".join(reasons) or None}
        )
    return ETTR_MEASURED.frame(rows)


def _mean(values: np.ndarray) -> dict[str, float]:
    mean = float(values.mean())
    if values.size < 2:
        return {"ettr_mean": mean}
    margin = float(stdtrit(values.size - 1, (1 + CONFIDENCE) / 2) * values.std(ddof=1) / np.sqrt(values.size))
    return {"ettr_mean": mean, "ci_low": max(mean - margin, 0.0), "ci_high": min(mean + margin, 1.0)}


def _clustered(runs: pl.DataFrame) -> dict:
    """The cells about clusters, and why_not. Floats are summed in the order of the runs."""
    if "cluster_by" not in runs.columns or runs["cluster_by"].null_count():
        return {"why_not": UNCLUSTERED}
    level = "cluster" if runs["cluster"].n_unique() > 1 else "group"
    levels = runs.select(pl.col(f"{level}_by").alias("cluster_by"), "block_by", pl.col(level).alias("cluster"), "block")
    keys = levels.select(pl.col("cluster", "block").cast(pl.Int64).fill_null(-1)).to_numpy()
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    sums = {"n": np.bincount(number).astype(float), "ettr": np.bincount(number, weights=runs["ettr"].to_numpy())}
    strata, rows, clusters = in_strata(levels[first].with_columns(**sums), [], "n")
    limits = clusters.proportion(rows["ettr"].to_numpy(), rows["n"].to_numpy(), CONFIDENCE)
    return with_limits(strata, *limits).row(0, named=True)


def _expected(
    mine: pl.DataFrame, rate: NodeRate, habits: Habits, everything: pl.DataFrame
) -> tuple[float | None, str | None]:
    by_gpus = None if rate.node_gpus is None else -(-pl.col("gpus") // rate.node_gpus)
    nodes = mine.select(pl.coalesce("nodes", by_gpus) if by_gpus is not None else pl.col("nodes")).to_series()
    if nodes.null_count():
        return None, "the nodes of these runs are not known"
    if why_not := rate.why_not(nodes.max()):
        return None, why_not
    # A run that did no work at all has no expected share; a second of it has nearly none.
    work = np.maximum((mine["ettr"] * (mine["runtime_s"] + mine["queue_s"])).to_numpy(), 1.0)
    mean_wait = everything["queue_s"].sum() / everything["attempts"].sum()
    plan = replace(habits, queue_s=mean_wait, productive_s=work).plan(nodes.to_numpy() * rate.estimate / SECONDS_A_DAY)
    return float(np.mean(ettr_renewal(plan))), None
