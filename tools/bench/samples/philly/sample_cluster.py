"""Schedule gangs on a few machines, so that the attempts of the Philly sample are possible.

One attempt at a time holds a GPU. Every virtual cluster has a quota and may exceed it while many GPUs are free. An
attempt first requires the fewest possible servers and accepts more of them the longer it waits (after Jeon et al.,
ATC'19). Attempts start in order of request; smaller ones pass those that do not fit. Times are whole seconds; nothing
here is random.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

RETRY_TIMER_S = 180  # from the end of an attempt to the request of the next
TWICE_THE_SERVERS_AFTER_S = 600  # then a waiting attempt accepts up to twice the fewest servers
ANY_SERVERS_AFTER_S = 3_600  # and then as many as it needs
MOST_SERVERS = 32
BORROW_WHILE_FREE_SHARE = 0.25  # of all GPUs, still free after the start
SERVER_GPUS = 8  # of the larger machines

_END, _ASK, _LOOK = range(3)


@dataclass(frozen=True)
class Attempt:
    """One attempt of a job: its times of request, start and planned end, and the GPUs that it holds by machine."""

    job: int
    number: int
    requested_s: int
    start_s: int
    end_s: int
    gpus_by_machine: dict[int, list[int]]


@dataclass
class Cluster:
    """The free GPUs of every machine, in ascending order."""

    gpus: Sequence[int]
    free: list[list[int]] = field(init=False)
    free_gpus: int = field(init=False)

    def __post_init__(self) -> None:
        self.free = [list(range(count)) for count in self.gpus]
        self.free_gpus = sum(self.gpus)

    def find_servers(self, gpus: int, most_servers: int) -> dict[int, int] | None:
        """Find the fewest servers with enough free GPUs: machine -> GPUs; None if more than `most_servers` are needed.

        If one server is enough, it is the one that the attempt fills best; else those with the most free GPUs.
        """
        if gpus > self.free_gpus:
            return None
        best_machine = min(
            (machine for machine, free in enumerate(self.free) if len(free) >= gpus),
            key=lambda machine: len(self.free[machine]),
            default=None,
        )
        if best_machine is not None:
            return {best_machine: gpus}
        share: dict[int, int] = {}
        for machine in sorted(range(len(self.free)), key=lambda machine: -len(self.free[machine])):
            share[machine] = min(gpus, len(self.free[machine]))
            gpus -= share[machine]
            if not gpus:
                return share
            if len(share) == most_servers:
                return None
        return None

    def take(self, share: dict[int, int]) -> dict[int, list[int]]:
        gpus_by_machine = {}
        for machine, count in share.items():
            gpus_by_machine[machine], self.free[machine] = self.free[machine][:count], self.free[machine][count:]
            self.free_gpus -= count
        return gpus_by_machine

    def give_back(self, gpus_by_machine: dict[int, list[int]]) -> None:
        for machine, gpus in gpus_by_machine.items():
            self.free[machine] = sorted(self.free[machine] + gpus)
            self.free_gpus += len(gpus)


def fewest_servers(gpus: int) -> int:
    return -(-gpus // SERVER_GPUS)


def run(
    machine_gpus: Sequence[int],
    quota: Sequence[int],
    account: Sequence[int],
    gpus: Sequence[int],
    requested_s: Sequence[int],
    durations_s: Sequence[Sequence[int]],
    until_s: int,
) -> list[Attempt]:
    """Return the attempts that started before `until_s`, in order of start.

    machine_gpus: GPUs by machine; quota: GPUs by virtual cluster. By job: account (its virtual cluster), GPUs, time of
    the first request, and run time of each attempt (none: it is never requested).
    """
    cluster = Cluster(machine_gpus)
    total = cluster.free_gpus
    used = [0] * len(quota)
    events = [(second, _ASK, job, 0) for job, second in enumerate(requested_s) if durations_s[job]]
    heapq.heapify(events)
    waiting: list[tuple[int, int, int]] = []  # asked, job, number
    running: dict[int, Attempt] = {}
    attempts: list[Attempt] = []
    while events and events[0][0] < until_s:
        now_s = events[0][0]
        while events and events[0][0] == now_s:
            _, event_kind, job, number = heapq.heappop(events)
            if event_kind == _END:
                attempt = running.pop(job)
                cluster.give_back(attempt.gpus_by_machine)
                used[account[job]] -= gpus[job]
                if number + 1 < len(durations_s[job]):
                    heapq.heappush(events, (now_s + RETRY_TIMER_S, _ASK, job, number + 1))
            elif event_kind == _ASK:
                waiting.append((now_s, job, number))
                for wait_s in (TWICE_THE_SERVERS_AFTER_S, ANY_SERVERS_AFTER_S):
                    heapq.heappush(events, (now_s + wait_s, _LOOK, job, number))
        still_waiting = []
        for request_s, job, number in waiting:
            job_gpus, account_index = gpus[job], account[job]
            share = None
            fits_quota = used[account_index] + job_gpus <= quota[account_index]
            if fits_quota or cluster.free_gpus - job_gpus >= BORROW_WHILE_FREE_SHARE * total:
                share = cluster.find_servers(job_gpus, _most_servers(job_gpus, now_s - request_s))
            if share is None:
                still_waiting.append((request_s, job, number))
                continue
            attempt = Attempt(job, number, request_s, now_s, now_s + durations_s[job][number], cluster.take(share))
            used[account_index] += job_gpus
            running[job] = attempt
            attempts.append(attempt)
            heapq.heappush(events, (attempt.end_s, _END, job, number))
        waiting = still_waiting
    return attempts


def _most_servers(gpus: int, waited_s: int) -> int:
    if waited_s >= ANY_SERVERS_AFTER_S:
        return MOST_SERVERS
    return fewest_servers(gpus) * (2 if waited_s >= TWICE_THE_SERVERS_AFTER_S else 1)
