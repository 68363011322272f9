"""How full the servers of a cluster were, by load and over time. After Jeon et al. (ATC 2019).

The changes of what is in use of each server (`ttf.stats.servers`), sorted by time: the running sums of what each of
them does are counts over the cluster. All of it is whole numbers (seconds, milli-GPU), divided last.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.jobs import whole_gpus
from ttf.stats.exact import group_sums
from ttf.stats.holdings import GPU, Holdings, running
from ttf.stats.order import distinct, first_of_each, sorted_rows
from ttf.stats.servers import Servers, free_of, is_empty, state_of

BINS = 10
# The load that Jeon et al. are quoted for.
TWO_THIRDS = "60-70 %"
# Free GPUs of a server that are asked about: what jobs ask for.
LEVELS = (1, 2, 4, 8)
# A server with more free GPUs counts as one with so many.
MOST_FREE = 64
# Lengths of a step of load_over_time, from a minute on; the shortest that gives at most MOST_STEPS.
STEPS_S = (60, 600, 3_600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000)
MOST_STEPS = 150
# Moments of the cluster looked at together.
BLOCK_MOMENTS = 1 << 16
NOTHING_HELD = "no placement held a GPU for a known time"

BASIS_SCHEMA = {
    "servers": pl.Int64,
    "servers_by_use": pl.Int64,
    "gpus": pl.Int64,
    "placements": pl.Int64,
    "left_out": pl.Int64,
    "spread": pl.Int64,
    "above_capacity_share": pl.Float64,
    "start_s": pl.Int64,
    "end_s": pl.Int64,
    "reason": pl.String,
}
OCCUPANCY_SCHEMA = {
    "load": pl.String,
    "time_s": pl.Int64,
    "time_share": pl.Float64,
    "n": pl.Int64,
    "gpus_in_use_share": pl.Float64,
    "servers_empty_share": pl.Float64,
    "servers_partly_share": pl.Float64,
    "servers_full_share": pl.Float64,
    "free_gpus": pl.Float64,
    "largest_free_gpus": pl.Float64,
    "reason": pl.String,
}
FRAGMENTATION_SCHEMA = {
    "load": pl.String,
    "free_at_least": pl.String,
    "time_s": pl.Int64,
    "n": pl.Int64,
    "free_gpus_share": pl.Float64,
    "placeable_time_share": pl.Float64,
    "reason": pl.String,
}
LOAD_SCHEMA = {
    "start_s": pl.Int64,
    "time_s": pl.Int64,
    "gpus": pl.Int64,
    "gpus_in_use_mean": pl.Float64,
    "gpus_in_use_max": pl.Float64,
    "gpus_in_use_share": pl.Float64,
    "running_mean": pl.Float64,
    "waiting_mean": pl.Float64,
}


@dataclass(frozen=True)
class Cluster:
    """The servers of a cluster over time. times_s: the moments at which what is in use of any server changes.

    stretches: from each of them to the next, into how many the starts and ends of placements divide the time. Of each
    change, in the order of time: the state of its server before and after (`ttf.stats.servers.state_of`); from_row: the
    first change of each of times_s. Before the first of them every server is empty.
    """

    capacity_milli: np.ndarray
    times_s: np.ndarray
    stretches: np.ndarray
    from_row: np.ndarray
    before: np.ndarray
    after: np.ndarray

    def gpus_in_use(self) -> np.ndarray:
        """Milli-GPU in use from each of times_s on."""
        return self.total() - self.sums(free_of)

    def servers_with(self, gpus: int) -> np.ndarray:
        """Servers with so many free GPUs or more."""
        return self.sums(lambda state: free_of(state) >= gpus * GPU)

    def free_in(self, gpus: int) -> np.ndarray:
        """Free milli-GPU of the servers with so many free GPUs or more."""
        return self.sums(lambda state: np.where(free_of(state) >= gpus * GPU, free_of(state), 0))

    def total(self) -> int:
        """Milli-GPU of all servers."""
        return int(self.capacity_milli.sum())

    def sums(self, value: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Of a value of a server's state: its sum over the servers from each of times_s on, Int64."""
        found = np.zeros(self.times_s.size, np.int64)
        now = int(value(state_of(self.capacity_milli, self.capacity_milli)).sum())
        ends = np.append(self.from_row[1:], self.before.size)
        for first in range(0, found.size, BLOCK_MOMENTS):
            moments = slice(first, first + BLOCK_MOMENTS)
            rows = slice(self.from_row[first], ends[moments][-1])
            change = np.subtract(value(self.after[rows]), value(self.before[rows]), dtype=np.int64)
            found[moments] = now + np.cumsum(change, out=change)[ends[moments] - 1 - rows.start]
            now = found[moments][-1]
        return found


