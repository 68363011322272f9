"""Read jobs to be scored from a CSV or Parquet file. No cell is trusted; one wrong line rejects the file."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import read_parquet
from ttf.formats.column_mapping import round_to_mib
from ttf.formats.table.read import ISO_FORMAT, MEMORY_BYTES
from ttf.raw.headers import DELIMITERS, parse_header
from ttf.raw.ingest import REASONS
from ttf.raw.raw_files import read_line_blocks
from ttf.raw.raw_tables import Column, TableSchema, check_rows, escape_text, read_raw_table

# Submission columns: whole seconds as in the job record, or a time.
SUBMIT_S, SUBMIT_TIME = "submit_s", "submit"
# Limits misread dates, and keeps key times seconds within 64 bits (`count_ended_before`).
MAX_YEARS, YEAR_S = 100, 31_557_600
# Least value of a column; default 0, as all numbers known at submission are requests, limits and counts.
MINIMUM_BY_COLUMN = {"size": 1, "inst_num": 1, "job_tasks": 1, "timelimit_s": 1}
_TYPE_NAMES = {"whole": "whole number", "real": "number", "truth": "true or false"}


@dataclass(frozen=True)
class FileRequirements:
    """Requirements on a file of new jobs.

    needed: column -> features that use it; types: column types of the trace's jobs; may: optional columns; later:
    columns written after submission; clock: whether the trace has calendar times; seen: its first and last submission,
    in seconds. mapped, mapped_later: for a trace of a mapped table, the columns of that table known at submission, and
    the names of the others.
    """

    needed: Mapping[str, Sequence[str]]
    types: Mapping[str, pl.DataType]
    may: Collection[str]
    later: Collection[str]
    clock: bool
    seen: tuple[int, int]
    mapped: Sequence[Column] = ()
    mapped_later: Collection[str] = ()

    @property
    def mapped_name(self) -> dict[str, str]:
        """Column of the job record -> its name in the trace's own table."""
        return {{MEMORY_BYTES: "mem_mib"}.get(column.as_, column.as_): column.name for column in self.mapped}


def read_new_jobs(path: Path, spec: FileRequirements) -> tuple[pl.DataFrame, list[str]]:
    """Return (job_id, submit_s, and required and optional columns, in file order; names of the ignored columns).

    Raise StudyError if the file cannot be read, a column is missing, repeated or written after submission, or a cell
    has the wrong type; the message names the line and the cell.
    """
    table, numbers = _read(path, spec)
    ignored = [name for name in table.columns if name in spec.mapped_later]
    used = replace(spec, mapped=[column for column in spec.mapped if column.name in table.columns])
    name_in_file, names = used.mapped_name, table.columns
    table = _translate(path, table.drop(ignored), used, numbers)
    _check_columns(path, table.columns, names, spec)
    if not table.height:
        raise StudyError(f"{path}: no rows below the header; nothing to score.")
    _check_ids(path, table["job_id"].alias(name_in_file.get("job_id", "job_id")), numbers)
    cells = {"job_id": table["job_id"], SUBMIT_S: _parse_submissions(path, table, used, numbers)}
    for name in dict.fromkeys(name for name in (*spec.needed, *spec.may) if name in table.columns):
        label = f"{numbers.name} {{}}, column {name_in_file.get(name, name)}"
        cells.setdefault(name, _parse_cells(path, table[name], spec.types[name], label, numbers))
    ignored += [name_in_file.get(name, name) for name in table.columns if name not in cells and name != SUBMIT_TIME]
    return pl.DataFrame(cells), list(map(escape_text, ignored))


def _translate(path: Path, table: pl.DataFrame, spec: FileRequirements, numbers: pl.Series) -> pl.DataFrame:
    """Replace the mapped columns by those of the job record, in its units, as text."""
    if not spec.mapped:
        return table
    # Blank ids are refused later; the record's own limits hold for counts.
    columns = tuple(
        replace(column, required=False, minimum=MINIMUM_BY_COLUMN.get(column.as_, column.minimum))
        for column in spec.mapped
    )
    rest = table.drop(column.name for column in columns)
    for name, own_name in spec.mapped_name.items():
        if name in rest.columns or (name == SUBMIT_S and SUBMIT_TIME in rest.columns):
            raise StudyError(f"{path}: {escape_text(own_name)} and {name} hold the same; give one.")
    frame = table.select(pl.col(column.name) for column in columns).with_columns(line=numbers)
    rows, failed = check_rows(frame, columns, TableSchema("jobs", True, columns))
    for row, number, reason, name in failed.head(1).iter_rows():
        text = REASONS[reason].format(column=escape_text(name))
        form = next(column.formats[:1] for column in columns if column.name == name)
        form_hint = f"; expected {form[0]}, as in the trace, or ISO 8601" if form else ""
        raise StudyError(
            f"{path}: {numbers.name} {number}: {text}: '{escape_text(table[name][row] or '')}'{form_hint}."
        )
    if MEMORY_BYTES in rows.columns:
        rows = rows.with_columns(mem_mib=round_to_mib(pl.col(MEMORY_BYTES))).drop(MEMORY_BYTES)
    return rest.hstack(rows.drop("line").cast(pl.String))


