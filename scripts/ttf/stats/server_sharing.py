"""How much of their GPU time attempts on several GPUs spent on servers that they had to themselves."""

import numpy as np
import polars as pl

from ttf.jobs import GPU_BUCKETS
from ttf.stats.exact import group_sums
from ttf.stats.holdings import GPU
from ttf.stats.servers import Servers

SHARING_SCHEMA = {
    "group": pl.String,
    "attempts": pl.Int64,
    "gpu_hours": pl.Float64,
    "dedicated_share": pl.Float64,
    "reason": pl.String,
}


def server_sharing(servers: Servers) -> pl.DataFrame:
    """How much of the GPU time of attempts on several GPUs went by on servers without another, SHARING_SCHEMA.

    An attempt has the GPUs of all its placements, rounded up. It has a server to itself while no other attempt holds a
    GPU there. Attempts on less than two GPUs are in no row; the last row is all that are.
    """
    gpus = -(-servers.gpu_milli // GPU)
    names = [name for name, (low, _) in GPU_BUCKETS.items() if low > 1]
    # 0: one GPU or less, 1: the first of `names`, ...
    bucket = sum((gpus >= GPU_BUCKETS[name][0]).astype(np.int8) for name in names)
    attempts = np.bincount(bucket, minlength=len(names) + 1)
    total, alone = (group_sums(bucket, of, len(names) + 1) for of in (servers.milli_s, servers.alone_milli_s))
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
