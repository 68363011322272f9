"""All servers of a cluster together, one window of time after the other.

What the servers do at each moment (`servers`), sorted by time: the running sums are counts over the cluster.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ttf.analyses.reconstruct_occupancy.holdings import Holdings
from ttf.analyses.reconstruct_occupancy.servers import Servers, free_of, state_of
from ttf.stats.order import last_of_each, sorted_rows


@dataclass(frozen=True)
class Changes:
    """What the servers do in a window: their states before and after (`servers.state_of`), by time.

    last: the place of the last of them at each moment of the window.
    """

    before: np.ndarray
    after: np.ndarray
    last: np.ndarray


class Sum:
    """Of a value of a server's state: its sum over the servers of a cluster. To be asked of every window, in order."""

    def __init__(self, servers: Servers, value: Callable[[np.ndarray], np.ndarray]) -> None:
        self._value = value
        self._now = int(value(state_of(servers.capacity_milli, servers.capacity_milli)).sum())

    def over(self, changes: Changes) -> np.ndarray:
        """Int64: before the window, and from each of its moments on."""
        change = self._value(changes.after) - self._value(changes.before)
        found = np.append(0, np.cumsum(change, dtype=np.int64)[changes.last]) + self._now
        self._now = int(found[-1])
        return found


@dataclass(frozen=True)
class Window:
    """The cluster from the first moment of a window to that of the next.

    number: its place; times_s: its moments, at which placements start or end, ascending, the first when it begins;
    length_s: from each to the next, 0 from the very last on; in_use_milli: of all servers, from each on.
    """

    number: int
    times_s: np.ndarray
    length_s: np.ndarray
    in_use_milli: np.ndarray
    changes: Changes


def windows(held: Holdings, servers: Servers) -> Iterator[Window]:
    """The windows in the order of time; none where nothing is held."""
    if held.is_empty:
        return
    free = Sum(servers, free_of)
    size = np.int32 if servers.capacity_milli.max() < 2**30 else np.int64
    for number, end_s in enumerate([*held.cuts_s.tolist(), held.last_s]):
        time, before, after = sorted_rows(*servers.moments.read(number))
        last = last_of_each(time)
        changes = Changes(before.astype(size), after.astype(size), last)
        in_use = servers.total_milli - free.over(changes)[1:]
        yield Window(number, time[last], np.diff(time[last], append=end_s), in_use, changes)
