"""Rates, habits and tables for the tests of plans."""

import math

import polars as pl
from memory_tables import TableInputs, compute_metrics
from scipy.integrate import quad
from ttf.analyses.large_runs.plan_ettr.compute import assumptions
from ttf.analyses.large_runs.plan_ettr.target_run import mark_target
from ttf.display.metrics import Metrics
from ttf.stats.large_runs.plans import Habits, NodeRate

DAY = 86_400
FAR = 10**6
TOO_LARGE = "no run was as large"


def make_rate(estimate, low, high, node_gpus, reason=None, projects_to=FAR, measured=()):
    return NodeRate(estimate, low, high, node_gpus, reason, projects_to, TOO_LARGE, dict(measured))


RATE = make_rate(6.5e-3, 5e-3, 8.2e-3, 8)
HABITS = [Habits(3600, 300, 300, 600, 14 * DAY), Habits(300, 0, 300, 0, DAY)]
SIZES = [1, 8, 1000, 1024, 16_384, 131_072]


def make_rate_table(rate: NodeRate, **more: object) -> pl.DataFrame:
    """Return node_failure_rate.csv in the columns that plans read."""
    row = {
        "basis": "state",
        "node_gpus": rate.node_gpus,
        "node_gpus_from": "trace",
        "failures": 40,
        "confidence": 0.9,
        "largest_run_nodes": 64,
        "projects_to_nodes": rate.projects_to,
        "no_projection": rate.no_projection,
        "needed": "larger runs",
        "reason": rate.reason,
    }
    for name, value in (("failures", rate.estimate), ("ci_low", rate.low), ("ci_high", rate.high)):
        row[f"{name}_per_node_day"] = value
        per_1000 = "failures_per_1000_node_days" if name == "failures" else name
        row[per_1000] = None if value is None else 1000 * value
    floats = {name: pl.Float64 for name in row if "ci_" in name or "per_" in name}
    integers = {"node_gpus": pl.Int64, "reason": pl.String}
    return pl.DataFrame([row | {"confidence": 0.95}, row | more], schema_overrides=floats | integers)


def make_plan_inputs(
    rate: NodeRate, habit: Habits, run_gpus: int, tables: dict | None = None, **more: object
) -> TableInputs:
    """Return the inputs of the charts of plan_ettr, plus `tables`; `more` changes the failure rate."""
    rates = make_rate_table(rate, **more)
    schema = dict.fromkeys(("gpus_low", "gpus_high", "failures"), pl.Int64)
    schema |= dict.fromkeys(
        ("mttf_s", *(f"ci_{end}{suffix}_s" for end in ("low", "high") for suffix in ("", "_clustered"))), pl.Float64
    )
    queue = {"value": habit.queue_s, "source": "x", "n": 9}
    tables_by_name = {"node_failure_rate": rates, "mttf_by_gpus": pl.DataFrame(schema=schema)}
    tables_by_name["ettr_assumptions"] = assumptions(rates, habit, queue, run_gpus)
    return TableInputs(tables_by_name | (tables or {}), ettr={"target_gpus": run_gpus})


def target_numbers(inputs) -> Metrics:
    plans = (inputs[name] for name in ("ettr", "ettr_outlook", "mitigations", "ettr_assumptions"))
    inputs |= mark_target(*plans, inputs["node_failure_rate"], inputs["mttf_by_gpus"])
    return compute_metrics("plan_ettr", inputs)


def wall_by_first_steps(rate: float, habit: Habits) -> float:
    """Return the mean wall clock (s) of a run at `rate` failures per second by first-step integrals.

    This is independent of the closed form: a piece completes, or it fails and the run waits, restarts and repeats the
    whole piece.
    """

    def seen(length: float) -> float:
        return quad(lambda age: math.exp(-rate * age), 0, length)[0]

    def with_start(work: float) -> float:
        length = habit.restart_s + work
        fails = -math.expm1(-rate * length)
        return (seen(length) + fails * habit.queue_s) / (1 - fails)

    def piece(work: float) -> float:
        return seen(work) - math.expm1(-rate * work) * (habit.queue_s + with_start(work))

    pieces = math.ceil(habit.productive_s / habit.interval_s)
    works = [habit.interval_s + habit.write_s] * (pieces - 1)
    works.append(habit.productive_s - (pieces - 1) * habit.interval_s + habit.write_s)
    return habit.queue_s + with_start(works[0]) + sum(map(piece, works[1:]))
