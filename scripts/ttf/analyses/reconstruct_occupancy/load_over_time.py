"""GPUs in use, and jobs that run and wait, over time. After Jeon et al. (ATC 2019).

All of it is whole numbers (seconds, milli-GPU), divided last.
"""

import numpy as np
import polars as pl

from ttf.analyses.reconstruct_occupancy import LOAD_OVER_TIME
from ttf.analyses.reconstruct_occupancy.cluster import Window
from ttf.analyses.reconstruct_occupancy.holdings import GPU, Holdings
from ttf.analyses.reconstruct_occupancy.servers import Servers
from ttf.jobs import whole_gpus
from ttf.stats.exact import group_sums
from ttf.stats.order import first_of_each, sums_of_runs

# Lengths of a step of load_over_time, from a minute on; the shortest that gives at most MOST_STEPS.
STEPS_S = (60, 600, 3_600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000)
MOST_STEPS = 150


class LoadOverTime:
    """GPUs in use, and jobs that run and wait, in steps of equal length; of all windows and jobs, added in any order.

    jobs: the common record; those with a GPU count. running: from the first start to the last end, or to the trace's
    end; waiting: from the submission to the first start, or to the trace's end where the outcome is `waiting`. One
    without these times counts in neither. A step ends where the next begins; the first and the last are cut to the time
    between the first and the last moment that a GPU was held. Means are over the time of the step.
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
        self._used += sums_of_runs(step, in_use * length, self._used.size)
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
            rows.append(
                {
                    "start_s": start,
                    "time_s": seconds,
                    "gpus": self._total // GPU,
                    "gpus_in_use_mean": mean / GPU,
                    "gpus_in_use_max": most / GPU,
                    "gpus_in_use_share": mean / self._total,
                    "running_mean": run / seconds,
                    "waiting_mean": wait / seconds,
                }
            )
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
