"""Whole numbers in order. An array of integers is sorted several times as fast as an order of rows is found, so what

is to be sorted together is packed into one integer wherever 63 bits hold it; else the rows are put in order.
"""

import numpy as np
import polars as pl

_BITS = 63


def order_by(*columns: np.ndarray) -> np.ndarray:
    """The places of the rows sorted by integer columns of one length, the first before the others; equal rows stay."""
    rows = columns[0].size
    if not rows:
        return np.zeros(0, np.int64)
    lows = [int(column.min()) for column in columns]
    widths = [(int(column.max()) - low).bit_length() for column, low in zip(columns, lows, strict=True)]
    of_place = (rows - 1).bit_length()
    if sum(widths) + of_place > _BITS:
        return np.lexsort(columns[::-1])
    key = np.zeros(rows, np.int64)
    for column, low, bits in zip(columns, lows, widths, strict=True):
        key <<= bits
        key += column
        key -= low
    key <<= of_place
    key += np.arange(rows)
    return _ascending(key) & ((1 << of_place) - 1)


def sorted_pairs(key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of a key (Int64, not negative) and a whole number, sorted by both: two Int64 arrays of their length."""
    low = int(value.min(initial=0))
    bits = (int(value.max(initial=0)) - low).bit_length()
    if int(key.max(initial=0)).bit_length() + bits > _BITS:
        order = np.lexsort((value, key))
        return key[order], value[order].astype(np.int64)
    packed = key << bits
    packed += value
    packed -= low
    packed = _ascending(packed)
    value = packed & ((1 << bits) - 1)
    value += low
    return packed >> bits, value


def _ascending(values: np.ndarray) -> np.ndarray:
    """The values in order, not to be written to."""
    # Of Polars: the sort of NumPy takes four times as long on some processors with AVX-512.
    return pl.Series(values).sort().to_numpy()


def first_of_each(*columns: np.ndarray) -> np.ndarray:
    """The place of the first of each run of rows that are equal in all columns."""
    is_new = np.zeros(columns[0].size, bool)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_new)


def last_of_each(ascending: np.ndarray) -> np.ndarray:
    """The place of the last of each run of equal values."""
    return np.flatnonzero(np.append(ascending[1:] != ascending[:-1], True)[: ascending.size])


def numbered(*columns: np.ndarray) -> np.ndarray:
    """A number from 0 on, none left out, per distinct row of integer columns of one length, in the rows' order."""
    number, count = np.zeros(columns[0].size, np.int64), 1
    for column in columns:
        code, codes = _without_gaps(column)
        number, count = _without_gaps(number * codes + code) if count > 1 else (code, codes)
    return number


def _without_gaps(values: np.ndarray) -> tuple[np.ndarray, int]:
    """(the place of each value among the distinct ones, how many of these there are)."""
    low = int(values.min(initial=0))
    room = int(values.max(initial=0)) - low + 1
    if room > 16 * values.size + 1024:
        distinct, place = np.unique(values, return_inverse=True)
        return place, distinct.size
    is_there = np.zeros(room, bool)
    is_there[values - low] = True
    place = np.cumsum(is_there, dtype=np.int64)
    return place[values - low] - 1, max(int(place[-1]), 1)
