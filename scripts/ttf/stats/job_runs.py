"""Job runs as they went: the wait of a trace's jobs, and the effective training time of runs of several attempts."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy.special import stdtrit

from ttf.errors import StudyError
from ttf.infra import EVENT
from ttf.jobs import Frame
from ttf.stats.ettr import Plan, ettr_renewal
from ttf.stats.mttf import SECONDS_A_DAY
from ttf.stats.plans import Habits, NodeRate
from ttf.stats.projection import FEWEST_MEASURED

CONFIDENCE = 0.95

MEASURED_SCHEMA = {
    "gpus_low": pl.Int64,
    "gpus_high": pl.Int64,
    "runs": pl.Int64,
    "attempts": pl.Int64,
    "interruptions": pl.Int64,
    **dict.fromkeys(("ettr_mean", "ci_low", "ci_high", "ettr_if_all_interrupted_mean"), pl.Float64),
    "expected_ettr": pl.Float64,
    "reason": pl.String,
}


def queue_of(runs: Frame, configured: float | None) -> dict:
    """The wait to plan with, at the submission and before each restart: value (s), source, n and median_s.

    The configured one, if there is one. Else a mean, which is what the renewal form asks for (waits are skewed, and
    every one of them counts in full): of the attempts requeued after an infrastructure failure, else of all requeued
    attempts, where there are FEWEST_MEASURED or more, else of the submissions; of runs with a GPU, unless none has one.
    A wait below 0 is not known. Without any: 0.

    runs: unit_id, life_id (0 for the first attempt of a job), submit_s, start_s, event and gpu_milli of infra lives,
    the attempts of a job in sequence.
    """
    if configured is not None:
        return {"value": configured, "source": "configuration"}
    wait, requeued = pl.col("start_s") - pl.col("submit_s"), pl.col("life_id") > 0
    follows = (pl.col("unit_id") == pl.col("unit_id").shift(1)) & (pl.col("event").shift(1) == EVENT)
    known = runs.lazy().select("gpu_milli", wait=wait, requeued=requeued, after=follows)
    known = known.filter(pl.col("wait") >= 0).collect(engine="in-memory")
    known = with_gpu if (with_gpu := known.filter(pl.col("gpu_milli") > 0)).height else known
    for whose, kind, fewest in (
        ("attempts requeued after an infrastructure failure", pl.col("after"), FEWEST_MEASURED),
        ("requeued attempts", pl.col("requeued"), FEWEST_MEASURED),
        ("submissions", ~pl.col("requeued"), 1),
    ):
        waits = known.filter(kind)["wait"]
        if (n := waits.len()) >= fewest:
            found = {"value": waits.sum() / n, "n": n, "median_s": waits.median()}
            return found | {"source": f"the trace, mean of {whose}"}
    return {"value": 0.0, "source": "the trace knows no waits: none assumed"}


def job_runs(
    attempts: pl.DataFrame, jobs: pl.DataFrame, run_key: Sequence[str], at_least_s: int, habits: Habits
) -> pl.DataFrame:
    """A row per job run that ran for `at_least_s` or longer, by its first start: what its time went into.

    attempts: a row per attempt that ran: unit_id (its job_id), life_id, submit_s (when it began to wait), start_s,
    duration_s (Int64 s), gpu_count, nodes, event. jobs: job_id and the columns that `run_key` names. Attempts of jobs
    with the same values of all of these are one run; where a value is blank, the job is a run of its own. Attempts
    without a GPU are left out, unless none has one; so are those of unknown length.

    An attempt counts as interrupted if another one of its run follows, or if infrastructure ended it. Lost in each is
    the start-up, and in an interrupted one half an interval besides, at most all of it: min(duration, u0 + dt / 2).
    What is left is work and the writing of checkpoints, w for every dt. Columns: gpus, nodes (the most of an attempt),
    attempts, interruptions, runtime_s, queue_s (the waits together), ettr: work / (runtime_s + queue_s);
    ettr_if_all_interrupted: the same, if every attempt had been interrupted, as the paper takes it.
    Raises StudyError where jobs have no such column.
    """
    missing = [name for name in run_key if name not in jobs.columns]
    if missing:
        raise StudyError(
            f"ettr.run_key: the jobs of this trace have no column {', '.join(missing)}; "
            f"expected some of {', '.join(jobs.columns)}"
        )
    keys = [f"key_{name}" for name in run_key]
    # Codes of the job's place in place of blanks, so that nothing unknown is taken for the same.
    named = (
        jobs.with_row_index("place")
        .select(
            pl.col("job_id").alias("unit_id"),
            *(pl.col(name).alias(key) for name, key in zip(run_key, keys, strict=True)),
            alone=pl.when(pl.any_horizontal(pl.col(name).is_null() for name in run_key)).then("place"),
        )
        .unique("unit_id", keep="first", maintain_order=True)
    )
    keys.append("alone")
    known = attempts.filter(pl.col("duration_s").is_not_null() & pl.col("start_s").is_not_null())
    with_gpu = known.filter(pl.col("gpu_count") > 0)
    known = with_gpu if with_gpu.height else known
    half, start_up = int(habits.interval_s), 2 * int(habits.restart_s)
    doubled = 2 * pl.col("duration_s")
    tries = (
        known.join(named, on="unit_id", how="left", maintain_order="left")
        .sort("start_s", "unit_id", "life_id")
        .with_columns(
            interrupted=(pl.col("event") == "infra_failure").fill_null(False)
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


def measured_table(runs: pl.DataFrame, rate: NodeRate, habits: Habits) -> pl.DataFrame:
    """Job runs by size, each bucket up to twice the GPUs of the one before: the mean ratio beside the expected one.

    runs: see `job_runs`. ci_low, ci_high: Student's 95 % interval of the mean, within 0 and 1. expected_ettr: the mean
    of the exact form over the same runs, with the work of each, at the rate of a node, as far as it may be projected,
    and the mean wait of an attempt.
    """
    rows = []
    upper = 2 ** np.ceil(np.log2(np.maximum(runs["gpus"].to_numpy(), 1))).astype(np.int64)
    for high in np.unique(upper):
        mine = runs.filter(upper == high)
        rows.append(
            {"gpus_low": int(high) // 2 + 1, "gpus_high": int(high), "runs": mine.height}
            | {name: mine[name].sum() for name in ("attempts", "interruptions")}
            | {"ettr_if_all_interrupted_mean": mine["ettr_if_all_interrupted"].mean()}
            | _mean(mine["ettr"].to_numpy())
        )
        expected, why_not = _expected(mine, rate, habits, runs)
        reasons = [*(["one run: no interval"] if mine.height == 1 else []), *([why_not] if why_not else [])]
        rows[-1] |= {"expected_ettr": expected, "reason": "; ".join(reasons) or None}
    return pl.DataFrame([{name: row.get(name) for name in MEASURED_SCHEMA} for row in rows], schema=MEASURED_SCHEMA)


def _mean(values: np.ndarray) -> dict[str, float]:
    mean = float(values.mean())
    if values.size < 2:
        return {"ettr_mean": mean}
    margin = float(stdtrit(values.size - 1, (1 + CONFIDENCE) / 2) * values.std(ddof=1) / np.sqrt(values.size))
    return {"ettr_mean": mean, "ci_low": max(mean - margin, 0.0), "ci_high": min(mean + margin, 1.0)}


def _expected(
    mine: pl.DataFrame, rate: NodeRate, habits: Habits, everything: pl.DataFrame
) -> tuple[float | None, str | None]:
    """The expected ratio, or None and the reason."""
    by_gpus = None if rate.node_gpus is None else -(-pl.col("gpus") // rate.node_gpus)
    nodes = mine.select(pl.coalesce("nodes", by_gpus) if by_gpus is not None else pl.col("nodes")).to_series()
    if nodes.null_count():
        return None, "the nodes of these runs are not known"
    if why_not := rate.why_not(nodes.max()):
        return None, why_not
    work = mine["ettr"] * (mine["runtime_s"] + mine["queue_s"])
    plan = Plan(
        nodes.to_numpy() * rate.estimate / SECONDS_A_DAY,
        habits.interval_s,
        habits.write_s,
        habits.restart_s,
        everything["queue_s"].sum() / everything["attempts"].sum(),
        # A run that did no work at all has no expected share; a second of it has nearly none.
        np.maximum(work.to_numpy(), 1.0),
    )
    return float(np.mean(ettr_renewal(plan))), None
