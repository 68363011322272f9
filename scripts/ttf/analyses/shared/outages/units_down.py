"""How many units are down at once: a sweep over the starts and ends of outages, weighted by time.

Spares are asked for in two ways, which are not the same. Of N units, s of which are spare: the smallest s such that at
most s of the N are down; this is what a trace of N units can answer. And beside N units that are all needed: the
smallest s such that of N + s at most s are down.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import bdtr, nbdtr

from ttf.records.outages.outage_records import began_under_watch
from ttf.stats.basics.order import running

# Rounding of a share of the time may not cost a spare.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Course:
    """Stretches of time in which nothing changes, in their order: begin and length (whole s, above 0), and the numbers
    of units watched (1 or more) and down. Int64 arrays of one length."""

    begin_s: np.ndarray
    length_s: np.ndarray
    watched: np.ndarray
    down: np.ndarray

    @property
    def total_s(self) -> int:
        return int(self.length_s.sum())

    @property
    def units(self) -> float:
        """Mean number watched."""
        return float(self.length_s @ self.watched / self.total_s)

    @property
    def down_share(self) -> float:
        """Of the time that units were watched, the part in which they were down."""
        return float((self.length_s @ self.down) / (self.length_s @ self.watched))

    def time_down(self) -> np.ndarray:
        """Seconds with 0, 1, 2 ... units down at once (Int64)."""
        return _sums(self.down, self.length_s)

    def time_down_by(self, length_s: int) -> np.ndarray:
        """The same by block of so many seconds, counted from the begin on: a row for each."""
        first = self.begin_s - self.begin_s[0]
        end = first + self.length_s
        row, block = expand_ranges(first // length_s, (end - 1) // length_s)
        begin = block * length_s
        inside = np.minimum(end[row], begin + length_s) - np.maximum(first[row], begin)
        shape = (int(block[-1]) + 1, int(self.down.max()) + 1)
        return _sums(block * shape[1] + self.down[row], inside, shape[0] * shape[1]).reshape(shape)

    def fleets(self) -> tuple[np.ndarray, np.ndarray]:
        """(numbers of units watched at once, share of the time with each)."""
        sizes, place = np.unique(self.watched, return_inverse=True)
        return sizes, _sums(place, self.length_s) / self.total_s


def expand_ranges(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(row, number) of all whole numbers from `first` to `last` of each row, both included, row by row."""
    numbers = last - first + 1
    row = np.repeat(np.arange(numbers.size), numbers)
    return row, np.arange(row.size) + np.repeat(first - (np.cumsum(numbers) - numbers), numbers)


def _sums(place: np.ndarray, weights: np.ndarray, least: int = 0) -> np.ndarray:
    """Sums of whole numbers by place; exact, as all seconds of all units are far below 2^53."""
    return np.bincount(place, weights=weights, minlength=least).astype(np.int64)


def spans_of(outages: pl.DataFrame, exposure: pl.DataFrame) -> pl.DataFrame:
    """Outages while watched: unit (its number by name), start_s, end_s, inside, repaired, until_s (of the watch).

    outages: unit_id, start_s, end_s, seen_until_s; exposure: unit_id, from_s, until_s, the times of a unit apart.
    inside: whether it began there, and did not last from before; one that did not last at all is kept. repaired:
    whether it ended there.
    """
    units = exposure.select("unit_id").unique().sort("unit_id").with_row_index("unit")
    watched = exposure.select("unit_id", "from_s", "until_s").join(units, on="unit_id")
    parts = outages.select("unit_id", "start_s", "end_s", "seen_until_s").join(watched, on="unit_id")
    return (
        parts.select(
            pl.col("unit").cast(pl.Int64),
            start_s=pl.max_horizontal("start_s", "from_s"),
            end_s=pl.min_horizontal("seen_until_s", "until_s"),
            inside=began_under_watch(),
            repaired=pl.col("end_s").is_not_null() & (pl.col("end_s") <= pl.col("until_s")),
            until_s="until_s",
        )
        .filter((pl.col("end_s") > pl.col("start_s")) | pl.col("inside"))
        .sort("start_s", "unit")
    )


def course_of(spans: pl.DataFrame, exposure: pl.DataFrame) -> Course:
    """spans: of `spans_of`. Time in which no unit was watched is left out."""
    at = np.concatenate([*exposure.select("from_s", "until_s"), *spans.select("start_s", "end_s")])
    watches, outages = exposure.height, spans.height
    moments, watched = running(at, np.repeat([1, -1, 0], [watches, watches, 2 * outages]))
    _, down = running(at, np.repeat([0, 1, -1], [2 * watches, outages, outages]))
    is_watched = np.flatnonzero(watched)
    return Course(moments[is_watched], np.diff(moments)[is_watched], watched[is_watched], down[is_watched])


def binomial_cumulative(course: Course, most: int) -> np.ndarray:
    """P(at most k units are down), k from 0 to `most`, if each is down for the same share, whatever the others do.

    Where the number of units changes, a mixture of binomials, each for its share of the time: the mean is the same.
    """
    sizes, shares = course.fleets()
    return (shares[:, None] * at_most(np.arange(most + 1), sizes[:, None], course.down_share)).sum(axis=0)


def at_most(down: np.ndarray, units: np.ndarray, share: float) -> np.ndarray:
    """P(Bin(units, share) <= down); 1 from `units` on."""
    down, units = np.broadcast_arrays(down, units)
    return np.where(down < units, bdtr(np.minimum(down, units).astype(float), units, share), 1.0)


def smallest(cumulative: np.ndarray, share: float) -> int:
    """The smallest s whose cumulative share reaches `share`; it is the last where none before does."""
    return min(int(np.searchsorted(cumulative, share - ROUNDING)), len(cumulative) - 1)


def spares_beside(units: int, down_share: float, share: float) -> int:
    """The smallest s with P(Bin(units + s, down_share) <= s) >= share: s spares beside so many units.

    Until `units` of them are found up, s or fewer are found down: a negative binomial.
    """
    if down_share >= 1:
        raise ValueError("units that are always down have no spares")
    most = 16
    while nbdtr(most, units, 1 - down_share) < share:
        most *= 2
    return smallest(nbdtr(np.arange(most + 1), units, 1 - down_share), share)
