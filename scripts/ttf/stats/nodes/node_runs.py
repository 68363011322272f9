"""Runs on each node in a window, with the failures of their attempts."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ttf.engine.name_codes import NameNumbers, index_names
from ttf.engine.storage.partitions import Partitions
from ttf.records.infra import EVENT
from ttf.stats.basics.order import run_starts, sort_order
from ttf.stats.durations.mttf import SECONDS_A_DAY

NO_FLEET = "no GPU"
# Columns read from durations_infra.
DURATIONS_READ = ("attempt_id", "event", "basis", "user", "account", "gpu_type", "start_s", "failed_node", "incident")


def read_basis(durations: pl.LazyFrame) -> str:
    """Return how the trace attributes failures to infrastructure: the column basis, or `proxy` if there are no rows."""
    first_row = durations.select("basis").head(1).collect(engine="streaming")
    return first_row.item() if first_row.height else "proxy"


def last_window(placements: pl.LazyFrame, days: int) -> tuple[int, int]:
    """Return start and end in seconds of the last `days` days of the placements; the end is the last moment plus 1.

    If the trace has fewer days, the start is its first start. Without any time: (0, 0).
    """
    last = pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())
    last_s, first_s = placements.select(last=last, first=pl.col("start_s").min()).collect(engine="streaming").row(0)
    return (0, 0) if first_s is None else (max(first_s, last_s + 1 - days * SECONDS_A_DAY), last_s + 1)


def split_window(window: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the first and the second half of a window."""
    middle = (window[0] + window[1]) // 2
    return [(window[0], middle), (middle, window[1])]


@dataclass(frozen=True)
class Runs:
    """Placements on some nodes in a window [from_s, from_s + length_s): arrays with a row per placement.

    node, gpu_type: index of the name in nodes and gpu_types, which are sorted. user: number of the user; all without a
    name share one. start, last, run_end: seconds since from_s, cut to -1 and length_s. start is that of the placement,
    or its end if only that is recorded. last is its end, else the start. run_end is start plus run time; if that is
    unknown, the start, or the window's end if it is still running. single: the attempt was on one node. failed: its
    failure is attributed to this node. incident: and it is the attempt that the failure hit. shared: it failed, and the
    node is unknown. has_outcome: its outcome on this node is known. attempt: attempt_id. order: with basis `proxy`, by
    attempt, the number of runs of the same user that started earlier and later that day.
    """

    from_s: int
    length_s: int
    nodes: pl.Series
    gpu_types: pl.Series
    node: np.ndarray
    gpu_type: np.ndarray
    user: np.ndarray
    start: np.ndarray
    last: np.ndarray
    run_end: np.ndarray
    single: np.ndarray
    failed: np.ndarray
    incident: np.ndarray
    shared: np.ndarray
    has_outcome: np.ndarray
    attempt: np.ndarray
    order: tuple[np.ndarray, ...]

    @cached_property
    def trials(self) -> np.ndarray:
        """Return the indices of rows with an outcome that began in the window, by node, user and start (stable)."""
        rows = np.flatnonzero(self.has_outcome & (self.start >= 0))
        return rows[sort_order(self.node[rows], self.user[rows], self.start[rows])]


def runs_by_node(
    placements: pl.LazyFrame, durations: pl.LazyFrame, window: tuple[int, int], partitions: Partitions
) -> Iterator[Runs]:
    """Yield the runs in a window by partition of the nodes; one partition at a time is in memory.

    placements: PLACEMENT_COLUMNS. durations: DURATIONS_READ of durations_infra.
    """
    low, high = window
    is_proxy = read_basis(durations) == "proxy"
    frame, failed = placements, pl.lit(None, pl.Boolean)
    if is_proxy:
        failed = (pl.col("outcome") == "failure").fill_null(False)
        is_retried, is_unknown = (pl.col("attempt") > 0).any(), pl.col("outcome").is_null().any()
        if placements.select(is_retried & is_unknown).collect(engine="streaming").item():
            # An attempt without an outcome that was retried did not succeed.
            last = placements.group_by("job_id", "task").agg(last_attempt=pl.col("attempt").max())
            frame = placements.join(last, on=["job_id", "task"], nulls_equal=True, how="left", maintain_order="left")
            failed |= (pl.col("outcome").is_null() & (pl.col("attempt") < pl.col("last_attempt"))).fill_null(False)
    # A run that failed before it started has only an end.
    started_s = pl.coalesce("start_s", "end_s")
    is_running = (pl.col("outcome") == "running").fill_null(False) & pl.col("end_s").is_null()
    ended_s, run_to_s = pl.coalesce("end_s", "start_s"), pl.col("start_s") + pl.col("runtime_s")
    times = {
        "start": started_s,
        "last": ended_s,
        "run_end": pl.coalesce(run_to_s, pl.when(is_running).then(high), started_s),
    }
    runs_in_window = frame.filter((started_s < high) & ((ended_s >= low) | is_running))
    node_names = NameNumbers()
    partition_runs = partitions.split(
        "runs",
        runs_in_window,
        "node",
        node_names.encode(pl.col("node")),
        "attempt_id",
        *((time - low).clip(-1, high - low).cast(pl.Int32).alias(name) for name, time in times.items()),
        (pl.col("nodes") == 1).fill_null(False).alias("single"),
        "own_outcome",
        failed.alias("failed"),
        (pl.col("outcome") == "success").fill_null(False).alias("succeeded"),
    )
    attempts = _read_attempts(durations, _next_attempt_id(placements), node_names, low if is_proxy else None)
    for partition in partition_runs:
        yield _make_runs(partition, node_names, attempts, window)


