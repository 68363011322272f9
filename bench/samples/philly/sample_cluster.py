"""A gang scheduler over a handful of machines, so that the attempts of the Philly sample could have happened.

A GPU is held by one attempt at a time. Every virtual cluster has a quota; it may borrow beyond it while much is free.
An attempt first wants as few servers as there can be, and takes more of them the longer it has waited (after Jeon et
al., ATC'19). Within these rules the attempts start in the order they came, and smaller ones pass those that do not fit.
Times are whole seconds; nothing is drawn here.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

RETRY_TIMER_S = 180  # from the end of an attempt to the next being asked for
TWICE_THE_SERVERS_AFTER_S = 600  # a waiting attempt takes up to twice the fewest servers
ANY_SERVERS_AFTER_S = 3_600  # and then as many as it needs
MOST_SERVERS = 32
BORROW_WHILE_FREE_SHARE = 0.25  # of all GPUs, left free after the start
SERVER_GPUS = 8  # of the larger machines

_END, _ASK, _LOOK = range(3)


@dataclass(frozen=True)
class Attempt:
    """One try at a job: when it was asked for, started and would end, and the GPUs it holds, by machine."""

    job: int
    number: int
    asked_s: int
    start_s: int
    end_s: int
    held: dict[int, list[int]]


@dataclass
class Cluster:
    """The free GPUs of every machine, in ascending order."""

    gpus: Sequence[int]
    free: list[list[int]] = field(init=False)
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.free = [list(range(count)) for count in self.gpus]
        self.left = sum(self.gpus)

    def place(self, wanted: int, most_servers: int) -> dict[int, int] | None:
        """Machine -> GPUs to take there, on as few servers as are free now; None where that is more than allowed.

        One server: the one that it fills best. Several: those with the most free.
        """
        if wanted > self.left:
            return None
        best = min(
            (machine for machine, free in enumerate(self.free) if len(free) >= wanted),
            key=lambda machine: len(self.free[machine]),
            default=None,
        )
        if best is not None:
            return {best: wanted}
        share: dict[int, int] = {}
        for machine in sorted(range(len(self.free)), key=lambda machine: -len(self.free[machine])):
            share[machine] = min(wanted, len(self.free[machine]))
            wanted -= share[machine]
            if not wanted:
                return share
            if len(share) == most_servers:
                return None
        return None

    def take(self, share: dict[int, int]) -> dict[int, list[int]]:
        held = {}
        for machine, count in share.items():
            held[machine], self.free[machine] = self.free[machine][:count], self.free[machine][count:]
            self.left -= count
        return held

    def give_back(self, held: dict[int, list[int]]) -> None:
        for machine, gpus in held.items():
            self.free[machine] = sorted(self.free[machine] + gpus)
            self.left += len(gpus)


def fewest_servers(gpus: int) -> int:
    return -(-gpus // SERVER_GPUS)


def run(
    machine_gpus: Sequence[int],
    quota: Sequence[int],
    account: Sequence[int],
    gpus: Sequence[int],
    asked_s: Sequence[int],
    durations_s: Sequence[Sequence[int]],
    until_s: int,
) -> list[Attempt]:
    """The attempts that started before `until_s`, in the order they started.

    machine_gpus: GPUs of each machine; quota: GPUs of each virtual cluster. Of each job: its virtual cluster, its GPUs,
    when it is first asked for, and how long each of its attempts runs (none: it is never asked for).
    """
    cluster = Cluster(machine_gpus)
    total = cluster.left
    used = [0] * len(quota)
    events = [(second, _ASK, job, 0) for job, second in enumerate(asked_s) if durations_s[job]]
    heapq.heapify(events)
    waiting: list[tuple[int, int, int]] = []  # asked, job, number
    running: dict[int, Attempt] = {}
    done: list[Attempt] = []
    while events and events[0][0] < until_s:
        now = events[0][0]
        while events and events[0][0] == now:
            _, what, job, number = heapq.heappop(events)
            if what == _END:
                attempt = running.pop(job)
                cluster.give_back(attempt.held)
                used[account[job]] -= gpus[job]
                if number + 1 < len(durations_s[job]):
                    heapq.heappush(events, (now + RETRY_TIMER_S, _ASK, job, number + 1))
            elif what == _ASK:
                waiting.append((now, job, number))
                for later in (TWICE_THE_SERVERS_AFTER_S, ANY_SERVERS_AFTER_S):
                    heapq.heappush(events, (now + later, _LOOK, job, number))
        still = []
        for asked, job, number in waiting:
            wanted, owner = gpus[job], account[job]
            share = None
            is_within = used[owner] + wanted <= quota[owner]
            if is_within or cluster.left - wanted >= BORROW_WHILE_FREE_SHARE * total:
                share = cluster.place(wanted, _most_servers(wanted, now - asked))
            if share is None:
                still.append((asked, job, number))
                continue
            attempt = Attempt(job, number, asked, now, now + durations_s[job][number], cluster.take(share))
            used[owner] += wanted
            running[job] = attempt
            done.append(attempt)
            heapq.heappush(events, (attempt.end_s, _END, job, number))
        waiting = still
    return done


def _most_servers(gpus: int, waited_s: int) -> int:
    if waited_s >= ANY_SERVERS_AFTER_S:
        return MOST_SERVERS
    return fewest_servers(gpus) * (2 if waited_s >= TWICE_THE_SERVERS_AFTER_S else 1)
