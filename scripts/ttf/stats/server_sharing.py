"""How much of their GPU time attempts on several GPUs spent on servers that they had to themselves."""

import numpy as np
import polars as pl

from ttf.jobs import GPU_BUCKETS
from ttf.stats.exact import group_sums
from ttf.stats.holdings import GPU, Holdings, Sweep
from ttf.stats.order import last_of_each, order_by, sorted_pairs

SHARING_SCHEMA = {
    "group": pl.String,
    "attempts": pl.Int64,
    "gpu_hours": pl.Float64,
    "dedicated_share": pl.Float64,
    "reason": pl.String,
}


def server_sharing(held: Holdings, servers: Sweep) -> pl.DataFrame:
    """How much of the GPU time of attempts on several GPUs went by on servers without another, SHARING_SCHEMA.

    An attempt has the GPUs of all its placements, rounded up. It has a server to itself while no other attempt holds a
    GPU there. Attempts on less than two GPUs are in no row; the last row is all that are.
    """
    units = int(held.unit.max(initial=-1)) + 1
    gpus = -(-group_sums(held.unit, held.gpu_milli, units) // GPU)
    names = [name for name, (low, _) in GPU_BUCKETS.items() if low > 1]
    # 0: one GPU or less, 1: the first of `names`, ...
    bucket = sum((gpus >= GPU_BUCKETS[name][0]).astype(np.int8) for name in names)
    total, alone = np.zeros((2, len(names) + 1), np.int64)
    for rows in held.blocks():
        of_part = bucket[held.unit[rows]]
        milli_s = held.gpu_milli[rows] * (held.end_s[rows] - held.start_s[rows])
        total += [int(milli_s[of_part == k].sum()) for k in range(len(names) + 1)]
        alone += _alone(held, servers, rows, of_part, len(names) + 1)
    attempts = np.bincount(bucket, minlength=len(names) + 1)
    rows = [(name, int(attempts[k]), int(total[k]), int(alone[k])) for k, name in enumerate(names, start=1)]
    rows.append(("all", *(sum(row[k] for row in rows) for k in (1, 2, 3))))
    return pl.DataFrame(
        [
            {
                "group": name,
                "attempts": count,
                "gpu_hours": whole / (GPU * 3600),
                "dedicated_share": part / whole if whole else None,
                "reason": None if whole else "no attempt of this size",
            }
            for name, count, whole, part in rows
        ],
        schema=SHARING_SCHEMA,
    )


def _alone(held: Holdings, servers: Sweep, rows: slice, bucket: np.ndarray, buckets: int) -> np.ndarray:
    """Milli-GPU seconds of each bucket on servers where one attempt alone holds GPUs; rows: of whole servers."""
    node, unit = held.node[rows], held.unit[rows]
    # The parts of an attempt on a server stand by start already.
    order = order_by(node, unit)
    node, unit, bucket = node[order], unit[order], bucket[order]
    start, end = (seconds[rows][order] - servers.first_s for seconds in (held.start_s, held.end_s))
    is_other = np.ones(node.size, bool)
    is_other[1:] = (node[1:] != node[:-1]) | (unit[1:] != unit[:-1])
    # Parts of one attempt on one server, side by side or one inside the other, are one stay.
    offset = np.cumsum(is_other) * servers.width
    latest = np.maximum.accumulate(offset + end)
    is_new = is_other
    is_new[1:] |= (offset + start)[1:] > latest[:-1]
    first = np.flatnonzero(is_new)
    end = (latest - offset)[np.append(first[1:], is_new.size) - 1]
    base = node[first].astype(np.int64) * servers.width
    # Of an attempt that comes its bucket; of one that goes, as many below 0, and one more.
    comes = bucket[first].astype(np.int64)
    key, change = sorted_pairs(np.concatenate([base + start[first], base + end]), np.concatenate([comes, ~comes]))
    last = last_of_each(key)
    key = key[last]
    there = np.cumsum(np.where(change < 0, -1, 1))[last]
    # The sum of the buckets of those that are there: of one alone, its own.
    of_those = np.cumsum(change + (change < 0))[last]
    # GPU time of the servers up to each of their moments, among which are all those of the stays.
    low, high = (
        int(np.searchsorted(servers.key, group * servers.width)) for group in (int(node[0]), int(node[-1]) + 1)
    )
    moments, in_use = servers.key[low:high], servers.in_use_milli[low:high]
    until = np.concatenate([[0], np.cumsum(in_use[:-1] * np.diff(moments))])
    found = np.diff(until[np.searchsorted(moments, key)], append=0)
    return group_sums(of_those[there == 1], found[there == 1], buckets)
