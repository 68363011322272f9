"""Why jobs waited, by a proxy: what the cluster and the job's account had in use when the wait began.

Jeon et al. (ATC 2019, Table 2) tell fair-share delay (the virtual cluster is at its quota) from fragmentation delay
(quota is left, but no placement close enough together is free) by the scheduler's own log. No trace has that log, nor
the quotas: what stands here is a proxy from the placements and is to be called so.
"""

import numpy as np
import polars as pl

from ttf.jobs import GPU_BUCKETS, whole_gpus
from ttf.stats.exact import group_sums
from ttf.stats.holdings import GPU, Holdings, sweep
from ttf.stats.occupancy import Cluster
from ttf.stats.shares import wilson_interval

# A shorter wait is what a scheduler takes to come by.
LONGEST_PLAIN_WAIT_S = 60
# In the order in which they are asked about.
CAUSES = ("fair_share", "full", "fragmentation", "room")
NO_ACCOUNT = "the trace names no account that a quota could belong to"

CAUSES_SCHEMA = {
    "group": pl.String,
    "cause": pl.String,
    "started": pl.Int64,
    "n": pl.Int64,
    "jobs": pl.Int64,
    "jobs_share": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "wait_s": pl.Int64,
    "wait_share": pl.Float64,
    "reason": pl.String,
}


def delay_causes(jobs: pl.DataFrame, held: Holdings, over: Cluster) -> pl.DataFrame:
    """CAUSES_SCHEMA, by GPUs of the job (GPU_BUCKETS, and all) and cause, for waits above LONGEST_PLAIN_WAIT_S.

    jobs: the common record, with eligible_s where the format has it. A job waits from its submission, or from when it
    became eligible, to its first start; that began at time t. The first of these that holds is the proxy of the cause:
    - fair_share: what its account had in use at t, and the job's GPUs, are together more than the account's quota. The
      quota is not known: the most that the account ever had in use at once stands in (or its largest job, if more).
    - full: fewer GPUs than the job's were free in the whole cluster at t.
    - fragmentation: they were free, but not on as few servers as the job needs at least. A job of up to as many GPUs as
      the largest server holds needs them on one; a larger one whole largest servers, and the rest on one more.
    - room: none of these; there was a place, and why the job waited does not show.
    What the cluster was like later in the wait, and which servers an account or a queue may use, are not looked at. An
    account that is lent idle GPUs beyond its quota has a peak far above it, so that its fair-share delays are told as
    room, or as fragmentation: in the synthetic Philly trace, whose scheduler lends, 6 of 201 are told as fair share and
    163 as room; all 36 waits for want of a place are told right.
    started: GPU jobs with an account and a known wait; n: those that waited; shares are of n and of its waiting time,
    the interval Wilson's at 95 % (waits come in clusters, so it is too narrow).
    """
    if not held.accounts or not over.times_s.size:
        reason = NO_ACCOUNT if not held.accounts else "nothing is known to have been in use"
        rows = [{"group": name, "reason": reason} for name in (*GPU_BUCKETS, "all")]
        return pl.DataFrame([{name: row.get(name) for name in CAUSES_SCHEMA} for row in rows], schema=CAUSES_SCHEMA)
    begun = pl.max_horizontal("submit_s", "eligible_s") if "eligible_s" in jobs.columns else pl.col("submit_s")
    asked = (
        jobs.select(
            "account",
            begun_s=pl.when(pl.col("submit_s").is_not_null()).then(begun),
            start_s="start_s",
            gpus=whole_gpus(),
        )
        .drop_nulls()
        .filter(pl.col("gpus") > 0, pl.col("start_s") >= pl.col("begun_s"))
        .with_columns(account=pl.col("account").cast(pl.Enum(held.accounts)).to_physical().cast(pl.Int64))
    )
    account, begun_s, start_s, gpus = (asked[name].to_numpy() for name in ("account", "begun_s", "start_s", "gpus"))
    wait_s = start_s - begun_s
    waited = np.flatnonzero(wait_s > LONGEST_PLAIN_WAIT_S)
    cause = _cause(account, gpus, begun_s, waited, held, over)
    lows = [low for low, _ in GPU_BUCKETS.values()]
    bucket = np.searchsorted(lows, gpus, side="right") - 1
    cell = bucket[waited] * len(CAUSES) + cause
    cells = len(GPU_BUCKETS) * len(CAUSES)
    counts = np.bincount(cell, minlength=cells).reshape(-1, len(CAUSES))
    waits = group_sums(cell, wait_s[waited], cells).reshape(-1, len(CAUSES))
    started = np.bincount(bucket, minlength=len(GPU_BUCKETS))
    rows = []
    for name, of_name, time, begun_here in [
        *zip(GPU_BUCKETS, counts, waits, started, strict=True),
        ("all", counts.sum(axis=0), waits.sum(axis=0), started.sum()),
    ]:
        rows += _rows(name, of_name, time, int(begun_here))
    return pl.DataFrame(rows, schema=CAUSES_SCHEMA)


def _rows(name: str, counts: np.ndarray, waits: np.ndarray, started: int) -> list[dict]:
    n, wait_s = int(counts.sum()), int(waits.sum())
    shared = {"group": name, "started": started, "n": n}
    blank = dict.fromkeys(CAUSES_SCHEMA)
    if not n:
        return [blank | shared | {"reason": f"no job of this size waited more than {LONGEST_PLAIN_WAIT_S} s"}]
    low, high = wilson_interval(counts, np.full(counts.size, n))
    return [
        blank
        | shared
        | {
            "cause": cause,
            "jobs": int(counts[k]),
            "jobs_share": int(counts[k]) / n,
            "ci_low": float(low[k]),
            "ci_high": float(high[k]),
            "wait_s": int(waits[k]),
            "wait_share": int(waits[k]) / wait_s,
        }
        for k, cause in enumerate(CAUSES)
    ]


def _cause(
    account: np.ndarray, gpus: np.ndarray, begun_s: np.ndarray, waited: np.ndarray, held: Holdings, over: Cluster
) -> np.ndarray:
    """The place in CAUSES of each of the jobs that waited. account, gpus, begun_s: of all jobs."""
    of_accounts = sweep(held, held.account)
    quota = of_accounts.highest(len(held.accounts))
    np.maximum.at(quota, account, gpus * GPU)
    account, gpus, begun_s = account[waited], gpus[waited], begun_s[waited]
    over_quota = of_accounts.at(account, begun_s) + gpus * GPU > quota[account]
    # 0: before anything was held; else one more than the place of the last change.
    moment = np.searchsorted(over.times_s, begun_s, side="right")

    def then(series: np.ndarray, at_first: int) -> np.ndarray:
        return np.concatenate([[at_first], series])[moment]

    total = over.total()
    is_full = total - then(over.gpus_in_use(), 0) < gpus * GPU
    largest = int(over.capacity_milli.max()) // GPU

    def servers_with(free: int) -> np.ndarray:
        return then(over.servers_with(free), int((over.capacity_milli >= free * GPU).sum()))

    whole, rest = np.divmod(gpus, largest)
    fits = np.where(whole > 0, servers_with(largest) >= whole, True)
    for free in np.unique(rest[rest > 0]).tolist():
        chosen = rest == free
        fits[chosen] &= servers_with(free)[chosen] >= whole[chosen] + 1
    found = np.full(waited.size, CAUSES.index("room"))
    found[~fits] = CAUSES.index("fragmentation")
    found[is_full] = CAUSES.index("full")
    found[over_quota] = CAUSES.index("fair_share")
    return found
