"""Distribution-free interval of a median."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import bdtr

CONFIDENCE = 0.95


def median_interval(n: int, at: Callable[[int], float]) -> tuple[float | None, float | None]:
    """Return the distribution-free 95% CI of a median: the l-th smallest and the l-th largest of n values.

    at: function of a rank (0 the smallest) that returns its value. l is the largest number with at most 2.5 % of the
    binomial of n and 1/2 below it. With fewer than 6 values there is no interval.
    """
    first = max(0, math.floor(n / 2 - 3 * math.sqrt(n)))
    candidates = np.arange(first, n // 2 + 1)
    valid = candidates[bdtr(candidates, n, 0.5) <= (1 - CONFIDENCE) / 2] if n else candidates[:0]
    if not valid.size:
        return None, None
    return float(at(valid[-1])), float(at(n - 1 - valid[-1]))
