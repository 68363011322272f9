"""Why jobs waited, by a proxy: what the cluster and the job's account had in use when the wait began.

Jeon et al. (ATC 2019, Table 2) separate fair-share delay (the virtual cluster is at its quota) from fragmentation delay
(quota is left, but no placement close enough together is free) by the scheduler's own log. No trace has that log, nor
the quotas: what stands here is a proxy from the placements and is to be called so.
"""

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from ttf.analyses.queue.reconstruct_occupancy import DELAY_CAUSES, LONGEST_PLAIN_WAIT_S, RECOGNISED
from ttf.analyses.queue.reconstruct_occupancy.holdings import GPU, Holdings, Spill
from ttf.analyses.queue.reconstruct_occupancy.servers import Servers, Sum, Window, has_free
from ttf.engine.exact_sums import group_sums
from ttf.records.jobs import GPU_BUCKETS, whole_gpus
from ttf.stats.basics.order import numbered, running
from ttf.stats.clustered import CLUSTERED, Clusters, beside, with_limits
from ttf.stats.shares import with_wilson

CONFIDENCE = 0.95
# In the order in which they are asked about.
CAUSES = ("fair_share", "full", "fragmentation", "room")
NOT_RELIABLE = "not reliable: recognised for 14 of 298 such waits of the synthetic Philly trace"
NO_ACCOUNT = "the trace names no account that a quota could belong to"


