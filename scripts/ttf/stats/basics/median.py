"""Distribution-free interval of a median."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import bdtr

CONFIDENCE = 0.95


def median_interval(n: int, at: Callable[[int], float]) -> tuple[float | None, float | None]:
    """Return the distribution-free 95% CI of a median: the l-th smallest and the l-th largest of n values.

    Parameters
    ----------
    n : number of values
    at : function of a rank (0 the smallest) that returns its value

    Returns
    -------
    (low, high) in the unit of the values; (None, None) for fewer than 6

    Notes
    -----
    l is the largest number with at most 2.5 % of the binomial of n and 1/2 below it, as in scipy.stats.quantile_test
    (Conover 1999, Practical Nonparametric Statistics).

    Examples
    --------
    >>> median_interval(10, [3.0, 4, 5, 6, 7, 8, 9, 10, 11, 12].__getitem__)
    (4.0, 11.0)
    >>> median_interval(5, float)
    (None, None)
    """
    first = max(0, math.floor(n / 2 - 3 * math.sqrt(n)))
    candidates = np.arange(first, n // 2 + 1)
    valid = candidates[bdtr(candidates, n, 0.5) <= (1 - CONFIDENCE) / 2] if n else candidates[:0]
    if not valid.size:
        return None, None
    return float(at(valid[-1])), float(at(n - 1 - valid[-1]))
