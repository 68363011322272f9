"""Failure rate of a node for planning runs, and checkpointing habits."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field

import polars as pl

from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import Number, Plan
from ttf.stats.large_runs.projection import FEWEST_MEASURED

# Confidence of the rows `low` and `high` of a node's failure rate.
CONFIDENCE = 0.9
# The report plans a run of LARGE_RUN GPUs if the trace has a run of LARGE_TRACE.
LARGE_RUN, LARGE_TRACE = 1024, 256
RATE_UNIT = "failures per 1000 node-days"
BEST_INTERVAL = "best checkpoint interval"
FASTER_WRITES = "checkpoint write ten times faster"
# Rows of ettr.csv for a run: the projected failure rate, and that of runs of its size, each with limits.
ESTIMATE = ("estimate", "low", "high")
MEASURED = ("measured_rate", "measured_rate_low", "measured_rate_high")


@dataclass(frozen=True)
class Habits:
    """Habits of a run in seconds: work between checkpoints, one write, start-up, queue wait, total work."""

    interval_s: float
    write_s: float
    restart_s: float
    queue_s: float
    productive_s: float

    def plan(self, failures_per_s: Number) -> Plan:
        return Plan(failures_per_s, *astuple(self))


def read_habits(settings: Mapping, queue_s: float) -> list[Habits]:
    """Return the habits that the configuration lists: one for each checkpoint interval."""
    return [
        Habits(interval, settings["checkpoint_write_s"], settings["restart_s"], queue_s, settings["productive_s"])
        for interval in settings["checkpoint_intervals_s"]
    ]


# Column of the tables of plans -> its field of Habits and of Plan.
HABIT_BY_COLUMN = {"checkpoint_interval_s": "interval_s", "checkpoint_write_s": "write_s"}
HABIT_BY_COLUMN |= {name: name for name in ("restart_s", "queue_s", "productive_s")}


def habit_columns(habit: Habits | Plan) -> dict[str, Number]:
    """Return the habits as columns of the tables of plans."""
    return {column: getattr(habit, name) for column, name in HABIT_BY_COLUMN.items()}


@dataclass(frozen=True)
class NodeRate:
    """Failures per node and day with an interval, and the GPUs of a node (None: no GPUs, or unknown).

    A missing bound is None. A missing estimate is None, and `reason` explains it. projects_to: largest number of nodes
    for which the rate may be projected. no_projection: why no larger one
    (`ttf.stats.large_runs.projection.projection_limit`). measured: for sizes with enough failures, (fewest GPUs, most
    GPUs) -> mean time to failure (s) of such runs and its interval.
    """

    estimate: float | None
    low: float | None
    high: float | None
    node_gpus: int | None
    reason: str | None
    projects_to: int
    no_projection: str
    measured: Mapping[tuple[int, int], tuple[float, float, float]] = field(default_factory=dict)

    def bounds(self, gpus: int | None, nodes: int) -> list[tuple[str, float]]:
        """Return the failures per node and day for planning a run of this size, named as in ettr.csv.

        `estimate`, `low` and `high`, if the rate may be projected that far; `measured_rate` and its limits, of runs of
        this size. Missing bounds are left out.
        """
        rates: list[tuple[str, float | None]] = []
        if not self.why_not(nodes):
            rates += zip(ESTIMATE, (self.estimate, self.low, self.high), strict=True)
        for (fewest, most), times_s in self.measured.items():
            if gpus is not None and fewest <= gpus <= most:
                rates += zip(MEASURED, (SECONDS_A_DAY / (nodes * time_s) for time_s in times_s), strict=True)
        return [(name, rate) for name, rate in rates if rate is not None]

    def why_not(self, nodes: int) -> str | None:
        """Return why a run of this many nodes has no projected rate; None if it has one."""
        if self.estimate is None:
            return self.reason or "the failure rate of a node is not known"
        return self.no_projection if nodes > self.projects_to else None

    def list_gpus_and_nodes(self, sizes: Sequence[int]) -> list[tuple[int | None, int]]:
        """Return (GPUs, nodes) of runs of these sizes; nodes are rounded up. Sizes without GPUs are nodes."""
        if self.node_gpus is None:
            return [(None, size) for size in sizes]
        return [(size, -(-size // self.node_gpus)) for size in sizes]


def node_rate(table: pl.DataFrame, mttf_by_gpus: pl.DataFrame) -> NodeRate:
    """Return the failure rate of a node from node_failure_rate.csv and mttf_by_gpus.csv, with its interval.

    The interval is at CONFIDENCE. If failures of any kind replace infrastructure failures, no size counts as measured.
    """
    row = rate_row(table)
    # Without time at risk there is no mean.
    has_enough = (pl.col("failures") >= FEWEST_MEASURED) & (pl.col("mttf_s") > 0)
    sizes = mttf_by_gpus.filter(has_enough & (row["basis"] != "proxy"))
    # A higher rate is a shorter time: the lower limit of the rate is the upper limit of the mean time.
    is_clustered = pl.col("ci_low_clustered_s").is_not_null()
    sides = ("high", "low")
    bounds = (pl.when(is_clustered).then(f"ci_{side}_clustered_s").otherwise(f"ci_{side}_s") for side in sides)
    measured = sizes.select("gpus_low", "gpus_high", "mttf_s", *bounds).iter_rows()
    return NodeRate(
        row["failures_per_node_day"],
        *rate_interval(row),
        row["node_gpus"],
        row["reason"],
        row["projects_to_nodes"],
        row["no_projection"],
        {(low, high): tuple(durations_s) for low, high, *durations_s in measured},
    )


def rate_interval(row: Mapping[str, float | None]) -> tuple[float | None, float | None]:
    """Return the limits of the failures per node and day of a row of node_failure_rate.csv, clustered if any."""
    low, high = row.get("ci_low_clustered"), row.get("ci_high_clustered")
    if low is None or high is None:
        return row["ci_low_per_node_day"], row["ci_high_per_node_day"]
    return low / 1000, high / 1000


def rate_row(table: pl.DataFrame) -> dict:
    """Return the row of node_failure_rate.csv at CONFIDENCE."""
    return table.row(by_predicate=pl.col("confidence") == CONFIDENCE, named=True)


def target_size(row: Mapping, setting: int | str) -> int:
    """Return the size of the run that the report plans: as configured, else LARGE_RUN or the largest run.

    row: of `rate_row`. Components form no runs, and some traces have no known sizes: both get LARGE_RUN.
    """
    if isinstance(setting, int):
        return setting
    largest = row["largest_run_nodes"] * (row["node_gpus"] or 1)
    return LARGE_RUN if row["basis"] == "component" or largest >= LARGE_TRACE or not largest else largest


def planned_size(assumptions: pl.DataFrame) -> int:
    """Return the size that `target_size` chose, from ettr_assumptions.csv."""
    return int(assumptions.filter(assumption="size of the run")["amount"].item())


def habits_from_assumptions(assumptions: pl.DataFrame) -> Habits:
    """Return the habits of a plan from ettr_assumptions.csv."""
    amounts = dict(assumptions.select("assumption", "amount").iter_rows())
    kinds = ("checkpoint interval", "checkpoint write", "start-up", "queue", "work of the run")
    return Habits(*(amounts[kind] for kind in kinds))
