"""How much of a thing was used, minute by minute: means and percentiles of millions of readings, exactly.

Readings are whole thousandths of a percent, as they are stored; they are counted by value, and everything is worked out
of the counts: percentiles have that resolution, and the order of the readings does not matter.
"""

import numpy as np

# Values of a reading: 0 to 100 % in thousandths of a percent.
VALUES = 100_001
PERCENTS = (25, 50, 75, 90, 95)


def of_counts(counts: np.ndarray) -> dict[str, float]:
    """The columns USE of readings of which counts[v] are v thousandths of a percent; n 0 alone where none is.

    zero_share: readings of exactly nought. A percentile is linear between ranks, rank 0 the smallest and rank n - 1 the
    largest, as in NumPy.
    """
    n = int(counts.sum())
    if not n:
        return {"n": 0}
    below = np.cumsum(counts)

    def percentile(percent: int) -> float:
        rank, rest = divmod((n - 1) * percent, 100)
        low, high = (int(np.searchsorted(below, place, side="right")) for place in (rank, min(rank + 1, n - 1)))
        return (low * (100 - rest) + high * rest) / (100 * (VALUES - 1))

    total = int(np.dot(counts, np.arange(counts.size, dtype=np.int64)))
    return {
        "n": n,
        "mean_share": total / (n * (VALUES - 1)),
        "zero_share": int(counts[0]) / n,
        **{f"p{percent}_share": percentile(percent) for percent in PERCENTS},
    }
