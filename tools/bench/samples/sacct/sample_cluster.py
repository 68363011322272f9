"""Schedule jobs on nodes of eight GPUs that fail, so that the runs of the Slurm sample are possible.

A job with fewer GPUs than a node shares one; a larger job holds whole nodes. Jobs wait in order of priority and then of
submission. Jobs of high priority may preempt jobs of low priority that have run for two hours. A job that has waited
long keeps later jobs from the idle nodes. A node that fails ends all runs on it and is out of service for a while. The
next run continues from the last checkpoint. Nothing here is random.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

NODE_GPUS = 8
HIGH, NORMAL, LOW = 2, 1, 0
PREEMPTIBLE_AFTER_S = 7_200
DRAIN_AFTER_S = 6 * 3_600  # a job that has waited so long reserves idle nodes
REQUEUE_DELAY_S = 120  # from the end of a run to the request of the next
CHECKPOINT_S = 3_600
RESTART_S = 300

_END, _UP, _FAIL, _ASK, _LOOK = range(5)


@dataclass(frozen=True)
class Jobs:
    """One entry per job: its request, its work, and its final state if nothing else ends it."""

    requested_s: Sequence[int]
    gpus: Sequence[int]
    priority: Sequence[int]
    work_s: Sequence[int]
    state: Sequence[str]
    requeued_after_s: Sequence[int]  # from the start of its first run; 0: not requeued


@dataclass(frozen=True)
class Failure:
    """A failure of a node: time, node, length of the outage, and state of the runs that it ends."""

    at_s: int
    node: int
    out_s: int
    state: str


@dataclass
class Run:
    """One run of a job, or its wait for one; the state is RUNNING or PENDING until it ends."""

    job: int
    number: int
    submit_s: int
    eligible_s: int
    start_s: int | None = None
    end_s: int | None = None
    state: str = "PENDING"
    nodes: tuple[int, ...] = ()
    failed_node: int | None = None


@dataclass
class Cluster:
    jobs: Jobs
    nodes: int
    failures: Sequence[Failure]
    until_s: int
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = np.full(self.nodes, NODE_GPUS)
        self.is_up = np.ones(self.nodes, dtype=bool)
        self.jobs_by_node: list[set[int]] = [set() for _ in range(self.nodes)]
        self.running: dict[int, Run] = {}
        self.remaining_s = list(self.jobs.work_s)
        self.waiting: list[Run] = []
        self.cursor = 0
        requests = enumerate(self.jobs.requested_s)
        self.events: list[tuple[int, int, int, int]] = [(time_s, _ASK, job, 0) for job, time_s in requests]
        self.events += [(failure.at_s, _FAIL, number, 0) for number, failure in enumerate(self.failures)]
        heapq.heapify(self.events)

    def run_all(self) -> list[Run]:
        """Return every run and wait up to `until_s`, in order of request."""
        while self.events and self.events[0][0] < self.until_s:
            now_s = self.events[0][0]
            while self.events and self.events[0][0] == now_s:
                _, event_kind, item, number = heapq.heappop(self.events)
                if event_kind == _ASK:
                    self._ask(Run(item, 0, now_s, now_s))
                elif event_kind == _UP:
                    self.is_up[item] = True
                elif event_kind == _FAIL:
                    self._fail(now_s, self.failures[item])
                elif event_kind == _END and item in self.running and self.running[item].number == number:
                    self._finish(now_s, self.running[item])
            self._start_waiting_runs(now_s)
        return self.runs

    def _ask(self, run: Run) -> None:
        self.runs.append(run)
        self.waiting.append(run)

    def _fail(self, now_s: int, failure: Failure) -> None:
        if not self.is_up[failure.node]:
            return
        for job in sorted(self.jobs_by_node[failure.node]):
            run = self.running[job]
            run.failed_node = failure.node
            self._stop(now_s, run, failure.state)
        self.is_up[failure.node] = False
        heapq.heappush(self.events, (now_s + failure.out_s, _UP, failure.node, 0))

    def _finish(self, now_s: int, run: Run) -> None:
        is_requeued = run.number == 0 and 0 < self.jobs.requeued_after_s[run.job] == now_s - run.start_s
        self._stop(now_s, run, "REQUEUED" if is_requeued else self.jobs.state[run.job])

    def _stop(self, now_s: int, run: Run, state: str) -> None:
        run.end_s, run.state = now_s, state
        del self.running[run.job]
        gpus = min(NODE_GPUS, self.jobs.gpus[run.job])
        for node in run.nodes:
            self.free[node] += gpus
            self.jobs_by_node[node].discard(run.job)
        if state in ("NODE_FAIL", "PREEMPTED", "REQUEUED"):
            progress_s = max(0, now_s - run.start_s - (RESTART_S if run.number else 0))
            self.remaining_s[run.job] -= progress_s // CHECKPOINT_S * CHECKPOINT_S
            self._ask(Run(run.job, run.number + 1, now_s, now_s + REQUEUE_DELAY_S))
            heapq.heappush(self.events, (now_s + REQUEUE_DELAY_S, _LOOK, 0, 0))

    def _start_waiting_runs(self, now_s: int) -> None:
        self.waiting.sort(key=lambda run: (-self.jobs.priority[run.job], run.eligible_s, run.job))
        queue, self.waiting = self.waiting, []  # preempted jobs join the new queue
        is_draining, smallest_refused = False, NODE_GPUS
        for run in queue:
            gpus = self.jobs.gpus[run.job]
            nodes = None
            if run.eligible_s > now_s:
                pass
            elif gpus < NODE_GPUS:
                if gpus < smallest_refused:
                    nodes = self._find_partial_node(gpus, is_draining)
                    smallest_refused = gpus if nodes is None else smallest_refused
            elif not is_draining:
                nodes = self._find_idle_nodes(now_s, gpus // NODE_GPUS, self.jobs.priority[run.job])
                is_draining = nodes is None and now_s - run.eligible_s >= DRAIN_AFTER_S
            if nodes is None:
                self.waiting.append(run)
            else:
                self._start(now_s, run, nodes)

    def _find_partial_node(self, gpus: int, is_draining: bool) -> tuple[int, ...] | None:
        """Find the node that the job fills best; while others wait for whole nodes, only among partly used ones."""
        fits = self.is_up & (self.free >= gpus)
        if is_draining:
            fits &= self.free < NODE_GPUS
        candidates = np.flatnonzero(fits)
        return (int(candidates[np.argmin(self.free[candidates])]),) if len(candidates) else None

    def _find_idle_nodes(self, now_s: int, count: int, priority: int) -> tuple[int, ...] | None:
        """Find `count` idle nodes after those used last; at high priority also nodes of preempted runs."""
        idle = np.flatnonzero(self.is_up & (self.free == NODE_GPUS))
        if len(idle) < count and priority == HIGH:
            self._preempt(now_s, count - len(idle))
            idle = np.flatnonzero(self.is_up & (self.free == NODE_GPUS))
        if len(idle) < count:
            return None
        first = int(np.searchsorted(idle, self.cursor))
        picked = np.sort(np.roll(idle, -first)[:count])
        self.cursor = (int(np.roll(idle, -first)[count - 1]) + 1) % self.nodes
        return tuple(picked.tolist())

    def _preempt(self, now_s: int, count: int) -> None:
        """End runs of low priority on whole nodes, youngest first, if that frees `count` nodes."""
        candidates = [
            run
            for run in self.running.values()
            if self.jobs.priority[run.job] == LOW
            and self.jobs.gpus[run.job] >= NODE_GPUS
            and now_s - run.start_s >= PREEMPTIBLE_AFTER_S
        ]
        candidates.sort(key=lambda run: (-run.start_s, run.job))
        victims, freed = [], 0
        for run in candidates:
            if freed >= count:
                break
            victims.append(run)
            freed += len(run.nodes)
        if freed >= count:
            for run in victims:
                self._stop(now_s, run, "PREEMPTED")

    def _start(self, now_s: int, run: Run, nodes: tuple[int, ...]) -> None:
        run.start_s, run.state, run.nodes = now_s, "RUNNING", nodes
        self.running[run.job] = run
        gpus = min(NODE_GPUS, self.jobs.gpus[run.job])
        for node in nodes:
            self.free[node] -= gpus
            self.jobs_by_node[node].add(run.job)
        remaining_s = self.remaining_s[run.job]
        # A user may requeue the first run; a later run has to restart.
        length_s = remaining_s + RESTART_S if run.number else self.jobs.requeued_after_s[run.job] or remaining_s
        end_s = now_s + length_s
        heapq.heappush(self.events, (end_s, _END, run.job, run.number))
