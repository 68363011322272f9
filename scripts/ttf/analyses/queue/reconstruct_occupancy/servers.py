"""The servers of a cluster one after another: what they hold, what was in use of each, and whose it was.

Then all of them together, one window of time after the other: sorted by time, running sums are counts over the cluster.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ttf.analyses.queue.reconstruct_occupancy import SERVER_SHARING
from ttf.analyses.queue.reconstruct_occupancy.holdings import GPU, Holdings, Spill
from ttf.engine.exact_sums import dot, group_sums
from ttf.records.jobs import GPU_BUCKETS
from ttf.stats.basics.order import first_of_each, last_of_each, order_by, sorted_rows
from ttf.stats.shares import part_of

# Of the sizes of attempts that have a row.
NAMES = [name for name, (low, _) in GPU_BUCKETS.items() if low > 1]
SIZES = len(NAMES) + 1


@dataclass(frozen=True)
class Servers:
    """What the sweep over all servers found.

    capacity_milli: of each server, what a table says, else the most ever in use at once, rounded up to whole GPUs.
    in_use_milli_s, above_milli_s: GPU time, and what of it exceeds what its server holds. milli_s, alone_milli_s: of
    the attempts of each class, their GPU time, and that while no other attempt held a GPU of the server; Python's
    integers. On the disk by window (`Holdings.window_of`): moments, the second at which placements of a server start or
    end, and the state of the server (`state_of`) before and after it, each up to what it holds; changes of what is in
    use of accounts: the second, the account and by how many milli-GPU.
    """

    capacity_milli: np.ndarray
    in_use_milli_s: int
    above_milli_s: int
    milli_s: np.ndarray
    alone_milli_s: np.ndarray
    moments: Spill
    changes_of_accounts: Spill

    @property
    def total_milli(self) -> int:
        """Milli-GPU of all servers."""
        return int(self.capacity_milli.sum())


def state_of(free_milli: np.ndarray, holds_milli: np.ndarray) -> np.ndarray:
    """What is free of a server and whether that is all of it, in one whole number."""
    return 2 * free_milli + (free_milli == holds_milli)


def free_of(state: np.ndarray) -> np.ndarray:
    """Free milli-GPU of servers in these states."""
    return state >> 1


def is_empty(state: np.ndarray) -> np.ndarray:
    """1 of servers of which nothing is in use, by their states, else 0."""
    return state & 1


def has_free(state: np.ndarray, gpus: int) -> np.ndarray:
    """1 of servers that have so many free GPUs or more, by their states, else 0."""
    return (state >= 2 * gpus * GPU).view(np.int8)


def is_full(state: np.ndarray) -> np.ndarray:
    """1 of servers of which nothing is free, by their states, else 0."""
    return (state == 0).view(np.int8)


def sweep_servers(held: Holdings, class_of: np.ndarray, classes: int, folder: Path) -> Servers:
    """Sweep over all servers. class_of: of each attempt, from 0 to below `classes`; folder: for what is spilled."""
    capacity = held.known_milli.copy()
    milli_s, alone_milli_s = np.zeros((2, classes), object)
    used = above = 0
    windows = held.cuts_s.size + 1
    moments = Spill(folder / "moments", windows, 3)
    changes = Spill(folder / "changes_of_accounts", windows, 3)
    for part in range(held.by_server.parts):
        node, unit, start, end, gpu, *accounts = held.by_server.read(part)
        if not node.size:
            continue
        milli_s += group_sums(class_of[unit], gpu * (end - start), classes)
        at = _moments(node, unit, start, end, gpu)
        first = first_of_each(at.node)
        highest = np.maximum.reduceat(at.in_use, first)
        server = at.node[first]
        capacity[server] = np.where(capacity[server] > 0, capacity[server], -(-highest // GPU) * GPU)
        holds = capacity[at.node]
        # From the last moment of a server to the first of the next nothing is in use.
        length = np.diff(at.time, append=at.time[-1])
        used += dot(at.in_use, length)
        above += dot(np.maximum(at.in_use - holds, 0), length)
        alone = at.is_alone
        alone_milli_s += group_sums(class_of[at.unit[alone]], at.in_use[alone] * length[alone], classes)
        after = np.minimum(at.in_use, holds)
        before = np.append(0, after[:-1])  # 0 at the end of a server, so that the next begins with 0
        states = (state_of(holds - in_use, holds) for in_use in (before, after))
        moments.add(held.window_of(at.time), at.time, *states)
        for account in accounts:
            of_one = np.flatnonzero(account >= 0)
            for time, change in ((start[of_one], gpu[of_one]), (end[of_one], -gpu[of_one])):
                changes.add(held.window_of(time), time, account[of_one], change)
    # Every server holds something: one that no table knows was used. The other numbers are nobody's.
    return Servers(capacity[capacity > 0], used, above, milli_s, alone_milli_s, moments, changes)


@dataclass(frozen=True)
class _Moments:
    """Each moment at which a placement of a server starts or ends, by server and time, and what is from then on.

    is_alone: one attempt alone holds GPUs, namely `unit`.
    """

    node: np.ndarray
    time: np.ndarray
    in_use: np.ndarray
    is_alone: np.ndarray
    unit: np.ndarray


def _moments(node: np.ndarray, unit: np.ndarray, start: np.ndarray, end: np.ndarray, gpu: np.ndarray) -> _Moments:
    """Of placements of whole servers, one at least."""
    nodes, times = np.append(node, node), np.append(start, end)
    order = order_by(nodes, times)
    nodes, times = nodes[order], times[order]
    last = np.append(first_of_each(nodes, times)[1:], order.size) - 1
    is_start = order < node.size
    row, sign = np.where(is_start, order, order - node.size), np.where(is_start, 1, -1)
    there = np.cumsum(sign)[last]
    unit = unit[row]
    total = np.cumsum(sign * unit)[last]
    return _Moments(
        nodes[last],
        times[last],
        np.cumsum(sign * gpu[row])[last],
        are_all_equal(there, unit, sign, last),
        total // np.maximum(there, 1),
    )


def are_all_equal(there: np.ndarray, values: np.ndarray, sign: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Whether the numbers that are there (at least one: `there`) at each moment are all the same.

    values come (sign 1) and go (-1); last: the last change of each moment. n numbers are equal where n times the sum of
    their squares is the square of their sum; that n is the sum of (a - b)^2 over all pairs. So that this stays below
    2^64, beyond which the sums may run over, the numbers are looked at some digits at a time.
    """
    values = (values - values.min()).astype(np.uint64)
    sign = sign.astype(np.uint64)  # -1 is 2^64 - 1, which comes to the same
    n = there.astype(np.uint64)
    digits = 32 - int(there.max()).bit_length()
    found = there > 0
    for shift in range(0, max(int(values.max()).bit_length(), 1), digits):
        digit = (values >> np.uint64(shift)) & np.uint64((1 << digits) - 1)
        signed = sign * digit
        total, squares = np.cumsum(signed)[last], np.cumsum(signed * digit)[last]
        found &= n * squares == total * total
    return found


