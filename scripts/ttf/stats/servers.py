"""The servers of a cluster one after another: what they hold, what was in use of each, and whose it was.

Each block of servers is swept once, for all that is asked of them.
"""

from dataclasses import dataclass

import numpy as np

from ttf.stats.exact import dot
from ttf.stats.holdings import GPU, Holdings
from ttf.stats.order import first_of_each, order_by


@dataclass(frozen=True)
class Servers:
    """What the sweep over all servers found.

    capacity_milli: of each server, what a table says, else the most ever in use at once, rounded up to whole GPUs.
    in_use_milli_s, above_milli_s: GPU time, and what of it exceeds what its server holds. Of each attempt, by its
    number: gpu_milli of all its parts, milli_s of them, and alone_milli_s, while no other attempt held a GPU of the
    server. changes: of what is in use of a server, up to what it holds: second since held.first_s, and the server's
    state (`state_of`) before and after, three arrays a block.
    """

    capacity_milli: np.ndarray
    in_use_milli_s: int
    above_milli_s: int
    gpu_milli: np.ndarray
    milli_s: np.ndarray
    alone_milli_s: np.ndarray
    changes: list[tuple[np.ndarray, np.ndarray, np.ndarray]]


def state_of(free_milli: np.ndarray, holds_milli: np.ndarray) -> np.ndarray:
    """What is free of a server and whether that is all of it, in one whole number."""
    return 2 * free_milli + (free_milli == holds_milli)


def free_of(state: np.ndarray) -> np.ndarray:
    """Free milli-GPU of servers in these states."""
    return state >> 1


def is_empty(state: np.ndarray) -> np.ndarray:
    """Whether nothing is in use of servers in these states."""
    return (state & 1).astype(bool)


def sweep_servers(held: Holdings) -> Servers:
    """Sweep over all servers, block by block; only the changes, and what is told of attempts, are kept of all."""
    capacity = held.known_milli.copy()
    of_unit = np.zeros((3, int(held.unit.max(initial=0)) + 1), np.int64)
    gpu_milli, milli_s, alone_milli_s = of_unit
    used = above = 0
    changes = [(np.zeros(0, np.int64),) * 3]
    for rows in held.by_server():
        node, unit, start, end, gpu = (
            column[rows].astype(np.int64) for column in (held.node, held.unit, held.start, held.end, held.gpu_milli)
        )
        np.add.at(gpu_milli, unit, gpu)
        np.add.at(milli_s, unit, gpu * (end - start))
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
        np.add.at(alone_milli_s, at.unit[at.is_alone], (at.in_use * length)[at.is_alone])
        after = np.minimum(at.in_use, holds)
        before = np.append(0, after[:-1])  # 0 at the end of a server, so that the next begins with 0
        is_change = before != after
        holds = holds[is_change]
        states = (state_of(holds - in_use[is_change], holds) for in_use in (before, after))
        changes.append(tuple(map(_narrow, (at.time[is_change], *states))))
    return Servers(capacity, used, above, gpu_milli, milli_s, alone_milli_s, changes)


def _narrow(values: np.ndarray) -> np.ndarray:
    """Whole numbers, not negative, in half the memory where they fit."""
    return values.astype(np.int32) if values.max(initial=0) < 2**31 else values


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
    """Whether the numbers that are there (at least one) at each moment are all the same.

    there: how many. values come (sign 1) and go (-1); last: the last change of each moment. n numbers are equal where
    n times the sum of their squares is the square of their sum; that n is the sum of (a - b)^2 over all pairs. So that
    this stays below 2^64, beyond which the sums may run over, the numbers are looked at some digits at a time.
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
