"""How often each whole number occurs, counted as rows come by: all that their means, percentiles and ranks need.

Of millions of jobs the run times are some 100,000 different numbers of seconds, so that counts of them take far less
room than the jobs' columns do, and are the same in any order of the rows and with any number of threads.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np
import polars as pl

from ttf.engine.exact_sums import INT64_LIMIT, dot, percentile_at
from ttf.engine.storage.tables import blocks

Rows = pl.DataFrame | pl.LazyFrame
# Whole numbers that lie no further apart are counted through without being sorted.
MOST_ROOM = 1 << 23


def labels(rows: Rows, column: str) -> list[str]:
    """The different texts of a column, in order."""
    return rows.lazy().select(pl.col(column).unique()).collect(engine="streaming")[column].drop_nulls().sort().to_list()


def code(column: str, names: Sequence[str]) -> pl.Expr:
    """The place of each text among the names (Int64); -1 where it is none of them."""
    return pl.col(column).cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int64).fill_null(-1)


def commonest(rows: Rows, column: str, most: int) -> list[str]:
    """The texts that the most rows have in a column, so many of them, most first; equal ones by the text."""
    found = rows.lazy().group_by(column).agg(n=pl.len()).drop_nulls().collect(engine="streaming")
    return found.sort("n", column, descending=[True, False])[column].head(most).to_list()


def counts(rows: Rows, **columns: pl.Expr) -> pl.DataFrame:
    """The different rows of these columns of whole numbers, ascending by the first before the others, and `n` of each.

    All Int64. A row with a null is excluded.
    """
    wanted = rows.lazy().select(column.cast(pl.Int64).alias(name) for name, column in columns.items())
    wanted = wanted.drop_nulls()
    ends = wanted.select(pl.all().min().name.prefix("low_"), pl.all().max().name.prefix("high_"))
    found = ends.collect(engine="streaming").row(0, named=True)
    if found[f"low_{next(iter(columns))}"] is None:
        return pl.DataFrame(schema=dict.fromkeys([*columns, "n"], pl.Int64))
    low = {name: found[f"low_{name}"] for name in columns}
    room = {name: found[f"high_{name}"] - low[name] + 1 for name in columns}
    if prod(room.values()) >= INT64_LIMIT:
        grouped = wanted.group_by(pl.all()).agg(n=pl.len().cast(pl.Int64)).collect(engine="streaming")
        return grouped.sort(list(columns))
    # A row as one number: sorted in a fraction of the time and the room that it takes to group by several columns.
    unit = {name: prod(list(room.values())[place:]) for place, name in enumerate(columns, start=1)}
    packed = reduce(operator.add, ((pl.col(name) - low[name]) * unit[name] for name in columns))
    runs = wanted.select(packed.sort().rle().alias("run")).unnest("run").collect(engine="streaming")
    unpacked = {name: pl.col("value") // unit[name] % room[name] + low[name] for name in columns}
    return runs.select(**unpacked, n=pl.col("len").cast(pl.Int64))


@dataclass(frozen=True)
class Counted:
    """Numbers in ascending order, and how often each occurs; one may stand there several times."""

    values: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, ascending: pl.DataFrame, column: str) -> "Counted":
        """A column of a frame in its order, of whose rows `n` says how often each occurs."""
        return cls(ascending[column].to_numpy(), ascending["n"].to_numpy())

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.cumsum(self.counts)

    @property
    def size(self) -> int:
        return int(self._ends[-1]) if self._ends.size else 0

    def at(self, rank: int) -> int | float:
        """The number of this rank, 0 the smallest."""
        return self.values[np.searchsorted(self._ends, rank, side="right")].item()

    def between(self, first: int, last: int) -> int:
        """How many are from the first to the last of these numbers, both included."""
        below, up_to = np.searchsorted(self.values, first), np.searchsorted(self.values, last, side="right")
        return int(self._ends[up_to - 1] if up_to else 0) - int(self._ends[below - 1] if below else 0)

    def mean(self) -> float:
        """Of whole numbers: their exact sum, divided once."""
        return dot(self.values, self.counts) / self.size

    def median(self) -> float:
        """The middle number, or the middle of the two middle ones."""
        return (self.at((self.size - 1) // 2) + self.at(self.size // 2)) / 2

    def percentile(self, percent: int) -> float:
        """Of whole numbers: linear between ranks 0 and size - 1, as in NumPy."""
        return percentile_at(self.size, self.at, percent)


def counted(table: pl.LazyFrame, column: str, low: int, high: int) -> Counted:
    """The whole numbers in a column of a table on the disk, all of them from `low` to `high`; blanks excluded."""
    room = high - low + 1
    if room > min(MOST_ROOM, 4 * table.select(pl.len()).collect().item()):
        # In as few bits as the largest needs: less to hold.
        known = table.select(pl.col(column).drop_nulls()).collect(engine="streaming").to_series().shrink_dtype()
        return Counted(*(part.to_numpy() for part in known.sort().rle().struct.unnest()[["value", "len"]]))
    times = np.zeros(room, np.int64)
    for block in blocks(table.select(column)):
        np.add.at(times, block[column].drop_nulls().cast(pl.Int64).to_numpy() - low, 1)
    found = np.flatnonzero(times)
    return Counted(found + low, times[found])
