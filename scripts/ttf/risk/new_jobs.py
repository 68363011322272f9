"""Jobs that a person gives to be scored: a CSV or Parquet file, whose every cell is untrusted. One wrong line refuses
the file."""

import csv
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ttf.errors import StudyError
from ttf.given_csv import moment_s
from ttf.on_disk import read_csv, read_parquet
from ttf.raw_tables import printable

DELIMITERS = (",", ";", "\t", "|")
# The submission: whole seconds as the job record has it, or a time.
SECONDS, TIME = "submit_s", "submit"
# No job of the trace is nearer to a misread date, and key times moment stays a whole number of 64 bits (`as_of`).
YEARS, YEAR_S = 100, 31_557_600
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
    table, first = _read(path, asked)
    _check_columns(path, table.columns, asked)
    if not table.height:
        raise StudyError(f"{path}: no rows below the header; nothing to score.")
    place = "row" if path.suffix == ".parquet" else "line"
    if (blank := _first(table["job_id"].is_null())) is not None:
        raise StudyError(f"{path}: {place} {blank + first}: job_id is blank; the score of a job is found by it.")
    read = {"job_id": table["job_id"], SECONDS: _submissions(path, table, asked, place, first)}
    wanted = [name for name in (*asked.needed, *asked.may) if name in table.columns]
    for name in dict.fromkeys(wanted):
        read.setdefault(name, _typed(path, table[name], asked.types[name], f"{place} {{}}, column {name}", first))
    left_out = [printable(name) for name in table.columns if name not in read and name != TIME]
    return pl.DataFrame(read), left_out


# Reading -------------------------------------------------------------------------------------------------------


def _read(path: Path, asked: Asked) -> tuple[pl.DataFrame, int]:
    """(every column as text, an empty one blank; the number of the first row as a person counts)."""
    try:
        if path.suffix == ".parquet":
            return _as_text(path, read_parquet(path)), 1
        header = _header(path, {"job_id", SECONDS, TIME, *asked.needed, *asked.may})
        table = read_csv(path, infer_schema=False, separator=header.delimiter)
        if twice := [name for name, times in Counter(header.names).items() if times > 1]:
            raise StudyError(f"{path}: more than one column is called {printable(twice[0])}.")
    except FileNotFoundError:
        raise StudyError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise StudyError(f"{path}: the file cannot be read ({error.strerror or printable(str(error))}).") from None
    except (pl.exceptions.PolarsError, UnicodeDecodeError, csv.Error) as error:
        raise StudyError(
            f"{path}: the jobs cannot be read: {printable(str(error).splitlines()[0])}. Expected UTF-8 text with a "
            "header and a row per job, or a .parquet file."
        ) from None
    return table.with_columns(pl.when(pl.all() != "").then(pl.all())), 2


@dataclass(frozen=True)
class _Header:
    names: list[str]
    delimiter: str


def _header(path: Path, known: Collection[str]) -> _Header:
    """The header with the delimiter by which most of its names are known; a comma where none tells."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        line = file.readline(1 << 20)
    found = [_Header(next(csv.reader([line], delimiter=delimiter), []), delimiter) for delimiter in DELIMITERS]
    return max(found, key=lambda header: len(set(header.names) & set(known)))


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


def _submissions(path: Path, table: pl.DataFrame, asked: Asked, place: str, first: int) -> pl.Series:
    column = TIME if TIME in table.columns else SECONDS
    if column == TIME and not asked.clock:
        raise StudyError(f"{path}: the times of this trace count from an unknown origin; give {SECONDS}, not {TIME}.")
    moments = table.select(moment_s(column) if asked.clock else pl.col(column).cast(pl.Int64, strict=False)).to_series()
    low, high = asked.seen[0] - YEARS * YEAR_S, asked.seen[1] + YEARS * YEAR_S
    if (wrong := _first(~moments.is_between(low, high).fill_null(False))) is not None:
        cell = table[column][wrong]
        said = "blank" if cell is None else f"'{printable(cell)}'"
        how = f"a time within {YEARS} years of the trace's: whole seconds{', or 2025-03-01T08:00:00Z' * asked.clock}"
        raise StudyError(f"{path}: {place} {wrong + first}, column {column}: {said} is not {how}.")
    return moments


def _typed(path: Path, cells: pl.Series, dtype: pl.DataType, where: str, first: int) -> pl.Series:
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
        raise StudyError(f"{path}: {where.format(wrong + first)}: '{printable(cells[wrong])}' is no {_WHAT[what]}.")
    return values


def _first(found: pl.Series) -> int | None:
    """The place of the first that is true."""
    return int(found.arg_max()) if found.any() else None
