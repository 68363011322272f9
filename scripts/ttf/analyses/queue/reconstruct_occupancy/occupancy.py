"""Compute how full servers were, by load and over time, and how many jobs run and wait (Jeon et al., ATC 2019).

All sums are integers (seconds, milli-GPU), divided last.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from ttf.analyses.queue.reconstruct_occupancy import FRAGMENTATION, LOAD_OVER_TIME, OCCUPANCY, OCCUPANCY_BASIS
from ttf.analyses.queue.reconstruct_occupancy.servers import (
    Servers,
    StateSum,
    Window,
    decode_free_milli,
    has_free,
    is_empty,
    is_full,
)
from ttf.engine.exact_sums import group_sums
from ttf.records.gpu_allocations import GPU, GpuAllocations
from ttf.stats.basics.order import run_starts
from ttf.stats.shares import divide

BINS = 10
# Numbers of free GPUs on a server that are reported: what jobs request.
LEVELS = (1, 2, 4, 8)
# A server with more free GPUs counts as having this many.
MOST_FREE = 64
WHOLE = "whole server"
NOTHING_HELD = "no placement held a GPU for a known time"


# Step lengths of load_over_time; the shortest with at most MOST_STEPS is used.
STEPS_S = (60, 600, 3_600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000)
MOST_STEPS = 150


def summarise_basis(allocations: GpuAllocations, servers: Servers, load: pl.DataFrame) -> pl.DataFrame:
    """Return the one row of OCCUPANCY_BASIS; load: LOAD_OVER_TIME.

    gpus: of all servers for the whole time, as their changes are not recorded. GPU time above capacity is cut off.
    """
    count = servers.capacity_milli.size
    row: dict = allocations.counts | {"servers": count, "gpus": servers.total_milli // GPU}
    if allocations.is_empty:
        row |= {"reason": NOTHING_HELD}
    else:
        row |= {
            "servers_by_use": count - int((allocations.known_milli > 0).sum()),
            "above_capacity_share": servers.excess_milli_s / servers.in_use_milli_s,
            "peak_share": (load["gpus_in_use_max"] / load["gpus"]).max(),
            "start_s": allocations.first_s,
            "end_s": allocations.last_s,
        }
    return OCCUPANCY_BASIS.frame([row])


def _free_where(state: np.ndarray, condition: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the free milli-GPU of servers whose state meets the condition, else 0."""
    return decode_free_milli(state) * condition(state)


class Occupancy:
    """Time-weighted means by tenth of the load and overall; add the windows in order.

    10-20% means from 10% to below 20%. largest_free_gpus is that of the server with the most, at most MOST_FREE.
    Fragmentation is reported for LEVELS and `whole server` (an empty one). A load that never occurred has a reason.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers, self._total = servers.capacity_milli.size, servers.total_milli
        self._levels = min(int(servers.capacity_milli.max(initial=0)) // GPU, MOST_FREE)
        # Servers with at least so many free GPUs.
        counts = np.bincount(self._free_gpus(servers.capacity_milli), minlength=self._levels + 1)
        self._servers_by_free = self._count_at_least(counts)
        self._empty, self._full = StateSum(servers, is_empty), StateSum(servers, is_full)
        tests = {str(gpus): partial(has_free, gpus=gpus) for gpus in LEVELS} | {WHOLE: is_empty}
        free_by_level = {level: partial(_free_where, condition=test) for level, test in tests.items()}
        self._free_sums = {level: StateSum(servers, free) for level, free in free_by_level.items()}
        # Quantity -> sum over time for each tenth, as Python integers, which do not overflow.
        self._sums: defaultdict[str, np.ndarray] = defaultdict(lambda: np.zeros(BINS, object))

    def add(self, window: Window) -> None:
        """Add the seconds, and the GPUs and servers in use or free, of a window to the sums by tenth of the load."""
        seconds = window.length_s
        tenth = np.minimum(window.in_use_milli * BINS // self._total, BINS - 1)

        def add_sum(name: str, values: np.ndarray) -> None:
            self._sums[name] += group_sums(tenth, values, BINS)

        add_sum("n", (seconds > 0).astype(np.int64))
        add_sum("time_s", seconds)
        add_sum("used", window.in_use_milli * seconds)
        empty = self._empty.advance(window.changes)[1:]
        add_sum("empty", empty * seconds)
        add_sum("full", self._full.advance(window.changes)[1:] * seconds)
        add_sum(f"placeable {WHOLE}", (empty > 0) * seconds)
        cell = tenth * (self._levels + 1) + self._largest_free(window)
        seconds_by_level = group_sums(cell, seconds, BINS * (self._levels + 1)).reshape(BINS, self._levels + 1)
        for gpus, at_least in enumerate(np.cumsum(seconds_by_level.T[::-1], axis=0)[::-1]):
            self._sums[f"placeable {gpus}"] += at_least
        for level, free in self._free_sums.items():
            add_sum(f"free {level}", free.advance(window.changes)[1:] * seconds)

    def _free_gpus(self, milli: np.ndarray) -> np.ndarray:
        """Return whole GPUs, at most the highest reported level."""
        return np.minimum(milli // GPU, self._levels)

    @staticmethod
    def _count_at_least(servers: np.ndarray) -> np.ndarray:
        """Return for each number of free GPUs the servers with at least so many."""
        return np.cumsum(servers[::-1])[::-1]

    def _largest_free(self, window: Window) -> np.ndarray:
        """Return the free GPUs of the server with the most, from each moment of the next window on."""
        states = (window.changes.states_before, window.changes.states_after)
        free_before, free_after = (self._free_gpus(decode_free_milli(state)) for state in states)
        largest = np.zeros(window.times_s.size, np.int64)
        for gpus in range(self._levels, 0, -1):
            change = (free_after >= gpus).view(np.int8) - (free_before >= gpus).view(np.int8)
            has_server = self._servers_by_free[gpus] + np.cumsum(change, dtype=np.int64)[window.changes.last_rows] > 0
            if has_server.all():
                # All lower numbers follow.
                largest += gpus
                break
            largest += has_server
        counts = (np.bincount(free, minlength=self._levels + 1) for free in (free_after, free_before))
        self._servers_by_free += self._count_at_least(np.subtract(*counts))
        return largest

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return (OCCUPANCY, FRAGMENTATION)."""
        rows, level_rows = [], []
        sums = {name: [*values, values.sum()] for name, values in self._sums.items()}
        names = [f"{100 * index // BINS}-{100 * (index + 1) // BINS}%" for index in range(BINS)] + ["all"]
        for index, load in enumerate(names if sums else []):
            totals = {name: values[index] for name, values in sums.items()}
            row, levels = self._load_rows(totals)
            shared = {"load": load, "time_s": totals["time_s"], "n": totals["n"]}
            row["time_share"] = totals["time_s"] / sums["time_s"][-1]
            rows.append(shared | row)
            level_rows += [shared | piece for piece in levels]
        return OCCUPANCY.frame(rows), FRAGMENTATION.frame(level_rows)

    def _load_rows(self, sums: dict[str, int]) -> tuple[dict, list[dict]]:
        """Return the occupancy row and the fragmentation rows of one load, from its sums over time."""
        levels = [*map(str, LEVELS), WHOLE]
        time_s = sums["time_s"]
        if not time_s:
            no_time = {"reason": "the load was never there"}
            return no_time, [{"free_at_least": level} | no_time for level in levels]
        free_milli_s = self._total * time_s - sums["used"]
        row = {
            "gpus_in_use_share": sums["used"] / (self._total * time_s),
            "servers_empty_share": sums["empty"] / (self._servers * time_s),
            "servers_partly_share": (self._servers * time_s - sums["empty"] - sums["full"]) / (self._servers * time_s),
            "servers_full_share": sums["full"] / (self._servers * time_s),
            "free_gpus": free_milli_s / (GPU * time_s),
            "largest_free_gpus": sum(sums[f"placeable {gpus}"] for gpus in range(1, self._levels + 1)) / time_s,
        }
        return row, [
            {
                "free_at_least": level,
                "free_gpus_share": divide(sums[f"free {level}"], free_milli_s),
                "placeable_time_share": sums.get(f"placeable {level}", 0) / time_s,
                "reason": None if free_milli_s else "no GPU is free",
            }
            for level in levels
        ]


