"""Write and read the tables of the results contract, so that the same numbers always give the same bytes."""

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

GROUP_ROWS = 1 << 18
# Jobs, or other rows, that are processed together.
BLOCK_ROWS = 1 << 17
# Words for job sizes -> the columns that hold them as a group or stratum; and the columns with sentences.
SIZES = {"gpu_count": ("stratum_by", "group_by", "covariate"), "gpus": ("stratum_by", "group_by")}
REASONS = ("reason", "no_projection", "needed")


def write_csv(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a tidy table: blank for null, floats in full precision.

    Raises ValueError for NaN or an infinity: a missing number is blank, and another column says why.
    """
    floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    if bad_columns := [name for name in floats if not frame[name].drop_nulls().is_finite().all()]:
        raise ValueError(f"{path}: column {', '.join(bad_columns)} holds NaN or an infinity")
    frame.write_csv(path)


def read_table(path: str | Path, contract: Table) -> pl.DataFrame:
    """Read a CSV with the types and columns of its contract, whatever the size unit of its trace."""
    unit = detect_unit(path, contract)
    frame = read_csv(path, schema=contract.in_unit(unit).schema)
    if unit != GPU:
        frame = frame.select(pl.col(file_column).alias(name) for name, file_column in contract.names_in(unit).items())
    return _with_sizes(frame, {unit.named(word): word for unit in UNITS for word in SIZES})


def read_without_renaming(path: str | Path, contract: Table) -> tuple[pl.DataFrame, Table]:
    """Read a CSV without renaming its columns; also return the contract in the size unit of its trace."""
    contract = contract.in_unit(detect_unit(path, contract))
    return read_csv(path, schema=contract.schema), contract


def detect_unit(path: str | Path, contract: Table) -> SizeUnit:
    """Return the size unit that the header of a CSV uses; GPU if its contract has no column of sizes."""
    with Path(path).open(encoding="utf-8") as file:
        header = file.readline().rstrip("\n").split(",")
    return next((unit for unit in UNITS if header == [*contract.in_unit(unit).columns]), GPU)


def _in_unit(frame: pl.DataFrame, contract: Table, unit: SizeUnit) -> pl.DataFrame:
    """Convert names, strata of sizes and reasons to the size unit, as in the file."""
    file_columns = contract.in_unit(unit).columns
    name_by_file_column = {file_column: name for name, file_column in contract.names_in(unit).items()}
    name_by_file_column |= {name: name for name in contract.columns if name in file_columns}
    frame = frame.select(pl.col(name_by_file_column[file_column]).alias(file_column) for file_column in file_columns)
    frame = _with_sizes(frame, {word: unit.named(word) for word in SIZES})
    reasons = (pl.col(name).map_elements(unit.worded, pl.String) for name in REASONS if name in file_columns)
    return frame.with_columns(reasons)


def _with_sizes(frame: pl.DataFrame, new_words: Mapping[str, str]) -> pl.DataFrame:
    """Replace words for sizes: a word of SIZES by the word of a unit, or the reverse."""
    words_by_column: dict[str, dict[str, str]] = {}
    for word, new_word in new_words.items():
        for name in SIZES.get(word) or SIZES[new_word]:
            words_by_column.setdefault(name, {})[word] = new_word
    return frame.with_columns(
        pl.col(name).replace(words) for name, words in words_by_column.items() if name in frame.columns
    )


def write_product(
    product: pl.DataFrame | pl.LazyFrame | Iterator[pl.DataFrame],
    contract: Table,
    path: str | Path,
    unit: SizeUnit = GPU,
) -> int:
    """Write a table of this contract as CSV or Parquet; return its number of rows, or 0 if it is streamed.

    unit: the size unit of the columns of GPUs, which names the columns in a CSV.
    A lazy frame, or one that comes in blocks, is streamed: its types are checked before writing, and its required
    columns for blanks afterwards.
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
    required = [name for name, column in contract.columns.items() if column.blank is None]
    null_counts = scan_parquet(path).select(pl.col(required).null_count()).collect(engine="streaming")
    try:
        contract.check_blanks({name: null_counts[name].item() for name in required})
    except StudyError:
        Path(path).unlink()
        raise
    return 0


def write_folder(files: Mapping[str, str], path: str | Path) -> int:
    """Write a folder of text files (name -> text) in one step, replacing an older one; return the number of files.

    Raises ValueError for a name that is no plain file name.
    """
    if invalid_names := [name for name in files if not name or Path(name).name != name or name.startswith(".")]:
        raise ValueError(f"{path}: {invalid_names[0]!r} is no name of a file")
    target = Path(path)
    new_folder = target.with_name(f"{target.name}.new")
    shutil.rmtree(new_folder, ignore_errors=True)
    new_folder.mkdir(parents=True)
    for name, text in files.items():
        (new_folder / name).write_bytes(text.encode())
    if target.exists():
        shutil.rmtree(target)
    new_folder.rename(target)
    return len(files)


def write_parquet(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a Parquet file whose bytes depend on the rows alone, not on their chunks."""
    frame.rechunk().write_parquet(path, compression="lz4", statistics=False)


def stream_parquet(frame: pl.LazyFrame, path: str | Path) -> None:
    """Write a Parquet file without holding its rows, for ordered rows of whole numbers and texts.

    Row groups have a fixed length, so that the bytes do not depend on the pieces in which the rows arrive.
    """
    frame.sink_parquet(
        path, compression="lz4", statistics=False, row_group_size=GROUP_ROWS, maintain_order=True, engine="streaming"
    )


def write_blocks(blocks: Iterable[pl.DataFrame], schema: Mapping[str, type[pl.DataType]], path: str | Path) -> None:
    """Write frames of this schema to a Parquet file, without holding more than one at a time."""
    stream_parquet(register_io_source(lambda *_unused: iter(blocks), schema=schema), path)


def scan_columns(path: str | Path, columns: Sequence[str]) -> pl.LazyFrame:
    """Scan these columns of a Parquet file, in this order.

    Columns that the file lacks are omitted: the format of a trace decides which extras its tables have.
    """
    file_columns = pl.read_parquet_schema(path)
    return scan_parquet(path).select(name for name in dict.fromkeys(columns) if name in file_columns)


def read_blocks(
    table: pl.LazyFrame, rows: int = BLOCK_ROWS, extra_columns: Mapping[str, pl.Series] = MappingProxyType({})
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table on the disk in order, `rows` at a time, with the values of `extra_columns`.

    table: a scan with row-wise operations and no filter; otherwise Polars reads more rows than it returns.
    """
    for offset in range(0, table.select(pl.len()).collect().item(), rows):
        block = read_rows(table, offset, rows)
        yield block.with_columns(**{name: values.slice(offset, rows) for name, values in extra_columns.items()})


def read_blocks_with_attempts(
    jobs: pl.LazyFrame, attempts: pl.LazyFrame | None, rows: int = BLOCK_ROWS
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame | None]]:
    """Yield the jobs in order, `rows` at a time and at least one block, with their attempts.

    jobs, attempts: tables as for `read_blocks`; attempts are None if the trace has none. `job` of an attempt is the row
    of its job, ascending; in a block it is the row within the block.
    """
    offsets = range(0, max(jobs.select(pl.len()).collect().item(), 1), rows)
    if attempts is None:
        yield from ((read_rows(jobs, offset, rows), None) for offset in offsets)
        return
    job_rows, first_attempt = attempts.select("job").collect()["job"], 0
    for offset in offsets:
        end_attempt = job_rows.search_sorted(offset + rows)
        block = read_rows(attempts, first_attempt, end_attempt - first_attempt).with_columns(pl.col("job") - offset)
        yield read_rows(jobs, offset, rows), block
        first_attempt = end_attempt


def read_rows(table: pl.LazyFrame, offset: int, rows: int | None) -> pl.DataFrame:
    """Read `rows` rows of a table on the disk from `offset` on, or all rows from there."""
    return table.slice(offset, rows).collect(engine="streaming")
