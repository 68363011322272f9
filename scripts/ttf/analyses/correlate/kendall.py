"""Kendall's tau-b of points without ties in x. Not scipy's: it comes with all of scipy.stats, half the rule's time."""

import math

import numpy as np
from scipy.special import ndtr

# Up to so many points without ties the p-value is exact, as scipy's is.
EXACT_POINTS = 33


def kendall(ranks: np.ndarray) -> tuple[float, float]:
    """(tau-b, its two-sided p-value) of three or more points ascending in x.

    ranks: integers in the order of y, not all the same, point by point.
    The numbers of scipy.stats.kendalltau to the last bit: p is exact without ties up to 33 points or where at most one
    pair stands out, else normal with the variance of Kendall 1970, which takes account of ties.
    """
    n = ranks.size
    # Dense and from 0, as `_discordant` needs few bits of them.
    _, dense, ties = np.unique(ranks, return_inverse=True, return_counts=True)
    pairs, discordant = math.comb(n, 2), _discordant(dense)
    tied = sum(math.comb(count, 2) for count in ties.tolist())
    excess = pairs - tied - 2 * discordant
    tau = min(1.0, max(-1.0, excess / math.sqrt(pairs) / math.sqrt(pairs - tied)))
    fewest = min(discordant, pairs - discordant)
    if not tied and (n <= EXACT_POINTS or fewest <= 1):
        return tau, _exact_p(n, fewest)
    within = sum(count * (count - 1) * (2 * count + 5) for count in ties.tolist())
    variance = (n * (n - 1) * (2 * n + 5) - within) / 18
    return tau, float(2 * ndtr(-abs(excess / math.sqrt(variance))))


def _discordant(ranks: np.ndarray) -> int:
    """How many pairs stand in the wrong order: the greater rank first.

    The highest bit in which two ranks differ says which is greater, so each pair is counted once, at that bit.
    """
    total = 0
    for bit in range(int(ranks.max()).bit_length()):
        alike = ranks >> (bit + 1)
        order = np.argsort(alike, kind="stable")
        alike, is_one = alike[order], ranks[order] >> bit & 1
        ones_before = np.cumsum(is_one) - is_one
        first = np.searchsorted(alike, alike)
        total += int(((ones_before - ones_before[first]) * (1 - is_one)).sum())
    return total


def _exact_p(n: int, discordant: int) -> float:
    """The chance that of n things at most so many pairs stand in the wrong order, or at most so many in the right one.

    Kendall 1970. discordant: the fewer of the two, of wrong and of right.
    """
    if discordant <= 1:
        # One order has none, n - 1 have one. Beyond 170 the factorial is no float, and the chance none.
        return 2.0 / math.factorial(n - discordant) if n - discordant <= 170 else 0.0
    if 2 * discordant == math.comb(n, 2):
        return 1.0
    orders = np.zeros(discordant + 1)
    orders[:2] = 1.0
    for size in range(3, n + 1):
        orders = np.cumsum(orders)
        orders[size:] -= orders[: discordant + 1 - size].copy() if size <= discordant else 0.0
    return min(1.0, float(2.0 * np.sum(orders) / math.factorial(n)))