# Reading -------------------------------------------------------------------------------------------------------


def _read(path: Path, spec: FileRequirements) -> tuple[pl.DataFrame, pl.Series]:
    """Return (all columns as text, empty cells null; the number of each row, named row, or line for CSV)."""
    if path.suffix != ".parquet":
        return _read_lines(path, {"job_id", SUBMIT_S, SUBMIT_TIME, *spec.needed, *spec.may, *spec.mapped_name.values()})
    try:
        table = _format_cells(read_parquet(path))
    except FileNotFoundError:
        raise StudyError(f"{path}: there is no such file.") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise StudyError(
            f"{path}: cannot be read as Parquet ({escape_text(str(error).splitlines()[0])}). If it is CSV, "
            "end its name in .csv."
        ) from None
    return table, pl.int_range(1, table.height + 1, eager=True).alias("row")


def _read_lines(path: Path, expected_columns: Collection[str]) -> tuple[pl.DataFrame, pl.Series]:
    """Read a CSV file, plain or compressed, by the reader of raw tables; return the same as `_read`."""
    names, delimiter = _header(path, expected_columns)
    if not names:
        raise StudyError(f"{path}: line 1 is blank; expected the names of the columns.")
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise StudyError(f"{path}: more than one column is called {escape_text(repeated[0])}.")
    columns = tuple(Column(name, "text", f"column {index}") for index, name in enumerate(names))
    rows, quarantined = zip(
        *read_raw_table(path, TableSchema("jobs", True, columns, delimiter, quoted=True)), strict=True
    )
    for line, reason, column in pl.concat(quarantined).select("line", "reason", "column").head(1).iter_rows():
        raise StudyError(f"{path}: line {line}: {REASONS[reason].format(column=escape_text(column or ''))}.")
    table = pl.concat(rows)
    return table.drop("line").rename({column.as_: column.name for column in columns}), table["line"]


def _header(path: Path, expected_columns: Collection[str]) -> tuple[list[str], str]:
    """Return the column names and the delimiter that gives the most expected names; default: a comma."""
    with closing(read_line_blocks(path, 1 << 16)) as blocks:
        line = next(blocks).partition(b"\n")[0]
    candidates = [(parse_header(line, delimiter, quoted=True), delimiter) for delimiter in DELIMITERS]
    return max(candidates, key=lambda header: len(set(header[0]) & set(expected_columns)))


def _format_cells(table: pl.DataFrame) -> pl.DataFrame:
    """Return all cells as text, times in ISO 8601, empty cells null."""
    columns = []
    for name, dtype in table.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            # Rejected if the column is needed, like any cell of the wrong type.
            columns.append(pl.Series(name, [f"a {escape_text(str(dtype))}"] * table.height, dtype=pl.String))
        elif dtype in (pl.Datetime, pl.Date):
            is_zoned = isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
            moment = table[name].dt.convert_time_zone("UTC") if is_zoned else table[name].cast(pl.Datetime("us"))
            columns.append(moment.dt.strftime(f"{ISO_FORMAT}{'Z' * is_zoned}"))
        else:
            columns.append(table[name].cast(pl.String))
    return pl.DataFrame(columns).with_columns(pl.when(pl.all() != "").then(pl.all())) if columns else pl.DataFrame()


# Checking ------------------------------------------------------------------------------------------------------


def _check_ids(path: Path, ids: pl.Series, numbers: pl.Series) -> None:
    """Raise StudyError if the id of a job is blank or repeated."""
    ids = ids.str.strip_chars()
    if (row := _find_first_true(ids.is_null() | (ids == ""))) is not None:
        raise StudyError(
            f"{path}: {numbers.name} {numbers[row]}: {ids.name} is blank; the score of a job is found by it."
        )
    if (row := _find_first_true(~ids.is_first_distinct())) is not None:
        first_id_row = numbers.filter(ids == ids[row])[0]
        raise StudyError(
            f"{path}: {numbers.name} {numbers[row]}: {ids.name} '{escape_text(ids[row])}' is that of {numbers.name} "
            f"{first_id_row} too; the score of a job is found by it."
        )


