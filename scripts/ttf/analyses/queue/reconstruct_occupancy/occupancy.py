"""How full the servers of a cluster were, by load and over time, and the jobs that run and wait.

After Jeon et al. (ATC 2019). All of it is whole numbers (seconds, milli-GPU), divided last.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from ttf.analyses.queue.reconstruct_occupancy import FRAGMENTATION, LOAD_OVER_TIME, OCCUPANCY, OCCUPANCY_BASIS
from ttf.analyses.queue.reconstruct_occupancy.holdings import GPU, Holdings
from ttf.analyses.queue.reconstruct_occupancy.servers import Servers, Sum, Window, free_of, has_free, is_empty, is_full
from ttf.engine.exact_sums import group_sums
from ttf.records.jobs import whole_gpus
from ttf.stats.basics.order import first_of_each
from ttf.stats.shares import part_of

BINS = 10
# Free GPUs of a server that are asked about: what jobs ask for.
LEVELS = (1, 2, 4, 8)
# A server with more free GPUs counts as one with so many.
MOST_FREE = 64
WHOLE = "whole server"
NOTHING_HELD = "no placement held a GPU for a known time"


# Lengths of a step of load_over_time, from a minute on; the shortest that gives at most MOST_STEPS.
STEPS_S = (60, 600, 3_600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000)
MOST_STEPS = 150


def basis(held: Holdings, servers: Servers, load: pl.DataFrame) -> pl.DataFrame:
    """What the occupancy rests on (OCCUPANCY_BASIS), one row; load: LOAD_OVER_TIME.

    gpus: of all servers, all the time, as nothing says when a server came or went. GPU time above capacity is cut off.
    """
    count = servers.capacity_milli.size
    row = held.counts | {"servers": count, "gpus": servers.total_milli // GPU}
    if held.is_empty:
        row |= {"reason": NOTHING_HELD}
    else:
        row |= {
            "servers_by_use": count - int((held.known_milli > 0).sum()),
            "above_capacity_share": servers.above_milli_s / servers.in_use_milli_s,
            "peak_share": (load["gpus_in_use_max"] / load["gpus"]).max(),
            "start_s": held.first_s,
            "end_s": held.last_s,
        }
    return OCCUPANCY_BASIS.frame([row])


def _free_in(state: np.ndarray, are_in: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Free milli-GPU of servers in these states, 0 of those that are not chosen by them."""
    return free_of(state) * are_in(state)


