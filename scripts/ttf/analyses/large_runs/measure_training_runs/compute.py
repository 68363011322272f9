"""The account of training runs, their interruptions and slow-downs, and what they tell about checkpoints."""

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise, starmap

import numpy as np
import polars as pl
from scipy.special import stdtrit

from ttf.analyses.large_runs.measure_training_runs import (
    TRAINING_CAUSES,
    TRAINING_INTERRUPTIONS,
    TRAINING_RUNS,
    TRAINING_SLOWDOWNS,
    TRAINING_SUMMARY,
    TRAINING_TIME,
    TRAINING_UNJOINED,
)
from ttf.raw.training_logs.line_clocks import SECOND_US
from ttf.records.inputs import Inputs
from ttf.records.training_joins import Join, join_jobs, list_records
from ttf.records.training_runs import Attempt, find_logs_of_events, name_runs
from ttf.stats.training_time import CLASSES, RunTime, account_run

PROGRESS = ("productive", "slow", "stalled", "evaluation")
ALL_CAUSES = "all"
# Fewer runs, or cycles, have no interval; cycles count from so many interruptions on.
LEAST_RUNS, LEAST_CYCLES, CONFIDENCE = 4, 10, 0.95
# Value -> the sums of `list_cycles` above and below it.
RATIOS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "goodput": (["productive"], CLASSES),
    "goodput_high": (["productive", "unknown"], CLASSES),
    "ettr": (PROGRESS, CLASSES),
}
HABITS = ("checkpoint_interval", "checkpoint_write", "restart", "queue")
RATIOS |= {f"{habit}_s": ([f"{habit}_total_s"], [f"{habit}_count"]) for habit in HABITS}
WITH_INTERVALS = ("goodput", "checkpoint_interval_s", "checkpoint_write_s", "restart_s")
HOUR_US = 3600 * SECOND_US


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    logs = find_logs_of_events(inputs.scan("training_events"))
    join = Join()
    if "attempts" in inputs:
        outages = inputs.read("outages") if "outages" in inputs else None
        durations, attempts, jobs = (inputs.read(name) for name in ("durations_infra", "attempts", "jobs"))
        join = join_jobs(logs, list_records(durations, attempts, jobs, outages))
    runs = {name: account_run(attempts) for name, attempts in name_runs(logs).items()}
    interruptions = TRAINING_INTERRUPTIONS.frame(chain(*starmap(list_interruptions, runs.items())))
    return {
        "training_time": pl.concat([TRAINING_TIME.frame([]), *starmap(list_times, runs.items())]),
        "training_runs": TRAINING_RUNS.frame(starmap(describe_run, runs.items())),
        "training_interruptions": interruptions,
        "training_causes": TRAINING_CAUSES.frame(summarise_causes(interruptions)),
        "training_slowdowns": TRAINING_SLOWDOWNS.frame(chain(*starmap(list_changes, runs.items()))),
        "training_unjoined": TRAINING_UNJOINED.frame(join.unjoined),
        "training_summary": TRAINING_SUMMARY.frame([summarise_runs(runs) | join.counts]),
    }


def list_times(name: str, run: RunTime) -> pl.DataFrame:
    """Return TRAINING_TIME of a run: first the whole run, then its attempts."""
    reason = "; ".join(run.reasons) or None
    if not run.is_timed:
        return TRAINING_TIME.frame([{"run": name, "time_class": "unknown", "reason": reason}])
    parts = [run.time_us, *(time.time_us for time in run.attempts)]
    wide = pl.DataFrame(parts, dict.fromkeys(CLASSES, pl.Int64)).with_row_index("attempt")
    wide = wide.with_columns(run=pl.lit(name), wall=pl.sum_horizontal(CLASSES))
    rows = wide.unpivot(CLASSES, index=["run", "attempt", "wall"], variable_name="time_class", value_name="time_us")
    has_time, is_run = pl.col("wall") > 0, pl.col("attempt") == 0
    told = pl.when(is_run & (pl.col("time_class") == "unknown")).then(pl.lit(reason, pl.String))
    rows = rows.sort("attempt", maintain_order=True).with_columns(
        attempt=pl.when(~is_run).then("attempt"),
        seconds=pl.col("time_us") / SECOND_US,
        share=pl.when(has_time).then(pl.col("time_us") / pl.col("wall")),
        reason=pl.when(has_time).then(told).otherwise(pl.lit("the attempt has one moment")),
    )
    return TRAINING_TIME.conform(rows)


def describe_run(name: str, run: RunTime) -> dict:
    """Return the row of TRAINING_RUNS of a run."""
    attempts, reasons = [time.attempt for time in run.attempts], list(run.reasons)
    row: dict = {
        "run": name,
        "framework": next((attempt.framework for attempt in attempts if attempt.framework), None),
        "attempts": len(attempts),
        "interruptions": len(_list_interrupted(run)),
        "gpus": _count_gpus(run),
        "wall_s": run.wall_us / SECOND_US or None,
        "steps": sum(time.kept_steps for time in run.attempts),
        "lost_steps": sum(time.lost_steps for time in run.attempts),
    }
    if run.wall_us and run.reference_us:
        row["step_s"] = run.reference_us / SECOND_US
        row["effective"] = sum(time.expected_us for time in run.attempts) / run.wall_us
    elif run.wall_us:
        reasons.append("fewer than 20 intervals between steps: no reference")
    return row | divide_sums(pl.DataFrame(list_cycles(name, run))) | {"reason": "; ".join(reasons) or None}


