"""Infer why jobs waited from the GPUs that the cluster and the job's account had in use when the wait began.

Jeon et al. (ATC 2019, Table 2) use the scheduler's log to separate fair-share delay (the virtual cluster is at its
quota) from fragmentation delay (quota is left, but no close placement is free). No trace has that log or the quotas, so
the reasons here are inferred from placements and must be called so.
"""

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from ttf.analyses.queue.reconstruct_occupancy import DELAY_CAUSES, LONGEST_PLAIN_WAIT_S, RECOGNISED
from ttf.analyses.queue.reconstruct_occupancy.servers import Servers, StateSum, Window, has_free
from ttf.engine.exact_sums import group_sums
from ttf.engine.storage.spill import Spill
from ttf.records.gpu_allocations import GPU, GpuAllocations
from ttf.records.jobs import GPU_BUCKETS, whole_gpus
from ttf.stats.basics.order import cumulate_changes, number_rows
from ttf.stats.clustered import CLUSTERED, Clusters, add_limits, join_clustered
from ttf.stats.shares import add_wilson

CONFIDENCE = 0.95
# In the order in which they are tested.
CAUSES = ("fair_share", "full", "fragmentation", "room")
NOT_RELIABLE = "not reliable: recognised for 14 of 298 such waits of the synthetic Philly trace"
NO_ACCOUNT = "the trace names no account that a quota could belong to"


