"""What a job run of each size can expect, from the failure rate of a node and checkpointing habits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from types import MappingProxyType

import numpy as np
import polars as pl

from ttf.analyses.large_runs.plan_ettr import ETTR, ETTR_ASSUMPTIONS, ETTR_CONTOUR, ETTR_OUTLOOK, MITIGATIONS
from ttf.analyses.large_runs.plan_ettr.target_run import mark_target
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.records.clusters import CLUSTER_COLUMNS, add_level_names, add_levels, level_names
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.records.jobs import Frame
from ttf.stats.clustered import clustered_ratios
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import (
    APPROXIMATION_LIMIT,
    EXPECTED,
    Number,
    Plan,
    combine_intervals,
    daly_young_interval_s,
    estimate_ettr,
    ettr_renewal,
    expected_interruptions,
    expected_scheduled_s,
    optimal_interval_s,
    simulate,
)
from ttf.stats.large_runs.plans import (
    BEST_INTERVAL,
    CONFIDENCE,
    ESTIMATE,
    FASTER_WRITES,
    HABIT_BY_COLUMN,
    MEASURED,
    RATE_UNIT,
    Habits,
    NodeRate,
    habit_columns,
    node_rate,
    rate_interval,
    rate_row,
    read_habits,
    target_size,
)
from ttf.stats.large_runs.projection import FEWEST_MEASURED

DURATIONS = ("unit_id", "duration_id", "submit_s", "start_s", "event", "gpu_milli", *CLUSTER_COLUMNS)
# With fewer waits, if three make up this share of the total, they dominate the mean.
FEWEST_WAITS, SHARE_OF_THREE = 30, 0.25
ONE_WAIT = "one wait makes nearly all of the spread: no interval of the ETTR"
# Most failures drawn by a simulation; if they do not suffice for FEWEST_RUNS, none is made.
MOST_DRAWS = 200_000
FEWEST_RUNS = 30
WEEK_H = 7 * 24
# Ratios and checkpoint intervals of the contours.
LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)
# From a minute to 17 hours, by factors of the square root of two.
INTERVALS_S = tuple(round(60 * 2 ** (step / 2)) for step in range(21))
# The scale for which the paper computes bearable failure rates.
LARGE_GPUS = 100_000
# Failures per second of the whole run: the search is from one in 300,000 years to ten a second.
_LOWEST, _HIGHEST = 1e-13, 10.0
_STEPS = 60
NEVER = "not reached even without failures"
# Habit in training_summary.csv -> the assumption.
HABIT_NAMES = {
    "checkpoint_interval": "checkpoint interval",
    "checkpoint_write": "checkpoint write",
    "restart": "start-up",
}
FROM_LOGS = "logs of training runs"


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    rates = inputs["node_failure_rate"]
    settings, measured = replace_habits(inputs.settings.ettr, inputs)
    target = target_size(rate_row(rates), settings["target_gpus"])
    rate = node_rate(rates, inputs["mttf_by_gpus"])
    queue = queue_of(inputs.scan("durations_infra", DURATIONS), settings.get("queue_s"))
    habits = read_habits(settings, queue["value"])
    sizes = sorted({*settings["gpus"], target})
    ettr, outlook = plan_tables(rate, habits, sizes, settings["simulations"], settings["seed"], queue)
    ((gpus, nodes),) = rate.list_gpus_and_nodes([target])
    withheld = None if rate.bounds(gpus, nodes) else rate.why_not(nodes)
    assumptions_table = assumptions(rates, habits[0], queue, target, inputs.unit, withheld, measured)
    mitigations = mitigation_table(rate, habits[0], sizes)
    if price := inputs.settings.prices.get("price_per_gpu_hour"):
        cost = pl.col("gpu_hours_saved_per_productive_week") * price
        mitigations = mitigations.with_columns(cost_saved_per_productive_week=cost)
    return {
        **mark_target(ettr, outlook, mitigations, assumptions_table, rates, inputs["mttf_by_gpus"]),
        "ettr_assumptions": assumptions_table,
        "ettr_contour": ettr_contour(rate, habits[0], target),
    }


def replace_habits(settings: Mapping, inputs: Inputs) -> tuple[Mapping, dict[str, int]]:
    """Return the settings with the habits that logs of training runs tell, and how many runs tell each assumption.

    A measured checkpoint interval is the first one, which the page plans with.
    """
    if "training_summary" not in inputs:
        return settings, {}
    row = inputs["training_summary"].row(0, named=True)
    told = {name: round(row[f"{name}_s"]) for name in HABIT_NAMES if row[f"{name}_s"]}
    changes: dict = {f"{name}_s": told[name] for name in ("checkpoint_write", "restart") if name in told}
    if (interval := told.get("checkpoint_interval", 0)) > 0:
        others = (value for value in settings["checkpoint_intervals_s"] if value != interval)
        changes["checkpoint_intervals_s"] = [interval, *others]
    return {**settings, **changes}, {HABIT_NAMES[name]: row["runs"] for name in told}


def queue_of(runs: Frame, configured: float | None) -> dict:
    """Estimate the wait at the submission and before each restart: value (s), source, n, median_s and interval.

    A configured wait comes first. Otherwise it is a mean, which the renewal form needs (waits are skewed, and each
    counts in full): over attempts requeued after an infrastructure failure, else over all requeued attempts, if there
    are FEWEST_MEASURED or more, else over submissions. Only runs with a GPU count, unless no run has one. Waits below 0
    are unknown, and so are all waits if all are 0. Without any wait: 0. Interval: see `_mean_wait_interval`.

    runs: unit_id, duration_id (0 for the first attempt of a job), submit_s, start_s, event and gpu_milli of infra
    durations, with the attempts of a job in sequence.
    """
    if configured is not None:
        return {"value": configured, "source": "configuration"}
    wait, requeued = pl.col("start_s") - pl.col("submit_s"), pl.col("duration_id") > 0
    follows = (pl.col("unit_id") == pl.col("unit_id").shift(1)) & (pl.col("event").shift(1) == EVENT)
    levels = [name for name in ("cluster", "group", "block") if name in runs.collect_schema()]
    all_waits = runs.lazy().select("gpu_milli", *levels, wait=wait, requeued=requeued, after_failure=follows)
    waits = all_waits.filter(pl.col("wait") >= 0, pl.col("wait").max() > 0).collect(engine="in-memory")
    waits = gpu_waits if (gpu_waits := waits.filter(pl.col("gpu_milli") > 0)).height else waits
    for source, is_kind, fewest in (
        ("attempts requeued after an infrastructure failure", pl.col("after_failure"), FEWEST_MEASURED),
        ("requeued attempts", pl.col("requeued"), FEWEST_MEASURED),
        ("submissions", ~pl.col("requeued"), 1),
    ):
        selected = waits.filter(is_kind)
        if (n := selected.height) >= fewest:
            estimate = {"value": int(selected["wait"].sum()) / n, "n": n, "median_s": selected["wait"].median()}
            interval = _mean_wait_interval(add_level_names(selected, level_names(runs)))
            return estimate | {"source": f"the trace, mean of {source}"} | interval
    return {"value": 0.0, "source": "the trace knows no waits: none assumed"}


def _mean_wait_interval(waits: pl.DataFrame) -> dict:
    """Return low and high of the mean at CONFIDENCE, or why they are missing; longest: share of the three longest.

    waits: wait, and CLUSTER_COLUMNS if the trace has them. Clusters are user and week if there are enough, else each
    wait. A few waits may make up most of the sum, so degrees of freedom are weighted by influence.
    """
    n, total = waits.height, int(waits["wait"].sum())
    if not total:
        return {"low": 0.0, "high": 0.0}
    longest = int(waits["wait"].top_k(3).sum()) / total
    cells = {"longest": longest}
    if n < FEWEST_WAITS and longest >= SHARE_OF_THREE:
        return cells | {"reason": f"three of {n} waits hold {longest:.0%} of the time waited: no interval of the ETTR"}
    sums = pl.col("wait").sum(), pl.len(), pl.len()
    mean = clustered_ratios(waits, [], *sums, CONFIDENCE, by_influence=True)
    if not (mean["clusters"] >= FEWEST_CLUSTERS).any():
        waits = add_levels(waits.select("wait").with_row_index("restart"), {"wait": ["restart"]})
        mean = clustered_ratios(waits, [], *sums, CONFIDENCE, by_influence=True)
    low, high = (mean[f"ci_{bound}_clustered"].item() for bound in ("low", "high"))
    return cells | ({"reason": ONE_WAIT} if low is None else {"low": low, "high": high})


def assumptions(
    rates: pl.DataFrame,
    habit: Habits,
    queue: Mapping,
    target_gpus: int,
    size_unit: SizeUnit = GPU,
    withheld: str | None = None,
    measured: Mapping[str, int] = MappingProxyType({}),
) -> pl.DataFrame:
    """Return the assumptions of a plan, a row each, with their source: the trace or the configuration.

    measured: assumption -> number of training runs that tell it.

    The source of the failure rate is its basis. rates: node_failure_rate.csv. queue: of `queue_of`. size_unit: unit of
    the trace's job sizes, used for the size of the run. withheld: why the failure rate cannot plan it.
    """
    rate = rate_row(rates)
    basis, configured = rate["basis"], "configuration"
    per_day = (rate["failures_per_node_day"], *rate_interval(rate))
    estimate, low, high = (None if withheld or value is None else 1000 * value for value in per_day)
    source_by_key = {"trace": "the trace", "jobs": "the runs of the trace", "config": configured, "default": "assumed"}
    node_gpus_from = source_by_key.get(rate["node_gpus_from"])
    rows = [
        ("failure rate", estimate, RATE_UNIT, rate["failures"], basis),
        ("failure rate, low", low, RATE_UNIT, rate["failures"], basis),
        ("failure rate, high", high, RATE_UNIT, rate["failures"], basis),
        ("GPUs of a node", rate["node_gpus"] if size_unit == GPU else None, "GPUs", None, node_gpus_from),
        ("size of the run", target_gpus, "nodes" if rate["node_gpus"] is None else f"{size_unit}s", None, configured),
        ("work of the run", habit.productive_s, "s", None, configured),
        *(
            (name, amount, "s", measured.get(name), FROM_LOGS if name in measured else configured)
            for name, amount in zip(
                HABIT_NAMES.values(), (habit.interval_s, habit.write_s, habit.restart_s), strict=True
            )
        ),
        ("queue", queue["value"], "s", queue.get("n"), queue["source"]),
        ("queue, low", queue.get("low"), "s", queue.get("n"), "the same waits: 90% CI of their mean"),
        ("queue, high", queue.get("high"), "s", queue.get("n"), "the same waits: 90% CI of their mean"),
        ("queue, three longest", queue.get("longest"), "share", queue.get("n"), "the same waits: part of their sum"),
        ("queue, median", queue.get("median_s"), "s", queue.get("n"), "the same waits: not planned with"),
    ]
    reason_by_assumption = {"failure rate": withheld or rate["reason"], "queue": queue.get("reason")}
    return ETTR_ASSUMPTIONS.frame(
        dict(zip(ETTR_ASSUMPTIONS.columns, (*row, reason_by_assumption.get(row[0])), strict=True))
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
    """Return ettr.csv and its outlook: a row for every size, habit and bound of the failure rate, in this order.

    rate `low` and `high` are the bounds of the rate's interval (`rate_interval`). Each row is simulated up to
    `simulations` times (see MOST_DRAWS), all from one generator seeded by `seed`. ettr_ci_low and ettr_ci_high allow
    for the errors of both the rate and the mean wait (`combine_intervals`); queue: `queue_of`, None for known waits.

    Rows `measured_rate`, `measured_rate_low` and `measured_rate_high` use the failure rate of the runs of that size, if
    there are enough failures. Beyond the projection limit, a row `estimate` is blank and has the reason.
    scheduled_ettr: the work over the time that the run holds its nodes, without the wait in the queue.

    ettr_renewal: exact mean of the model for the finite work of the row; ettr_simulated: its simulation; ettr_long_run:
    its limit in long runs. mttf_s: of the whole run, 1 / (nodes x rate). optimal_interval_s: the best for long runs, at
    most the whole work. Interruptions and wall clocks p05 and p95: percentiles of the simulated runs, that is random
    variation at a known rate. approximation_valid: lambda (u0 + dt / 2) is at most APPROXIMATION_LIMIT. Blank cells
    have a reason.
    """
    rows, plans = [], []
    for gpus, nodes in rate.list_gpus_and_nodes(sizes):
        for habit in habits:
            if reason := rate.why_not(nodes):
                rows.append(_plan_cells(gpus, nodes, None, habit) | {"rate": ESTIMATE[0], "reason": reason})
            for name, per_day in rate.bounds(gpus, nodes):
                plans.append(habit.plan(nodes * per_day / SECONDS_A_DAY))
                rows.append(_plan_cells(gpus, nodes, per_day, habit) | {"rate": name})
    if plans:
        columns = (np.array([getattr(plan, name) for plan in plans], float) for name in Plan.__dataclass_fields__)
        computed_rows = _compute_rows(Plan(*columns), simulations, seed)
        rows = [row if "reason" in row else row | next(computed_rows) for row in rows]
        _add_intervals(rows, queue or {})
    return ETTR.frame(rows), ETTR_OUTLOOK.frame(rows)


def _add_intervals(rows: Sequence[dict], queue: Mapping) -> None:
    """Add ettr_ci_low and ettr_ci_high, or the reason that they are missing, to rows whose rate has both bounds."""
    row_by_key = {(row["gpus"], row["nodes"], row["checkpoint_interval_s"], row["rate"]): row for row in rows}
    for (*run, name), row in row_by_key.items():
        bound_names = next((names[1:] for names in (ESTIMATE, MEASURED) if names[0] == name), ())
        low, high = (row_by_key.get((*run, bound), {}).get("ettr_renewal") for bound in (bound_names or (None, None)))
        if low is None or high is None:
            continue
        # The higher the failure rate, the lower the share.
        row["scheduled_ci_high"], row["scheduled_ci_low"] = (
            row_by_key[*run, bound].get("scheduled_ettr") for bound in bound_names
        )
        if "reason" in queue:
            row["reason"] = "; ".join(filter(None, (row["reason"], queue["reason"])))
            continue
        per_s = 1 / row["mttf_s"] if "mttf_s" in row else 0.0
        habit = Habits(*(row[column] for column in HABIT_BY_COLUMN))
        short, long = (
            float(ettr_renewal(replace(habit, queue_s=queue.get(bound, habit.queue_s)).plan(per_s)))
            for bound in ("low", "high")
        )
        # The higher the failure rate and the longer the wait, the lower the ratio.
        row["ettr_ci_low"], row["ettr_ci_high"] = combine_intervals(row["ettr_renewal"], (high, long), (low, short))


def mitigation_table(rate: NodeRate, habit: Habits, sizes: Sequence[int]) -> pl.DataFrame:
    """Return the effect of one change at a time at every size, by the exact renewal form.

    The rate is the projected one, or else the one measured in runs of that size. The columns of the plan are those
    after the change. Saved: node-hours (and GPU-hours) of allocation per week of work done, including start-ups, writes
    and lost work. Waiting in the queue allocates none.
    """
    rows = []
    for gpus, nodes in rate.list_gpus_and_nodes(sizes):
        bounds = dict(rate.bounds(gpus, nodes))
        rate_name = next((name for name in (ESTIMATE[0], MEASURED[0]) if name in bounds), None)
        if rate_name is None:
            rows.append({"gpus": gpus, "nodes": nodes, "reason": rate.why_not(nodes)})
            continue
        plan = habit.plan(nodes * bounds[rate_name] / SECONDS_A_DAY)
        for name, changed_plan in _list_mitigations(plan):
            rows.append(_mitigation_row(gpus, nodes, name, plan, changed_plan))
    return MITIGATIONS.frame(rows)


def _list_mitigations(plan: Plan) -> list[tuple[str, Plan]]:
    best = _best_interval(plan)
    mitigations = [
        ("failure rate halved", replace(plan, failures_per_s=plan.failures_per_s / 2)),
        ("start-up time halved", replace(plan, restart_s=plan.restart_s / 2)),
        ("queue time halved", replace(plan, queue_s=plan.queue_s / 2)),
        (FASTER_WRITES, replace(plan, write_s=plan.write_s / 10)),
    ]
    if np.isfinite(best) and best > 0:
        mitigations.append((BEST_INTERVAL, replace(plan, interval_s=best)))
    return mitigations


def _mitigation_row(gpus: int | None, nodes: int, name: str, plan_before: Plan, plan_after: Plan) -> dict:
    row = _plan_cells(gpus, nodes, plan_after.failures_per_s * SECONDS_A_DAY / nodes, plan_after) | {"mitigation": name}
    row |= {"ettr_before": float(ettr_renewal(plan_before)), "ettr_after": float(ettr_renewal(plan_after))}
    held_per_work = [float(expected_scheduled_s(plan)) / plan.productive_s for plan in (plan_before, plan_after)]
    if not np.isfinite(held_per_work[0]):
        return row | {"reason": "without it the run would not end"}
    saved = WEEK_H * nodes * (held_per_work[0] - held_per_work[1])
    row["node_hours_saved_per_productive_week"] = saved
    if gpus is not None:
        row["gpu_hours_saved_per_productive_week"] = saved / nodes * gpus
    return row


def _plan_cells(gpus: int | None, nodes: int, per_day: Number | None, habit: Habits | Plan) -> dict:
    return {"gpus": gpus, "nodes": nodes, "failure_rate_per_node_day": per_day} | habit_columns(habit)


def _best_interval(plan: Plan) -> np.ndarray:
    """Return the best interval, at most the whole work: then the only checkpoint is the result."""
    return np.minimum(optimal_interval_s(plan.failures_per_s, plan.write_s), plan.productive_s)


def _compute_rows(plan: Plan, simulations: int, seed: int) -> Iterator[dict]:
    """Yield the computed columns of each plan, without blank ones."""
    best = _best_interval(plan)
    has_best = np.isfinite(best) & (best > 0)
    at_best = replace(plan, interval_s=np.where(has_best, best, plan.interval_s))
    with np.errstate(divide="ignore"):
        columns = {"mttf_s": 1 / plan.failures_per_s} | {form.__name__: form(plan) for form in EXPECTED}
    columns |= {
        "scheduled_ettr": plan.productive_s / expected_scheduled_s(plan),
        "daly_young_interval_s": daly_young_interval_s(plan.failures_per_s, plan.write_s),
        "optimal_interval_s": np.where(has_best, best, np.nan),
        "ettr_at_optimum": np.where(has_best, ettr_renewal(at_best), np.nan),
    }
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    simulated = _simulate_rows(plan, simulations, seed)
    for i, lost_share in enumerate(np.asarray(plan.lost_share)):
        row = {name: float(values[i]) for name, values in arrays.items() if np.isfinite(values[i])}
        row |= simulated[i] | {"approximation_valid": bool(lost_share <= APPROXIMATION_LIMIT)}
        yield row | {"reason": "; ".join(_list_blank_reasons(row, lost_share)) or None}


def _list_blank_reasons(row: dict, lost_share: float) -> list[str]:
    reasons = []
    if "mttf_s" not in row:
        reasons.append("no failures at this rate")
    elif "optimal_interval_s" not in row:
        reasons.append("writes are free: the shorter the interval, the better")
    if lost_share > APPROXIMATION_LIMIT:
        verdict = "fail" if lost_share < 1 else "do not exist"
        share = f"{lost_share:.2g}" if lost_share < 10 else f"{lost_share:,.0f}"
        reasons.append(f"λ (u0 + Δt/2) = {share} is above {APPROXIMATION_LIMIT}: the approximations {verdict}")
    if "expected_wall_s" not in row:
        reasons.append("the run would not end in any time that can be written down")
    if "ettr_simulated" not in row:
        reasons.append("too many interruptions a run to simulate")
    elif "ettr_simulated_se" not in row and "mttf_s" in row:
        reasons.append("no simulated run was interrupted: its error cannot be told")
    return reasons


def _simulate_rows(plan: Plan, simulations: int, seed: int) -> list[dict]:
    """Return the simulated columns of each plan, empty if it was not simulated. All plans are simulated at once."""
    # The first failure, or the end, needs a draw too.
    draws = expected_interruptions(plan) + 1
    runs = np.minimum(np.floor(MOST_DRAWS / draws), simulations).astype(int)
    runs[runs < min(FEWEST_RUNS, simulations)] = 0
    repeated_plan = Plan(*(np.repeat(getattr(plan, name), runs) for name in Plan.__dataclass_fields__))
    wall, interruptions = simulate(repeated_plan, np.random.default_rng(seed))
    rows: list[dict] = []
    for productive, end, count in zip(np.asarray(plan.productive_s), np.cumsum(runs), runs, strict=True):
        if count < 2:
            rows.append({})
            continue
        run_slice = slice(end - count, end)
        estimate, se = estimate_ettr(productive, wall[run_slice])
        row = {"ettr_simulated": estimate, "simulated_runs": int(count)}
        if interruptions[run_slice].any():
            row["ettr_simulated_se"] = float(se)
        for name, values in (("interruptions_p{}", interruptions), ("wall_p{}_s", wall)):
            for percent in ("05", "95"):
                quantile = np.quantile(values[run_slice], int(percent) / 100, method="inverted_cdf")
                row["simulated_" + name.format(percent)] = float(quantile)
        rows.append(row)
    return rows


def ettr_contour(rate: NodeRate, habit: Habits, target_gpus: int) -> pl.DataFrame:
    """Return the highest failure rate of a node that leaves a run the ratio `ettr`: ETTR_CONTOUR.

    After figure 10 of Kokolis et al. (HPCA 2025), by the model alone: only the size of a node and the wait come from
    the trace. A row for `target_gpus` and LARGE_GPUS (nodes if the machines hold no GPUs), for each of LEVELS and
    INTERVALS_S, in this order; the interval of `habit` is not used. The exact renewal form falls with the rate, so
    bisection finds the rate to 12 digits. Blank, with a reason, if writes, start-up and wait alone leave less.
    """
    levels, intervals = (grid.ravel() for grid in np.meshgrid(LEVELS, INTERVALS_S, indexing="ij"))
    rates_per_s = _bearable_rates(levels, intervals.astype(float), habit)
    rows = []
    for gpus, nodes in rate.list_gpus_and_nodes(sorted({target_gpus, LARGE_GPUS})):
        for level, interval, per_s in zip(levels.tolist(), intervals.tolist(), rates_per_s.tolist(), strict=True):
            row = {"gpus": gpus, "nodes": nodes, "ettr": level} | habit_columns(replace(habit, interval_s=interval))
            if isnan(per_s):
                row["reason"] = NEVER
            else:
                row["failures_per_1000_node_days"] = per_s * SECONDS_A_DAY * 1000 / nodes
            rows.append(row)
    return ETTR_CONTOUR.frame(rows)


def _bearable_rates(levels: np.ndarray, intervals: np.ndarray, habit: Habits) -> np.ndarray:
    """Return the failures per second of the run at which its ETTR is the level; NaN if it is lower without any."""

    def ettr_at(per_s: np.ndarray) -> np.ndarray:
        return np.asarray(ettr_renewal(replace(habit.plan(per_s), interval_s=intervals)))

    low, high = np.full_like(levels, np.log(_LOWEST)), np.full_like(levels, np.log(_HIGHEST))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_kept = ettr_at(np.exp(middle)) >= levels
        low, high = np.where(is_kept, middle, low), np.where(is_kept, high, middle)
    return np.where(ettr_at(np.full_like(levels, _LOWEST)) >= levels, np.exp(low), np.nan)
