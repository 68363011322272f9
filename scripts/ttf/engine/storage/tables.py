"""Writing and reading the tables of the results contract: one way, so that the same numbers give the same bytes."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import polars as pl
from polars.io.plugins import register_io_source

from ttf.engine.contract import Table
from ttf.engine.errors import StudyError
from ttf.engine.size_unit import GPU, UNITS, SizeUnit
from ttf.engine.storage.on_disk import read_csv, scan_parquet

ROWS_A_GROUP = 1 << 18
# Jobs, or other rows, that are looked at together.
BLOCK_ROWS = 1 << 17
# Words for sizes of jobs, and the columns that say by them what a row is of; and columns of sentences of ours.
SIZES = {"gpu_count": ("stratum_by", "group_by", "covariate"), "gpus": ("stratum_by", "group_by")}
REASONS = ("reason", "no_projection", "needed")


def write_csv(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a tidy table: blank for null, floats in full precision.

    Raises ValueError for NaN or an infinity: a table says why a number is missing, it does not hold a non-number.
    """
    floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    bad = [name for name in floats if not frame[name].drop_nulls().is_finite().all()]
    if bad:
        raise ValueError(f"{path}: column {', '.join(bad)} holds NaN or an infinity")
    frame.write_csv(path)


def read_table(path: str | Path, contract: Table) -> pl.DataFrame:
    """A CSV with the types and columns of its contract, whatever the size unit of its trace is."""
    unit = unit_of_file(path, contract)
    frame = read_csv(path, schema=contract.in_unit(unit).schema)
    if unit != GPU:
        frame = frame.select(pl.col(there).alias(name) for name, there in contract.names_in(unit).items())
    return _with_sizes(frame, {unit.named(word): word for unit in UNITS for word in SIZES})


def read_as_written(path: str | Path, contract: Table) -> tuple[pl.DataFrame, Table]:
    """A CSV as it is, and the contract of its columns, which are named after the size unit of its trace."""
    contract = contract.in_unit(unit_of_file(path, contract))
    return read_csv(path, schema=contract.schema), contract


def unit_of_file(path: str | Path, contract: Table) -> SizeUnit:
    """The size unit that the header of a CSV is written in; GPU where its contract has no column of sizes."""
    with Path(path).open(encoding="utf-8") as file:
        header = file.readline().rstrip("\n").split(",")
    return next((unit for unit in UNITS if header == [*contract.in_unit(unit).columns]), GPU)


def _in_unit(frame: pl.DataFrame, contract: Table, unit: SizeUnit) -> pl.DataFrame:
    """The table as its file has it: names, strata of sizes and reasons in the size unit."""
    in_file = contract.in_unit(unit).columns
    names = {there: name for name, there in contract.names_in(unit).items()}
    names |= {name: name for name in contract.columns if name in in_file}
    frame = frame.select(pl.col(names[there]).alias(there) for there in in_file)
    frame = _with_sizes(frame, {word: unit.named(word) for word in SIZES})
    reasons = (pl.col(name).map_elements(unit.worded, pl.String) for name in REASONS if name in in_file)
    return frame.with_columns(reasons)


def _with_sizes(frame: pl.DataFrame, words: Mapping[str, str]) -> pl.DataFrame:
    """The frame with other words for sizes: one of SIZES by that of a unit, or the reverse."""
    columns: dict[str, dict[str, str]] = {}
    for word, other in words.items():
        for name in SIZES.get(word) or SIZES[other]:
            columns.setdefault(name, {})[word] = other
    return frame.with_columns(pl.col(name).replace(of) for name, of in columns.items() if name in frame.columns)


def write_product(
    product: pl.DataFrame | pl.LazyFrame | Iterator[pl.DataFrame],
    contract: Table,
    path: str | Path,
    unit: SizeUnit = GPU,
) -> int:
    """Write a table or a Parquet file of this contract; returns the rows of one that is held.

    unit: in which the sizes in the columns of GPUs are told: the names in a CSV are those of the unit.
    A frame that is collected lazily, or comes in blocks, is written without being held: its types are checked before,
    and afterwards that no column is blank that never may be.
    Raises StudyError for a frame that breaks the contract: nothing is written.
    """
    if isinstance(product, pl.DataFrame):
        contract.check(product)
        if unit != GPU and Path(path).suffix == ".csv":
            product = _in_unit(product, contract, unit)
        (write_csv if Path(path).suffix == ".csv" else write_parquet)(product, path)
        return product.height
    if isinstance(product, pl.LazyFrame):
        contract.check(pl.DataFrame(schema=product.collect_schema()))
        stream_parquet(product, path)
    else:
        write_blocks(product, contract.schema, path)
    never = [name for name, column in contract.columns.items() if column.blank is None]
    written = scan_parquet(path).select(pl.col(never).null_count()).collect(engine="streaming")
    try:
        contract.check_blanks({name: written[name].item() for name in never})
    except StudyError:
        Path(path).unlink()
        raise
    return 0