def _make_runs(
    partition: pl.LazyFrame, node_names: NameNumbers, attempts: "_Attempts", window: tuple[int, int]
) -> Runs:
    low, high = window
    runs = partition.collect(engine="streaming")
    single, is_own, failed = (runs[name].to_numpy() for name in ("single", "own_outcome", "failed"))
    attempt_id = runs["attempt_id"].to_numpy()
    is_on_node, incident = failed, failed
    if not attempts.order:
        failed, failed_node = attempts.failed[attempt_id], attempts.failed_node[attempt_id]
        is_own = single | (failed_node > 0)
        is_on_node = failed & (single | (failed_node == runs["node"].to_numpy() + 1))
        incident = attempts.is_hit[attempt_id]
    nodes, node = index_names(node_names.decode(runs["node"]))
    start, last, run_end = (runs[name].to_numpy() for name in ("start", "last", "run_end"))
    return Runs(
        low,
        high - low,
        nodes,
        attempts.gpu_types,
        node,
        attempts.gpu_type[attempt_id],
        attempts.user[attempt_id],
        start,
        last,
        run_end,
        single,
        failed=is_on_node & is_own,
        incident=is_on_node & is_own & incident,
        shared=failed & ~is_own,
        has_outcome=(failed | runs["succeeded"].to_numpy()) & is_own,
        attempt=attempt_id,
        order=attempts.order,
    )


@dataclass(frozen=True)
class _Attempts:
    """Arrays by attempt_id, as in `Runs`; an attempt without a row in durations_infra did not fail.

    failed_node: number of the node plus 1, 0 if none is named. order: (before, after), only with basis `proxy`, and
    then failed_node and is_hit are empty.
    """

    gpu_types: pl.Series
    failed: np.ndarray
    gpu_type: np.ndarray
    user: np.ndarray
    failed_node: np.ndarray
    is_hit: np.ndarray
    order: tuple[np.ndarray, ...]


def _read_attempts(durations: pl.LazyFrame, count: int, nodes: NameNumbers, days_from_s: int | None) -> _Attempts:
    """Read at least `count` attempts from durations_infra, a block at a time.

    days_from_s: with basis `proxy`, start of the first day on which runs are ordered; else None.
    """
    count = max(count, _next_attempt_id(durations))
    types, users = NameNumbers(NO_FLEET), NameNumbers("")
    exprs_by_name = {
        "failed": ((pl.col("event") == EVENT).fill_null(False), bool),
        "gpu_type": (types.encode(pl.col("gpu_type").fill_null(NO_FLEET)), np.uint32),
        "user": (users.encode(pl.coalesce("user", "account").fill_null("")), np.uint32),
    }
    if days_from_s is None:
        exprs_by_name["failed_node"] = ((nodes.encode(pl.col("failed_node")) + 1).fill_null(0), np.uint32)
        exprs_by_name["is_hit"] = ((pl.col("incident") == pl.col("attempt_id")).fill_null(False), bool)
    else:
        exprs_by_name["start"] = ((pl.col("start_s") - days_from_s).clip(-1).fill_null(-1), np.int64)
    arrays = {name: np.zeros(count, dtype) for name, (_, dtype) in exprs_by_name.items()}
    exprs = {name: expr for name, (expr, _) in exprs_by_name.items()}
    for block in durations.select("attempt_id", **exprs).collect_batches(engine="streaming"):
        attempt_id = block["attempt_id"].to_numpy()
        for name, array in arrays.items():
            array[attempt_id] = block[name].to_numpy()
    numbers = np.arange(int(arrays["gpu_type"].max(initial=0)) + 1, dtype=np.uint32)
    gpu_types, type_index = index_names(types.decode(pl.Series(numbers)))
    empty = np.zeros(0, bool)
    return _Attempts(
        gpu_types,
        arrays["failed"],
        type_index.astype(np.uint32)[arrays["gpu_type"]],
        arrays["user"],
        arrays.get("failed_node", empty),
        arrays.get("is_hit", empty),
        () if days_from_s is None else order_in_day(arrays["user"], arrays["start"]),
    )


def order_in_day(user: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count a user's earlier, and later, runs of the same day: two UInt16 arrays, saturated at their maximum.

    user: int array (n,), number of the user. start: int array (n,), seconds since the beginning of a day; runs with a
    negative start are excluded.
    """
    before, after = np.zeros((2, user.size), np.uint16)
    rows = np.flatnonzero(start >= 0)
    rows = rows[sort_order(user[rows], start[rows])]
    day_bounds = _run_bounds(user[rows], start[rows] // SECONDS_A_DAY)
    moment_bounds = _run_bounds(user[rows], start[rows])
    limit = np.iinfo(np.uint16).max
    before[rows] = np.minimum(moment_bounds[0] - day_bounds[0], limit)
    after[rows] = np.minimum(day_bounds[1] - moment_bounds[1], limit)
    return before, after


def _run_bounds(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each row, start and end index of the run of rows equal to it in all columns."""
    starts = run_starts(*columns)
    size = np.diff(starts, append=columns[0].size)
    return np.repeat(starts, size), np.repeat(starts + size, size)


def _next_attempt_id(frame: pl.LazyFrame) -> int:
    return (frame.select(pl.col("attempt_id").max()).collect(engine="streaming").item() or 0) + 1