def sizes_of(attempt_milli: np.ndarray) -> np.ndarray:
    """The size of attempts by the GPUs of all their parts: 0 for one or less, else one more than the place in NAMES."""
    sizes = np.zeros(attempt_milli.size, np.int8)
    for name in NAMES:
        sizes += attempt_milli > (GPU_BUCKETS[name][0] - 1) * GPU
    return sizes


def server_sharing(sizes: np.ndarray, servers: Servers) -> pl.DataFrame:
    """How much of the GPU time of attempts on several GPUs went by on servers without another (SERVER_SHARING).

    sizes: `sizes_of` the attempts, which the servers were swept with. Attempts on less than two GPUs are in no row.
    """
    attempts = [int((sizes == size).sum()) for size in range(SIZES)]
    rows = list(zip(NAMES, *(of[1:] for of in (attempts, servers.milli_s, servers.alone_milli_s)), strict=True))
    rows.append(("all", *(sum(row[k] for row in rows) for k in (1, 2, 3))))
    return SERVER_SHARING.frame(
        {
            "group": name,
            "attempts": count,
            "gpu_hours": whole / (GPU * 3600),
            "dedicated_share": part_of(part, whole),
            "reason": None if whole else "no attempt of this size",
        }
        for name, count, whole, part in rows
    )


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
