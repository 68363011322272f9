"""Exact sums and percentiles of integers: the same answer in any row order and with any number of threads."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

INT64_LIMIT = 2**63


def group_sums(codes: np.ndarray, weights: np.ndarray, groups: int) -> np.ndarray:
    """The sum of non-negative Int64 weights by group code (0 .. groups - 1): Int64 array of `groups`.

    Raises OverflowError when all weights together might not fit an Int64.
    """
    # A rounded sum is far less than a thousandth off.
    if 1.001 * float(weights.sum(dtype=np.float64)) >= INT64_LIMIT:
        raise OverflowError("values too large for an exact sum by group")
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, codes, weights)
    return sums


def dot(a: np.ndarray, b: np.ndarray) -> int:
    """The exact scalar product of two Int64 arrays of one length, which 128 bits hold, as a Python integer."""
    return (pl.Series(a).cast(pl.Int128) * pl.Series(b)).sum()


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Non-negative Int64 arrays multiplied row by row. Raises OverflowError where a product might not fit an Int64."""
    if int(a.max(initial=0)) * int(b.max(initial=0)) >= INT64_LIMIT:
        raise OverflowError("values too large for an exact product")
    return a * b


def total(values: np.ndarray) -> int:
    """The exact sum of an Int64 array, as a Python integer."""
    return pl.Series(values).cast(pl.Int128).sum()


def percentile(ascending: np.ndarray, percent: int) -> float:
    """A percentile of ascending integers, at least one: linear between ranks 0 and n - 1, as in NumPy."""
    return percentile_at(ascending.size, ascending.__getitem__, percent)


def percentile_at(n: int, at: Callable[[int], int], percent: int) -> float:
    """The same of n integers, of which at(rank) gives one."""
    # In integers up to the last division: the same digits whatever the machine.
    rank, rest = divmod((n - 1) * percent, 100)
    low, high = int(at(rank)), int(at(min(rank + 1, n - 1)))
    return (low * (100 - rest) + high * rest) / 100


def parts_of(ascending: np.ndarray, codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(group code, its values, ascending) of each group with values; a code below 0 is no group."""
    # 16 bits are sorted fastest.
    kind = np.int16 if codes.max(initial=0) < 2**15 else np.int64
    order = np.argsort(codes.astype(kind), kind="stable")
    sorted_codes = codes[order]
    ends = np.flatnonzero(np.diff(sorted_codes)) + 1
    for begin, end in zip([0, *ends], [*ends, codes.size], strict=True):
        if end > begin and sorted_codes[begin] >= 0:
            yield int(sorted_codes[begin]), ascending[order[begin:end]]


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
