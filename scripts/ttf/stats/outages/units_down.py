"""Number of units down at once: a sweep over the starts and ends of outages, weighted by time.

There are two questions about spares. First: of N units, s of which are spares, the smallest s such that at most s of
the N are down; a trace of N units answers it. Second: for N units that are all needed, the smallest s such that at most
s of N + s are down.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import bdtr, nbdtr

from ttf.records.outages.outage_records import is_start_watched
from ttf.stats.basics.order import cumulate_changes

# Rounding of a share of time must not cost a spare.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Course:
    """Intervals without change, in order: begin and length (s, above 0), units watched (1 or more) and down (Int64)."""

    begin_s: np.ndarray
    length_s: np.ndarray
    watched: np.ndarray
    down: np.ndarray

    @property
    def total_s(self) -> int:
        return int(self.length_s.sum())

    @property
    def units(self) -> float:
        """Return the mean number of units watched."""
        return float(self.length_s @ self.watched / self.total_s)

    @property
    def down_share(self) -> float:
        """Return the share of the watched time that units were down."""
        return float((self.length_s @ self.down) / (self.length_s @ self.watched))

    def time_down(self) -> np.ndarray:
        """Return the seconds with 0, 1, 2 ... units down at once (Int64)."""
        return _sum_by_index(self.down, self.length_s)

    def time_down_by(self, length_s: int) -> np.ndarray:
        """Return `time_down` of each block of this length, counted from the begin: a row for each block."""
        first = self.begin_s - self.begin_s[0]
        end = first + self.length_s
        row, block = expand_ranges(first // length_s, (end - 1) // length_s)
        begin = block * length_s
        overlap = np.minimum(end[row], begin + length_s) - np.maximum(first[row], begin)
        shape = (int(block[-1]) + 1, int(self.down.max()) + 1)
        return _sum_by_index(block * shape[1] + self.down[row], overlap, shape[0] * shape[1]).reshape(shape)

    def fleets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (numbers of units watched at once, share of the time with each)."""
        sizes, index = np.unique(self.watched, return_inverse=True)
        return sizes, _sum_by_index(index, self.length_s) / self.total_s


def expand_ranges(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (row, number) of all whole numbers from `first` to `last` of each row, inclusive, row by row."""
    numbers = last - first + 1
    row = np.repeat(np.arange(numbers.size), numbers)
    return row, np.arange(row.size) + np.repeat(first - (np.cumsum(numbers) - numbers), numbers)


def _sum_by_index(index: np.ndarray, weights: np.ndarray, min_length: int = 0) -> np.ndarray:
    """Sum whole numbers by index; exact, because all seconds of all units are far below 2^53."""
    return np.bincount(index, weights=weights, minlength=min_length).astype(np.int64)


def list_spans(outages: pl.DataFrame, exposure: pl.DataFrame) -> pl.DataFrame:
    """Return outages while watched: unit (its number by name), start_s, end_s, inside, repaired, until_s.

    outages: unit_id, start_s, end_s, seen_until_s. exposure: unit_id, from_s, until_s, without overlaps within a unit.
    until_s: end of the watch. inside: whether the outage began there, and not before; one of no length is kept.
    repaired: whether it ended there.
    """
    units = exposure.select("unit_id").unique().sort("unit_id").with_row_index("unit")
    watched = exposure.select("unit_id", "from_s", "until_s").join(units, on="unit_id")
    return (
        outages.select("unit_id", "start_s", "end_s", "seen_until_s")
        .join(watched, on="unit_id")
        .select(
            pl.col("unit").cast(pl.Int64),
            start_s=pl.max_horizontal("start_s", "from_s"),
            end_s=pl.min_horizontal("seen_until_s", "until_s"),
            inside=is_start_watched(),
            repaired=pl.col("end_s").is_not_null() & (pl.col("end_s") <= pl.col("until_s")),
            until_s="until_s",
        )
        .filter((pl.col("end_s") > pl.col("start_s")) | pl.col("inside"))
        .sort("start_s", "unit")
    )


def build_course(spans: pl.DataFrame, exposure: pl.DataFrame) -> Course:
    """Count the units watched and down over time, omitting times without a watched unit. spans: of `list_spans`."""
    moments = np.concatenate([*exposure.select("from_s", "until_s"), *spans.select("start_s", "end_s")])
    watches, outages = exposure.height, spans.height
    change_s, watched = cumulate_changes(moments, np.repeat([1, -1, 0], [watches, watches, 2 * outages]))
    _, down = cumulate_changes(moments, np.repeat([0, 1, -1], [2 * watches, outages, outages]))
    is_watched = np.flatnonzero(watched)
    return Course(change_s[is_watched], np.diff(change_s)[is_watched], watched[is_watched], down[is_watched])


def binomial_cumulative(course: Course, most: int) -> np.ndarray:
    """Return P(at most k units are down), k from 0 to `most`, for independent units with the same share of down time.

    If the number of units changes, a mixture of binomials weighted by their shares of the time: the mean is the same.
    """
    sizes, shares = course.fleets()
    return (shares[:, None] * binomial_cdf(np.arange(most + 1), sizes[:, None], course.down_share)).sum(axis=0)


def binomial_cdf(down: np.ndarray | int, units: np.ndarray | int, share: float) -> np.ndarray:
    """Return P(Bin(units, share) <= down); 1 from `units` on.

    Parameters
    ----------
    down, units : numbers, or arrays of one shape
    share : between 0 and 1

    Returns
    -------
    probabilities of that shape

    Examples
    --------
    >>> round(float(binomial_cdf(0, 2, 0.1)), 4)
    0.81
    """
    down, units = np.broadcast_arrays(down, units)
    return np.where(down < units, bdtr(np.minimum(down, units).astype(float), units, share), 1.0)


def smallest_sufficient(cumulative: np.ndarray, share: float) -> int:
    """Return the smallest s whose cumulative share reaches `share`; the last if none before does."""
    return min(int(np.searchsorted(cumulative, share - ROUNDING)), len(cumulative) - 1)


def count_extra_spares(units: int, down_share: float, share: float) -> int:
    """Return the smallest s with P(Bin(units + s, down_share) <= s) >= share: spares in addition to the units.

    Parameters
    ----------
    units : number that has to be up
    down_share : of each unit, independent of the others
    share : of the time in which enough are up

    Returns
    -------
    number of spares

    Notes
    -----
    Until `units` of them are found up, at most s are found down: a negative binomial.

    Examples
    --------
    >>> count_extra_spares(1, 0.1, 0.98)  # two units are both down with 0.01
    1
    """
    if down_share >= 1:
        raise ValueError("units that are always down have no spares")
    most = 16
    while nbdtr(most, units, 1 - down_share) < share:
        most *= 2
    return smallest_sufficient(nbdtr(np.arange(most + 1), units, 1 - down_share), share)