def _check_columns(path: Path, columns: Collection[str], header: Collection[str], spec: FileRequirements) -> None:
    """Raise StudyError if a column is missing or written after submission; header: the names in the file."""
    if late_columns := [name for name in columns if name in spec.later]:
        verb = "is" if len(late_columns) == 1 else "are"
        raise StudyError(
            f"{path}: {', '.join(late_columns)} {verb} written after submission; a score may not know it. Leave "
            f"{'it' if len(late_columns) == 1 else 'them'} out."
        )
    if SUBMIT_S in columns and SUBMIT_TIME in columns:
        raise StudyError(f"{path}: {SUBMIT_S} and {SUBMIT_TIME} both say when a job was submitted; give one.")
    own_name = {name: f"{own} or " for name, own in spec.mapped_name.items() if own != name}
    missing_features = {name: ", ".join(features) for name, features in spec.needed.items() if name not in columns}
    missing = [f"{own_name.get(name, '')}{name} (feature {text})" for name, text in missing_features.items()]
    if SUBMIT_S not in columns and SUBMIT_TIME not in columns:
        missing.insert(0, own_name.get(SUBMIT_S, "") + (f"{SUBMIT_S} or {SUBMIT_TIME}" if spec.clock else SUBMIT_S))
    if "job_id" not in columns:
        missing.insert(0, own_name.get("job_id", "") + "job_id")
    if missing:
        names = escape_text(", ".join(map(escape_text, header)) or "no column")
        raise StudyError(f"{path}: no column {', '.join(missing)}, which the model needs; found {names}.")


def _parse_submissions(path: Path, table: pl.DataFrame, spec: FileRequirements, numbers: pl.Series) -> pl.Series:
    """Return the submission of each job in seconds. Raise StudyError if one is blank or far from the trace's."""
    column = SUBMIT_TIME if SUBMIT_TIME in table.columns else SUBMIT_S
    if column == SUBMIT_TIME and not spec.clock:
        raise StudyError(f"{path}: times of this trace count from an unknown origin; give {SUBMIT_S}, not {column}.")
    submit_s = table.select(moment_s(column) if spec.clock else pl.col(column).cast(pl.Int64, strict=False)).to_series()
    low, high = spec.seen[0] - MAX_YEARS * YEAR_S, spec.seen[1] + MAX_YEARS * YEAR_S
    if (row := _find_first_true(~submit_s.is_between(low, high).fill_null(False))) is not None:
        cell = table[column][row]
        shown = "blank" if cell is None else f"'{escape_text(cell)}'"
        form = f"whole seconds{', or 2025-03-01T08:00:00Z' * spec.clock}"
        wanted = f"a time within {MAX_YEARS} years of the trace's: {form}"
        column = spec.mapped_name.get(column, column)
        raise StudyError(f"{path}: {numbers.name} {numbers[row]}, column {column}: {shown} is not {wanted}.")
    return submit_s


def moment_s(column: str) -> pl.Expr:
    """Parse whole seconds, or a time such as 2025-03-01T08:00:00 with an offset (default UTC), to Int64 seconds."""
    text = pl.col(column).str.strip_chars()
    has_zone = text.str.contains(r"(?:Z|[+-]\d{2}:?\d{2})$")
    text_with_zone = pl.when(has_zone).then(text).otherwise(pl.concat_str(text, pl.lit("Z")))
    timestamp = text_with_zone.str.to_datetime("%Y-%m-%dT%H:%M:%S%#z", strict=False, time_zone="UTC")
    return pl.coalesce(text.cast(pl.Int64, strict=False), timestamp.dt.epoch("s"))


def _parse_cells(path: Path, cells: pl.Series, dtype: pl.DataType, label: str, numbers: pl.Series) -> pl.Series:
    """Parse cells as values of this type. Raise StudyError at the first that fails."""
    if dtype.is_integer():
        real = cells.str.strip_chars().cast(pl.Float64, strict=False)
        # Accept 8000.0, which a program may have written; beyond 2^53 a float is not exact.
        rounded = pl.select(pl.when((real == real.round()) & (real.abs() < 2**53)).then(real)).to_series()
        values, kind = rounded.cast(pl.Int64, strict=False), "whole"
    elif dtype.is_float():
        values = cells.str.strip_chars().cast(pl.Float64, strict=False)
        values, kind = pl.select(pl.when(values.is_finite()).then(values)).to_series(), "real"
    elif dtype == pl.Boolean:
        values = cells.str.to_lowercase().replace_strict(
            {"true": True, "false": False}, default=None, return_dtype=pl.Boolean
        )
        kind = "truth"
    else:
        return cells
    if (row := _find_first_true(values.is_null() & cells.is_not_null())) is not None:
        raise StudyError(
            f"{path}: {label.format(numbers[row])}: '{escape_text(cells[row])}' is no {_TYPE_NAMES[kind]}."
        )
    minimum = MINIMUM_BY_COLUMN.get(cells.name, 0)
    if dtype.is_numeric() and (row := _find_first_true(values < minimum)) is not None:
        raise StudyError(f"{path}: {label.format(numbers[row])}: '{escape_text(cells[row])}' is less than {minimum}.")
    return values


def _find_first_true(mask: pl.Series) -> int | None:
    return mask.arg_max() if mask.any() else None
