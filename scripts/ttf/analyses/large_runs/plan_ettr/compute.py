"""What to expect of a job run at every size, from the failure rate of a node and one's habits of checkpointing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from ttf.analyses.large_runs.plan_ettr import ETTR, ETTR_ASSUMPTIONS, ETTR_CONTOUR, ETTR_OUTLOOK, MITIGATIONS
from ttf.analyses.large_runs.plan_ettr.target_run import with_target
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.records.clusters import CLUSTER_COLUMNS, level_names, with_level_names, with_levels
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.records.jobs import Frame
from ttf.stats.clustered import clustered_ratios
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import (
    APPROXIMATION_LIMIT,
    EXPECTED,
    Plan,
    combined_interval,
    daly_young_interval_s,
    ettr_renewal,
    expected_interruptions,
    expected_scheduled_s,
    optimal_interval_s,
    simulate,
    simulated_ettr,
)
from ttf.stats.large_runs.plans import (
    BEST_INTERVAL,
    CONFIDENCE,
    ESTIMATE,
    FASTER_WRITES,
    MEASURED,
    RATE_UNIT,
    Habits,
    NodeRate,
    habit_columns,
    habits_asked,
    interval_of_rate,
    node_rate,
    rate_row,
    target_size,
)
from ttf.stats.large_runs.projection import FEWEST_MEASURED

LIVES = ("unit_id", "life_id", "submit_s", "start_s", "event", "gpu_milli", *CLUSTER_COLUMNS)
# Where three waits of fewer hold as large a part of all, the mean is theirs.
FEWEST_WAITS, PART_OF_THREE = 30, 0.25
ONE_WAIT = "one wait makes nearly all of the spread: no interval of the ETTR"
# A simulation draws one failure after the other: where this many would not do for FEWEST_RUNS, none is made.
MOST_DRAWS = 200_000
FEWEST_RUNS = 30
WEEK_H = 7 * 24
# Ratios and checkpoint intervals of the contours.
LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)
# From a minute to 17 hours, by factors of the square root of two.
INTERVALS_S = tuple(round(60 * 2 ** (step / 2)) for step in range(21))
# The scale at which the paper asks what a run has to bear.
LARGE_GPUS = 100_000
# Failures per second of the whole run: the rates looked at are between one in 300,000 years and ten a second.
_LOWEST, _HIGHEST = 1e-13, 10.0
_STEPS = 60
NEVER = "not reached even without failures"


def compute(given: Inputs) -> dict:
    asked, rates = given.settings.ettr, given["node_failure_rate"]
    target = target_size(rate_row(rates), asked["target_gpus"])
    rate = node_rate(rates, given["mttf_by_gpus"])
    queue = queue_of(given.scan("lives_infra", LIVES), asked.get("queue_s"))
    habits = habits_asked(asked, queue["value"])
    sizes = sorted({*asked["gpus"], target})
    ettr, outlook = plan_tables(rate, habits, sizes, asked["simulations"], asked["seed"], queue)
    assumed = assumptions(rates, habits[0], queue, target, given.unit)
    mitigations = mitigation_table(rate, habits[0], sizes)
    return {
        **with_target(ettr, outlook, mitigations, assumed, rates, given["mttf_by_gpus"]),
        "ettr_assumptions": assumed,
        "ettr_contour": ettr_contour(rate, habits[0], target),
    }


def queue_of(runs: Frame, configured: float | None) -> dict:
    """The wait to plan with, at the submission and before each restart: value (s), source, n, median_s and its error.

    The configured one, if there is one. Else a mean, which is what the renewal form asks for (waits are skewed, and
    every one of them counts in full): of the attempts requeued after an infrastructure failure, else of all requeued
    attempts, where there are FEWEST_MEASURED or more, else of the submissions; of runs with a GPU, unless none has one.
    A wait below 0 is not known, nor is any if all are 0. Without any: 0. The error: see `_error_of_mean`.

    runs: unit_id, life_id (0 for the first attempt of a job), submit_s, start_s, event and gpu_milli of infra lives,
    the attempts of a job in sequence.
    """
    if configured is not None:
        return {"value": configured, "source": "configuration"}
    wait, requeued = pl.col("start_s") - pl.col("submit_s"), pl.col("life_id") > 0
    follows = (pl.col("unit_id") == pl.col("unit_id").shift(1)) & (pl.col("event").shift(1) == EVENT)
    levels = [name for name in ("cluster", "group", "block") if name in runs.collect_schema()]
    known = runs.lazy().select("gpu_milli", *levels, wait=wait, requeued=requeued, after=follows)
    known = known.filter(pl.col("wait") >= 0, pl.col("wait").max() > 0).collect(engine="in-memory")
    known = with_gpu if (with_gpu := known.filter(pl.col("gpu_milli") > 0)).height else known
    for whose, kind, fewest in (
        ("attempts requeued after an infrastructure failure", pl.col("after"), FEWEST_MEASURED),
        ("requeued attempts", pl.col("requeued"), FEWEST_MEASURED),
        ("submissions", ~pl.col("requeued"), 1),
    ):
        chosen = known.filter(kind)
        if (n := chosen.height) >= fewest:
            found = {"value": chosen["wait"].sum() / n, "n": n, "median_s": chosen["wait"].median()}
            error = _error_of_mean(with_level_names(chosen, level_names(runs)))
            return found | {"source": f"the trace, mean of {whose}"} | error
    return {"value": 0.0, "source": "the trace knows no waits: none assumed"}


def _error_of_mean(waits: pl.DataFrame) -> dict:
    """low and high of the mean at CONFIDENCE, or the reason why they lack; longest: the part of the three longest.

    waits: wait, and CLUSTER_COLUMNS as far as the trace has them. By user and week where there are enough, else as if
    waits were independent. A few waits may make most of the sum: degrees of freedom go by influence.
    """
    n, total = waits.height, waits["wait"].sum()
    if not total:
        return {"low": 0.0, "high": 0.0}
    longest = waits["wait"].top_k(3).sum() / total
    found = {"longest": longest}
    if n < FEWEST_WAITS and longest >= PART_OF_THREE:
        return found | {"reason": f"three of {n} waits hold {longest:.0%} of the time waited: no interval of the ETTR"}
    alone = with_levels(waits.select("wait").with_row_index("restart"), {"wait": ["restart"]})
    sums = pl.col("wait").sum(), pl.len(), pl.len()
    mean = clustered_ratios(waits, [], *sums, CONFIDENCE, by_influence=True)
    if not (mean["clusters"] >= FEWEST_CLUSTERS).any():
        mean = clustered_ratios(alone, [], *sums, CONFIDENCE, by_influence=True)
    low, high = (mean[f"ci_{end}_clustered"].item() for end in ("low", "high"))
    return found | ({"reason": ONE_WAIT} if low is None else {"low": low, "high": high})


def assumptions(
    rates: pl.DataFrame, habit: Habits, queue: Mapping, target_gpus: int, size_unit: SizeUnit = GPU
) -> pl.DataFrame:
    """What a plan rests on, a row each, with where it is from: the trace or the configuration.

    The source of the failure rate is its basis. rates: node_failure_rate.csv; queue: of `queue_of`; size_unit: of the
    trace's jobs, in which the size of the run is told.
    """
    rate = rate_row(rates)
    basis, configured = rate["basis"], "configuration"
    low, high = (None if end is None else 1000 * end for end in interval_of_rate(rate))
    of_nodes = {"trace": "the trace", "jobs": "the runs of the trace", "config": configured, "default": "assumed"}
    node_gpus_from = of_nodes.get(rate["node_gpus_from"])
    rows = [
        ("failure rate", rate["failures_per_1000_node_days"], RATE_UNIT, rate["failures"], basis),
        ("failure rate, low", low, RATE_UNIT, rate["failures"], basis),
        ("failure rate, high", high, RATE_UNIT, rate["failures"], basis),
        ("GPUs of a node", rate["node_gpus"] if size_unit == GPU else None, "GPUs", None, node_gpus_from),
        ("size of the run", target_gpus, "nodes" if rate["node_gpus"] is None else f"{size_unit}s", None, configured),
        ("work of the run", habit.productive_s, "s", None, configured),
        ("checkpoint interval", habit.interval_s, "s", None, configured),
        ("checkpoint write", habit.write_s, "s", None, configured),
        ("start-up", habit.restart_s, "s", None, configured),
        ("queue", queue["value"], "s", queue.get("n"), queue["source"]),
        ("queue, low", queue.get("low"), "s", queue.get("n"), "the same waits: 90% CI of their mean"),
        ("queue, high", queue.get("high"), "s", queue.get("n"), "the same waits: 90% CI of their mean"),
        ("queue, three longest", queue.get("longest"), "share", queue.get("n"), "the same waits: part of their sum"),
        ("queue, median", queue.get("median_s"), "s", queue.get("n"), "the same waits: not planned with"),
    ]
    whys = {"failure rate": rate["reason"], "queue": queue.get("reason")}
    return ETTR_ASSUMPTIONS.frame(
        dict(zip(ETTR_ASSUMPTIONS.columns, (*row, whys.get(row[0])), strict=True))
        for row in rows
        if row[1] is not None or "rate" in row[0]
    )


def plan_tables(
    rate: NodeRate,
    habits: Sequence[Habits],
    sizes: Sequence[int],
    simulations: int,
    seed: int,
    queue: Mapping | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """ettr.csv and its outlook: a row for every size, habit and bound of the failure rate, in this order.

    rate `low` and `high` are the rows at the ends of the rate's interval (`interval_of_rate`). Each row is simulated up
    to `simulations` times (see MOST_DRAWS), all from one generator seeded by `seed`.

    ettr_ci_low and ettr_ci_high of the rows between the ends are for both errors, that of the rate and that of the mean
    wait (`combined_interval`); queue: of `queue_of`, None where the waits are known.

    Rows `measured_rate`, `measured_rate_low` and `measured_rate_high` are at the failure rate of the runs of that size,
    where there are failures enough; a size to which the rate may not be projected has a blank row `estimate` with the
    reason. scheduled_share: the work over the time that the run holds its nodes, without the wait in the queue.

    ettr_renewal is the exact mean of the model for the finite work of the row, ettr_simulated its simulation,
    ettr_long_run of the outlook what it comes to in long runs; mttf_s that of the whole run, 1 / (nodes x rate).
    optimal_interval_s is the best for long runs, at most the whole work. The interruptions and wall clocks p05 and p95
    are percentiles of the simulated runs: chance alone, at a rate that is known. approximation_valid is false where
    lambda (u0 + dt / 2) is above APPROXIMATION_LIMIT. What cannot be given is blank, with a reason.
    """
    rows, plans = [], []
    for gpus, nodes in rate.sizes(sizes):
        for habit in habits:
            if why := rate.why_not(nodes):
                rows.append(_row(gpus, nodes, None, habit) | {"rate": ESTIMATE[0], "reason": why})
            for name, per_day in rate.bounds(gpus, nodes):
                plans.append(habit.plan(nodes * per_day / SECONDS_A_DAY))
                rows.append(_row(gpus, nodes, per_day, habit) | {"rate": name})
    if plans:
        columns = (np.array([getattr(plan, name) for plan in plans], float) for name in Plan.__dataclass_fields__)
        computed = _computed(Plan(*columns), simulations, seed)
        rows = [row if "reason" in row else row | next(computed) for row in rows]
        _add_intervals(rows, rate, queue or {})
    return ETTR.frame(rows), ETTR_OUTLOOK.frame(rows)


def _add_intervals(rows: Sequence[dict], rate: NodeRate, queue: Mapping) -> None:
    """Adds ettr_ci_low and ettr_ci_high, or why they lack, to rows at a rate that has both ends."""
    at = {(row["gpus"], row["nodes"], row["checkpoint_interval_s"], row["rate"]): row for row in rows}
    for (*run, name), row in at.items():
        ends = next((names[1:] for names in (ESTIMATE, MEASURED) if names[0] == name), ())
        low, high = (at.get((*run, end), {}).get("ettr_renewal") for end in (ends or (None, None)))
        if low is None or high is None:
            continue
        if "reason" in queue:
            row["reason"] = "; ".join(filter(None, (row["reason"], queue["reason"])))
            continue
        per_s = 1 / row["mttf_s"] if "mttf_s" in row else 0.0
        habit = Habits(*(row[name] for name in habit_columns(Habits(0, 0, 0, 0, 0))))
        short, long = (
            float(ettr_renewal(replace(habit, queue_s=queue.get(end, habit.queue_s)).plan(per_s)))
            for end in ("low", "high")
        )
        # The higher the failure rate and the longer the wait, the lower the ratio.
        row["ettr_ci_low"], row["ettr_ci_high"] = combined_interval(row["ettr_renewal"], (high, long), (low, short))


def mitigation_table(rate: NodeRate, habit: Habits, sizes: Sequence[int]) -> pl.DataFrame:
    """What one change at a time brings at every size, by the exact renewal form.

    At the projected failure rate; where there is none, at the one measured in runs of that size. The columns of the
    plan are those after the change. Saved: node-hours (and GPU-hours) that the run holds its nodes for each week of
    work done, start-ups, writes and lost work included; waiting in the queue holds none.
    """
    rows = []
    for gpus, nodes in rate.sizes(sizes):
        bounds = dict(rate.bounds(gpus, nodes))
        by = next((name for name in (ESTIMATE[0], MEASURED[0]) if name in bounds), None)
        if by is None:
            rows.append({"gpus": gpus, "nodes": nodes, "reason": rate.why_not(nodes)})
            continue
        before = habit.plan(nodes * bounds[by] / SECONDS_A_DAY)
        for name, after in _mitigated(before):
            rows.append(_mitigation(gpus, nodes, name, before, after))
    return MITIGATIONS.frame(rows)


def _mitigated(plan: Plan) -> list[tuple[str, Plan]]:
    best = _best_interval(plan)
    changed = [
        ("failure rate halved", replace(plan, failures_per_s=plan.failures_per_s / 2)),
        ("start-up time halved", replace(plan, restart_s=plan.restart_s / 2)),
        ("queue time halved", replace(plan, queue_s=plan.queue_s / 2)),
        (FASTER_WRITES, replace(plan, write_s=plan.write_s / 10)),
    ]
    if np.isfinite(best) and best > 0:
        changed.append((BEST_INTERVAL, replace(plan, interval_s=best)))
    return changed


def _mitigation(gpus: int | None, nodes: int, name: str, before: Plan, after: Plan) -> dict:
    row = _row(gpus, nodes, after.failures_per_s * SECONDS_A_DAY / nodes, after) | {"mitigation": name}
    row |= {"ettr_before": float(ettr_renewal(before)), "ettr_after": float(ettr_renewal(after))}
    held = [float(expected_scheduled_s(plan)) / plan.productive_s for plan in (before, after)]
    if not np.isfinite(held[0]):
        return row | {"reason": "without it the run would not end"}
    saved = WEEK_H * nodes * (held[0] - held[1])
    row["node_hours_saved_per_productive_week"] = saved
    if gpus is not None:
        row["gpu_hours_saved_per_productive_week"] = saved / nodes * gpus
    return row


def _row(gpus: int | None, nodes: int | None, per_day: float | None, habit: Habits | Plan) -> dict:
    return {"gpus": gpus, "nodes": nodes, "failure_rate_per_node_day": per_day} | habit_columns(habit)


def _best_interval(plan: Plan) -> np.ndarray:
    """At most the work itself: then the one checkpoint is the result."""
    return np.minimum(optimal_interval_s(plan.failures_per_s, plan.write_s), plan.productive_s)


def _computed(plan: Plan, simulations: int, seed: int) -> Iterator[dict]:
    """The computed columns of each plan, a mapping each, without those that cannot be given."""
    best = _best_interval(plan)
    has_best = np.isfinite(best) & (best > 0)
    at_best = replace(plan, interval_s=np.where(has_best, best, plan.interval_s))
    with np.errstate(divide="ignore"):
        columns = {"mttf_s": 1 / plan.failures_per_s} | {form.__name__: form(plan) for form in EXPECTED}
    columns |= {
        "scheduled_share": plan.productive_s / expected_scheduled_s(plan),
        "daly_young_interval_s": daly_young_interval_s(plan.failures_per_s, plan.write_s),
        "optimal_interval_s": np.where(has_best, best, np.nan),
        "ettr_at_optimum": np.where(has_best, ettr_renewal(at_best), np.nan),
    }
    simulated = _simulated(plan, simulations, seed)
    for i, lost in enumerate(plan.lost_share):
        row = {name: float(values[i]) for name, values in columns.items() if np.isfinite(values[i])}
        row |= simulated[i] | {"approximation_valid": bool(lost <= APPROXIMATION_LIMIT)}
        yield row | {"reason": "; ".join(_reasons(row, lost)) or None}


def _reasons(row: dict, lost: float) -> list[str]:
    reasons = []
    if "mttf_s" not in row:
        reasons.append("no failures at this rate")
    elif "optimal_interval_s" not in row:
        reasons.append("writes are free: the shorter the interval, the better")
    if lost > APPROXIMATION_LIMIT:
        fail = "fail" if lost < 1 else "do not exist"
        share = f"{lost:.2g}" if lost < 10 else f"{lost:,.0f}"
        reasons.append(f"λ (u0 + Δt/2) = {share} is above {APPROXIMATION_LIMIT}: the approximations {fail}")
    if "expected_wall_s" not in row:
        reasons.append("the run would not end in any time that can be written down")
    if "ettr_simulated" not in row:
        reasons.append("too many interruptions a run to simulate")
    elif "ettr_simulated_se" not in row and "mttf_s" in row:
        reasons.append("no simulated run was interrupted: its error cannot be told")
    return reasons


def _simulated(plan: Plan, simulations: int, seed: int) -> list[dict]:
    """The simulated columns of each plan, a mapping each, empty where it was not simulated. All are played at once."""
    # The first failure, or the end, takes a draw too.
    draws = expected_interruptions(plan) + 1
    runs = np.minimum(np.floor(MOST_DRAWS / draws), simulations).astype(int)
    runs[runs < min(FEWEST_RUNS, simulations)] = 0
    played = Plan(*(np.repeat(getattr(plan, name), runs) for name in Plan.__dataclass_fields__))
    wall, interruptions = simulate(played, np.random.default_rng(seed))
    rows = []
    for productive, end, count in zip(plan.productive_s, np.cumsum(runs), runs, strict=True):
        if count < 2:
            rows.append({})
            continue
        mine = slice(end - count, end)
        estimate, error = simulated_ettr(productive, wall[mine])
        row = {"ettr_simulated": estimate, "simulated_runs": int(count)}
        if interruptions[mine].any():
            row["ettr_simulated_se"] = float(error)
        for name, values in (("interruptions_p{}", interruptions), ("wall_p{}_s", wall)):
            for percent in ("05", "95"):
                found = np.quantile(values[mine], int(percent) / 100, method="inverted_cdf")
                row["simulated_" + name.format(percent)] = float(found)
        rows.append(row)
    return rows


def ettr_contour(rate: NodeRate, habit: Habits, target_gpus: int) -> pl.DataFrame:
    """The highest failure rate of a node that leaves a run the ratio `ettr`: ETTR_CONTOUR.

    After figure 10 of Kokolis et al. (HPCA 2025), by the model alone: of the trace come the size of a node and the
    wait. A row for `target_gpus` and LARGE_GPUS (nodes where the machines hold no GPUs), for each of LEVELS and
    INTERVALS_S, in this order; the interval of `habit` plays no part. By the exact renewal form, which falls with the
    rate; found by bisection to 12 digits. Blank, with a reason, where the writes, start-up and wait alone leave less.
    """
    levels, intervals = (grid.ravel() for grid in np.meshgrid(LEVELS, INTERVALS_S, indexing="ij"))
    bearable = _bearable(levels, intervals.astype(float), habit)
    rows = []
    for gpus, nodes in rate.sizes(sorted({target_gpus, LARGE_GPUS})):
        for level, interval, per_s in zip(levels.tolist(), intervals.tolist(), bearable.tolist(), strict=True):
            row = {"gpus": gpus, "nodes": nodes, "ettr": level} | habit_columns(replace(habit, interval_s=interval))
            if per_s != per_s:
                row["reason"] = NEVER
            else:
                row["failures_per_1000_node_days"] = per_s * SECONDS_A_DAY * 1000 / nodes
            rows.append(row)
    return ETTR_CONTOUR.frame(rows)


def _bearable(levels: np.ndarray, intervals: np.ndarray, habit: Habits) -> np.ndarray:
    """Failures per second of the run at which the ratio is the level; NaN where it is below without any."""

    def ratio(per_s: np.ndarray) -> np.ndarray:
        return ettr_renewal(replace(habit, interval_s=intervals).plan(per_s))

    low, high = np.full_like(levels, np.log(_LOWEST)), np.full_like(levels, np.log(_HIGHEST))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        keeps = ratio(np.exp(middle)) >= levels
        low, high = np.where(keeps, middle, low), np.where(keeps, high, middle)
    return np.where(ratio(np.full_like(levels, _LOWEST)) >= levels, np.exp(low), np.nan)