class DelayCauses:
    """A proxy of why jobs waited: by their GPUs (GPU_BUCKETS, and all) and cause, for waits above LONGEST_PLAIN_WAIT_S.

    All jobs are to be added before the windows, and these in order.

    jobs: the common record, with eligible_s where the format has it. A job waits from its submission, or from when it
    became eligible, to its first start; that began at time t. The first of these that holds is the proxy of the cause:
    - fair_share: what its account had in use at t, and the job's GPUs, are together more than the account's quota. The
      quota is not known: the most that the account ever had in use at once stands in (or its largest job, if more).
    - full: fewer GPUs than the job's were free in the whole cluster at t.
    - fragmentation: they were free, but not on as few servers as the job needs at least. A job of up to as many GPUs as
      the largest server holds needs them on one; a larger one whole largest servers, and the rest on one more.
    - room: none of these; there was a place, and why the job waited does not show.
    What the cluster was like later in the wait, and which servers an account or a queue may use, are not looked at. An
    account that is lent idle GPUs beyond its quota has a peak far above it, so that its fair-share delays are taken for
    room, or for fragmentation: in the synthetic Philly trace, whose scheduler lends, 14 of 298 are recognised, 236
    taken for room and 48 for fragmentation; all 46 waits for want of a place are right. So fair_share is not
    reliable, as the reason of its rows says.
    started: GPU jobs with an account and a known wait; n: those that waited; shares are of n and of its waiting time,
    the interval Wilson's at 95 %, and beside it that of the clusters.
    """

    def __init__(self, held: Holdings, servers: Servers, folder: Path, cluster_by: str | None) -> None:
        """folder: for what is spilled; cluster_by: what jobs are alike by, whose number is their column `alike`."""
        self._held, self._servers, self._cluster_by = held, servers, cluster_by
        self._reason = None if held.accounts else NO_ACCOUNT
        if held.is_empty:
            self._reason = self._reason or "nothing is known to have been in use"
        self._account = pl.Enum(held.accounts)
        windows = servers.changes_of_accounts.parts
        # account, cluster, gpus, begun_s, wait_s of the jobs that waited, by the window that the wait began in.
        self._waits = Spill(folder / "waits", windows, 5)
        # account, cluster, what its quota must hold for the job, bucket, cause if it does, wait_s.
        self._judged = Spill(folder / "judged", windows, 6)
        self._quota, self._in_use = np.zeros((2, len(held.accounts)), np.int64)
        self._started = np.zeros(len(GPU_BUCKETS), np.int64)
        self._largest = int(servers.capacity_milli.max(initial=0)) // GPU
        # By free GPUs: servers with so many; asked for by any job that waited.
        self._with_free: dict[int, Sum] = {}

    def add_jobs(self, jobs: pl.DataFrame) -> None:
        """Some jobs, each once."""
        if self._reason:
            return
        begun = pl.max_horizontal("submit_s", "eligible_s") if "eligible_s" in jobs.columns else pl.col("submit_s")
        asked = (
            jobs.select(
                account=pl.col("account").cast(self._account).to_physical(),
                cluster=pl.col("alike").cast(pl.Int64),
                begun_s=pl.when(pl.col("submit_s").is_not_null()).then(begun),
                start_s="start_s",
                gpus=whole_gpus(),
            )
            .drop_nulls()
            .filter(pl.col("gpus") > 0, pl.col("start_s") >= pl.col("begun_s"))
        )
        columns = ("account", "cluster", "gpus", "begun_s", "start_s")
        account, cluster, gpus, begun_s, start_s = (asked[name].to_numpy() for name in columns)
        np.maximum.at(self._quota, account, gpus * GPU)
        self._started += np.bincount(_bucket(gpus), minlength=self._started.size)
        waited = start_s - begun_s > LONGEST_PLAIN_WAIT_S
        account, cluster, gpus, begun_s, start_s = (of[waited] for of in (account, cluster, gpus, begun_s, start_s))
        self._waits.add(self._held.window_of(begun_s), account, cluster, gpus, begun_s, start_s - begun_s)
        for free in {self._largest, *np.unique(gpus % self._largest).tolist()} - {0} - self._with_free.keys():
            self._with_free[free] = Sum(self._servers, partial(has_free, gpus=free))

    def add(self, window: Window) -> None:
        """The next window."""
        if self._reason:
            return
        account, cluster, gpus, begun_s, wait_s = self._waits.read(window.number)
        milli = gpus * GPU
        in_use = self._in_use_of(window, account, begun_s)
        # 0: before the window, which only the first has; else one more than the place of the last moment.
        moment = np.searchsorted(window.times_s, begun_s, side="right")
        is_full = self._servers.total_milli - np.append(0, window.in_use_milli)[moment] < milli
        whole, rest = np.divmod(gpus, self._largest)
        fits = np.ones(gpus.size, bool)
        for free, servers in self._with_free.items():
            there = servers.over(window.changes)[moment]
            if free == self._largest:
                fits &= there >= whole
            else:
                fits &= (rest != free) | (there > whole)
        cause = np.full(gpus.size, CAUSES.index("room"))
        cause[~fits] = CAUSES.index("fragmentation")
        cause[is_full] = CAUSES.index("full")
        part = np.full(gpus.size, window.number)
        self._judged.add(part, account, cluster, in_use + milli, _bucket(gpus), cause, wait_s)

    def _in_use_of(self, window: Window, account: np.ndarray, time_s: np.ndarray) -> np.ndarray:
        """In use of each account at each time; the window's changes count for what comes after."""
        changed_s, of, change = self._servers.changes_of_accounts.read(window.number)
        end_s = int(window.times_s[-1] + window.length_s[-1])
        # By account and time; before its changes each account has one of nothing when the window begins.
        begin_s = int(window.times_s[0]) - 1
        width = end_s - begin_s + 1
        begins = np.arange(len(self._held.accounts)) * width
        key, total = running(
            np.append(begins, of * width + (changed_s - begin_s)), np.append(np.zeros_like(begins), change)
        )
        first = np.searchsorted(key, begins)
        rows = np.diff(first, append=key.size)
        in_use = total + np.repeat(self._in_use - total[first], rows)
        self._quota = np.maximum(self._quota, np.maximum.reduceat(in_use, first))
        self._in_use = in_use[first + rows - 1]
        at = account * width + (time_s.clip(begin_s, end_s) - begin_s)
        return in_use[np.searchsorted(key, at, side="right") - 1]

    def table(self) -> pl.DataFrame:
        """The table DELAY_CAUSES."""
        if self._reason:
            return DELAY_CAUSES.frame({"group": name, "reason": self._reason} for name in (*GPU_BUCKETS, "all"))
        shape = (len(GPU_BUCKETS), len(CAUSES))
        counts, waits = np.zeros((2, *shape), np.int64)
        of_clusters = []
        for window in range(self._judged.parts):
            account, cluster, needed, bucket, cause, wait_s = self._judged.read(window)
            cause[needed > self._quota[account]] = CAUSES.index("fair_share")
            cell = bucket * len(CAUSES) + cause
            counts += np.bincount(cell, minlength=counts.size).reshape(shape)
            waits += group_sums(cell, wait_s, counts.size).reshape(shape)
            of_clusters.append(np.stack(np.unique(cluster * counts.size + cell, return_counts=True)))
        rows = []
        for name, of_name, time, started in [
            *zip(GPU_BUCKETS, counts, waits, self._started.tolist(), strict=True),
            ("all", counts.sum(axis=0), waits.sum(axis=0), int(self._started.sum())),
        ]:
            rows += _rows(name, of_name, time, started)
        found = self._clustered(np.concatenate(of_clusters, axis=1), shape)
        return DELAY_CAUSES.typed(beside(DELAY_CAUSES.frame(rows).drop(CLUSTERED), found, ["group", "cause"]))

    def _clustered(self, of_clusters: np.ndarray, shape: tuple[int, int]) -> pl.DataFrame:
        """The clustered intervals by group and cause; of_clusters: cells, those of one cluster together, and jobs."""
        cells = shape[0] * shape[1]
        cluster = numbered(of_clusters[0] // cells)
        jobs = np.zeros((int(cluster.max(initial=-1)) + 1, *shape))
        np.add.at(jobs.reshape(-1), cluster * cells + of_clusters[0] % cells, of_clusters[1])
        # By group, cause and cluster; the last group is of all.
        jobs = np.concatenate([jobs, jobs.sum(axis=1, keepdims=True)], axis=1).transpose(1, 2, 0)
        whole = np.broadcast_to(jobs.sum(axis=1, keepdims=True), jobs.shape)
        names = [(group, cause, self._cluster_by) for group in (*GPU_BUCKETS, "all") for cause in CAUSES]
        known = whole > 0 if self._cluster_by else np.zeros_like(whole, bool)
        place = np.broadcast_to(np.arange(len(names)).reshape(*jobs.shape[:2], 1), jobs.shape)
        clusters = Clusters(place[known], whole[known], len(names))
        strata = pl.DataFrame(names, schema=dict.fromkeys(("group", "cause", "cluster_by"), pl.String), orient="row")
        return with_limits(strata, *clusters.proportion(jobs[known], whole[known], CONFIDENCE))


def _bucket(gpus: np.ndarray) -> np.ndarray:
    """The place in GPU_BUCKETS."""
    return np.searchsorted([low for low, _ in GPU_BUCKETS.values()], gpus, side="right") - 1


def _rows(name: str, counts: np.ndarray, waits: np.ndarray, started: int) -> list[dict]:
    n, wait_s = int(counts.sum()), int(waits.sum())
    shared = {"group": name, "started": started, "n": n}
    if not n:
        return [shared | {"reason": f"no job of this size waited more than {LONGEST_PLAIN_WAIT_S} s"}]
    rest = [index for index, cause in enumerate(CAUSES) if cause not in RECOGNISED]
    shared["unrecognised_share"] = int(counts[rest].sum()) / n
    shared["unrecognised_wait_share"] = int(waits[rest].sum()) / wait_s
    return [
        shared
        | {"cause": cause, "jobs": jobs, "wait_s": wait, "wait_share": wait / wait_s}
        | with_wilson("jobs_share", jobs, n)
        | {"reason": NOT_RELIABLE if cause == "fair_share" else None}
        for cause, jobs, wait in zip(CAUSES, counts.tolist(), waits.tolist(), strict=True)
    ]
