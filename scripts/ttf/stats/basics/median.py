"""How well a median is known."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import bdtr

CONFIDENCE = 0.95


def median_interval(n: int, at: Callable[[int], int]) -> tuple[float | None, float | None]:
    """The distribution-free 95% CI of a median: the l-th smallest and the l-th largest of n values.

    at: gives the value of a rank, 0 the smallest. l is the largest for which at most 2.5 % of the binomial of n and 1/2
    lie below it; with fewer than 6 values there is none.
    """
    first = max(0, math.floor(n / 2 - 3 * math.sqrt(n)))
    tries = np.arange(first, n // 2 + 1)
    enough = tries[bdtr(tries, n, 0.5) <= (1 - CONFIDENCE) / 2] if n else tries[:0]
    if not enough.size:
        return None, None
    return float(at(enough[-1])), float(at(n - 1 - enough[-1]))
