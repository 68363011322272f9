"""Exact sums and percentiles of integers: the same result for any row order and number of threads."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

INT64_LIMIT = 2**63


def group_sums(codes: np.ndarray, weights: np.ndarray, groups: int) -> np.ndarray:
    """Return the sums (Int64) of non-negative Int64 weights by group code, 0 to groups - 1.

    Raises OverflowError if the sum of all weights might not fit an Int64.
    """
    # A rounded sum is off by far less than a thousandth.
    if 1.001 * float(weights.sum(dtype=np.float64)) >= INT64_LIMIT:
        raise OverflowError("values too large for an exact sum by group")
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, codes, weights)
    return sums


def dot(a: np.ndarray, b: np.ndarray) -> int:
    """Return the exact scalar product of two Int64 arrays, which must fit 128 bits, as a Python integer."""
    if _largest(a) * _largest(b) * a.size < INT64_LIMIT:
        return int(np.einsum("i,i", a, b, dtype=np.int64))
    return int((pl.Series(a).cast(pl.Int128) * pl.Series(b)).sum())


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply non-negative Int64 arrays row by row; raise OverflowError if a product might not fit an Int64."""
    if int(a.max(initial=0)) * int(b.max(initial=0)) >= INT64_LIMIT:
        raise OverflowError("values too large for an exact product")
    return a * b


def total(values: np.ndarray) -> int:
    """Return the exact sum of an Int64 array as a Python integer."""
    return int(pl.Series(values).cast(pl.Int128).sum())


def _largest(values: np.ndarray) -> int:
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def percentile(ascending: np.ndarray, percent: int) -> float:
    """Return a percentile of ascending integers, at least one: linear between ranks 0 and n - 1, as in NumPy."""
    return percentile_at(ascending.size, ascending.__getitem__, percent)


def percentile_at(n: int, at: Callable[[int], float], percent: int) -> float:
    """Return a percentile of n integers as `percentile` does; at(rank) returns one of them, rank 0 the smallest."""
    # Integers up to the last division give the same digits on every machine.
    rank, remainder = divmod((n - 1) * percent, 100)
    low, high = int(at(rank)), int(at(min(rank + 1, n - 1)))
    return (low * (100 - remainder) + high * remainder) / 100


def split_by_code(ascending: np.ndarray, codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (group code, its ascending values) of each group with values; codes below 0 are no group."""
    # Sorting 16-bit integers is fastest.
    dtype = np.int16 if codes.max(initial=0) < 2**15 else np.int64
    order = np.argsort(codes.astype(dtype), kind="stable")
    sorted_codes = codes[order]
    stops = np.flatnonzero(np.diff(sorted_codes)) + 1
    for start, stop in zip([0, *stops], [*stops, codes.size], strict=True):
        if stop > start and sorted_codes[start] >= 0:
            yield int(sorted_codes[start]), ascending[order[start:stop]]


def doubled_ranks(counts: np.ndarray) -> np.ndarray:
    """Return twice the average rank (1-based) of each distinct value from its count, in ascending order of values.

    Doubled, because the average rank of ties may end in one half. Int64, the shape of `counts`.
    """
    return 2 * (np.cumsum(counts) - counts) + counts + 1


def correlation_parts(
    n: int, sum_x: int, sum_y: int, sum_xx: int, sum_yy: int, sum_xy: int
) -> tuple[float, float, float] | None:
    """Return (r, r squared, 1 - r squared) of Pearson from exact sums, each rounded once; None for constant x or y.

    The p-value of a weak correlation needs r squared to full precision, that of a strong correlation its complement.
    """
    covariance = n * sum_xy - sum_x * sum_y
    spread = (n * sum_xx - sum_x**2) * (n * sum_yy - sum_y**2)
    if spread == 0:
        return None
    # Python divides integers of any size with one correct rounding.
    square = covariance**2 / spread
    complement = (spread - covariance**2) / spread
    return math.copysign(math.sqrt(square), covariance), square, complement
