"""Sweep over servers, one after another: their size, GPUs in use, and by which attempt.

Then over time, one window after another: with states sorted by time, running sums are counts over the cluster.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ttf.analyses.queue.reconstruct_occupancy import SERVER_SHARING
from ttf.engine.exact_sums import dot, group_sums
from ttf.engine.storage.spill import Spill
from ttf.records.gpu_allocations import GPU, GpuAllocations
from ttf.records.jobs import GPU_BUCKETS
from ttf.stats.basics.order import run_ends, run_starts, sort_order, sort_rows
from ttf.stats.shares import divide

# Size classes of attempts that have a row.
NAMES = [name for name, (low, _) in GPU_BUCKETS.items() if low > 1]
SIZES = len(NAMES) + 1


@dataclass(frozen=True)
class Servers:
    """Result of the sweep over all servers.

    capacity_milli: recorded size of each server, else the most ever in use at once, rounded up to whole GPUs.
    in_use_milli_s, excess_milli_s: GPU time, and its part above the size of the server. milli_s, exclusive_milli_s: GPU
    time of the attempts of each size class, in total and while no other attempt held a GPU of the server; Python
    integers. On disk by window (`GpuAllocations.window_index`): moments: seconds when placements of a server
    start or end, its state (`encode_state`) before and after; account_changes: second, account, change in milli-GPU.
    """

    capacity_milli: np.ndarray
    in_use_milli_s: int
    excess_milli_s: int
    milli_s: np.ndarray
    exclusive_milli_s: np.ndarray
    moments: Spill
    account_changes: Spill

    @property
    def total_milli(self) -> int:
        return int(self.capacity_milli.sum())


def encode_state(free_milli: np.ndarray, holds_milli: np.ndarray) -> np.ndarray:
    """Encode the free milli-GPU of a server, and whether it is empty, as one integer."""
    return 2 * free_milli + (free_milli == holds_milli)


def decode_free_milli(state: np.ndarray) -> np.ndarray:
    return state >> 1


def is_empty(state: np.ndarray) -> np.ndarray:
    """Return 1 for servers with nothing in use, else 0."""
    return state & 1


def has_free(state: np.ndarray, gpus: int) -> np.ndarray:
    """Return 1 for servers with at least so many free GPUs, else 0."""
    return (state >= 2 * gpus * GPU).view(np.int8)


def is_full(state: np.ndarray) -> np.ndarray:
    """Return 1 for servers with nothing free, else 0."""
    return (state == 0).view(np.int8)


def sweep_servers(allocations: GpuAllocations, class_by_attempt: np.ndarray, classes: int, folder: Path) -> Servers:
    """Sweep over all servers. class_by_attempt: from 0 to below `classes`; folder: for temporary files."""
    capacity = allocations.known_milli.copy()
    milli_s, exclusive_milli_s = np.zeros((2, classes), object)
    in_use_milli_s = excess_milli_s = 0
    n_windows = allocations.cuts_s.size + 1
    moments = Spill(folder / "moments", n_windows, 3)
    changes = Spill(folder / "changes_of_accounts", n_windows, 3)
    for part in range(allocations.by_server.parts):
        node, attempt, start, end, gpu, *accounts = allocations.by_server.read(part)
        if not node.size:
            continue
        milli_s += group_sums(class_by_attempt[attempt], gpu * (end - start), classes)
        events = _find_events(node, attempt, start, end, gpu)
        first_rows = run_starts(events.node)
        peak_milli = np.maximum.reduceat(events.in_use, first_rows)
        server = events.node[first_rows]
        capacity[server] = np.where(capacity[server] > 0, capacity[server], -(-peak_milli // GPU) * GPU)
        size_milli = capacity[events.node]
        # Between the last moment of a server and the first of the next, nothing is in use.
        length = np.diff(events.time, append=events.time[-1])
        in_use_milli_s += dot(events.in_use, length)
        excess_milli_s += dot(np.maximum(events.in_use - size_milli, 0), length)
        is_alone = events.is_alone
        alone_class = class_by_attempt[events.attempt[is_alone]]
        exclusive_milli_s += group_sums(alone_class, events.in_use[is_alone] * length[is_alone], classes)
        used_after = np.minimum(events.in_use, size_milli)
        used_before = np.append(0, used_after[:-1])  # each server ends at 0, so the next begins with 0
        states = (encode_state(size_milli - in_use, size_milli) for in_use in (used_before, used_after))
        moments.add(allocations.window_index(events.time), events.time, *states)
        for account in accounts:
            rows = np.flatnonzero(account >= 0)
            for time, change in ((start[rows], gpu[rows]), (end[rows], -gpu[rows])):
                changes.add(allocations.window_index(time), time, account[rows], change)
    # Every server has GPUs: an unrecorded one was used. Other numbers are unused.
    return Servers(capacity[capacity > 0], in_use_milli_s, excess_milli_s, milli_s, exclusive_milli_s, moments, changes)


@dataclass(frozen=True)
class _Events:
    """Times at which a placement of a server starts or ends, by server and time, and the state from then on.

    is_alone: only one attempt, `attempt`, holds GPUs.
    """

    node: np.ndarray
    time: np.ndarray
    in_use: np.ndarray
    is_alone: np.ndarray
    attempt: np.ndarray


def _find_events(node: np.ndarray, attempt: np.ndarray, start: np.ndarray, end: np.ndarray, gpu: np.ndarray) -> _Events:
    """Return, by server and moment, the GPUs in use from then on. node: server of each allocation; gpu: milli-GPU."""
    nodes, times = np.append(node, node), np.append(start, end)
    order = sort_order(nodes, times)
    nodes, times = nodes[order], times[order]
    last_rows = np.append(run_starts(nodes, times)[1:], order.size) - 1
    is_start = order < node.size
    event_rows, sign = np.where(is_start, order, order - node.size), np.where(is_start, 1, -1)
    n_present = np.cumsum(sign)[last_rows]
    attempt = attempt[event_rows]
    return _Events(
        nodes[last_rows],
        times[last_rows],
        np.cumsum(sign * gpu[event_rows])[last_rows],
        are_all_equal(n_present, attempt, sign, last_rows),
        np.cumsum(sign * attempt)[last_rows] // np.maximum(n_present, 1),
    )


def are_all_equal(n_present: np.ndarray, values: np.ndarray, sign: np.ndarray, last_rows: np.ndarray) -> np.ndarray:
    """Return a mask of moments at which all numbers present (n_present, at least one) are equal.

    values come (sign 1) and go (-1); last_rows: the last change of each moment. n numbers are equal if n times the sum
    of their squares is the square of their sum; the difference is the sum of (a - b)^2 over all pairs. The numbers are
    processed a few digits at a time so that these sums stay below 2^64.
    """
    values = (values - values.min()).astype(np.uint64)
    sign = sign.astype(np.uint64)  # -1 wraps to 2^64 - 1, which gives the same sums
    n = n_present.astype(np.uint64)
    digits = 32 - int(n_present.max()).bit_length()
    is_equal = n_present > 0
    for shift in range(0, max(int(values.max()).bit_length(), 1), digits):
        digit = (values >> np.uint64(shift)) & np.uint64((1 << digits) - 1)
        signed = sign * digit
        total, squares = np.cumsum(signed)[last_rows], np.cumsum(signed * digit)[last_rows]
        is_equal &= n * squares == total * total
    return is_equal


def size_classes(attempt_milli: np.ndarray) -> np.ndarray:
    """Return the size class of attempts by their total GPUs: 0 for at most one, else 1 + the index in NAMES."""
    sizes = np.zeros(attempt_milli.size, np.int8)
    for name in NAMES:
        sizes += attempt_milli > (GPU_BUCKETS[name][0] - 1) * GPU
    return sizes


def server_sharing(sizes: np.ndarray, servers: Servers) -> pl.DataFrame:
    """Return SERVER_SHARING: the share of the GPU time of multi-GPU attempts on servers without another attempt.

    sizes: `size_classes` of the attempts, as used in the sweep. Attempts on fewer than two GPUs are in no row.
    """
    attempts = [int((sizes == size).sum()) for size in range(SIZES)]
    columns = (attempts, servers.milli_s, servers.exclusive_milli_s)
    rows = list(zip(NAMES, *(values[1:] for values in columns), strict=True))
    rows.append(("all", *(sum(row[column] for row in rows) for column in (1, 2, 3))))
    return SERVER_SHARING.frame(
        {
            "group": name,
            "attempts": count,
            "gpu_hours": total / (GPU * 3600),
            "dedicated_share": divide(exclusive, total),
            "reason": None if total else "no attempt of this size",
        }
        for name, count, total, exclusive in rows
    )


@dataclass(frozen=True)
class Changes:
    """Changes of servers in a window, by time: states before and after (`encode_state`).

    last_rows: row of the last change of each moment of the window.
    """

    states_before: np.ndarray
    states_after: np.ndarray
    last_rows: np.ndarray


class StateSum:
    """Sum of a function of the state over all servers; call `advance` for every window, in order."""

    def __init__(self, servers: Servers, value: Callable[[np.ndarray], np.ndarray]) -> None:
        self._value = value
        self._total = int(value(encode_state(servers.capacity_milli, servers.capacity_milli)).sum())

    def advance(self, changes: Changes) -> np.ndarray:
        """Return the Int64 sums before the window and from each of its moments on."""
        change = self._value(changes.states_after) - self._value(changes.states_before)
        sums = np.append(0, np.cumsum(change, dtype=np.int64)[changes.last_rows]) + self._total
        self._total = int(sums[-1])
        return sums


@dataclass(frozen=True)
class Window:
    """The cluster from the first moment of a window to that of the next.

    times_s: moments at which placements start or end, ascending; length_s: seconds from each to the next, 0 after the
    very last; in_use_milli: over all servers, from each moment on.
    """

    number: int
    times_s: np.ndarray
    length_s: np.ndarray
    in_use_milli: np.ndarray
    changes: Changes


def iter_windows(allocations: GpuAllocations, servers: Servers) -> Iterator[Window]:
    """Yield the windows in order of time; none if no GPU is held."""
    if allocations.is_empty:
        return
    free = StateSum(servers, decode_free_milli)
    size = np.int32 if servers.capacity_milli.max() < 2**30 else np.int64
    for number, end_s in enumerate([*allocations.cuts_s.tolist(), allocations.last_s]):
        time, states_before, states_after = sort_rows(*servers.moments.read(number))
        last_rows = run_ends(time)
        changes = Changes(states_before.astype(size), states_after.astype(size), last_rows)
        in_use = servers.total_milli - free.advance(changes)[1:]
        yield Window(number, time[last_rows], np.diff(time[last_rows], append=end_s), in_use, changes)
