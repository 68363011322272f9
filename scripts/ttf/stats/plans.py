"""What to expect of a job run at every size, from the failure rate of a node and one's habits of checkpointing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from ttf.stats.ettr import (
    APPROXIMATION_LIMIT,
    Plan,
    daly_young_interval_s,
    ettr_combined,
    ettr_long_run,
    ettr_renewal,
    ettr_v1,
    ettr_v2,
    expected_interruptions,
    expected_scheduled_s,
    expected_wall_s,
    optimal_interval_s,
    simulate,
    simulated_ettr,
)
from ttf.stats.mttf import SECONDS_A_DAY
from ttf.stats.projection import FEWEST_MEASURED

# A simulation draws one failure after the other: where this many would not do for FEWEST_RUNS, none is made.
MOST_DRAWS = 200_000
FEWEST_RUNS = 30
# The interval of a node's failure rate that the rows `low` and `high` are at.
CONFIDENCE = 0.9
WEEK_H = 7 * 24
RATE_UNIT = "failures per 1000 node-days"
BEST_INTERVAL = "best checkpoint interval"
# The rows of ettr.csv for a run: at the projected failure rate and at that of the runs of its size, each with its ends.
ESTIMATE = ("estimate", "low", "high")
MEASURED = ("measured_rate", "measured_rate_low", "measured_rate_high")

_ROW = {
    "gpus": pl.Int64,
    "nodes": pl.Int64,
    "failure_rate_per_node_day": pl.Float64,
    "checkpoint_interval_s": pl.Float64,
    "checkpoint_write_s": pl.Float64,
    "restart_s": pl.Float64,
    "queue_s": pl.Float64,
    "productive_s": pl.Float64,
}
ETTR_SCHEMA = _ROW | {
    **dict.fromkeys(("mttf_s", "ettr_v1", "ettr_v2", "ettr_combined", "ettr_renewal"), pl.Float64),
    **dict.fromkeys(("ettr_simulated", "ettr_simulated_se", "optimal_interval_s"), pl.Float64),
    "rate": pl.String,
    "approximation_valid": pl.Boolean,
    "reason": pl.String,
}
OUTLOOK_SCHEMA = _ROW | {
    "rate": pl.String,
    **dict.fromkeys(("ettr_long_run", "expected_interruptions", "expected_wall_s", "scheduled_share"), pl.Float64),
    "simulated_runs": pl.Int64,
    **dict.fromkeys(("simulated_interruptions_p05", "simulated_interruptions_p95"), pl.Float64),
    **dict.fromkeys(("simulated_wall_p05_s", "simulated_wall_p95_s"), pl.Float64),
    **dict.fromkeys(("daly_young_interval_s", "optimal_interval_s", "ettr_at_optimum"), pl.Float64),
    "reason": pl.String,
}
MITIGATION_SCHEMA = {
    "gpus": pl.Int64,
    "nodes": pl.Int64,
    "mitigation": pl.String,
    **{name: dtype for name, dtype in _ROW.items() if dtype == pl.Float64},
    **dict.fromkeys(("ettr_before", "ettr_after"), pl.Float64),
    **dict.fromkeys(("node_hours_saved_per_productive_week", "gpu_hours_saved_per_productive_week"), pl.Float64),
    "reason": pl.String,
}

ASSUMPTION_SCHEMA = {
    "assumption": pl.String,
    "amount": pl.Float64,
    "unit": pl.String,
    "n": pl.Int64,
    "source": pl.String,
    "reason": pl.String,
}


@dataclass(frozen=True)
class Habits:
    """How runs are made, in seconds: work between checkpoints, writing one, starting up, waiting, work to do."""

    interval_s: float
    write_s: float
    restart_s: float
    queue_s: float
    productive_s: float


@dataclass(frozen=True)
class NodeRate:
    """Failures per node and day with an interval, and the GPUs of a node (None: the machines have none, or unknown).

    A bound that cannot be had is None; so is the estimate, and then `reason` says why. projects_to: the most nodes of a
    run that it may be projected to, no_projection: why no larger (`ttf.stats.projection.reach_of`). measured: of sizes
    with failures enough, (fewest GPUs, most GPUs) -> mean time to failure (s) of such runs with its interval.
    """

    estimate: float | None
    low: float | None
    high: float | None
    node_gpus: int | None
    reason: str | None
    projects_to: int
    no_projection: str
    measured: Mapping[tuple[int, int], tuple[float, float, float]] = field(default_factory=dict)

    @property
    def in_nodes(self) -> bool:
        """Whether sizes are numbers of nodes, because GPUs are not in question."""
        return self.node_gpus is None and self.estimate is not None

    def bounds(self, gpus: int | None, nodes: int | None) -> list[tuple[str, float]]:
        """The failures per node and day that a run of this size can be planned with, named as in ettr.csv.

        `estimate`, `low` and `high`, as far as the rate may be projected; `measured_rate` and its ends, of runs of this
        size. A bound that cannot be had is left out.
        """
        named: list[tuple[str, float | None]] = []
        if not self.why_not(nodes):
            named += zip(ESTIMATE, (self.estimate, self.low, self.high), strict=True)
        for (fewest, most), times in self.measured.items():
            if gpus is not None and fewest <= gpus <= most:
                named += zip(MEASURED, (SECONDS_A_DAY / (nodes * time) for time in times), strict=True)
        return [(name, rate) for name, rate in named if rate is not None]

    def why_not(self, nodes: int | None) -> str | None:
        """Why a run of so many nodes has no projected rate; None where it has."""
        if self.estimate is None:
            return self.reason or "the failure rate of a node is not known"
        return self.no_projection if nodes > self.projects_to else None

    def sizes(self, sizes: Sequence[int]) -> list[tuple[int | None, int | None]]:
        """(GPUs, nodes) of each size; whole nodes, rounded up."""
        if self.in_nodes:
            return [(None, size) for size in sizes]
        return [(size, None if self.node_gpus is None else -(-size // self.node_gpus)) for size in sizes]


def node_rate(table: pl.DataFrame, by_gpus: pl.DataFrame) -> NodeRate:
    """The failure rate of a node from node_failure_rate.csv and mttf_by_gpus.csv, with its interval at CONFIDENCE.

    Where failures of any kind stand for those of infrastructure, no size counts as measured.
    """
    row = rate_row(table)
    names = ("failures_per_node_day", "ci_low_per_node_day", "ci_high_per_node_day")
    sizes = by_gpus.filter((pl.col("failures") >= FEWEST_MEASURED) & (row["basis"] != "proxy"))
    # A higher rate is a shorter time: its lower end is the upper one of the mean time.
    measured = sizes.select("gpus_low", "gpus_high", "mttf_s", "ci_high_s", "ci_low_s").iter_rows()
    return NodeRate(
        *(row[name] for name in names),
        row["node_gpus"],
        row["reason"],
        row["projects_to_nodes"],
        row["no_projection"],
        {(low, high): tuple(times) for low, high, *times in measured},
    )


def rate_row(table: pl.DataFrame) -> dict:
    """The row of node_failure_rate.csv that is at CONFIDENCE."""
    return table.row(by_predicate=pl.col("confidence") == CONFIDENCE, named=True)


def habits_of(assumed: pl.DataFrame) -> Habits:
    """The habits that a plan rests on, out of ettr_assumptions.csv."""
    amounts = dict(assumed.select("assumption", "amount").iter_rows())
    kinds = ("checkpoint interval", "checkpoint write", "start-up", "queue", "work of the run")
    return Habits(*(amounts[kind] for kind in kinds))


def assumptions(rates: pl.DataFrame, habit: Habits, queue: Mapping, run_gpus: int) -> pl.DataFrame:
    """What a plan rests on, a row each, with where it is from: the trace or the configuration.

    The source of the failure rate is its basis. rates: node_failure_rate.csv; queue: of `ttf.stats.job_runs.queue_of`.
    """
    rate = rate_row(rates)
    basis = rate["basis"]
    configured = "configuration"
    node_gpus_from = {"trace": "the trace", "config": configured, "default": "assumed"}.get(rate["node_gpus_from"])
    rows = [
        ("failure rate", rate["failures_per_1000_node_days"], RATE_UNIT, rate["failures"], basis),
        ("failure rate, low", rate["ci_low"], RATE_UNIT, rate["failures"], basis),
        ("failure rate, high", rate["ci_high"], RATE_UNIT, rate["failures"], basis),
        ("GPUs of a node", rate["node_gpus"], "GPUs", None, node_gpus_from),
        ("size of the run", run_gpus, "nodes" if rate["node_gpus"] is None else "GPUs", None, configured),
        ("work of the run", habit.productive_s, "s", None, configured),
        ("checkpoint interval", habit.interval_s, "s", None, configured),
        ("checkpoint write", habit.write_s, "s", None, configured),
        ("start-up", habit.restart_s, "s", None, configured),
        ("queue", queue["value"], "s", queue.get("n"), queue["source"]),
        ("queue, median", queue.get("median_s"), "s", queue.get("n"), "the same waits: not planned with"),
    ]
    frame = [dict(zip(ASSUMPTION_SCHEMA, row, strict=False)) for row in rows if row[1] is not None or "rate" in row[0]]
    for row in frame:
        row["amount"] = None if row["amount"] is None else float(row["amount"])
        row["reason"] = rate["reason"] if row["assumption"] == "failure rate" else None
    return _frame(frame, ASSUMPTION_SCHEMA)


def plan_tables(
    rate: NodeRate, habits: Sequence[Habits], sizes: Sequence[int], simulations: int, seed: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """ettr.csv and its outlook: a row for every size, habit and bound of the failure rate, in this order.

    rate `low` and `high` are the rows at the ends of the rate's interval. Each row is simulated up to `simulations`
    times (see MOST_DRAWS), all from one generator seeded by `seed`.

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
                plans.append(_plan(nodes * per_day / SECONDS_A_DAY, habit))
                rows.append(_row(gpus, nodes, per_day, habit) | {"rate": name})
    if plans:
        computed = _computed(_stacked(plans), simulations, seed)
        rows = [row if "reason" in row else row | next(computed) for row in rows]
    return tuple(_frame(rows, schema) for schema in (ETTR_SCHEMA, OUTLOOK_SCHEMA))


