"""Counts of each whole number in a column: all that means, percentiles and ranks need.

Millions of jobs have some 100,000 distinct run times in seconds. Their counts take far less memory than the columns of
the jobs, and do not depend on the order of the rows or the number of threads.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np
import polars as pl

from ttf.engine.exact_sums import INT64_LIMIT, dot, percentile_at
from ttf.engine.storage.tables import read_blocks

Rows = pl.DataFrame | pl.LazyFrame
# Whole numbers in a range up to this size are counted without sorting.
MOST_ROOM = 1 << 23


def distinct_texts(rows: Rows, column: str) -> list[str]:
    """Return the distinct values of a column as texts, sorted."""
    values = rows.lazy().select(pl.col(column).unique()).collect(engine="streaming")[column]
    return values.cast(pl.String).drop_nulls().sort().to_list()


def text_codes(column: str, names: Sequence[str]) -> pl.Expr:
    """Return the index of each value, as text, among the names (Int64); -1 if it is not among them."""
    return pl.col(column).cast(pl.String).cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int64).fill_null(-1)


def most_frequent(rows: Rows, column: str, most: int) -> list[str]:
    """Return the `most` most frequent texts of a column, most frequent first; ties by text."""
    frequencies = rows.lazy().group_by(column).agg(n=pl.len()).drop_nulls().collect(engine="streaming")
    return frequencies.sort("n", column, descending=[True, False])[column].head(most).to_list()


def count_rows(rows: Rows, **columns: pl.Expr) -> pl.DataFrame:
    """Count the distinct rows of these columns of whole numbers or Booleans; `n` is the number of each (all Int64).

    Rows are sorted by the first column, then the next. A row with a null is excluded.
    """
    selected = rows.lazy().select(**columns).drop_nulls().collect(engine="streaming")
    if not selected.height:
        return pl.DataFrame(schema=dict.fromkeys([*columns, "n"], pl.Int64))
    low = {name: int(value) for name, value in selected.min().row(0, named=True).items()}
    width = {name: int(value) - low[name] + 1 for name, value in selected.max().row(0, named=True).items()}
    if prod(width.values()) >= INT64_LIMIT:
        return selected.cast(pl.Int64).group_by(pl.all()).agg(n=pl.len().cast(pl.Int64)).sort(list(columns))
    # A row packed into one number sorts in a fraction of the time and memory that grouping by several columns takes.
    unit = {name: prod(list(width.values())[position:]) for position, name in enumerate(columns, start=1)}
    packed = reduce(operator.add, ((pl.col(name).cast(pl.Int64) - low[name]) * unit[name] for name in columns))
    runs = selected.select(packed.sort().rle().alias("run")).unnest("run")
    unpacked = {name: pl.col("value") // unit[name] % width[name] + low[name] for name in columns}
    return runs.select(**unpacked, n=pl.col("len").cast(pl.Int64))


@dataclass(frozen=True)
class ValueCounts:
    """Numbers in ascending order, and the count of each; a number may occur several times."""

    values: np.ndarray
    counts: np.ndarray

    @classmethod
    def from_frame(cls, sorted_rows: pl.DataFrame, column: str) -> "ValueCounts":
        """Make counts from a column of a sorted frame and the counts in its column `n`."""
        return cls(sorted_rows[column].to_numpy(), sorted_rows["n"].to_numpy())

    @cached_property
    def _cumulative(self) -> np.ndarray:
        return np.cumsum(self.counts)

    @property
    def size(self) -> int:
        """Return how many numbers there are: the sum of the counts."""
        return int(self._cumulative[-1]) if self._cumulative.size else 0

    def at(self, rank: int) -> int | float:
        """Return the number of this rank; rank 0 is the smallest."""
        return self.values[np.searchsorted(self._cumulative, rank, side="right")].item()

    def between(self, first: int, last: int) -> int:
        """Return the count of numbers from `first` to `last`, both included."""
        start, stop = np.searchsorted(self.values, first), np.searchsorted(self.values, last, side="right")
        return int(self._cumulative[stop - 1] if stop else 0) - int(self._cumulative[start - 1] if start else 0)

    def mean(self) -> float:
        """Return the mean of whole numbers: their exact sum, divided once."""
        return dot(self.values, self.counts) / self.size

    def median(self) -> float:
        """Return the middle number, or the mean of the two middle numbers."""
        return (self.at((self.size - 1) // 2) + self.at(self.size // 2)) / 2

    def percentile(self, percent: int) -> float:
        """Return a percentile of whole numbers: linear between ranks 0 and size - 1, as in NumPy."""
        return percentile_at(self.size, self.at, percent)


def count_values(table: pl.LazyFrame, column: str, low: int, high: int) -> ValueCounts:
    """Count the whole numbers in a column of a table on disk, all from `low` to `high`; blanks are excluded."""
    width = high - low + 1
    if width > min(MOST_ROOM, 4 * table.select(pl.len()).collect().item()):
        # The narrowest type that fits saves memory.
        values = table.select(pl.col(column).drop_nulls()).collect(engine="streaming").to_series().shrink_dtype()
        return ValueCounts(*(part.to_numpy() for part in values.sort().rle().struct.unnest()[["value", "len"]]))
    frequencies = np.zeros(width, np.int64)
    for block in read_blocks(table.select(column)):
        np.add.at(frequencies, block[column].drop_nulls().cast(pl.Int64).to_numpy() - low, 1)
    indices = np.flatnonzero(frequencies)
    return ValueCounts(indices + low, frequencies[indices])
