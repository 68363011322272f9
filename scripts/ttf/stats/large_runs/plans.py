"""The failure rate of a node that runs are planned with, and one's habits of checkpointing."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field

import polars as pl

from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import Plan
from ttf.stats.large_runs.projection import FEWEST_MEASURED

# The interval of a node's failure rate that the rows `low` and `high` are at.
CONFIDENCE = 0.9
# The size, in GPUs, that the report answers for where a run of LARGE_TRACE was seen.
LARGE_RUN, LARGE_TRACE = 1024, 256
RATE_UNIT = "failures per 1000 node-days"
BEST_INTERVAL = "best checkpoint interval"
FASTER_WRITES = "checkpoint write ten times faster"
# The rows of ettr.csv for a run: at the projected failure rate and at that of the runs of its size, each with its ends.
ESTIMATE = ("estimate", "low", "high")
MEASURED = ("measured_rate", "measured_rate_low", "measured_rate_high")


@dataclass(frozen=True)
class Habits:
    """How runs are made, in seconds: work between checkpoints, writing one, starting up, waiting, work to do."""

    interval_s: float
    write_s: float
    restart_s: float
    queue_s: float
    productive_s: float

    def plan(self, failures_per_s: float) -> Plan:
        return Plan(failures_per_s, *astuple(self))


def habits_asked(asked: Mapping, queue_s: float) -> list[Habits]:
    """Those that the configuration asks about: one for each checkpoint interval."""
    return [
        Habits(interval, asked["checkpoint_write_s"], asked["restart_s"], queue_s, asked["productive_s"])
        for interval in asked["checkpoint_intervals_s"]
    ]


def habit_columns(habit: Habits | Plan) -> dict[str, float]:
    """Their columns in the tables of plans."""
    return {
        "checkpoint_interval_s": habit.interval_s,
        "checkpoint_write_s": habit.write_s,
        "restart_s": habit.restart_s,
        "queue_s": habit.queue_s,
        "productive_s": habit.productive_s,
    }


@dataclass(frozen=True)
class NodeRate:
    """Failures per node and day with an interval, and the GPUs of a node (None: the machines have none, or unknown).

    A bound that cannot be had is None; so is the estimate, and then `reason` says why. projects_to: the most nodes of a
    run that it may be projected to, no_projection: why no larger (`ttf.stats.large_runs.projection.reach_of`).
    measured: of sizes with failures enough, (fewest GPUs, most GPUs) -> mean time to failure (s) of such runs with its
    interval.
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
        return self.node_gpus is None

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
    # Without time at risk there is no mean.
    enough = (pl.col("failures") >= FEWEST_MEASURED) & (pl.col("mttf_s") > 0)
    sizes = by_gpus.filter(enough & (row["basis"] != "proxy"))
    # A higher rate is a shorter time: its lower end is the upper one of the mean time.
    clustered = pl.col("ci_low_clustered_s").is_not_null()
    ends = (pl.when(clustered).then(f"ci_{end}_clustered_s").otherwise(f"ci_{end}_s") for end in ("high", "low"))
    measured = sizes.select("gpus_low", "gpus_high", "mttf_s", *ends).iter_rows()
    return NodeRate(
        row["failures_per_node_day"],
        *interval_of_rate(row),
        row["node_gpus"],
        row["reason"],
        row["projects_to_nodes"],
        row["no_projection"],
        {(low, high): tuple(times) for low, high, *times in measured},
    )


def interval_of_rate(row: Mapping[str, float | None]) -> tuple[float | None, float | None]:
    """The ends of the failures per node and day, of a row of node_failure_rate.csv: clustered where there are any."""
    if row.get("ci_low_clustered") is not None:
        return row["ci_low_clustered"] / 1000, row["ci_high_clustered"] / 1000
    return row["ci_low_per_node_day"], row["ci_high_per_node_day"]


def rate_row(table: pl.DataFrame) -> dict:
    """The row of node_failure_rate.csv that is at CONFIDENCE."""
    return table.row(by_predicate=pl.col("confidence") == CONFIDENCE, named=True)


def target_size(row: Mapping, asked: int | str) -> int:
    """The size of the run that the report answers for: as asked; `auto`: LARGE_RUN, else the largest run of the trace.

    row: of `rate_row`. Components form no runs, and of some traces no size is known: theirs is LARGE_RUN.
    """
    largest = row["largest_run_nodes"] * (row["node_gpus"] or 1)
    if asked != "auto":
        return asked
    return LARGE_RUN if row["basis"] == "component" or largest >= LARGE_TRACE or not largest else largest


def size_of_the_run(assumed: pl.DataFrame) -> int:
    """The size that `target_size` gave, out of ettr_assumptions.csv."""
    return int(assumed.filter(assumption="size of the run")["amount"].item())


def habits_of(assumed: pl.DataFrame) -> Habits:
    """The habits that a plan rests on, out of ettr_assumptions.csv."""
    amounts = dict(assumed.select("assumption", "amount").iter_rows())
    kinds = ("checkpoint interval", "checkpoint write", "start-up", "queue", "work of the run")
    return Habits(*(amounts[kind] for kind in kinds))
