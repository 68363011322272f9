"""Exact sums over integers: the same answer in any row order and with any number of threads."""

import math

import numpy as np

# A float64 holds every integer up to here, so a float sum that stays below it is an exact integer sum.
EXACT_FLOAT = 2**53
INT64_LIMIT = 2**63


def group_sums(codes: np.ndarray, weights: np.ndarray, groups: int) -> np.ndarray:
    """The sum of non-negative Int64 weights by group code (0 .. groups - 1): Int64 array of `groups`.

    Raises OverflowError when all weights together might not fit an Int64.
    """
    if codes.size == 0:
        return np.zeros(groups, dtype=np.int64)
    bound = int(weights.max()) * codes.size
    if bound >= INT64_LIMIT:
        raise OverflowError("values too large for an exact sum by group")
    if bound < EXACT_FLOAT:
        return np.bincount(codes, weights=weights, minlength=groups).astype(np.int64)
    half = int(weights.max()).bit_length() // 2
    high = group_sums(codes, weights >> half, groups)
    low = group_sums(codes, weights & ((1 << half) - 1), groups)
    return (high << half) + low


def dot(a: np.ndarray, b: np.ndarray) -> int:
    """The exact scalar product of two non-negative Int64 arrays of one length, as a Python integer."""
    if a.size == 0:
        return 0
    top_a, top_b = int(a.max()), int(b.max())
    if top_a * top_b * a.size < INT64_LIMIT:
        return int((a * b).sum())
    if top_a < top_b:
        a, b, top_a = b, a, top_b
    half = top_a.bit_length() // 2
    return (dot(a >> half, b) << half) + dot(a & ((1 << half) - 1), b)


def doubled_ranks(counts: np.ndarray) -> np.ndarray:
    """Twice the average rank (1-based) of each distinct value, from how often each occurs, ascending.

    Twice, because the average rank of ties may end in one half. Int64, the shape of `counts`.
    """
    return 2 * (np.cumsum(counts) - counts) + counts + 1


def correlation_parts(
    n: int, sum_x: int, sum_y: int, sum_xx: int, sum_yy: int, sum_xy: int
) -> tuple[float, float, float] | None:
    """Pearson's r from exact sums, as (r, r squared, 1 - r squared), each rounded once.

    Both r squared and its complement are given because the p-value of a weak correlation needs the one, of a
    strong correlation the other, to full precision. None where x or y does not vary.
    """
    covariance = n * sum_xy - sum_x * sum_y
    spread = (n * sum_xx - sum_x**2) * (n * sum_yy - sum_y**2)
    if spread == 0:
        return None
    # Python divides integers of any size with one correct rounding.
    square = covariance**2 / spread
    complement = (spread - covariance**2) / spread
    return math.copysign(math.sqrt(square), covariance), square, complement