class LoadOverTime:
    """GPUs in use in steps of equal length; add all windows in any order.

    The first and the last step are cut to the period in which GPUs were held.
    """

    def __init__(self, allocations: GpuAllocations, servers: Servers) -> None:
        first_s, last_s = allocations.first_s, allocations.last_s
        step_s = next((step for step in STEPS_S if (last_s - 1) // step - first_s // step < MOST_STEPS), None)
        self._length = step_s or -(-(last_s - first_s) // (MOST_STEPS - 1))
        self._origin_s = first_s // self._length * self._length
        # One more edge than steps; no steps if no GPU is held.
        self._edges = np.append(np.arange(self._origin_s, last_s, self._length), last_s).clip(first_s)
        self._total = servers.total_milli
        self._used, self._peak = np.zeros((2, self._edges.size), np.int64)

    def _step_index(self, time_s: np.ndarray) -> np.ndarray:
        """Return the step of each time between the edges."""
        return (time_s - self._origin_s) // self._length

    def add(self, window: Window) -> None:
        """Add the GPUs in use during a window."""
        times = window.times_s
        edges = self._edges[(self._edges > times[0]) & (self._edges < times[-1] + window.length_s[-1])]
        # The steps that begin between two moments begin with what is in use from the first of these on.
        positions = np.searchsorted(times, edges, side="right")
        in_use = np.insert(window.in_use_milli, positions, window.in_use_milli[positions - 1])
        length = np.diff(np.insert(times, positions, edges), append=times[-1] + window.length_s[-1])
        step = self._step_index(np.insert(times, positions, edges))
        np.add.at(self._used, step, in_use * length)
        first_rows = run_starts(step)
        self._peak[step[first_rows]] = np.maximum(self._peak[step[first_rows]], np.maximum.reduceat(in_use, first_rows))

    def table(self) -> pl.DataFrame:
        """Return LOAD_OVER_TIME."""
        columns = (self._edges[:-1], np.diff(self._edges), self._used[:-1], self._peak[:-1])
        rows = []
        for start, seconds, used, peak in zip(*(values.tolist() for values in columns), strict=True):
            mean = used / seconds
            row = {"start_s": start, "time_s": seconds, "gpus": self._total // GPU}
            row |= {"gpus_in_use_mean": mean / GPU, "gpus_in_use_max": peak / GPU}
            rows.append(row | {"gpus_in_use_share": mean / self._total})
        return LOAD_OVER_TIME.frame(rows)
