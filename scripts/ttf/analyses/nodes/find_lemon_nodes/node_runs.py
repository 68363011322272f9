"""The runs on each node in a window, and what the infra lives say of their attempts."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ttf.engine.storage.partitions import Partitions
from ttf.records.infra import EVENT
from ttf.stats.basics.name_codes import Numbers, places_of
from ttf.stats.basics.order import first_of_each, order_by
from ttf.stats.durations.mttf import SECONDS_A_DAY

NO_FLEET = "no GPU"
# What is read of the infra lives.
LIVES_READ = ("attempt_id", "event", "basis", "user", "account", "gpu_type", "start_s", "failed_node", "incident")


def basis_of(lives: pl.LazyFrame) -> str:
    """On what ground failures are attributed to infrastructure: one word of a trace, `proxy` where it has no lives."""
    found = lives.select("basis").head(1).collect(engine="streaming")
    return found.item() if found.height else "proxy"


def last_window(placements: pl.LazyFrame, days: int) -> tuple[int, int]:
    """The last `days` days of the placements: (from, to) in seconds, to being one more than the last moment written.

    from is the first start where there are fewer days. Without any time: (0, 0).
    """
    last = pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())
    times = placements.select(last=last, first=pl.col("start_s").min()).collect(engine="streaming")
    last, first = times.row(0)
    return (0, 0) if first is None else (max(first, last + 1 - days * SECONDS_A_DAY), last + 1)


def halves_of(window: tuple[int, int]) -> list[tuple[int, int]]:
    middle = (window[0] + window[1]) // 2
    return [(window[0], middle), (middle, window[1])]


@dataclass(frozen=True)
class Runs:
    """The placements on some nodes that were there within a window [from_s, from_s + length_s): arrays of one length.

    node, gpu_type: places among the names, which are sorted; user: a number of each (who has no name is one). start,
    last, until: seconds since from_s of the start, of the end (the start where it is not known), and of the start and
    the run time (the start where this is not known, the window's end for a run still going on), each cut to -1 and
    length_s. single: the attempt was on one node; failed: its failure is this node's; incident: and it is the attempt
    that the failure hit; shared: it failed, on which of its nodes is not known; known: whether this node's part failed
    is. attempt: its attempt_id, by which `order`, with basis `proxy`, has how many runs of its user's started earlier
    that day, and how many later. A run of which only the end is written starts then.
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
    until: np.ndarray
    single: np.ndarray
    failed: np.ndarray
    incident: np.ndarray
    shared: np.ndarray
    known: np.ndarray
    attempt: np.ndarray
    order: tuple[np.ndarray, ...]

    @cached_property
    def trials(self) -> np.ndarray:
        """The rows that are known and began in the window, by node, user and start, of equal ones in their order."""
        rows = np.flatnonzero(self.known & (self.start >= 0))
        return rows[order_by(self.node[rows], self.user[rows], self.start[rows])]


def runs_by_node(
    placements: pl.LazyFrame, lives: pl.LazyFrame, window: tuple[int, int], partitions: Partitions
) -> Iterator[Runs]:
    """The runs in a window, all of a node together, by the nodes' partitions, of which one at a time is held.

    placements: PLACEMENT_COLUMNS. lives: LIVES_READ of infra lives.
    """
    low, high = window
    is_proxy = basis_of(lives) == "proxy"
    frame, failed = placements, pl.lit(None, pl.Boolean)
    if is_proxy:
        failed = (pl.col("outcome") == "failure").fill_null(False)
        again, untold = (pl.col("attempt") > 0).any(), pl.col("outcome").is_null().any()
        if placements.select(again & untold).collect(engine="streaming").item():
            # An attempt that was tried again and of which nobody says how it ended: it did not succeed.
            last = placements.group_by("job_id", "task").agg(last_attempt=pl.col("attempt").max())
            frame = placements.join(last, on=["job_id", "task"], nulls_equal=True, how="left", maintain_order="left")
            failed |= (pl.col("outcome").is_null() & (pl.col("attempt") < pl.col("last_attempt"))).fill_null(False)
    # Of a run that failed before it started only the end is written.
    started_s = pl.coalesce("start_s", "end_s")
    is_running = (pl.col("outcome") == "running").fill_null(False) & pl.col("end_s").is_null()
    ended_s, run_to_s = pl.coalesce("end_s", "start_s"), pl.col("start_s") + pl.col("runtime_s")
    times = {
        "start": started_s,
        "last": ended_s,
        "until": pl.coalesce(run_to_s, pl.when(is_running).then(high), started_s),
    }
    there = frame.filter((started_s < high) & ((ended_s >= low) | is_running))
    names = Numbers()
    number = names.of(pl.col("node"))
    parts = partitions.split(
        "runs",
        there,
        "node",
        number,
        "attempt_id",
        *((time - low).clip(-1, high - low).cast(pl.Int32).alias(name) for name, time in times.items()),
        (pl.col("nodes") == 1).fill_null(False).alias("single"),
        "own_outcome",
        failed.alias("failed"),
        (pl.col("outcome") == "success").fill_null(False).alias("succeeded"),
    )
    of_attempts = _of_lives(lives, _numbers(placements), names, low if is_proxy else None)
    for part in parts:
        yield _runs_of(part, names, of_attempts, window)


def _runs_of(part: pl.LazyFrame, names: Numbers, of_attempts: "_Attempts", window: tuple[int, int]) -> Runs:
    """names: of the nodes, of which the part has the numbers."""
    low, high = window
    runs = part.collect(engine="streaming")
    single, is_own, failed = (runs[name].to_numpy() for name in ("single", "own_outcome", "failed"))
    attempt = runs["attempt_id"].to_numpy()
    there, incident = failed, failed
    if not of_attempts.order:
        failed, failed_node = of_attempts.failed[attempt], of_attempts.failed_node[attempt]
        is_own = single | (failed_node > 0)
        there = failed & (single | (failed_node == runs["node"].to_numpy() + 1))
        incident = of_attempts.is_hit[attempt]
    nodes, node = places_of(names.named(runs["node"]))
    return Runs(
        low,
        high - low,
        nodes,
        of_attempts.gpu_types,
        node,
        of_attempts.gpu_type[attempt],
        of_attempts.user[attempt],
        *(runs[name].to_numpy() for name in ("start", "last", "until")),
        single,
        failed=there & is_own,
        incident=there & is_own & incident,
        shared=failed & ~is_own,
        known=(failed | runs["succeeded"].to_numpy()) & is_own,
        attempt=attempt,
        order=of_attempts.order,
    )


@dataclass(frozen=True)
class _Attempts:
    """What the lives say of each attempt, by its number; see Runs. One without a life did not fail.

    failed_node: one more than the node's number, 0 where none is named. order: (before, after), with basis `proxy`;
    else there is none, and with it there are no failed_node and is_hit.
    """

    gpu_types: pl.Series
    failed: np.ndarray
    gpu_type: np.ndarray
    user: np.ndarray
    failed_node: np.ndarray
    is_hit: np.ndarray
    order: tuple[np.ndarray, ...]


def _of_lives(lives: pl.LazyFrame, count: int, nodes: Numbers, days_from_s: int | None) -> _Attempts:
    """Of `count` attempts, and of those that the lives have beyond; of the lives a block at a time is held.

    days_from_s: with basis `proxy` the moment at which the first day begins of those whose runs are put in order.
    """
    count = max(count, _numbers(lives))
    types, users = Numbers(NO_FLEET), Numbers("")
    read = {
        "failed": ((pl.col("event") == EVENT).fill_null(False), bool),
        "gpu_type": (types.of(pl.col("gpu_type").fill_null(NO_FLEET)), np.uint32),
        "user": (users.of(pl.coalesce("user", "account").fill_null("")), np.uint32),
    }
    if days_from_s is None:
        read["failed_node"] = ((nodes.of(pl.col("failed_node")) + 1).fill_null(0), np.uint32)
        read["is_hit"] = ((pl.col("incident") == pl.col("attempt_id")).fill_null(False), bool)
    else:
        read["start"] = ((pl.col("start_s") - days_from_s).clip(-1).fill_null(-1), np.int64)
    found = {name: np.zeros(count, dtype) for name, (_, dtype) in read.items()}
    for block in lives.select("attempt_id", **{name: what for name, (what, _) in read.items()}).collect_batches(
        engine="streaming"
    ):
        of_block = block["attempt_id"].to_numpy()
        for name, of_all in found.items():
            of_all[of_block] = block[name].to_numpy()
    every = np.arange(int(found["gpu_type"].max(initial=0)) + 1, dtype=np.uint32)
    gpu_types, place_of = places_of(types.named(pl.Series(every)))
    nothing = np.zeros(0, bool)
    return _Attempts(
        gpu_types,
        found["failed"],
        place_of.astype(np.uint32)[found["gpu_type"]],
        found["user"],
        found.get("failed_node", nothing),
        found.get("is_hit", nothing),
        () if days_from_s is None else order_in_day(found["user"], found["start"]),
    )


def order_in_day(user: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many runs of the same user started earlier, and later, on the same day: two UInt16 arrays, cut at the most.

    start: seconds (Int64) since the beginning of a day; a run with one below 0 is excluded.
    """
    before, after = np.zeros((2, user.size), np.uint16)
    rows = np.flatnonzero(start >= 0)
    rows = rows[order_by(user[rows], start[rows])]
    of_day = _ends_of_each(user[rows], start[rows] // SECONDS_A_DAY)
    of_moment = _ends_of_each(user[rows], start[rows])
    most = np.iinfo(np.uint16).max
    before[rows] = np.minimum(of_moment[0] - of_day[0], most)
    after[rows] = np.minimum(of_day[1] - of_moment[1], most)
    return before, after


def _ends_of_each(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row the places where the run of rows equal to it in all columns begins, and where the next one does."""
    begin = first_of_each(*columns)
    size = np.diff(begin, append=columns[0].size)
    return np.repeat(begin, size), np.repeat(begin + size, size)


def _numbers(frame: pl.LazyFrame) -> int:
    return (frame.select(pl.col("attempt_id").max()).collect(engine="streaming").item() or 0) + 1
