"""Jobs that a person gives to be scored: a CSV or Parquet file, whose every cell is untrusted. One wrong line refuses
the file."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import read_parquet
from ttf.raw.headers import DELIMITERS, names_of
from ttf.raw.ingest import REASONS
from ttf.raw.raw_files import blocks_of_lines
from ttf.raw.raw_tables import Column, TableSchema, printable, read_table

# The submission: whole seconds as the job record has it, or a time.
SECONDS, TIME = "submit_s", "submit"
# No job of the trace is nearer to a misread date, and key times moment stays a whole number of 64 bits (`as_of`).
YEARS, YEAR_S = 100, 31_557_600
# The least value of a column, of any other 0: all numbers known at submission are requests, limits and counts.
LEAST = {"size": 1, "inst_num": 1, "job_tasks": 1, "timelimit_s": 1}
_WHAT = {"whole": "whole number", "real": "number", "truth": "true or false"}


@dataclass(frozen=True)
class Asked:
    """What a file of jobs is to hold.

    needed: column -> the features that go by it; types: of the columns of the trace's jobs; may: columns that are read
    where they are there; later: those that are written after the submission; clock: whether the times of the trace are
    those of a calendar; seen: its first and last submission, in seconds.
    """

    needed: Mapping[str, Sequence[str]]
    types: Mapping[str, pl.DataType]
    may: Collection[str]
    later: Collection[str]
    clock: bool
    seen: tuple[int, int]


def read_new_jobs(path: Path, asked: Asked) -> tuple[pl.DataFrame, list[str]]:
    """(job_id, submit_s and the columns asked for, in the order of the file; the columns that were left out).

    Raises StudyError where the file cannot be read, a column is missing, twice or written after the submission, or a
    cell is not what its column holds, with the line and the cell.
    """
    table, numbers = _read(path, asked)
    _check_columns(path, table.columns, asked)
    if not table.height:
        raise StudyError(f"{path}: no rows below the header; nothing to score.")
    place = "row" if path.suffix == ".parquet" else "line"
    _check_ids(path, table["job_id"], place, numbers)
    read = {"job_id": table["job_id"], SECONDS: _submissions(path, table, asked, place, numbers)}
    wanted = [name for name in (*asked.needed, *asked.may) if name in table.columns]
    for name in dict.fromkeys(wanted):
        read.setdefault(name, _typed(path, table[name], asked.types[name], f"{place} {{}}, column {name}", numbers))
    left_out = [printable(name) for name in table.columns if name not in read and name != TIME]
    return pl.DataFrame(read), left_out


# Reading -------------------------------------------------------------------------------------------------------


def _read(path: Path, asked: Asked) -> tuple[pl.DataFrame, pl.Series]:
    """(every column as text, an empty one blank; the number of each row, of a CSV file that of its line)."""
    if path.suffix != ".parquet":
        return _read_lines(path, {"job_id", SECONDS, TIME, *asked.needed, *asked.may})
    try:
        table = _as_text(path, read_parquet(path))
    except FileNotFoundError:
        raise StudyError(f"{path}: there is no such file.") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise StudyError(
            f"{path}: cannot be read as Parquet ({printable(str(error).splitlines()[0])}). If it is CSV, end its name "
            "in .csv."
        ) from None
    return table, pl.int_range(1, table.height + 1, eager=True)


def _read_lines(path: Path, known: Collection[str]) -> tuple[pl.DataFrame, pl.Series]:
    """The same of a CSV file, plain or packed, by the reader of raw tables."""
    names, delimiter = _header(path, known)
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise StudyError(f"{path}: more than one column is called {printable(twice[0])}.")
    columns = tuple(Column(name, "text", f"column {place}") for place, name in enumerate(names))
    rows, aside = zip(*read_table(path, TableSchema("jobs", True, columns, delimiter, quoted=True)), strict=True)
    for line, reason, column in pl.concat(aside).select("line", "reason", "column").head(1).iter_rows():
        raise StudyError(f"{path}: line {line}: {REASONS[reason].format(column=printable(column or ''))}.")
    table = pl.concat(rows)
    return table.drop("line").rename({column.as_: column.name for column in columns}), table["line"]


def _header(path: Path, known: Collection[str]) -> tuple[list[str], str]:
    """The names in the header, and the delimiter by which most of them are known; a comma where none tells."""
    with closing(blocks_of_lines(path, 1 << 16)) as blocks:
        line = next(blocks).partition(b"\n")[0]
    found = [(names_of(line, delimiter, quoted=True), delimiter) for delimiter in DELIMITERS]
    return max(found, key=lambda header: len(set(header[0]) & set(known)))


def _as_text(path: Path, table: pl.DataFrame) -> pl.DataFrame:
    texts = []
    for name, dtype in table.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            # Refused if it is needed, like any cell that is not what its column holds.
            texts.append(pl.Series(name, [f"a {printable(str(dtype))}"] * table.height, dtype=pl.String))
        elif dtype in (pl.Datetime, pl.Date):
            moment = table[name].cast(pl.Datetime("us"))
            texts.append(moment.dt.epoch("s").cast(pl.String))
        else:
            texts.append(table[name].cast(pl.String))
    return pl.DataFrame(texts).with_columns(pl.when(pl.all() != "").then(pl.all())) if texts else pl.DataFrame()


# Checking ------------------------------------------------------------------------------------------------------


def _check_ids(path: Path, ids: pl.Series, place: str, numbers: pl.Series) -> None:
    """Raises StudyError where a job_id is blank or repeated."""
    ids = ids.str.strip_chars()
    if (blank := _first(ids.is_null() | (ids == ""))) is not None:
        raise StudyError(f"{path}: {place} {numbers[blank]}: job_id is blank; the score of a job is found by it.")
    if (again := _first(~ids.is_first_distinct())) is not None:
        first = numbers[_first(ids == ids[again])]
        raise StudyError(
            f"{path}: {place} {numbers[again]}: job_id '{printable(ids[again])}' is that of {place} {first} too; the "
            "score of a job is found by it."
        )


def _check_columns(path: Path, there: Collection[str], asked: Asked) -> None:
    """Raises StudyError where a column is missing or written after the submission."""
    if later := [name for name in there if name in asked.later]:
        verb = "is" if len(later) == 1 else "are"
        raise StudyError(
            f"{path}: {', '.join(later)} {verb} written after submission; a score may not know it. Leave "
            f"{'it' if len(later) == 1 else 'them'} out."
        )
    if SECONDS in there and TIME in there:
        raise StudyError(f"{path}: {SECONDS} and {TIME} both say when a job was submitted; give one.")
    missing = [f"{name} (feature {', '.join(of)})" for name, of in asked.needed.items() if name not in there]
    if SECONDS not in there and TIME not in there:
        missing.insert(0, f"{SECONDS} or {TIME}" if asked.clock else SECONDS)
    if "job_id" not in there:
        missing.insert(0, "job_id")
    if missing:
        found = ", ".join(map(printable, there)) or "no column"
        raise StudyError(f"{path}: no column {', '.join(missing)}, which the model needs; found {printable(found)}.")


def _submissions(path: Path, table: pl.DataFrame, asked: Asked, place: str, numbers: pl.Series) -> pl.Series:
    column = TIME if TIME in table.columns else SECONDS
    if column == TIME and not asked.clock:
        raise StudyError(f"{path}: the times of this trace count from an unknown origin; give {SECONDS}, not {TIME}.")
    moments = table.select(moment_s(column) if asked.clock else pl.col(column).cast(pl.Int64, strict=False)).to_series()
    low, high = asked.seen[0] - YEARS * YEAR_S, asked.seen[1] + YEARS * YEAR_S
    if (wrong := _first(~moments.is_between(low, high).fill_null(False))) is not None:
        cell = table[column][wrong]
        said = "blank" if cell is None else f"'{printable(cell)}'"
        how = f"a time within {YEARS} years of the trace's: whole seconds{', or 2025-03-01T08:00:00Z' * asked.clock}"
        raise StudyError(f"{path}: {place} {numbers[wrong]}, column {column}: {said} is not {how}.")
    return moments


def moment_s(column: str) -> pl.Expr:
    """Whole seconds, or a time such as 2025-03-01T08:00:00 with an offset (without one: UTC), as Int64 seconds."""
    text = pl.col(column).str.strip_chars()
    has_zone = text.str.contains(r"(?:Z|[+-]\d{2}:?\d{2})$")
    moment = pl.when(has_zone).then(text).otherwise(pl.concat_str(text, pl.lit("Z")))
    stamp = moment.str.to_datetime("%Y-%m-%dT%H:%M:%S%#z", strict=False, time_zone="UTC")
    return pl.coalesce(text.cast(pl.Int64, strict=False), stamp.dt.epoch("s"))


def _typed(path: Path, cells: pl.Series, dtype: pl.DataType, where: str, numbers: pl.Series) -> pl.Series:
    """The texts as values of this type. Raises StudyError at the first that is none."""
    if dtype.is_integer():
        real = cells.str.strip_chars().cast(pl.Float64, strict=False)
        # 8000.0, as a program may have written it; beyond 2^53 a float is no such number.
        rounded = pl.select(pl.when((real == real.round()) & (real.abs() < 2**53)).then(real)).to_series()
        values, what = rounded.cast(pl.Int64, strict=False), "whole"
    elif dtype.is_float():
        values = cells.str.strip_chars().cast(pl.Float64, strict=False)
        values, what = pl.select(pl.when(values.is_finite()).then(values)).to_series(), "real"
    elif dtype == pl.Boolean:
        values = cells.str.to_lowercase().replace_strict(
            {"true": True, "false": False}, default=None, return_dtype=pl.Boolean
        )
        what = "truth"
    else:
        return cells
    if (wrong := _first(values.is_null() & cells.is_not_null())) is not None:
        raise StudyError(f"{path}: {where.format(numbers[wrong])}: '{printable(cells[wrong])}' is no {_WHAT[what]}.")
    least = LEAST.get(cells.name, 0)
    if dtype.is_numeric() and (wrong := _first(values < least)) is not None:
        raise StudyError(f"{path}: {where.format(numbers[wrong])}: '{printable(cells[wrong])}' is less than {least}.")
    return values


def _first(found: pl.Series) -> int | None:
    """The place of the first that is true."""
    return int(found.arg_max()) if found.any() else None