def list_cycles(name: str, run: RunTime) -> list[dict]:
    """Return a row per attempt: run, the number of its cycle, whether it was interrupted, and the sums of RATIOS.

    A cycle goes from restart to restart; an attempt without a step, as in a crash loop, belongs to the one before.
    """
    rows: list[dict] = []
    interrupted, cycle = _list_interrupted(run), 0
    for index, time in enumerate(run.attempts):
        attempt = time.attempt
        cycle += bool(attempt.steps) or not rows
        blocked = {end: end - start for start, end, label in attempt.marks if label == "checkpoint"}
        lengths = (after - before - blocked.get(after, 0) for before, after in pairwise(attempt.saves))
        times_us = {
            # Lines of one save follow each other.
            "checkpoint_interval": [length for length in lengths if length > SECOND_US],
            "checkpoint_write": [*blocked.values()],
            "restart": [time.restart_us] if attempt.steps else [],
            "queue": [attempt.queued_us] if index and attempt.record else [],
        }
        row = {"run": name, "cycle": cycle, "interruptions": index in interrupted}
        row |= {label: time.time_us[label] + time.gap_us.get(label, 0) for label in CLASSES}
        for habit, values in times_us.items():
            row |= {f"{habit}_total_s": sum(values) / SECOND_US, f"{habit}_count": len(values)}
        rows.append(row)
    return rows


def divide_sums(cycles: pl.DataFrame) -> dict[str, float]:
    """Return RATIOS of the sums of cycles, as far as they are known, and optimal_interval_s.

    The latter is Young's: the root of twice the time of a save times that between failures.
    """
    (sums,) = cycles.select(pl.exclude("run").sum()).to_dicts()
    tops, bottoms = ({name: sum(sums[part] for part in pair[end]) for name, pair in RATIOS.items()} for end in (0, 1))
    row = {name: tops[name] / bottom for name, bottom in bottoms.items() if bottom}
    held_s = (bottoms["goodput"] - sums["queued"] - sums["down"]) / SECOND_US
    if row.get("checkpoint_write_s") and sums["interruptions"] and held_s:
        between_s = held_s / sums["interruptions"]
        row["optimal_interval_s"] = float(np.sqrt(2 * row["checkpoint_write_s"] * between_s))
    return row


def _count_gpus(run: RunTime) -> int | None:
    return max((time.attempt.gpus for time in run.attempts if time.attempt.gpus), default=None)


def _list_interrupted(run: RunTime) -> list[int]:
    """Return the indices of the attempts that did not end as planned; the last one only if a line says so."""
    last = len(run.attempts) - 1
    return [
        index
        for index, time in enumerate(run.attempts)
        if not time.attempt.ends_well and (index < last or time.attempt.error is not None or time.attempt.has_failed)
    ]


def list_interruptions(name: str, run: RunTime) -> list[dict]:
    """Return the rows of TRAINING_INTERRUPTIONS of a run."""
    rows, gpus = [], _count_gpus(run)
    # Of each attempt: the step from which a later one goes on, and when that has done its first.
    sequels: list[tuple[int | None, int | None]] = [(None, None)]
    for time in reversed(run.attempts[1:]):
        step, step_us, attempt = *sequels[-1], time.attempt
        step = step if attempt.first_step is None else attempt.first_step
        sequels.append((step, attempt.times_us[0] if attempt.steps else step_us))
    for index in _list_interrupted(run):
        time = run.attempts[index]
        attempt, lost_us, (resumed_step, first_us) = time.attempt, time.time_us["lost"], sequels[-1 - index]
        last_us, own_gpus = attempt.times_us[-1] if attempt.steps else attempt.start_us, attempt.gpus or gpus
        row = {
            "run": name,
            "attempt": index + 1,
            "job": attempt.job,
            "cause": attempt.cause,
            "node": attempt.record.get("failed_node"),
            "node_event": attempt.record.get("node_event"),
            "last_step": attempt.steps[-1] if attempt.steps else None,
            "resumed_step": resumed_step,
            "lost_steps": time.lost_steps,
            "lost_s": lost_us / SECOND_US,
            "lost_gpu_hours": lost_us * own_gpus / HOUR_US if own_gpus else None,
            "detection_s": time.time_us["detection"] / SECOND_US,
            "hang_s": attempt.error[2] / SECOND_US if attempt.error and attempt.error[2] else None,
            "recovery_s": None if first_us is None else (first_us - last_us) / SECOND_US,
        }
        for later in run.attempts[index + 1 : index + 2]:
            row |= {
                "restart": name_restart(attempt, later.attempt),
                "down_s": time.gap_us["down"] / SECOND_US if "down" in time.gap_us else None,
                "queued_s": later.attempt.queued_us / SECOND_US if later.attempt.record else None,
                "restart_s": later.restart_us / SECOND_US,
            }
        rows.append(row)
    return rows