def mitigation_table(rate: NodeRate, habit: Habits, sizes: Sequence[int]) -> pl.DataFrame:
    """What one change at a time buys at every size, by the exact renewal form.

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
        before = _plan(nodes * bounds[by] / SECONDS_A_DAY, habit)
        for name, after in _mitigated(before):
            rows.append(_mitigation(gpus, nodes, name, before, after))
    return _frame(rows, MITIGATION_SCHEMA)


def _mitigated(plan: Plan) -> list[tuple[str, Plan]]:
    best = _best_interval(plan)
    changed = [
        ("failure rate halved", replace(plan, failures_per_s=plan.failures_per_s / 2)),
        ("start-up time halved", replace(plan, restart_s=plan.restart_s / 2)),
        ("queue time halved", replace(plan, queue_s=plan.queue_s / 2)),
        ("checkpoint write ten times faster", replace(plan, write_s=plan.write_s / 10)),
    ]
    if np.isfinite(best) and best > 0:
        changed.append((BEST_INTERVAL, replace(plan, interval_s=best)))
    return changed


def _mitigation(gpus: int | None, nodes: int, name: str, before: Plan, after: Plan) -> dict:
    habits = Habits(after.interval_s, after.write_s, after.restart_s, after.queue_s, after.productive_s)
    row = _row(gpus, nodes, after.failures_per_s * SECONDS_A_DAY / nodes, habits) | {"mitigation": name}
    row |= {"ettr_before": float(ettr_renewal(before)), "ettr_after": float(ettr_renewal(after))}
    held = [float(expected_scheduled_s(plan)) / plan.productive_s for plan in (before, after)]
    if not np.isfinite(held[0]):
        return row | {"reason": "without it the run would not end"}
    saved = WEEK_H * nodes * (held[0] - held[1])
    row["node_hours_saved_per_productive_week"] = saved
    if gpus is not None:
        row["gpu_hours_saved_per_productive_week"] = saved / nodes * gpus
    return row


def _plan(failures_per_s: float, habit: Habits) -> Plan:
    return Plan(failures_per_s, habit.interval_s, habit.write_s, habit.restart_s, habit.queue_s, habit.productive_s)


def _stacked(plans: Sequence[Plan]) -> Plan:
    return Plan(*(np.array([getattr(plan, name) for plan in plans], float) for name in Plan.__dataclass_fields__))


def _row(gpus: int | None, nodes: int | None, per_day: float | None, habit: Habits) -> dict:
    return {
        "gpus": gpus,
        "nodes": nodes,
        "failure_rate_per_node_day": per_day,
        "checkpoint_interval_s": habit.interval_s,
        "checkpoint_write_s": habit.write_s,
        "restart_s": habit.restart_s,
        "queue_s": habit.queue_s,
        "productive_s": habit.productive_s,
    }


def _best_interval(plan: Plan) -> np.ndarray:
    """At most the work itself: then the one checkpoint is the result."""
    return np.minimum(optimal_interval_s(plan.failures_per_s, plan.write_s), plan.productive_s)


def _computed(plan: Plan, simulations: int, seed: int) -> Iterator[dict]:
    """The computed columns of each plan, a mapping each, without those that cannot be given."""
    best = _best_interval(plan)
    has_best = np.isfinite(best) & (best > 0)
    at_best = replace(plan, interval_s=np.where(has_best, best, plan.interval_s))
    with np.errstate(divide="ignore"):
        mttf = 1 / plan.failures_per_s
    columns = {
        "mttf_s": mttf,
        "ettr_v1": ettr_v1(plan),
        "ettr_v2": ettr_v2(plan),
        "ettr_combined": ettr_combined(plan),
        "ettr_renewal": ettr_renewal(plan),
        "ettr_long_run": ettr_long_run(plan),
        "expected_interruptions": expected_interruptions(plan),
        "expected_wall_s": expected_wall_s(plan),
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
    ends = np.cumsum(runs)
    rows = []
    for productive, end, count in zip(plan.productive_s, ends, runs, strict=True):
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


def _frame(rows: Sequence[dict], schema: dict) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)
