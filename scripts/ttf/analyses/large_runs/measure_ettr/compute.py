"""The measured effective training time ratio of job runs of one or more attempts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from scipy.special import stdtrit

from ttf.analyses.large_runs.measure_ettr import ETTR_MEASURED, ETTR_MEASURED_ALL, ETTR_MEASURED_TARGET
from ttf.engine.errors import StudyError
from ttf.engine.storage.tables import read_blocks
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.stats.clustered import UNCLUSTERED, add_limits, build_clusters
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import ettr_renewal
from ttf.stats.large_runs.plans import (
    ESTIMATE,
    MEASURED,
    Habits,
    NodeRate,
    node_rate,
    rate_row,
    read_habits,
    target_size,
)

CONFIDENCE = 0.95
# More nodes than any run has.
ANY_SIZE = 10**9
DURATIONS = (
    *("unit_id", "duration_id", "submit_s", "start_s", "duration_s", "gpu_count", "nodes", "event"),
    *CLUSTER_COLUMNS,
)


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    settings = inputs.settings.ettr
    # Waits are those of the trace; a configured wait is for plans only.
    habits = read_habits(settings, 0)[0]
    rate = node_rate(inputs["node_failure_rate"], inputs["mttf_by_gpus"])
    attempts, jobs = inputs.scan("durations_infra", DURATIONS), inputs.scan("jobs")
    runs = job_runs(attempts, jobs, settings["run_key"], settings["run_at_least_s"], habits)
    measured = measured_table(runs, rate, habits)
    target = target_size(rate_row(inputs["node_failure_rate"]), settings["target_gpus"])
    return {
        "ettr_measured": measured,
        "ettr_measured_all": all_runs(measured),
        "ettr_measured_target": target_runs(runs, rate, habits, target),
    }


def all_runs(measured: pl.DataFrame) -> pl.DataFrame:
    """Return ETTR_MEASURED_ALL: means over runs of all sizes, from those by size in `measured` (ETTR_MEASURED)."""
    row: dict[str, float] = {"runs": int(measured["runs"].sum())}
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


def target_runs(runs: pl.DataFrame, rate: NodeRate, habits: Habits, target: int) -> pl.DataFrame:
    """Return ETTR_MEASURED_TARGET: the share of scheduled time, measured and expected, of runs of the target's size.

    runs: see `job_runs`. The size range is that of `measured_table`. The failure rate is the one that plans the target:
    the projected one, else the one measured in runs of that size.
    """
    sized_runs = runs.filter(_upper_gpus(runs["gpus"]) == _upper_gpus(pl.Series([target]))[0])
    rates = dict(rate.bounds(target, -(-target // (rate.node_gpus or 1))))
    # What the page withholds without a model is not compared with one.
    if rate.node_gpus is None or not sized_runs.height or not rates:
        return ETTR_MEASURED_TARGET.frame([])
    mean_wait = int(sized_runs["queue_s"].sum()) / int(sized_runs["attempts"].sum())
    # Without the wait, the ratio is the share of the scheduled time.
    share = pl.col("ettr") * (pl.col("runtime_s") + pl.col("queue_s")) / pl.col("runtime_s")
    sized_runs = sized_runs.with_columns(ettr=share, queue_s=0)
    names = ESTIMATE if ESTIMATE[0] in rates else MEASURED
    # The rate of the target holds for all runs of its size.
    planned = [replace(rate, estimate=rates.get(name), projects_to=ANY_SIZE) for name in names]
    row = measured_table(sized_runs, planned[0], habits).row(0, named=True)
    row |= {"queue_s": mean_wait, "scheduled_ettr": row["ettr_mean"], "expected": row["expected_ettr"]}
    # The higher the failure rate, the lower the share.
    for column, bound in zip(("expected_high", "expected_low"), planned[1:], strict=False):
        row[column] = _compute_expected_ettr(sized_runs, bound, habits, sized_runs)[0]
    columns = ("ci_low_clustered", "expected_high", "expected_low", "ci_high_clustered")
    bounds = [row[column] for column in columns if row.get(column) is not None]
    if len(bounds) == len(columns):
        row["differs"] = bounds[0] > bounds[1] or bounds[2] > bounds[3]
    elif not row["reason"]:
        row["reason"] = "the failure rate has no interval"
    return ETTR_MEASURED_TARGET.frame([row])


def _upper_gpus(gpus: pl.Series) -> np.ndarray:
    """Return the upper limit of the size range of each run: the next power of two."""
    return 2 ** np.ceil(np.log2(np.maximum(gpus.to_numpy(), 1))).astype(np.int64)


def job_runs(
    attempts: pl.LazyFrame, jobs: pl.LazyFrame, run_key: Sequence[str], at_least_s: int, habits: Habits
) -> pl.DataFrame:
    """Return a row per job run of `at_least_s` or longer, ordered by first start: how its time was spent.

    attempts: a row per attempt that ran: unit_id (its job_id), duration_id, submit_s (start of its wait), start_s,
    duration_s (Int64 s), gpu_count, nodes, event. jobs: job_id and the columns that `run_key` names. Attempts of jobs
    with equal values in all of these are one run; a job with a blank value is a run of its own. Attempts of unknown
    length are excluded, and so are those without a GPU, unless no attempt has one.

    An attempt counts as interrupted if another one of its run follows, or if infrastructure ended it. Each attempt
    loses its start-up; an interrupted one also loses half a checkpoint interval: min(duration, u0 + dt / 2) in all. The
    rest is work and checkpoint writes, w for every dt.

    Columns: gpus, nodes (the most of any attempt), attempts, interruptions, runtime_s, queue_s (sum of the waits),
    ettr: work / (runtime_s + queue_s); ettr_if_all_interrupted: the same if every attempt had been interrupted, as the
    paper assumes; CLUSTER_COLUMNS of the first attempt, if attempts have them. Attempts are filtered by block if each
    run is one job; otherwise all are in memory, because any may be part of a long run. Raises StudyError if jobs lack a
    column of `run_key`.
    """
    job_columns = jobs.collect_schema().names()
    missing = [name for name in run_key if name not in job_columns]
    if missing:
        raise StudyError(
            f"ettr.run_key: the jobs of this trace have no column {', '.join(missing)}; "
            f"expected some of {', '.join(job_columns)}"
        )
    keys = [f"key_{name}" for name in run_key]
    # A job with a blank value gets its row number as a key: two unknown values are not equal.
    has_tasks = "task" in job_columns and jobs.select(pl.col("task").count()).collect(engine="streaming").item() > 0
    counted = _read_counted(attempts, at_least_s if "job_id" in run_key and not has_tasks else 0)
    keys_by_unit = (
        jobs.with_row_index("row")
        .join(counted.lazy(), left_on="job_id", right_on="unit_id", how="semi")
        .select(
            "row",
            pl.col("job_id").alias("unit_id"),
            *(pl.col(name).alias(key) for name, key in zip(run_key, keys, strict=True)),
            own_key=pl.when(pl.any_horizontal(pl.col(name).is_null() for name in run_key)).then("row"),
        )
        .collect(engine="streaming")
        .sort("row")
        .unique("unit_id", keep="first", maintain_order=True)
        .drop("row")
    )
    keys.append("own_key")
    # In half seconds: half an interval is then an integer, and the sums are exact.
    half_interval, start_up = int(habits.interval_s), 2 * int(habits.restart_s)
    duration = 2 * pl.col("duration_s")
    keyed_attempts = (
        counted.join(keys_by_unit, on="unit_id", how="left", maintain_order="left")
        .sort("start_s", "unit_id", "duration_id")
        .with_columns(
            interrupted=(pl.col("event") == EVENT).fill_null(False)
            | (pl.int_range(pl.len()).over(keys) < pl.len().over(keys) - 1),
            wait_s=(pl.col("start_s") - pl.col("submit_s")).clip(lower_bound=0).fill_null(0),
        )
        .with_columns(lost=pl.min_horizontal(duration, start_up + half_interval * pl.col("interrupted").cast(pl.Int64)))
    )
    runs = (
        keyed_attempts.group_by(keys, maintain_order=True)
        .agg(
            gpus=pl.col("gpu_count").max(),
            nodes=pl.col("nodes").max(),
            attempts=pl.len().cast(pl.Int64),
            interruptions=pl.col("interrupted").sum().cast(pl.Int64),
            runtime_s=pl.col("duration_s").sum(),
            queue_s=pl.col("wait_s").sum(),
            lost=pl.col("lost").sum(),
            most_lost=pl.min_horizontal(duration, start_up + half_interval).sum(),
            **{name: pl.col(name).first() for name in CLUSTER_COLUMNS if "cluster_by" in keyed_attempts.columns},
        )
        .filter((pl.col("runtime_s") >= at_least_s) & (pl.col("runtime_s") > 0))
    )
    wall = (pl.col("runtime_s") + pl.col("queue_s")) * (1 + habits.write_s / habits.interval_s)
    ratio, lowest_ratio = ((pl.col("runtime_s") - pl.col(lost) / 2) / wall for lost in ("lost", "most_lost"))
    return runs.with_columns(ettr=ratio, ettr_if_all_interrupted=lowest_ratio).drop(*keys, "lost", "most_lost")


def _read_counted(attempts: pl.LazyFrame, at_least_s: int) -> pl.DataFrame:
    """Read the attempts that `job_runs` counts, except those below `at_least_s` that are the only one of their job."""
    has_time = pl.col("duration_s").is_not_null() & pl.col("start_s").is_not_null()
    has_gpu = attempts.select((has_time & (pl.col("gpu_count") > 0)).any()).collect(engine="streaming").item()
    is_valid = has_time & (pl.col("gpu_count") > 0) if has_gpu else has_time
    # Attempts of one job are adjacent. A job may continue before the first and after the last row of a block.
    unit = pl.col("unit_id")
    is_alone = ((unit != unit.shift(1)) & (unit != unit.shift(-1))).fill_null(False)
    is_long = (pl.col("duration_s") >= at_least_s) | ~is_alone
    return pl.concat(
        [attempts.clear().collect(), *(block.filter(is_valid & is_long) for block in read_blocks(attempts))]
    )


def measured_table(runs: pl.DataFrame, rate: NodeRate, habits: Habits) -> pl.DataFrame:
    """Return job runs by size, in ranges that double their upper limit: the measured and the expected mean ratio.

    runs: see `job_runs`. ci_low, ci_high: Student's 95% CI of the mean, cut at 0 and 1. The clustered interval is that
    of a share (`Clusters.proportion`), as a ratio lies between 0 and 1. expected_ettr: mean of the exact form over the
    same runs, with the work of each, the rate of a node within its projection limit, and the mean wait of an attempt.
    """
    rows = []
    upper_gpus = _upper_gpus(runs["gpus"])
    for high in np.unique(upper_gpus).tolist():
        runs_of_size = runs.filter(upper_gpus == high)
        expected, no_expected = _compute_expected_ettr(runs_of_size, rate, habits, runs)
        clustered = _clustered_interval(runs_of_size)
        no_interval = clustered.pop("why_not") if runs_of_size.height > 1 else "one run: no interval"
        rows.append(
            {"gpus_low": high // 2 + 1, "gpus_high": high, "runs": runs_of_size.height}
            | {name: runs_of_size[name].sum() for name in ("attempts", "interruptions")}
            | {"ettr_if_all_interrupted_mean": runs_of_size["ettr_if_all_interrupted"].mean()}
            | _mean_with_interval(runs_of_size["ettr"].to_numpy())
            | clustered
            | {"expected_ettr": expected, "reason": "; ".join(filter(None, (no_interval, no_expected))) or None}
        )
    return ETTR_MEASURED.frame(rows)


def _mean_with_interval(values: np.ndarray) -> dict[str, float]:
    mean = float(values.mean())
    if values.size < 2:
        return {"ettr_mean": mean}
    margin = float(stdtrit(values.size - 1, (1 + CONFIDENCE) / 2) * values.std(ddof=1) / np.sqrt(values.size))
    return {"ettr_mean": mean, "ci_low": max(mean - margin, 0.0), "ci_high": min(mean + margin, 1.0)}


def _clustered_interval(runs: pl.DataFrame) -> dict:
    """Return the cells of the clustered interval, and why_not. Floats are summed in the order of the runs."""
    if "cluster_by" not in runs.columns or runs["cluster_by"].null_count():
        return {"why_not": UNCLUSTERED}
    level = "cluster" if runs["cluster"].n_unique() > 1 else "group"
    block = pl.when(pl.col("block_by").is_not_null()).then("block")
    levels = runs.select(pl.col(f"{level}_by").alias("cluster_by"), "block_by", cluster=level, block=block)
    keys = levels.select(pl.col("cluster", "block").cast(pl.Int64).fill_null(-1)).to_numpy()
    _, first_rows, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    sums = {"n": np.bincount(index).astype(float), "ettr": np.bincount(index, weights=runs["ettr"].to_numpy())}
    strata, rows, clusters = build_clusters(levels[first_rows].with_columns(**sums), [], "n")
    limits = clusters.proportion(rows["ettr"].to_numpy(), rows["n"].to_numpy(), CONFIDENCE)
    return add_limits(strata, *limits).row(0, named=True)


def _compute_expected_ettr(
    sized_runs: pl.DataFrame, rate: NodeRate, habits: Habits, runs: pl.DataFrame
) -> tuple[float | None, str | None]:
    """Return (mean ETTR that the model expects of `sized_runs`, why it is None); `runs` give the mean wait."""
    estimate = None if rate.node_gpus is None else -(-pl.col("gpus") // rate.node_gpus)
    nodes = sized_runs.select(pl.coalesce("nodes", estimate) if estimate is not None else pl.col("nodes")).to_series()
    if nodes.null_count():
        return None, "the nodes of these runs are not known"
    if reason := rate.why_not(int(nodes.to_numpy().max())):
        return None, reason
    # A run without any work has no expected ratio; one second of work gives nearly none.
    work = np.maximum((sized_runs["ettr"] * (sized_runs["runtime_s"] + sized_runs["queue_s"])).to_numpy(), 1.0)
    mean_wait = int(runs["queue_s"].sum()) / int(runs["attempts"].sum())
    plan = habits.plan(nodes.to_numpy() * rate.estimate / SECONDS_A_DAY)
    return float(np.mean(ettr_renewal(replace(plan, queue_s=mean_wait, productive_s=work)))), None