def name_restart(before: Attempt, later: Attempt) -> str | None:
    """Return the kind of a restart: within the job, requeue or resubmission, and whether its nodes are the same."""
    if not before.record:
        return None
    if not later.record:
        return "within the job"
    kind = "requeue" if before.record["job_id"] == later.record["job_id"] else "resubmission"
    nodes = [set(attempt.record["nodes"] or ()) for attempt in (before, later)]
    return f"{kind}, {'same' if nodes[0] == nodes[1] else 'other'} nodes" if all(nodes) else kind


def summarise_causes(interruptions: pl.DataFrame) -> list[dict]:
    """Return the rows of TRAINING_CAUSES, the most frequent first, and all of them at the end."""
    # An attempt without a step that follows another one.
    in_loop = (pl.col("attempt") > 1) & pl.col("last_step").is_null()
    rows = interruptions.with_columns(pl.col("cause").fill_null("not told"))
    both = pl.concat([rows, rows.with_columns(cause=pl.lit(ALL_CAUSES))])
    summary = both.group_by("cause", maintain_order=True).agg(
        interruptions=pl.len().cast(pl.Int64),
        crash_loops=in_loop.sum().cast(pl.Int64),
        lost_steps=pl.col("lost_steps").sum(),
        lost_gpu_hours=pl.when(pl.col("lost_gpu_hours").count() > 0).then(pl.col("lost_gpu_hours").sum()),
        recovery_p50_s=pl.col("recovery_s").quantile(0.5, "linear"),
        recovery_p90_s=pl.col("recovery_s").quantile(0.9, "linear"),
    )
    is_all = pl.col("cause") == ALL_CAUSES
    return summary.sort(is_all, -pl.col("interruptions"), "cause").to_dicts()


def list_changes(name: str, run: RunTime) -> list[dict]:
    """Return the rows of TRAINING_SLOWDOWNS of a run."""
    return [
        {"run": name, "attempt": number, "step": step, "before_s": before / SECOND_US, "after_s": after / SECOND_US}
        | {"change": after / before - 1}
        for number, time in enumerate(run.attempts, 1)
        for step, before, after in time.changes
    ]


def summarise_runs(runs: Mapping[str, RunTime]) -> dict:
    """Return the row of TRAINING_SUMMARY."""
    cycles = pl.DataFrame([row for name, run in runs.items() if run.wall_us for row in list_cycles(name, run)])
    row: dict = {"runs": 0, "attempts": cycles.height, "interruptions": 0, "clusters": 0, "cluster_by": "run"}
    if cycles.is_empty():
        return row | {"reason": "no wall time is known"}
    row |= {"runs": cycles["run"].n_unique(), "interruptions": cycles["interruptions"].sum()} | divide_sums(cycles)
    losses = cycles.select(label for label in CLASSES if label != "productive").sum().row(0, named=True)
    loss = max(losses, key=losses.__getitem__)
    if losses[loss]:
        share = losses[loss] / cycles.select(pl.sum_horizontal(CLASSES).sum()).item()
        row |= {"largest_loss": loss.replace("_", "-"), "largest_loss_share": share}
    # From few runs with many interruptions, cycles tell how uncertain a value is.
    keys = ["run"] if row["runs"] >= LEAST_RUNS or row["interruptions"] < LEAST_CYCLES else ["run", "cycle"]
    clusters = cycles.group_by(keys, maintain_order=True).agg(pl.exclude("run", "cycle").sum())
    row |= {"clusters": clusters.height, "cluster_by": keys[-1]}
    for ratio in WITH_INTERVALS:
        parts, wholes = (clusters.select(pl.sum_horizontal(names)).to_series().to_numpy() for names in RATIOS[ratio])
        bounds = jackknife_ratio(parts, wholes) or ()
        row |= dict(zip((f"{ratio}_ci_{end}_clustered" for end in ("low", "high")), bounds, strict=False))
    if "goodput_ci_low_clustered" not in row:
        row["reason"] = f"fewer than {LEAST_RUNS} runs, and fewer than {LEAST_CYCLES} interruptions: no interval"
    return row


def jackknife_ratio(parts: np.ndarray, wholes: np.ndarray) -> tuple[float, float] | None:
    """Return the 95% interval of a ratio of sums by the jackknife over clusters, at least 0; None for few clusters.

    It is not above 1 if no part exceeds its whole.
    """
    parts, wholes = (values[wholes > 0].astype(float) for values in (parts, wholes))
    n = len(parts)
    if n < LEAST_RUNS:
        return None
    ratio = parts.sum() / wholes.sum()
    without = (parts.sum() - parts) / (wholes.sum() - wholes)
    error = float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    margin = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * error
    highest = 1.0 if (parts <= wholes).all() else np.inf
    return max(0.0, float(ratio) - margin), min(highest, float(ratio) + margin)