def cluster(held: Holdings, servers: Servers) -> Cluster:
    """The servers over time."""
    time, before, after = sorted_rows(*map(np.concatenate, zip(*servers.changes, strict=True)))
    from_row = first_of_each(time)
    times = time[from_row]
    begun = np.searchsorted(distinct(held.start, held.end), times)
    size = np.int32 if servers.capacity_milli.max(initial=0) < 2**30 else np.int64
    return Cluster(
        servers.capacity_milli,
        times + held.first_s,
        np.diff(begun),
        from_row,
        before.astype(size),
        after.astype(size),
    )


def basis(held: Holdings, servers: Servers) -> pl.DataFrame:
    """What the occupancy rests on, BASIS_SCHEMA, one row.

    servers_by_use: those whose GPUs no table tells. gpus: whole ones of all servers, all the time, as nothing says when
    a server came or went. above_capacity_share: of the GPU time, what exceeds what the servers hold; it is cut off.
    """
    row = held.counts | {"gpus": int(servers.capacity_milli.sum()) // GPU}
    if held.start.size:
        row |= {
            "servers": int((servers.capacity_milli > 0).sum()),
            "servers_by_use": int((held.known_milli == 0).sum()),
            "above_capacity_share": servers.above_milli_s / servers.in_use_milli_s,
            "start_s": held.first_s,
            "end_s": held.first_s + held.length_s,
        }
    else:
        row |= {"servers": len(held.nodes), "reason": NOTHING_HELD}
    return pl.DataFrame([{name: row.get(name) for name in BASIS_SCHEMA}], schema=BASIS_SCHEMA)


class _ByLoad:
    """Sums over the time at each tenth of the load, and over all of it (the last)."""

    def __init__(self, over: Cluster, in_use: np.ndarray):
        self.length = np.diff(over.times_s)
        self.tenth = np.minimum(in_use[:-1] * BINS // max(over.total(), 1), BINS - 1)
        counts = group_sums(self.tenth, over.stretches, BINS).tolist()
        self.names = [f"{100 * k // BINS}-{100 * (k + 1) // BINS} %" for k in range(BINS)] + ["all"]
        self.n = [*counts, sum(counts)]
        self.time_s = [*group_sums(self.tenth, self.length, BINS).tolist(), int(self.length.sum())]

    def times(self, level: np.ndarray, levels: int) -> np.ndarray:
        """Of a level (0 to levels) from each moment on: the seconds at each level or above it, load x level."""
        cell = self.tenth * (levels + 1) + level[:-1]
        seconds = group_sums(cell, self.length, BINS * (levels + 1)).reshape(BINS, levels + 1)
        seconds = np.vstack([seconds, seconds.sum(axis=0)])
        return np.cumsum(seconds[:, ::-1], axis=1)[:, ::-1]

    def sums(self, values: np.ndarray) -> list[int]:
        """Of a value from each moment on: the sum of value x seconds."""
        sums = group_sums(self.tenth, values[:-1] * self.length, BINS).tolist()
        return [*sums, sum(sums)]


def occupancy(over: Cluster) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(OCCUPANCY_SCHEMA, FRAGMENTATION_SCHEMA): time-weighted means by tenth of the load, and over all the time.

    load: GPUs in use as a share of all; 10-20 % is from 10 to below 20 %. n: stretches in which no placement starts or
    ends. A server is empty, full (all of its GPUs in use) or partly used. largest_free_gpus: whole free GPUs of the
    server with the most, at most MOST_FREE. Fragmentation, for free_at_least of LEVELS and `whole server` (nothing of
    it in use): free_gpus_share is the share of the free GPUs that are in servers with so many free,
    placeable_time_share the share of the time that there is such a server. A load that never was has a reason.
    """
    if over.times_s.size == 0:
        return pl.DataFrame(schema=OCCUPANCY_SCHEMA), pl.DataFrame(schema=FRAGMENTATION_SCHEMA)
    in_use = over.gpus_in_use()
    by_load = _ByLoad(over, in_use)
    total, servers = over.total(), over.capacity_milli.size
    used = by_load.sums(in_use)
    free = [total * time_s - of_it for time_s, of_it in zip(by_load.time_s, used, strict=True)]
    empty_count = over.sums(is_empty)
    empty, full = by_load.sums(empty_count), by_load.sums(over.sums(lambda state: state == 0))
    levels = min(int(over.capacity_milli.max()) // GPU, MOST_FREE)
    largest_free = np.zeros(over.times_s.size, np.int64)
    for gpus in range(1, levels + 1):
        largest_free += over.servers_with(gpus) > 0
    at_least = by_load.times(largest_free, levels)
    largest = at_least[:, 1:].sum(axis=1).tolist()
    placeable = {str(gpus): at_least[:, gpus].tolist() for gpus in range(1, levels + 1)}
    placeable["whole server"] = by_load.times((empty_count > 0).astype(np.int8), 1)[:, 1].tolist()
    free_in = {str(gpus): by_load.sums(over.free_in(gpus)) for gpus in LEVELS}
    free_in["whole server"] = by_load.sums(over.sums(lambda state: free_of(state) * is_empty(state)))
    rows, pieces = [], []
    for k, (name, time_s, n) in enumerate(zip(by_load.names, by_load.time_s, by_load.n, strict=True)):
        row = {"load": name, "time_s": time_s, "n": n, "time_share": time_s / by_load.time_s[-1]}
        never = None if time_s else "the load was never there"
        if time_s:
            row |= {
                "gpus_in_use_share": used[k] / (total * time_s),
                "servers_empty_share": empty[k] / (servers * time_s),
                "servers_partly_share": (servers * time_s - empty[k] - full[k]) / (servers * time_s),
                "servers_full_share": full[k] / (servers * time_s),
                "free_gpus": free[k] / (GPU * time_s),
                "largest_free_gpus": largest[k] / time_s,
            }
        rows.append({column: row.get(column) for column in OCCUPANCY_SCHEMA} | {"reason": never})
        for level in (*map(str, LEVELS), "whole server"):
            piece = {"load": name, "free_at_least": level, "time_s": time_s, "n": n, "reason": never}
            if time_s:
                piece["placeable_time_share"] = placeable[level][k] / time_s if level in placeable else 0.0
                piece["free_gpus_share"] = free_in[level][k] / free[k] if free[k] else None
                piece["reason"] = None if free[k] else "no GPU is free"
            pieces.append({column: piece.get(column) for column in FRAGMENTATION_SCHEMA})
    return pl.DataFrame(rows, schema=OCCUPANCY_SCHEMA), pl.DataFrame(pieces, schema=FRAGMENTATION_SCHEMA)


def load_over_time(over: Cluster, jobs: pl.DataFrame) -> pl.DataFrame:
    """GPUs in use, and jobs that run and wait, in steps of equal length, LOAD_SCHEMA.

    jobs: the common record; those with a GPU count. running: from the first start to the last end, or to the trace's
    end; waiting: from the submission to the first start, or to the trace's end where the outcome is `waiting`. One
    without these times counts in neither. A step ends where the next begins; the first and the last are cut to the time
    between the first and the last moment that a GPU was held. Means are over the time of the step.
    """
    if over.times_s.size == 0:
        return pl.DataFrame(schema=LOAD_SCHEMA)
    first, last = int(over.times_s[0]), int(over.times_s[-1])
    length = next((step for step in STEPS_S if (last - 1) // step - first // step < MOST_STEPS), None)
    length = length or -(-(last - first) // (MOST_STEPS - 1))
    starts = np.arange(first // length * length, last, length)
    edges = np.clip(np.append(starts, starts[-1] + length), first, last)
    in_use = over.gpus_in_use()
    used = np.diff(_integral(over.times_s, in_use, edges))
    run, wait = (np.diff(_integral(*_number_of(*spans), edges)) for spans in _spans(jobs))
    total = over.total()
    rows = []
    for k, (start, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        from_, to = np.searchsorted(over.times_s, start, "right") - 1, np.searchsorted(over.times_s, end)
        mean = int(used[k]) / (end - start)
        rows.append(
            {
                "start_s": start,
                "time_s": end - start,
                "gpus": total // GPU,
                "gpus_in_use_mean": mean / GPU,
                "gpus_in_use_max": int(in_use[from_:to].max()) / GPU,
                "gpus_in_use_share": mean / total,
                "running_mean": int(run[k]) / (end - start),
                "waiting_mean": int(wait[k]) / (end - start),
            }
        )
    return pl.DataFrame(rows, schema=LOAD_SCHEMA)


def _spans(jobs: pl.DataFrame) -> list[tuple[np.ndarray, np.ndarray]]:
    """(starts, ends) of running and of waiting."""
    chosen = jobs.filter(whole_gpus() > 0)
    to_the_end = {
        name: pl.when(pl.col("outcome") == name).then(pl.col("trace_end_s")) for name in ("running", "waiting")
    }
    both = []
    for start, end, name in (("start_s", "end_s", "running"), ("submit_s", "start_s", "waiting")):
        span = chosen.select(start=start, end=pl.coalesce(end, to_the_end[name])).drop_nulls()
        span = span.filter(pl.col("start") < pl.col("end"))
        both.append((span["start"].to_numpy(), span["end"].to_numpy()))
    return both


def _number_of(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(moments, how many spans cover the time from each on)."""
    one = np.ones(starts.size, np.int64)
    # Times are not negative.
    return running(np.concatenate([starts, ends]), np.concatenate([one, -one]))


def _integral(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Of a value from each of times on (0 before them): its sum over the seconds up to each edge."""
    if not times.size:
        return np.zeros(edges.size, np.int64)
    until = np.concatenate([[0], np.cumsum(values[:-1] * np.diff(times))])
    place = np.searchsorted(times, edges, side="right") - 1
    found = until[place] + values[place] * (edges - times[place])
    return np.where(place >= 0, found, 0)
