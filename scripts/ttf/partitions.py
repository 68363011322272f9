"""Tables larger than memory: their rows in partitions on the disk, and what was made of them back in file order.

All rows of one job are in one partition, so that what is made of a partition is whole. A result is a frame with a
column `row`, ascending: the place, from 0, of the row of the table that it goes beside. In file order any number of
partitions, and of shares of them, gives the same rows.
"""

import operator
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from ttf.errors import StudyError

# Rows put together at a time.
BLOCK_ROWS = 1 << 19


def number_of(columns: Sequence[str], seed: int) -> pl.Expr:
    """64 bits that are the same for the same texts in these columns; other ones for another seed.

    A column's own seed is `seed` and its place on: seeds that are to give unrelated numbers lie len(columns) apart.
    """
    return reduce(operator.xor, (pl.col(name).hash(seed + place) for place, name in enumerate(columns)))


class SharedKeyError(Exception):
    """Two rows with different names have the same key."""


@dataclass(frozen=True)
class Partitions:
    """So many partitions, of which every `shares`-th from `share` on is worked on here; folder: for what is spilled."""

    folder: Path
    number: int = 1
    share: int = 0
    shares: int = 1
    seed: int = 0

    def key(self, *columns: str) -> pl.Expr:
        """`key`, a 64-bit number that stands for the texts of these columns in joins and groups, by the seed."""
        return number_of(columns, 1 + self.seed * len(columns)).alias("key")

    def is_of_share(self, by: str) -> pl.Expr:
        """Whether a row is worked on here: decided by the text in this column, alike in every share."""
        return self._partition(by) % self.shares == self.share

    def split(self, name: str, rows: pl.LazyFrame, by: str, *columns: str | pl.Expr) -> list[pl.LazyFrame]:
        """These columns of the rows of each partition of this share; `by` as in `is_of_share`.

        A single partition is not spilled. Of several, the rows are read once and never held as a whole.
        """
        wanted = rows.select(*columns)
        if self.number == 1:
            return [wanted]
        folder = self.folder / name
        rows.filter(self.is_of_share(by)).select(*columns, partition=self._partition(by)).sink_ipc(
            pl.PartitionBy(folder, key="partition", include_key=False), mkdir=True, engine="streaming"
        )
        return [
            pl.scan_ipc(found) if (found := sorted(folder.glob(f"partition={number}/*"))) else wanted.clear()
            for number in range(self.share, self.number, self.shares)
        ]

    def _partition(self, by: str) -> pl.Expr:
        return (pl.col(by).hash(0) % self.number).cast(pl.UInt32)


Tables = Mapping[str, pl.LazyFrame]
# Yields the result of each partition of the tables. Raises SharedKeyError where two rows of one share a key.
Make = Callable[[Tables, Partitions], Iterator[pl.DataFrame]]


def partitions_of(
    tables: Iterable[pl.LazyFrame], rows_each: int, folder: Path, share: int = 0, shares: int = 1
) -> Partitions:
    """Partitions of some `rows_each` rows of the longest table at most, as many in each share."""
    longest = max(table.select(pl.len()).collect().item() for table in tables)
    return Partitions(folder, shares * max(1, -(-longest // (rows_each * shares))), share, shares)


def check_keys(rows: pl.DataFrame) -> None:
    """Raise SharedKeyError unless each row has a key of its own."""
    if rows["key"].n_unique() < rows.height:
        raise SharedKeyError


@contextmanager
def spill_beside(product: str | Path) -> Iterator[Path]:
    """A folder for what is spilled, on the disk of the product; it goes afterwards, as does what a killed run left."""
    folder = Path(product).with_name(f".spill-{Path(product).name}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def results_of(make: Make, raw: Tables, partitions: Partitions) -> list[pl.LazyFrame]:
    """What `make` yields of each partition: in memory where there is one, else written to partitions.folder."""
    if partitions.number == 1:
        return _with_own_keys(lambda tried: [result.lazy() for result in make(raw, tried)], partitions)
    write_results(make, raw, partitions, partitions.folder)
    return read_results(make, [partitions.folder])


def write_results(make: Make, raw: Tables, partitions: Partitions, folder: Path) -> None:
    """Write what `make` yields of each partition into the folder, for `read_results`."""
    (folder / make.__name__).mkdir(parents=True)

    def write(tried: Partitions) -> None:
        for place, result in enumerate(make(raw, tried)):
            result.write_ipc(folder / make.__name__ / f"{place}.ipc")

    _with_own_keys(write, partitions)


def read_results(make: Make, folders: Iterable[str | Path]) -> list[pl.LazyFrame]:
    """What `write_results` wrote to these folders."""
    return [pl.scan_ipc(file) for folder in folders for file in sorted(Path(folder, make.__name__).glob("*.ipc"))]


def _with_own_keys(tried: Callable[[Partitions], Any], partitions: Partitions) -> Any:
    """tried() of the partitions with the first seed under which no two rows have the same key."""
    while True:
        with tempfile.TemporaryDirectory(dir=partitions.folder) as folder:
            try:
                return tried(replace(partitions, folder=Path(folder)))
            except SharedKeyError:
                partitions = replace(partitions, seed=partitions.seed + 1)


def one_by_one(frames: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    """The rows of all the frames, of which one at a time is held."""

    def collected(*_unused) -> Iterator[pl.DataFrame]:
        for frame in frames:
            yield frame.collect(engine="streaming")

    return register_io_source(collected, schema=frames[0].collect_schema())


def beside(
    table: pl.LazyFrame,
    has_result: pl.Expr,
    results: Sequence[pl.LazyFrame],
    made: Callable[[pl.LazyFrame], pl.LazyFrame],
) -> pl.LazyFrame:
    """made() of the table's rows that have a result, its columns beside theirs, in file order and block by block.

    made: looks at each row by itself. Raises StudyError where the results are not those of the table's rows.
    """
    slices = [_slices_by_block(result) for result in results]
    schema = pl.concat([table.clear(), results[0].drop("row").clear()], how="horizontal")

    def block(number: int) -> pl.DataFrame:
        first = number * BLOCK_ROWS
        rows = table.slice(first, BLOCK_ROWS).with_row_index("row", first).filter(has_result)
        here = [result.slice(*at[number]) for result, at in zip(results, slices, strict=True) if number in at]
        rows, *found = pl.collect_all([rows, *(here or [results[0].clear()])])
        of_rows = pl.concat(found).sort("row")
        if not rows["row"].equals(of_rows["row"]):
            raise StudyError("The shares of the work do not fit together: make them again (--forcerun derive_share).")
        return made(pl.concat([rows.drop("row"), of_rows.drop("row")], how="horizontal").lazy()).collect()

    def blocks(*_unused) -> Iterator[pl.DataFrame]:
        rows = table.select(pl.len()).collect().item()
        return map(block, range(-(-rows // BLOCK_ROWS)))

    return register_io_source(blocks, schema=made(schema).collect_schema())


def _slices_by_block(result: pl.LazyFrame) -> dict[int, tuple[int, int]]:
    """Block -> (first of the result's rows that belong to it, how many)."""
    of_blocks = result.group_by(block=pl.col("row") // BLOCK_ROWS).len().sort("block").collect(engine="streaming")
    found = of_blocks.select("block", first=pl.col("len").cum_sum() - pl.col("len"), length="len")
    return {block: (first, length) for block, first, length in found.iter_rows()}