class Occupancy:
    """Time-weighted means by tenth of the load, and over all the time; of the windows, added in order.

    10-20% is from 10 to below 20 %. largest_free_gpus: of the server with the most, at most MOST_FREE. Fragmentation
    is asked of LEVELS and `whole server` (nothing of it in use). A load that never was has a reason.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers, self._total = servers.capacity_milli.size, servers.total_milli
        self._levels = min(int(servers.capacity_milli.max(initial=0)) // GPU, MOST_FREE)
        # Servers with so many free GPUs or more.
        self._with_free = self._above(np.bincount(self._free(servers.capacity_milli), minlength=self._levels + 1))
        self._empty, self._full = Sum(servers, is_empty), Sum(servers, is_full)
        are_in = {str(gpus): partial(has_free, gpus=gpus) for gpus in LEVELS} | {WHOLE: is_empty}
        self._free_in = {level: Sum(servers, partial(_free_in, are_in=of)) for level, of in are_in.items()}
        # Of each tenth, by what is summed over the time; Python's integers.
        self._sums = defaultdict(lambda: np.zeros(BINS, object))

    def add(self, window: Window) -> None:
        """The next window."""
        seconds = window.length_s
        tenth = np.minimum(window.in_use_milli * BINS // self._total, BINS - 1)

        def add(name: str, values: np.ndarray) -> None:
            self._sums[name] += group_sums(tenth, values, BINS)

        add("n", (seconds > 0).astype(np.int64))
        add("time_s", seconds)
        add("used", window.in_use_milli * seconds)
        empty = self._empty.over(window.changes)[1:]
        add("empty", empty * seconds)
        add("full", self._full.over(window.changes)[1:] * seconds)
        add(f"placeable {WHOLE}", (empty > 0) * seconds)
        largest_free = self._largest_free(window)
        cell = tenth * (self._levels + 1) + largest_free
        at_level = group_sums(cell, seconds, BINS * (self._levels + 1)).reshape(BINS, self._levels + 1)
        for gpus, at_least in enumerate(np.cumsum(at_level.T[::-1], axis=0)[::-1]):
            self._sums[f"placeable {gpus}"] += at_least
        for level, free in self._free_in.items():
            add(f"free {level}", free.over(window.changes)[1:] * seconds)

    def _free(self, milli: np.ndarray) -> np.ndarray:
        """Whole GPUs, at most as many as are asked about."""
        return np.minimum(milli // GPU, self._levels)

    @staticmethod
    def _above(servers: np.ndarray) -> np.ndarray:
        """Of servers with exactly so many free GPUs: those with so many or more."""
        return np.cumsum(servers[::-1])[::-1]

    def _largest_free(self, window: Window) -> np.ndarray:
        """The free GPUs of the server with the most, from each moment of the window on; of the next window."""
        before, after = (self._free(free_of(state)) for state in (window.changes.before, window.changes.after))
        found = np.zeros(window.times_s.size, np.int64)
        for gpus in range(self._levels, 0, -1):
            change = (after >= gpus).view(np.int8) - (before >= gpus).view(np.int8)
            is_there = self._with_free[gpus] + np.cumsum(change, dtype=np.int64)[window.changes.last] > 0
            if is_there.all():
                # So it is of every lower number.
                found += gpus
                break
            found += is_there
        changed = (np.bincount(of, minlength=self._levels + 1) for of in (after, before))
        self._with_free += self._above(np.subtract(*changed))
        return found

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """(OCCUPANCY, FRAGMENTATION)."""
        rows, pieces = [], []
        sums = {what: [*of_tenths, of_tenths.sum()] for what, of_tenths in self._sums.items()}
        names = [f"{100 * k // BINS}-{100 * (k + 1) // BINS}%" for k in range(BINS)] + ["all"]
        for k, name in enumerate(names if sums else []):
            of_load = {what: of_loads[k] for what, of_loads in sums.items()}
            row, of_levels = self._row(of_load)
            shared = {"load": name, "time_s": of_load["time_s"], "n": of_load["n"]}
            row["time_share"] = of_load["time_s"] / sums["time_s"][-1]
            rows.append(shared | row)
            pieces += [shared | piece for piece in of_levels]
        return OCCUPANCY.frame(rows), FRAGMENTATION.frame(pieces)

    def _row(self, sums: dict[str, int]) -> tuple[dict, list[dict]]:
        """What the sums over the time at one load say: of occupancy, and of each level of fragmentation."""
        levels = [*map(str, LEVELS), WHOLE]
        time_s = sums["time_s"]
        if not time_s:
            never = {"reason": "the load was never there"}
            return never, [{"free_at_least": level} | never for level in levels]
        free = self._total * time_s - sums["used"]
        row = {
            "gpus_in_use_share": sums["used"] / (self._total * time_s),
            "servers_empty_share": sums["empty"] / (self._servers * time_s),
            "servers_partly_share": (self._servers * time_s - sums["empty"] - sums["full"]) / (self._servers * time_s),
            "servers_full_share": sums["full"] / (self._servers * time_s),
            "free_gpus": free / (GPU * time_s),
            "largest_free_gpus": sum(sums[f"placeable {gpus}"] for gpus in range(1, self._levels + 1)) / time_s,
        }
        return row, [
            {
                "free_at_least": level,
                "free_gpus_share": part_of(sums[f"free {level}"], free),
                "placeable_time_share": sums.get(f"placeable {level}", 0) / time_s,
                "reason": None if free else "no GPU is free",
            }
            for level in levels
        ]


class LoadOverTime:
    """GPUs in use, and jobs that run and wait, in steps of equal length; of all windows and jobs, added in any order.

    jobs: the common record; those with a GPU count. One that runs does so to the trace's end, as one with the outcome
    `waiting` waits; one without these times counts in neither. The first and the last step are cut to the time between
    the first and the last moment that a GPU was held.
    """

    def __init__(self, held: Holdings, servers: Servers) -> None:
        first, last = held.first_s, held.last_s
        length = next((step for step in STEPS_S if (last - 1) // step - first // step < MOST_STEPS), None)
        self._length = length or -(-(last - first) // (MOST_STEPS - 1))
        self._origin_s = first // self._length * self._length
        # One more than there are steps, of which there are none where nothing is held.
        self._edges = np.append(np.arange(self._origin_s, last, self._length), last).clip(first)
        self._total = servers.total_milli
        self._used, self._most = np.zeros((2, self._edges.size), np.int64)
        # Starts less ends, of running and of waiting, by step: how many, and their seconds since the first edge.
        self._begun, self._begun_s = np.zeros((2, 2, self._edges.size), np.int64)

    def _step_of(self, time_s: np.ndarray) -> np.ndarray:
        """The step that times between the edges are in."""
        return (time_s - self._origin_s) // self._length

    def add(self, window: Window) -> None:
        """A window."""
        times = window.times_s
        edges = self._edges[(self._edges > times[0]) & (self._edges < times[-1] + window.length_s[-1])]
        # The steps that begin between two moments begin with what is in use from the first of these on.
        place = np.searchsorted(times, edges, side="right")
        in_use = np.insert(window.in_use_milli, place, window.in_use_milli[place - 1])
        length = np.diff(np.insert(times, place, edges), append=times[-1] + window.length_s[-1])
        step = self._step_of(np.insert(times, place, edges))
        np.add.at(self._used, step, in_use * length)
        first = first_of_each(step)
        self._most[step[first]] = np.maximum(self._most[step[first]], np.maximum.reduceat(in_use, first))

    def add_jobs(self, jobs: pl.DataFrame) -> None:
        """Some jobs, each once."""
        first, last = self._edges[[0, -1]]
        for kind, spans in enumerate(_spans(jobs)):
            for times, sign in zip(spans, (1, -1), strict=True):
                times = times.clip(first, last)
                step = self._step_of(times)
                self._begun[kind] += sign * np.bincount(step, minlength=self._edges.size)
                self._begun_s[kind] += sign * group_sums(step, times - first, self._edges.size)

    def table(self) -> pl.DataFrame:
        """The table LOAD_OVER_TIME."""
        length = np.diff(self._edges)
        # Up to each edge: the seconds from the starts before it on, less those from the ends before it on.
        before, before_s = (np.cumsum(of, axis=1) - of for of in (self._begun, self._begun_s))
        running, waiting = np.diff(before * (self._edges - self._edges[0]) - before_s, axis=1)
        rows = []
        for start, seconds, used, most, run, wait in zip(
            *(of.tolist() for of in (self._edges[:-1], length, self._used[:-1], self._most[:-1], running, waiting)),
            strict=True,
        ):
            mean = used / seconds
            row = {"start_s": start, "time_s": seconds, "gpus": self._total // GPU}
            row |= {"gpus_in_use_mean": mean / GPU, "gpus_in_use_max": most / GPU}
            row |= {"gpus_in_use_share": mean / self._total}
            rows.append(row | {"running_mean": run / seconds, "waiting_mean": wait / seconds})
        return LOAD_OVER_TIME.frame(rows)


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
