"""How much of their GPU time attempts on several GPUs spent on servers that they had to themselves."""

import numpy as np
import polars as pl

from ttf.jobs import GPU_BUCKETS
from ttf.stats.holdings import GPU
from ttf.stats.servers import Servers

SHARING_SCHEMA = {
    "group": pl.String,
    "attempts": pl.Int64,
    "gpu_hours": pl.Float64,
    "dedicated_share": pl.Float64,
    "reason": pl.String,
}


# Of the sizes that have a row.
NAMES = [name for name, (low, _) in GPU_BUCKETS.items() if low > 1]
SIZES = len(NAMES) + 1


def sizes_of(attempt_milli: np.ndarray) -> np.ndarray:
    """The size of attempts by the GPUs of all their parts: 0 for one or less, else one more than the place in NAMES."""
    sizes = np.zeros(attempt_milli.size, np.int8)
    for name in NAMES:
        sizes += attempt_milli > (GPU_BUCKETS[name][0] - 1) * GPU
    return sizes


def server_sharing(sizes: np.ndarray, servers: Servers) -> pl.DataFrame:
    """How much of the GPU time of attempts on several GPUs went by on servers without another, SHARING_SCHEMA.

    sizes: `sizes_of` the attempts, which the servers were swept with. An attempt has a server to itself while no other
    attempt holds a GPU there. Attempts on less than two GPUs are in no row; the last row is all that are.
    """
    attempts = [int((sizes == size).sum()) for size in range(SIZES)]
    rows = list(zip(NAMES, *(of[1:] for of in (attempts, servers.milli_s, servers.alone_milli_s)), strict=True))
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
