"""The account of training runs, their interruptions and slow-downs, and what they tell about checkpoints."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean

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
# Ratios of sums over attempts, beside the goodput; each has a column of what is divided by what.
HABITS = ("checkpoint_interval_s", "checkpoint_write_s", "restart_s")
ENDS = ("top", "bottom")
HOUR_US = 3600 * SECOND_US


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    logs = find_logs_of_events(inputs.scan("training_events"))
    join = Join()
    if "attempts" in inputs:
        outages = inputs.read("outages") if "outages" in inputs else None
        durations, attempts, jobs = (inputs.read(name) for name in ("durations_infra", "attempts", "jobs"))
        join = join_jobs(logs, list_records(durations, attempts, jobs, outages))
    runs = {name: account_run(attempts) for name, attempts in name_runs(logs).items()}
    interruptions = TRAINING_INTERRUPTIONS.frame(
        [row for name, run in runs.items() for row in list_interruptions(name, run)]
    )
    causes = TRAINING_CAUSES.frame(summarise_causes(interruptions, runs))
    rows = [describe_run(name, run) for name, run in runs.items()]
    return {
        "training_time": TRAINING_TIME.frame([row for name, run in runs.items() for row in list_times(name, run)]),
        "training_runs": TRAINING_RUNS.frame(rows),
        "training_interruptions": interruptions,
        "training_causes": causes,
        "training_slowdowns": TRAINING_SLOWDOWNS.frame(
            [row for name, run in runs.items() for row in list_changes(name, run)]
        ),
        "training_unjoined": TRAINING_UNJOINED.frame(join.unjoined),
        "training_summary": TRAINING_SUMMARY.frame([summarise_runs(runs, interruptions) | join.counts]),
    }


def list_times(name: str, run: RunTime) -> list[dict]:
    """Return the rows of TRAINING_TIME of a run: first the whole run, then its attempts."""
    if not run.is_timed:
        return [{"run": name, "time_class": "unknown", "reason": "; ".join(run.reasons)}]
    parts: list[tuple[int | None, Mapping[str, int], str]] = [(None, run.time_us, "; ".join(run.reasons))]
    parts += [(number, time.time_us, "") for number, time in enumerate(run.attempts, 1)]
    rows = []
    for attempt, time_us, reason in parts:
        wall = sum(time_us.values())
        for label in CLASSES:
            row = {"run": name, "attempt": attempt, "time_class": label, "seconds": time_us[label] / SECOND_US}
            row |= {"share": time_us[label] / wall} if wall else {"reason": "the attempt has one moment"}
            rows.append(row | ({"reason": reason or None} if label == "unknown" and wall else {}))
    return rows


def describe_run(name: str, run: RunTime) -> dict:
    """Return the row of TRAINING_RUNS of a run."""
    attempts = [time.attempt for time in run.attempts]
    row: dict = {"run": name, "attempts": len(attempts), "interruptions": len(_list_interrupted(run))}
    row |= {"framework": next((attempt.framework for attempt in attempts if attempt.framework), None)}
    row |= {"steps": sum(time.kept_steps for time in run.attempts), "gpus": _count_gpus(run)}
    row |= {"lost_steps": sum(time.lost_steps for time in run.attempts), "reason": "; ".join(run.reasons) or None}
    if run.wall_us:
        time_us = run.time_us
        row |= {"wall_s": run.wall_us / SECOND_US, "goodput": time_us["productive"] / run.wall_us}
        row |= {"goodput_high": (time_us["productive"] + time_us["unknown"]) / run.wall_us}
        row |= {"ettr": sum(time_us[label] for label in PROGRESS) / run.wall_us}
    if run.reference_us and run.wall_us:
        row |= {
            "step_s": run.reference_us / SECOND_US,
            "effective": sum(time.expected_us for time in run.attempts) / run.wall_us,
        }
    elif run.wall_us:
        row["reason"] = "; ".join([*run.reasons, "fewer than 20 intervals between steps: no reference"])
    sums = pl.DataFrame(list_cycles(name, run)).sum()
    row |= {habit: divide_sums(sums, habit) for habit in HABITS}
    return row | _find_best_interval(row["checkpoint_write_s"], [run])


def list_cycles(name: str, run: RunTime) -> list[dict]:
    """Return a row per attempt with run, the number of its cycle, and the parts of each ratio: RATIOS in microseconds.

    A cycle goes from restart to restart; an attempt without a step, as in a crash loop, belongs to the one before.
    """
    rows: list[dict] = []
    cycle = 0
    for time in run.attempts:
        attempt = time.attempt
        cycle += bool(attempt.steps) or not rows
        marks = {end: end - start for start, end, label in attempt.marks if label == "checkpoint"}
        # Lines of one save follow each other.
        lengths = [after - before - marks.get(after, 0) for before, after in pairwise(attempt.saves)]
        lengths = [length for length in lengths if length > SECOND_US]
        parts = {
            "goodput": (time.time_us["productive"], sum(time.time_us.values()) + sum(time.gap_us.values())),
            "checkpoint_interval_s": (sum(lengths), len(lengths) * SECOND_US),
            "checkpoint_write_s": (sum(marks.values()), len(marks) * SECOND_US),
            "restart_s": (time.time_us["start_up"] + time.time_us["restore"], SECOND_US),
        }
        if not attempt.steps:
            parts["restart_s"] = (0, 0)
        cells = {f"{ratio}_{end}": part for ratio, pair in parts.items() for end, part in zip(ENDS, pair, strict=True)}
        rows.append({"run": name, "cycle": cycle} | cells)
    return rows


def divide_sums(sums: pl.DataFrame, ratio: str) -> float | None:
    """Return a ratio of RATIOS from one row of sums; None if nothing is below it."""
    top, bottom = (sums[f"{ratio}_{end}"].item() for end in ENDS)
    return top / bottom if bottom else None


def _find_best_interval(write_s: float | None, runs: Sequence[RunTime]) -> dict[str, float]:
    """Return optimal_interval_s by Young: the root of twice the time of a save times that between failures."""
    failures = sum(len(_list_interrupted(run)) for run in runs)
    held_us = sum(run.wall_us - run.time_us["queued"] - run.time_us["down"] for run in runs)
    if not write_s or not failures or not held_us:
        return {}
    return {"optimal_interval_s": float(np.sqrt(2 * write_s * held_us / SECOND_US / failures))}


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
    for index in _list_interrupted(run):
        time, later = run.attempts[index], run.attempts[index + 1 :]
        attempt = time.attempt
        row: dict = {"run": name, "attempt": index + 1, "job": attempt.job, "cause": attempt.cause}
        row |= {"node": attempt.record.get("failed_node"), "node_event": attempt.record.get("node_event")}
        row |= {"last_step": attempt.steps[-1] if attempt.steps else None, "lost_steps": time.lost_steps}
        row |= {"lost_s": time.time_us["lost"] / SECOND_US, "detection_s": time.time_us["detection"] / SECOND_US}
        if own_gpus := attempt.gpus or gpus:
            row["lost_gpu_hours"] = time.time_us["lost"] * own_gpus / HOUR_US
        row |= {"hang_s": attempt.error[2] / SECOND_US} if attempt.error and attempt.error[2] else {}
        if later:
            row |= {"down_s": time.gap_us["down"] / SECOND_US} if "down" in time.gap_us else {}
            row |= {"queued_s": later[0].attempt.queued_us / SECOND_US} if later[0].attempt.record else {}
            row |= {"restart": name_restart(attempt, later[0].attempt)}
            row |= {"restart_s": (later[0].time_us["start_up"] + later[0].time_us["restore"]) / SECOND_US}
        row["resumed_step"] = next((t.attempt.first_step for t in later if t.attempt.first_step is not None), None)
        first = next((later_time.attempt.times_us[0] for later_time in later if later_time.attempt.steps), None)
        last_us = attempt.times_us[-1] if attempt.steps else attempt.start_us
        row |= {"recovery_s": (first - last_us) / SECOND_US} if first is not None else {}
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


def summarise_causes(interruptions: pl.DataFrame, runs: Mapping[str, RunTime]) -> list[dict]:
    """Return the rows of TRAINING_CAUSES, the most frequent first, and all of them at the end."""
    loops = {
        (name, index + 1)
        for name, run in runs.items()
        for index in _list_interrupted(run)
        if index and not run.attempts[index].attempt.steps
    }
    in_loop = pl.struct("run", "attempt").map_elements(
        lambda row: (row["run"], row["attempt"]) in loops, return_dtype=pl.Boolean
    )
    rows = interruptions.with_columns(cause=pl.col("cause").fill_null("not told"), in_loop=in_loop)
    both = pl.concat([rows, rows.with_columns(cause=pl.lit(ALL_CAUSES))])
    summary = both.group_by("cause", maintain_order=True).agg(
        interruptions=pl.len().cast(pl.Int64),
        crash_loops=pl.col("in_loop").sum().cast(pl.Int64),
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


def summarise_runs(runs: Mapping[str, RunTime], interruptions: pl.DataFrame) -> dict:
    """Return the row of TRAINING_SUMMARY."""
    timed = {name: run for name, run in runs.items() if run.wall_us}
    row: dict = {"runs": len(timed), "attempts": sum(len(run.attempts) for run in timed.values())}
    row |= {"interruptions": interruptions.height}
    if not timed:
        return row | {"clusters": 0, "cluster_by": "run", "reason": "no wall time is known"}
    waits = [
        time.attempt.queued_us / SECOND_US for run in timed.values() for time in run.attempts[1:] if time.attempt.record
    ]
    row |= {"queue_s": mean(waits)} if waits else {}
    sums = {label: sum(run.time_us[label] for run in timed.values()) for label in CLASSES}
    wall = sum(sums.values())
    row |= {"goodput_high": (sums["productive"] + sums["unknown"]) / wall}
    row |= {"ettr": sum(sums[label] for label in PROGRESS) / wall}
    loss = max((label for label in CLASSES if label != "productive"), key=lambda label: sums[label])
    row |= {"largest_loss": loss.replace("_", "-"), "largest_loss_share": sums[loss] / wall} if sums[loss] else {}
    # From few runs with many interruptions, cycles tell how uncertain a value is.
    cycles = pl.DataFrame([cycle for name, run in timed.items() for cycle in list_cycles(name, run)])
    by = ["run"] if len(timed) >= LEAST_RUNS or interruptions.height < LEAST_CYCLES else ["run", "cycle"]
    clusters = cycles.group_by(by, maintain_order=True).agg(pl.exclude("run", "cycle").sum())
    row |= {"clusters": clusters.height, "cluster_by": by[-1]}
    for ratio in ("goodput", *HABITS):
        row[ratio] = divide_sums(clusters.sum(), ratio)
        bounds = jackknife_ratio(*(clusters[f"{ratio}_{end}"].to_numpy() for end in ENDS))
        row |= dict(zip((f"{ratio}_ci_{end}_clustered" for end in ("low", "high")), bounds or (), strict=False))
    row |= _find_best_interval(row["checkpoint_write_s"], [*timed.values()])
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
