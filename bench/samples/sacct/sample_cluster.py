"""A scheduler over nodes of eight GPUs that fail, so that the runs of the Slurm sample could have happened.

A job of fewer GPUs than a node has shares one; a larger one holds whole nodes. Jobs wait in the order of their priority
and then of their asking. Whoever is of high priority may preempt jobs of low priority that have run for two hours. One
that has waited for long keeps those behind it from the idle nodes. A node that fails ends all runs on it and is out of
service for a while. What a run has done goes on from its last checkpoint in the next. Nothing is drawn here.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

NODE_GPUS = 8
HIGH, NORMAL, LOW = 2, 1, 0
PREEMPTIBLE_AFTER_S = 7_200
DRAIN_AFTER_S = 6 * 3_600  # a job that has waited so long keeps others from the nodes it waits for
REQUEUE_DELAY_S = 120  # from the end of a run to the next being asked for
CHECKPOINT_S = 3_600
RESTART_S = 300

_END, _UP, _FAIL, _ASK, _LOOK = range(5)


@dataclass(frozen=True)
class Jobs:
    """One entry per job: what it asks for, how much work it has, how it ends if nothing else ends it."""

    asked_s: Sequence[int]
    gpus: Sequence[int]
    priority: Sequence[int]
    work_s: Sequence[int]
    state: Sequence[str]
    requeued_after_s: Sequence[int]  # into its first run; 0: not


@dataclass(frozen=True)
class Failure:
    """A node fails: when, which, for how long it is gone; whether the runs on it end NODE_FAIL or FAILED."""

    at_s: int
    node: int
    out_s: int
    state: str


@dataclass
class Run:
    """One run of a job, or its wait for one; state RUNNING or PENDING as long as it lasts."""

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
        self.on_node: list[set[int]] = [set() for _ in range(self.nodes)]
        self.running: dict[int, Run] = {}
        self.left_s = list(self.jobs.work_s)
        self.waiting: list[Run] = []
        self.cursor = 0
        self.events: list[tuple[int, int, int, int]] = [(at, _ASK, job, 0) for job, at in enumerate(self.jobs.asked_s)]
        self.events += [(failure.at_s, _FAIL, number, 0) for number, failure in enumerate(self.failures)]
        heapq.heapify(self.events)

    def run_all(self) -> list[Run]:
        """Every run and wait up to `until_s`, in the order they were asked for."""
        while self.events and self.events[0][0] < self.until_s:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                _, what, which, number = heapq.heappop(self.events)
                if what == _ASK:
                    self._ask(Run(which, 0, now, now))
                elif what == _UP:
                    self.is_up[which] = True
                elif what == _FAIL:
                    self._fail(now, self.failures[which])
                elif what == _END and which in self.running and self.running[which].number == number:
                    self._finish(now, self.running[which])
            self._start_what_fits(now)
        return self.runs

    def _ask(self, run: Run) -> None:
        self.runs.append(run)
        self.waiting.append(run)

    def _fail(self, now: int, failure: Failure) -> None:
        if not self.is_up[failure.node]:
            return
        for job in sorted(self.on_node[failure.node]):
            run = self.running[job]
            run.failed_node = failure.node
            self._stop(now, run, failure.state)
        self.is_up[failure.node] = False
        heapq.heappush(self.events, (now + failure.out_s, _UP, failure.node, 0))

    def _finish(self, now: int, run: Run) -> None:
        is_requeued = run.number == 0 and 0 < self.jobs.requeued_after_s[run.job] == now - run.start_s
        self._stop(now, run, "REQUEUED" if is_requeued else self.jobs.state[run.job])

    def _stop(self, now: int, run: Run, state: str) -> None:
        run.end_s, run.state = now, state
        del self.running[run.job]
        gpus = min(NODE_GPUS, self.jobs.gpus[run.job])
        for node in run.nodes:
            self.free[node] += gpus
            self.on_node[node].discard(run.job)
        if state in ("NODE_FAIL", "PREEMPTED", "REQUEUED"):
            done_s = max(0, now - run.start_s - (RESTART_S if run.number else 0))
            self.left_s[run.job] -= done_s // CHECKPOINT_S * CHECKPOINT_S
            self._ask(Run(run.job, run.number + 1, now, now + REQUEUE_DELAY_S))
            heapq.heappush(self.events, (now + REQUEUE_DELAY_S, _LOOK, 0, 0))

    def _start_what_fits(self, now: int) -> None:
        self.waiting.sort(key=lambda run: (-self.jobs.priority[run.job], run.eligible_s, run.job))
        queue, self.waiting = self.waiting, []  # what is preempted meanwhile joins the new one
        is_draining, smallest_refused = False, NODE_GPUS
        for run in queue:
            gpus = self.jobs.gpus[run.job]
            nodes = None
            if run.eligible_s > now:
                pass
            elif gpus < NODE_GPUS:
                if gpus < smallest_refused:
                    nodes = self._part_of_a_node(gpus, is_draining)
                    smallest_refused = gpus if nodes is None else smallest_refused
            elif not is_draining:
                nodes = self._whole_nodes(now, gpus // NODE_GPUS, self.jobs.priority[run.job])
                is_draining = nodes is None and now - run.eligible_s >= DRAIN_AFTER_S
            if nodes is None:
                self.waiting.append(run)
            else:
                self._start(now, run, nodes)

    def _part_of_a_node(self, gpus: int, is_draining: bool) -> tuple[int, ...] | None:
        """The node that it fills best; one that is in part in use already while others wait for whole nodes."""
        fits = self.is_up & (self.free >= gpus)
        if is_draining:
            fits &= self.free < NODE_GPUS
        candidates = np.flatnonzero(fits)
        return (int(candidates[np.argmin(self.free[candidates])]),) if len(candidates) else None

    def _whole_nodes(self, now: int, count: int, priority: int) -> tuple[int, ...] | None:
        """So many idle nodes, after those given out last; of high priority also those of preempted runs."""
        idle = np.flatnonzero(self.is_up & (self.free == NODE_GPUS))
        if len(idle) < count and priority == HIGH:
            self._preempt(now, count - len(idle))
            idle = np.flatnonzero(self.is_up & (self.free == NODE_GPUS))
        if len(idle) < count:
            return None
        first = int(np.searchsorted(idle, self.cursor))
        chosen = np.sort(np.roll(idle, -first)[:count])
        self.cursor = (int(np.roll(idle, -first)[count - 1]) + 1) % self.nodes
        return tuple(chosen.tolist())

    def _preempt(self, now: int, count: int) -> None:
        """End runs of low priority that hold whole nodes, the youngest first, if that makes up so many."""
        candidates = [
            run
            for run in self.running.values()
            if self.jobs.priority[run.job] == LOW
            and self.jobs.gpus[run.job] >= NODE_GPUS
            and now - run.start_s >= PREEMPTIBLE_AFTER_S
        ]
        candidates.sort(key=lambda run: (-run.start_s, run.job))
        chosen, freed = [], 0
        for run in candidates:
            if freed >= count:
                break
            chosen.append(run)
            freed += len(run.nodes)
        if freed >= count:
            for run in chosen:
                self._stop(now, run, "PREEMPTED")

    def _start(self, now: int, run: Run, nodes: tuple[int, ...]) -> None:
        run.start_s, run.state, run.nodes = now, "RUNNING", nodes
        self.running[run.job] = run
        gpus = min(NODE_GPUS, self.jobs.gpus[run.job])
        for node in nodes:
            self.free[node] -= gpus
            self.on_node[node].add(run.job)
        left_s = self.left_s[run.job]
        # The first run may be one that its user will have requeued; a later one has to start up again.
        lasts_s = left_s + RESTART_S if run.number else self.jobs.requeued_after_s[run.job] or left_s
        end_s = now + lasts_s
        heapq.heappush(self.events, (end_s, _END, run.job, run.number))