def write_folder(files: Mapping[str, str], path: str | Path) -> int:
    """Write a folder of text files, name -> text, whole or not at all, in place of what was there; returns how many.

    Raises ValueError for a name that is more than that of a file.
    """
    if wrong := [name for name in files if not name or Path(name).name != name or name.startswith(".")]:
        raise ValueError(f"{path}: {wrong[0]!r} is no name of a file")
    whole = Path(path)
    unfinished = whole.with_name(f"{whole.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for name, text in files.items():
        (unfinished / name).write_bytes(text.encode())
    if whole.exists():
        shutil.rmtree(whole)
    unfinished.rename(whole)
    return len(files)


def write_parquet(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a Parquet file whose bytes depend on the rows alone, not on the pieces they were computed in."""
    frame.rechunk().write_parquet(path, compression="lz4", statistics=False)


def stream_parquet(frame: pl.LazyFrame, path: str | Path) -> None:
    """Write a Parquet file without holding its rows: for whole numbers and texts in an order of their own.

    Row groups of a fixed length, so that the bytes do not depend on the pieces in which the rows come by.
    """
    frame.sink_parquet(
        path, compression="lz4", statistics=False, row_group_size=ROWS_A_GROUP, maintain_order=True, engine="streaming"
    )


def write_blocks(blocks: Iterable[pl.DataFrame], schema: Mapping[str, pl.DataType], path: str | Path) -> None:
    """Write a Parquet file of frames of this schema that come one after the other, of which one at a time is held."""
    stream_parquet(register_io_source(lambda *_unused: iter(blocks), schema=schema), path)


def scan_columns(path: str | Path, columns: Sequence[str]) -> pl.LazyFrame:
    """These columns of a Parquet file, in this order, to be read when it is used.

    One that the file does not have is left out: a trace's format decides which extras its tables have.
    """
    there = pl.read_parquet_schema(path)
    return scan_parquet(path).select(name for name in dict.fromkeys(columns) if name in there)


def blocks(
    table: pl.LazyFrame, rows: int = BLOCK_ROWS, beside: Mapping[str, pl.Series] = MappingProxyType({})
) -> Iterator[pl.DataFrame]:
    """The rows of a table on the disk in their order, so many at a time, with a value of each series beside each row.

    table: each row looked at by itself, and none left out, or more is read than is given.
    """
    for first in range(0, table.select(pl.len()).collect().item(), rows):
        block = read_rows(table, first, rows)
        yield block.with_columns(**{name: values.slice(first, rows) for name, values in beside.items()})


def blocks_with_attempts(
    jobs: pl.LazyFrame, attempts: pl.LazyFrame | None, rows: int = BLOCK_ROWS
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame | None]]:
    """Jobs in their order, so many at a time and at least one block, with their attempts.

    jobs, attempts: tables on the disk, as `blocks` takes them; attempts are None where the trace has none. `job` of an
    attempt is the row of its job, ascending; in a block it is the row among the jobs of the block.
    """
    job = None if attempts is None else attempts.select("job").collect()["job"]
    n_jobs, attempt = jobs.select(pl.len()).collect().item(), 0
    for first in range(0, max(n_jobs, 1), rows):
        of_jobs = read_rows(jobs, first, rows)
        if job is None:
            yield of_jobs, None
            continue
        end = job.search_sorted(first + rows)
        yield of_jobs, read_rows(attempts, attempt, end - attempt).with_columns(pl.col("job") - first)
        attempt = end


def read_rows(table: pl.LazyFrame, first: int, rows: int | None) -> pl.DataFrame:
    """Rows of a table on the disk from `first` on: so many, or all that follow."""
    return table.slice(first, rows).collect(engine="streaming")