class DelayCauses:
    """Inferred reasons of waits above LONGEST_PLAIN_WAIT_S, by GPUs of the job (GPU_BUCKETS, and all).

    Add all jobs first, then the windows in order.

    jobs: the common record, with eligible_s if the format has it. A job waits from its submission, or from when it
    became eligible, to its first start. With t the begin of the wait, the first condition that holds is the cause:
    - fair_share: the account's GPUs in use at t plus the job's exceed the account's quota. Quotas are unknown: the most
      GPUs the account ever had in use at once (or its largest job, if more) stands in for the quota.
    - full: at t, the whole cluster had fewer free GPUs than the job needs.
    - fragmentation: enough GPUs were free, but on more servers than the job needs. A job needs one server if its GPUs
      fit the largest server; a larger job needs whole largest servers, and one more for the remainder.
    - room: none of these; the job could have been placed, and the reason of its wait is unknown.
    The state of the cluster later in the wait is ignored, as are limits on which servers an account or queue may use.
    An account that borrows idle GPUs has a peak far above its quota, so its fair-share delays look like room or
    fragmentation. In the synthetic Philly trace, whose scheduler lends, 14 of 298 are recognised, 236 count as room and
    48 as fragmentation; all 46 waits for lack of space are right. So fair_share is not reliable, and its rows say so.
    Shares are of the GPU jobs with an account that waited for a known time (n), and of their waiting time, with
    Wilson's 95% interval and the clustered one.
    """

    def __init__(self, allocations: GpuAllocations, servers: Servers, folder: Path, cluster_by: str | None) -> None:
        """folder: for temporary files; cluster_by: name of the clusters, numbered in the column `cluster` of jobs."""
        self._allocations, self._servers, self._cluster_by = allocations, servers, cluster_by
        self._reason = None if allocations.accounts else NO_ACCOUNT
        if allocations.is_empty:
            self._reason = self._reason or "nothing is known to have been in use"
        self._account = pl.Enum(allocations.accounts)
        n_windows = servers.account_changes.parts
        # account, cluster, gpus, begun_s, wait_s of the jobs that waited, by the window in which the wait began.
        self._waits = Spill(folder / "waits", n_windows, 5)
        # account, cluster, GPUs in use including the job, bucket, cause if within the quota, wait_s.
        self._classified = Spill(folder / "judged", n_windows, 6)
        self._quota, self._in_use = np.zeros((2, len(allocations.accounts)), np.int64)
        self._started = np.zeros(len(GPU_BUCKETS), np.int64)
        self._largest = int(servers.capacity_milli.max(initial=0)) // GPU
        # Free GPUs -> servers with at least so many, for the numbers that waiting jobs need.
        self._servers_by_free: dict[int, StateSum] = {}

    def add_jobs(self, jobs: pl.DataFrame) -> None:
        """Collect the waits of a batch of jobs, and the accounts' largest jobs."""
        if self._reason:
            return
        wait_start = pl.max_horizontal("submit_s", "eligible_s") if "eligible_s" in jobs.columns else pl.col("submit_s")
        waits = (
            jobs.select(
                account=pl.col("account").cast(self._account).to_physical(),
                cluster=pl.col("cluster").cast(pl.Int64),
                begun_s=pl.when(pl.col("submit_s").is_not_null()).then(wait_start),
                start_s="start_s",
                gpus=whole_gpus(),
            )
            .drop_nulls()
            .filter(pl.col("gpus") > 0, pl.col("start_s") >= pl.col("begun_s"))
        )
        names = ("account", "cluster", "gpus", "begun_s", "start_s")
        account, cluster, gpus, begun_s, start_s = (waits[name].to_numpy() for name in names)
        np.maximum.at(self._quota, account, gpus * GPU)
        self._started += np.bincount(_index_buckets(gpus), minlength=self._started.size)
        is_long = start_s - begun_s > LONGEST_PLAIN_WAIT_S
        columns = (account, cluster, gpus, begun_s, start_s)
        account, cluster, gpus, begun_s, start_s = (values[is_long] for values in columns)
        self._waits.add(self._allocations.window_index(begun_s), account, cluster, gpus, begun_s, start_s - begun_s)
        for free in {self._largest, *np.unique(gpus % self._largest).tolist()} - {0} - self._servers_by_free.keys():
            self._servers_by_free[free] = StateSum(self._servers, partial(has_free, gpus=free))

    def add(self, window: Window) -> None:
        """Infer the reasons of the waits that began in a window."""
        if self._reason:
            return
        account, cluster, gpus, begun_s, wait_s = self._waits.read(window.number)
        milli = gpus * GPU
        in_use = self._account_use(window, account, begun_s)
        # 0: before the window, which occurs only in the first; else 1 + the index of the last moment.
        position = np.searchsorted(window.times_s, begun_s, side="right")
        is_full = self._servers.total_milli - np.append(0, window.in_use_milli)[position] < milli
        n_whole, remainder = np.divmod(gpus, self._largest)
        fits = np.ones(gpus.size, bool)
        for free, servers in self._servers_by_free.items():
            n_servers = servers.advance(window.changes)[position]
            if free == self._largest:
                fits &= n_servers >= n_whole
            else:
                fits &= (remainder != free) | (n_servers > n_whole)
        cause = np.full(gpus.size, CAUSES.index("room"))
        cause[~fits] = CAUSES.index("fragmentation")
        cause[is_full] = CAUSES.index("full")
        window_number = np.full(gpus.size, window.number)
        self._classified.add(window_number, account, cluster, in_use + milli, _index_buckets(gpus), cause, wait_s)

    def _account_use(self, window: Window, account: np.ndarray, time_s: np.ndarray) -> np.ndarray:
        """Return the milli-GPU that account[i] uses at time_s[i]; move the accounts' state to the window's end."""
        changed_s, changed_account, change_milli = self._servers.account_changes.read(window.number)
        end_s = int(window.times_s[-1] + window.length_s[-1])
        # By account and time. Each account starts the window with a change of 0.
        start_s = int(window.times_s[0]) - 1
        width = end_s - start_s + 1
        starts = np.arange(len(self._allocations.accounts)) * width
        keys = np.append(starts, changed_account * width + (changed_s - start_s))
        key, total = cumulate_changes(keys, np.append(np.zeros_like(starts), change_milli))
        first_rows = np.searchsorted(key, starts)
        rows = np.diff(first_rows, append=key.size)
        in_use = total + np.repeat(self._in_use - total[first_rows], rows)
        self._quota = np.maximum(self._quota, np.maximum.reduceat(in_use, first_rows))
        self._in_use = in_use[first_rows + rows - 1]
        query = account * width + (time_s.clip(start_s, end_s) - start_s)
        return in_use[np.searchsorted(key, query, side="right") - 1]

    def table(self) -> pl.DataFrame:
        """Return DELAY_CAUSES."""
        if self._reason:
            return DELAY_CAUSES.frame({"group": name, "reason": self._reason} for name in (*GPU_BUCKETS, "all"))
        shape = (len(GPU_BUCKETS), len(CAUSES))
        counts, waits = np.zeros((2, *shape), np.int64)
        cluster_cells = []
        for window in range(self._classified.parts):
            account, cluster, needed, bucket, cause, wait_s = self._classified.read(window)
            cause[needed > self._quota[account]] = CAUSES.index("fair_share")
            cell = bucket * len(CAUSES) + cause
            counts += np.bincount(cell, minlength=counts.size).reshape(shape)
            waits += group_sums(cell, wait_s, counts.size).reshape(shape)
            cluster_cells.append(np.stack(np.unique(cluster * counts.size + cell, return_counts=True)))
        rows = []
        for name, cause_counts, cause_waits, started in [
            *zip(GPU_BUCKETS, counts, waits, self._started.tolist(), strict=True),
            ("all", counts.sum(axis=0), waits.sum(axis=0), int(self._started.sum())),
        ]:
            rows += _cause_rows(name, cause_counts, cause_waits, started)
        intervals = self._clustered_shares(np.concatenate(cluster_cells, axis=1), shape)
        return DELAY_CAUSES.conform(
            join_clustered(DELAY_CAUSES.frame(rows).drop(CLUSTERED), intervals, ["group", "cause"])
        )

    def _clustered_shares(self, cluster_cells: np.ndarray, shape: tuple[int, int]) -> pl.DataFrame:
        """Return clustered intervals by group and cause; cluster_cells: (cell within cluster, number of jobs)."""
        cells = shape[0] * shape[1]
        cluster = number_rows(cluster_cells[0] // cells)
        jobs = np.zeros((int(cluster.max(initial=-1)) + 1, *shape))
        np.add.at(jobs.reshape(-1), cluster * cells + cluster_cells[0] % cells, cluster_cells[1])
        # Axes: group, cause, cluster; the last group is all jobs.
        jobs = np.concatenate([jobs, jobs.sum(axis=1, keepdims=True)], axis=1).transpose(1, 2, 0)
        totals = np.broadcast_to(jobs.sum(axis=1, keepdims=True), jobs.shape)
        names = [(group, cause, self._cluster_by) for group in (*GPU_BUCKETS, "all") for cause in CAUSES]
        is_known = totals > 0 if self._cluster_by else np.zeros_like(totals, bool)
        cell_index = np.broadcast_to(np.arange(len(names)).reshape(*jobs.shape[:2], 1), jobs.shape)
        clusters = Clusters(cell_index[is_known], totals[is_known], len(names))
        strata = pl.DataFrame(names, schema=dict.fromkeys(("group", "cause", "cluster_by"), pl.String), orient="row")
        return add_limits(strata, *clusters.proportion(jobs[is_known], totals[is_known], CONFIDENCE))


def _index_buckets(gpus: np.ndarray) -> np.ndarray:
    return np.searchsorted([low for low, _ in GPU_BUCKETS.values()], gpus, side="right") - 1


def _cause_rows(name: str, counts: np.ndarray, waits: np.ndarray, started: int) -> list[dict]:
    """Return the rows of DELAY_CAUSES of one size of jobs; counts, waits (s): by cause."""
    n, wait_s = int(counts.sum()), int(waits.sum())
    common = {"group": name, "started": started, "n": n}
    if not n:
        return [common | {"reason": f"no job of this size waited more than {LONGEST_PLAIN_WAIT_S} s"}]
    unrecognised = [index for index, cause in enumerate(CAUSES) if cause not in RECOGNISED]
    common["unrecognised_share"] = int(counts[unrecognised].sum()) / n
    common["unrecognised_wait_share"] = int(waits[unrecognised].sum()) / wait_s
    return [
        common
        | {"cause": cause, "jobs": jobs, "wait_s": wait, "wait_share": wait / wait_s}
        | add_wilson("jobs_share", jobs, n)
        | {"reason": NOT_RELIABLE if cause == "fair_share" else None}
        for cause, jobs, wait in zip(CAUSES, counts.tolist(), waits.tolist(), strict=True)
    ]
