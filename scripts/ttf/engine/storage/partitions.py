"""Tables larger than memory: their rows in partitions on the disk, and what was made of them back in file order.

All rows of one job are in one partition, so that what is made of a partition is whole. A result is a frame with a
column `row`, ascending: the place, from 0, of the row of the table that it belongs to. In file order any number of
partitions, and of shares of them, gives the same rows.
"""

import operator
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import scan_ipc

# Rows put together at a time: as many as a row group of the stored tables has, so that each is read once.
BLOCK_ROWS = 1 << 17
# Blocks whose results are read together; those of each such stretch are kept apart, so that each is read once.
STRETCH_BLOCKS = 4
# Rows that wait in memory for each partition that is being written.
WAITING_ROWS = 1 << 14


def number_of(columns: Sequence[str], seed: int) -> pl.Expr:
    """64 bits that are the same for the same texts in these columns; other ones for another seed.

    A column's own seed is `seed` and its place on: seeds that are to give unrelated numbers lie len(columns) apart.
    """
    return reduce(operator.xor, (pl.col(name).hash(seed + place) for place, name in enumerate(columns)))


def key_hashes(columns: Sequence[str], name: str = "hash") -> dict[str, pl.Expr]:
    """Two 64-bit numbers that stand for the texts in these columns: no two keys of a trace agree in both."""
    return {name: number_of(columns, 0), f"second_{name}": number_of(columns, len(columns))}


@dataclass(frozen=True)
class Partitions:
    """So many partitions, of which every `shares`-th from `share` on is worked on here; folder: for what is spilled."""

    folder: Path
    number: int = 1
    share: int = 0
    shares: int = 1

    def is_of_share(self, by: str) -> pl.Expr:
        """Whether a row is worked on here: decided by the text in this column, alike in every share."""
        return self._partition(by) % self.shares == self.share

    def split(
        self, name: str, rows: pl.LazyFrame, by: str, *columns: str | pl.Expr, **named: pl.Expr
    ) -> list[pl.LazyFrame]:
        """These columns of the rows of each partition of this share; `by` as in `is_of_share`.

        A single partition is not spilled. Of several, the rows are read once and never held as a whole.
        """
        wanted = rows.select(*columns, **named)
        if self.number == 1:
            return [wanted]
        folder = self.folder / name
        here = rows.filter(self.is_of_share(by)) if self.shares > 1 else rows
        here.select(*columns, **named, partition=self._partition(by)).sink_ipc(
            pl.PartitionBy(folder, key="partition", include_key=False),
            record_batch_size=WAITING_ROWS,
            mkdir=True,
            engine="streaming",
        )
        return [
            scan_ipc(found) if (found := sorted(folder.glob(f"partition={number}/*"))) else wanted.clear()
            for number in range(self.share, self.number, self.shares)
        ]

    def put_by(self, name: str, rows: pl.DataFrame) -> pl.LazyFrame:
        """These rows of one partition, to be read later: from the disk where there are several."""
        if self.number == 1:
            return rows.lazy()
        file = self.folder / f"{name}.ipc"
        rows.write_ipc(file)
        return scan_ipc(file)

    def _partition(self, by: str) -> pl.Expr:
        return (pl.col(by).hash(0) % self.number).cast(pl.UInt32)


Tables = Mapping[str, pl.LazyFrame]
# Stretch of STRETCH_BLOCKS blocks of the table, from 0 -> the results of its rows, in any order.
Results = Mapping[int, pl.LazyFrame]
# Yields the result of each partition of the tables.
Make = Callable[[Tables, Partitions], Iterator[pl.DataFrame]]


def partitions_of(
    tables: Iterable[pl.LazyFrame], rows_each: int, folder: Path, share: int = 0, shares: int = 1
) -> Partitions:
    """Partitions of some `rows_each` rows of the longest table at most, as many in each share."""
    longest = max(table.select(pl.len()).collect().item() for table in tables)
    return Partitions(folder, shares * max(1, -(-longest // (rows_each * shares))), share, shares)


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


def results_of(make: Make, raw: Tables, partitions: Partitions) -> Results:
    """What `make` yields of each partition: in memory where there is one, else written to partitions.folder."""
    if partitions.number == 1:
        (result,) = make(raw, partitions)
        return {stretch: rows.lazy() for stretch, rows in _by_stretch(result)}
    write_results(make, raw, partitions, partitions.folder)
    return read_results(make, [partitions.folder])


def write_results(make: Make, raw: Tables, partitions: Partitions, folder: Path) -> None:
    """Write what `make` yields of each partition into the folder, for `read_results`."""
    (folder / make.__name__).mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=partitions.folder) as spilled:
        for place, result in enumerate(make(raw, replace(partitions, folder=Path(spilled)))):
            for stretch, rows in _by_stretch(result):
                rows.write_ipc(folder / make.__name__ / f"{stretch}-{place}.ipc")


def read_results(make: Make, folders: Iterable[str | Path]) -> Results:
    """What `write_results` wrote to these folders; nothing where there are none."""
    of_stretch = defaultdict(list)
    for folder in folders:
        for file in sorted(Path(folder, make.__name__).glob("*.ipc")):
            of_stretch[int(file.stem.partition("-")[0])].append(file)
    return {stretch: scan_ipc(files) for stretch, files in of_stretch.items()}


def _by_stretch(result: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """The stretches of the table that the rows of a result belong to, with those rows; at least one."""
    if result.is_empty():
        yield 0, result
    first = 0
    for length, stretch in (result["row"] // (BLOCK_ROWS * STRETCH_BLOCKS)).rle().struct.unnest().iter_rows():
        yield stretch, result.slice(first, length)
        first += length


def one_by_one(frames: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    """The rows of all the frames, of which one at a time is held."""

    def collected(*_unused) -> Iterator[pl.DataFrame]:
        for frame in frames:
            yield frame.collect(engine="streaming")

    return register_io_source(collected, schema=frames[0].collect_schema())


def beside(table: pl.LazyFrame, results: Results, made: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.LazyFrame:
    """made() of the table's rows with the columns of their results, in file order and block by block.

    made: looks at each row by itself. Raises StudyError where the results are not those of the table's rows.
    """
    nothing = next(iter(results.values())).clear()
    stretch_rows = BLOCK_ROWS * STRETCH_BLOCKS

    def blocks(*_unused) -> Iterator[pl.DataFrame]:
        rows = table.select(pl.len()).collect().item()
        for stretch in range(max(-(-rows // stretch_rows), 1 + max(results))):
            of_rows = results.get(stretch, nothing).sort("row").collect(engine="streaming")
            first, last = stretch * stretch_rows, min((stretch + 1) * stretch_rows, rows)
            for block in range(first, last, BLOCK_ROWS):
                here = table.slice(block, BLOCK_ROWS).with_row_index("row", block).collect(engine="streaming")
                found, of_rows = of_rows.head(here.height), of_rows.slice(here.height)
                if not here["row"].equals(found["row"]):
                    raise _other_results()
                both = pl.concat([here.drop("row"), found.drop("row")], how="horizontal")
                yield made(both.lazy()).collect()
            if of_rows.height:
                raise _other_results()

    schema = pl.concat([table.clear(), nothing.drop("row")], how="horizontal")
    return register_io_source(blocks, schema=made(schema).collect_schema())


def _other_results() -> StudyError:
    return StudyError("The shares of the work do not fit together: make them again (--forcerun derive_share).")
