"""Ingest raw tables: write typed Parquet, account for every row, and quarantine the rows that break a rule.

Rows read = rows accepted + rows quarantined, for every table.

A trace is read whole (`ingest`), or part by part (`ingest_part`, such as a file a week) and then merged (`merge`).
Both write the same bytes. Rules between rows (repeated keys, overlaps, missing owners) are checked in the whole trace.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import polars as pl
from polars.io.plugins import register_io_source

from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.partitions import hash_columns
from ttf.raw.implausible_cells import (
    BEFORE_PREVIOUS,
    BLANKED,
    IS_BLANKED,
    accept_implausible,
    blank_cells,
    list_far_problems,
    list_problems,
)
from ttf.raw.raw_contracts import ANOMALIES, ROW_ACCOUNT, ROW_ACCOUNT_BY_PART
from ttf.raw.raw_tables import (
    LINES,
    MAX_FIELD_BYTES,
    QUARANTINED_SCHEMA,
    Reader,
    TableSchema,
    escape_text,
    file_labels,
    first_line_numbers,
)

QUARANTINE_SCHEMA = {"table": pl.String, "file": pl.String} | QUARANTINED_SCHEMA

# Reason code -> explanation in the report; {column} is the name of the column in the file.
REASONS = {
    "header_row": "a header row stands where the format has none",
    "not_utf8": "the line is not valid UTF-8",
    "wrong_column_count": "the line has more or fewer fields than the table has columns",
    "missing_value": "{column} is blank and must not be",
    "not_a_time": "{column} is not a time in any of the ways the schema knows",
    "not_a_number": "{column} is not a number of the kind expected (times and counts are whole)",
    "not_a_duration": "{column} is not a duration, such as 1-02:03:04; some columns also take 2.1min",
    "wrong_form": "{column} is not written as its values are",
    "wrong_type": "{column} is of another kind than expected, such as a number in place of a text",
    "out_of_range": "{column} is negative or beyond its largest possible value",
    "implausible_time": "{column} is of a year that is not plausible: before 1990, or after 2100",
    "field_too_long": f"{{column}} (where none is named: a field) is longer than {MAX_FIELD_BYTES:,} bytes, the limit "
    "of a text",
    "unknown_value": "{column} holds a word the format does not know",
    "end_before_start": "{column} lies before the time it must follow",
    "end_without_start": "the end of what has not begun, or has ended before",
    "duplicate_key": "an earlier row has the same {column}; the first one is kept",
    "overlap": "it begins before an earlier row of the same {column} ends",
    "orphan": "no row of the table it belongs to has this {column}",
} | BLANKED

# Stop reading a file that is not the table at all, before its rows fill the memory.
STOP_ROWS = 1_000_000
STOP_SHARE = 0.5
# Row group of a stored table, so that its bytes do not depend on the blocks that were read. Small enough that the
# distinct values of a group stay in the processor's cache while they are numbered.
PIECE_ROWS = 1 << 17

NO_READERS: Mapping[str, Reader] = MappingProxyType({})
# Hashes of keys that are compared at once. A larger table is compared in parts.
MAX_KEYS = 4_000_000

# (index of the file in its table, from 0; number of the line or record, from 1).
RowPosition: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Part:
    """A part of a trace: its name, the file of each of its tables, and the products of `ingest_part`."""

    name: str
    files: Mapping[str, Path]
    folder: Path
    account: pl.DataFrame
    quarantine: pl.DataFrame


def ingest(
    files: Mapping[str, Sequence[Path]],
    schemas: Mapping[str, TableSchema],
    folder: Path,
    max_share: float,
    readers: Mapping[str, Reader] = NO_READERS,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the raw tables in `files` (name -> its files, in order) and write `folder`/<name>.parquet for each.

    Tables are read in the order of `schemas`, so that owners precede their rows. `readers` has a reader for each table
    that is no plain table of lines.

    Returns the row account (ROW_ACCOUNT) and the quarantine (QUARANTINE_SCHEMA).
    Raises StudyError if a file cannot be its table, if a table has no accepted row, or if more than `max_share` of
    its rows break a rule.
    """
    tables = {}
    for name in [name for name in schemas if name in files]:
        paths = files[name]
        reader = readers.get(name, LINES)
        rows_read, quarantined = _read_table(paths, schemas[name], folder, max(max_share, STOP_SHARE), reader)
        quarantined = _quarantine_between_rows(paths, schemas[name], folder, reader, quarantined)
        _refuse_too_many(paths, schemas[name], rows_read, quarantined, max_share)
        tables[name] = rows_read, quarantined
    return _make_row_account(tables)


def ingest_part(
    files: Mapping[str, Path],
    schemas: Mapping[str, TableSchema],
    folder: Path,
    stop_share: float = STOP_SHARE,
    readers: Mapping[str, Reader] = NO_READERS,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Ingest one part of a trace, with the file of each of its tables; return as `ingest` does.

    Checks each row by itself; `merge` checks the rules between rows and `max_share`. Reading stops at a file of which
    a million rows, and more than stop_share of all rows so far, break a rule.
    """
    return _make_row_account(
        {
            name: _read_table([path], schemas[name], folder, stop_share, readers.get(name, LINES))
            for name, path in files.items()
        }
    )


def merge(
    parts: Sequence[Part],
    schemas: Mapping[str, TableSchema],
    folder: Path,
    max_share: float,
    readers: Mapping[str, Reader] = NO_READERS,
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Merge the parts of a trace in their order, with the same products as `ingest` of all their files at once.

    Returns the row account, the quarantine, and the account by part (ROW_ACCOUNT_BY_PART). A row that repeats the key
    of an earlier part, or has no owner in any part, is quarantined and counted in its own part.
    Raises StudyError as `ingest` does; `max_share` limits each table of the whole trace.
    """
    tables, account_rows = {}, []
    for name in [name for name in schemas if any(name in part.files for part in parts)]:
        table_parts = [part for part in parts if name in part.files]
        paths = [part.files[name] for part in table_parts]
        reader = readers.get(name, LINES)
        rows_of_parts = (
            rows.with_columns(file=pl.lit(number, pl.Int32))
            for number, part in enumerate(table_parts)
            for rows in _read_parquet_in_pieces(part.folder / f"{name}.parquet")
        )
        _write_table(rows_of_parts, schemas[name], folder / f"{name}.parquet")
        labels = file_labels(paths)
        quarantined = _concat_rows(
            part.quarantine.filter(pl.col("table") == name).with_columns(file=pl.lit(label))
            for part, label in zip(table_parts, labels, strict=True)
        )
        quarantined = _quarantine_between_rows(paths, schemas[name], folder, reader, quarantined)
        rows_read = [part.account.filter(pl.col("table") == name)["rows_read"].item() for part in table_parts]
        _refuse_too_many(paths, schemas[name], sum(rows_read), quarantined, max_share)
        tables[name] = sum(rows_read), quarantined
        n_failed = dict(quarantined.filter(~IS_BLANKED).group_by("file").len().iter_rows())
        for part, label, rows in zip(table_parts, labels, rows_read, strict=True):
            account_rows.append((part.name, name, rows, rows - n_failed.get(label, 0), n_failed.get(label, 0)))
    return *_make_row_account(tables), pl.DataFrame(account_rows, schema=ROW_ACCOUNT_BY_PART.schema, orient="row")


def anomalies(
    quarantine: pl.DataFrame,
    account: pl.DataFrame,
    suggestions: Mapping[tuple[str, str | None, str], str] = MappingProxyType({}),
    files: Mapping[str, Sequence[Path]] = MappingProxyType({}),
) -> pl.DataFrame:
    """Summarise the quarantine by table, column and reason code: rows, share of the table, first lines, a sentence.

    suggestions: (table, column, code) -> the schema change that the rows suggest. files: the files of each table; if
    there are several, each line number has the name of its file.
    """
    rows_read = dict(account.select("table", "rows_read").iter_rows())
    rows = []
    for (table, column, code), group in quarantine.group_by(["table", "column", "reason"], maintain_order=True):
        sentence = REASONS[code].format(column=column)
        lines = first_line_numbers(group, len(files.get(table, ())))
        share = group.height / rows_read[table]
        suggestion = suggestions.get((table, column, code))
        severity = "warning" if code in BLANKED else "error"
        rows.append((table, column, code, severity, group.height, share, lines, sentence, suggestion))
    return pl.DataFrame(rows, schema=ANOMALIES.schema, orient="row")


def _make_row_account(tables: Mapping[str, tuple[int, pl.DataFrame]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the row account and the quarantine from tables: name -> (number of rows read, quarantined rows)."""
    counts = ((name, n, quarantined.filter(~IS_BLANKED).height) for name, (n, quarantined) in tables.items())
    rows = [(name, n, n - n_failed, n_failed) for name, n, n_failed in counts]
    account = pl.DataFrame(rows, schema=ROW_ACCOUNT.schema, orient="row")
    return account, _concat_rows(quarantined for _, quarantined in tables.values())


def _concat_rows(quarantines: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=QUARANTINE_SCHEMA), *quarantines], how="diagonal")


def _read_table(
    paths: Sequence[Path], schema: TableSchema, folder: Path, stop_share: float, reader: Reader
) -> tuple[int, pl.DataFrame]:
    """Check each row by itself and write the table's Parquet file; return (rows read, quarantined rows)."""
    quarantined: list[pl.DataFrame] = []
    n_accepted = n_failed = 0
    lenient_schema = accept_implausible(schema)

    def iterate_accepted_rows() -> Iterator[pl.DataFrame]:
        nonlocal n_accepted, n_failed
        for index, (path, label) in enumerate(zip(paths, file_labels(paths), strict=True)):
            for accepted, failed in reader.rows(path, lenient_schema):
                n_accepted += int(accepted[schema.lines].sum()) if schema.lines else accepted.height
                n_failed += failed.height
                accepted = accepted.select(pl.lit(index, pl.Int32).alias("file"), pl.all())
                accepted, cells = blank_cells(accepted, schema, list_problems(schema))
                quarantined.extend(rows.with_columns(file=pl.lit(label)) for rows in (failed, cells))
                yield accepted
                if n_failed >= STOP_ROWS and n_failed > stop_share * (n_accepted + n_failed):
                    rows_read = n_accepted + n_failed
                    raise _quarantine_error(paths, schema, rows_read, _concat_rows(quarantined), "reading has stopped")

    _write_table(iterate_accepted_rows(), schema, folder / f"{schema.name}.parquet")
    return n_accepted + n_failed, _sort_by_file_and_line(_concat_rows(quarantined), paths)


def _sort_by_file_and_line(quarantine: pl.DataFrame, paths: Sequence[Path]) -> pl.DataFrame:
    index_by_label = {label: number for number, label in enumerate(file_labels(paths))}
    file_index = pl.col("file").replace_strict(index_by_label, return_dtype=pl.Int32)
    return quarantine.sort(file_index, "line", maintain_order=True)


def _read_parquet_in_pieces(path: Path) -> Iterator[pl.DataFrame]:
    rows = scan_parquet(path)
    for offset in range(0, _count_rows(rows), PIECE_ROWS):
        yield rows.slice(offset, PIECE_ROWS).collect()


def _write_table(rows: Iterator[pl.DataFrame], schema: TableSchema, target: Path) -> None:
    """Write the rows of a table; the bytes do not depend on the pieces in which they arrive."""
    errors: list[StudyError] = []

    def iterate_rows(*_unused: object) -> Iterator[pl.DataFrame]:
        try:
            yield from rows
        except StudyError as error:  # Polars would wrap it in its own error
            errors.append(error)

    # Uncompressed: a row group stores each text once anyway, and most are hashes. All later rules read the file three
    # times as fast.
    register_io_source(iterate_rows, schema={"file": pl.Int32, **schema.dtypes}).sink_parquet(
        target, compression="uncompressed", statistics=False, row_group_size=PIECE_ROWS
    )
    if errors:
        raise errors[0]


def _quarantine_between_rows(
    paths: Sequence[Path], schema: TableSchema, folder: Path, reader: Reader, quarantined: pl.DataFrame
) -> pl.DataFrame:
    """Remove rows that break a rule between rows from the stored table; return all quarantined rows."""
    target = folder / f"{schema.name}.parquet"
    quarantined = _blank_far_cells(paths, schema, target, quarantined)
    reason_by_position = (
        _duplicates(target, schema) | _find_overlaps(target, schema) | _find_orphans(target, schema, folder)
    )
    if not reason_by_position:
        return quarantined
    rows = []
    for number, (path, label) in enumerate(zip(paths, file_labels(paths), strict=True)):
        reason_by_line = {line: reason for (file, line), reason in reason_by_position.items() if file == number}
        texts = reader.texts(path, schema, set(reason_by_line)) if reason_by_line else {}
        rows += [(schema.name, label, line, *reason, texts.get(line)) for line, reason in reason_by_line.items()]
    _replace_table(_iterate_rows_except(target, list(reason_by_position)), schema, target)
    return _sort_by_file_and_line(
        _concat_rows([quarantined, pl.DataFrame(rows, schema=QUARANTINE_SCHEMA, orient="row")]), paths
    )


def _blank_far_cells(
    paths: Sequence[Path], schema: TableSchema, target: Path, quarantined: pl.DataFrame
) -> pl.DataFrame:
    """Blank the cells of a stored table of runs that lie far beyond the others; return the quarantine with them."""
    table = scan_parquet(target)
    problems = list(list_far_problems(table, schema))
    is_far = pl.any_horizontal(pl.lit(False), *(condition for _, _, condition in problems))
    _, cells = blank_cells(table.filter(is_far).collect(engine="streaming"), schema, problems)
    if cells.is_empty():
        return quarantined
    _replace_table((blank_cells(rows, schema, problems)[0] for rows in _read_parquet_in_pieces(target)), schema, target)
    cells = cells.with_columns(pl.col("file").replace_strict(dict(enumerate(file_labels(paths)))))
    return _sort_by_file_and_line(_concat_rows([quarantined, cells]), paths)


def _replace_table(rows: Iterator[pl.DataFrame], schema: TableSchema, target: Path) -> None:
    smaller = target.with_suffix(".smaller")
    _write_table(rows, schema, smaller)
    smaller.replace(target)


def _iterate_rows_except(target: Path, positions: list[RowPosition]) -> Iterator[pl.DataFrame]:
    removed = pl.DataFrame(positions, schema={"file": pl.Int32, "line": pl.Int64}, orient="row")
    for piece in _read_parquet_in_pieces(target):
        yield piece.join(removed, on=["file", "line"], how="anti", maintain_order="left")


def _duplicates(target: Path, schema: TableSchema) -> dict[RowPosition, tuple[str, str]]:
    """Map the position of each row with the key of an earlier row to (reason, key columns)."""
    if not schema.key:
        return {}
    rows = scan_parquet(target).select("file", "line", *schema.key, hash=hash_columns(schema.key))
    # Equal keys have equal hashes, and hardly any other keys do: compare the keys of equal hashes alone.
    repeated_hashes = pl.concat(
        rows.filter(condition).group_by("hash").len().filter(pl.col("len") > 1).collect(engine="streaming")
        for condition in _hash_conditions(rows)
    )
    if repeated_hashes.is_empty():
        return {}
    keys = rows.join(repeated_hashes.lazy(), on="hash", how="semi").collect(engine="streaming").sort("file", "line")
    repeated = keys.filter(~pl.struct(schema.key).is_first_distinct())
    return dict.fromkeys(repeated.select("file", "line").iter_rows(), ("duplicate_key", ", ".join(schema.key)))


def _find_overlaps(target: Path, schema: TableSchema) -> dict[RowPosition, tuple[str, str]]:
    """Map the position of each row that begins before an earlier one of its key ends, to (reason, key columns)."""
    if not schema.disjoint:
        return {}
    *key, start, end = schema.disjoint
    rows = scan_parquet(target).select("file", "line", *key, start, end).sort(*key, start, "file", "line")
    latest_end = pl.col(end).fill_null(pl.Int64.max()).cum_max().shift().over(key)
    overlapping = rows.filter(pl.col(start) < latest_end).select("file", "line").collect().sort("file", "line")
    return dict.fromkeys(overlapping.iter_rows(), ("overlap", ", ".join(key)))


def _find_orphans(target: Path, schema: TableSchema, folder: Path) -> dict[RowPosition, tuple[str, str]]:
    """Map the position of each row without an owner (schema.belongs_to) to (reason, owner columns)."""
    owner, owner_columns = schema.belongs_to or ("", ())
    # The table of the owners may be missing in a trace.
    if not owner or not (folder / f"{owner}.parquet").is_file():
        return {}
    owners, rows = (
        scan_parquet(path).select("file", "line", hash=hash_columns(owner_columns))
        for path in (folder / f"{owner}.parquet", target)
    )
    orphans = pl.concat(
        rows.filter(condition).join(owners.filter(condition), on="hash", how="anti").collect(engine="streaming")
        for condition in _hash_conditions(owners)
    )
    positions = orphans.sort("file", "line").drop("hash").iter_rows()
    return dict.fromkeys(positions, ("orphan", ", ".join(owner_columns)))


def _hash_conditions(rows: pl.LazyFrame) -> list[pl.Expr]:
    """Return conditions on the column `hash` that divide the rows into parts of about MAX_KEYS keys."""
    parts = 1 + _count_rows(rows) // MAX_KEYS
    return [pl.col("hash") % parts == part for part in range(parts)]


def _count_rows(rows: pl.LazyFrame) -> int:
    return rows.select(pl.len()).collect(engine="streaming").item()


def _refuse_too_many(
    paths: Sequence[Path], schema: TableSchema, rows_read: int, quarantined: pl.DataFrame, max_share: float
) -> None:
    """Raise StudyError if the table has no accepted row, or if more than max_share of its rows break a rule.

    A placeholder is no error, but times in the wrong order are, although their rows are accepted.
    """
    quarantined = quarantined.filter(~IS_BLANKED | (pl.col("reason") == BEFORE_PREVIOUS))
    quarantined = quarantined.unique(["file", "line"], keep="first", maintain_order=True)
    if rows_read == 0 and schema.may_be_empty:
        return
    if rows_read == 0:
        raise StudyError(f"{_name_files(paths, schema)}: the table has no rows. Check that the whole file is there.")
    if quarantined.height / rows_read > max_share:
        raise _quarantine_error(
            paths, schema, rows_read, quarantined, f"quarantine.max_share = {max_share:g} allows {max_share:.2%}"
        )
    if quarantined.height == rows_read:
        raise _quarantine_error(paths, schema, rows_read, quarantined, "no row is left")


def _name_files(paths: Sequence[Path], schema: TableSchema) -> str:
    if len(paths) == 1:
        return str(paths[0])
    folders = sorted({str(path.parent) for path in paths})
    return (
        f"{', '.join(folders[:3])}{' ...' if len(folders) > 3 else ''} ({len(paths)} files of the table {schema.name})"
    )


def _quarantine_error(
    paths: Sequence[Path], schema: TableSchema, rows_read: int, quarantined: pl.DataFrame, limit: str
) -> StudyError:
    share = quarantined.height / rows_read
    lines = [
        f"{_name_files(paths, schema)}: {quarantined.height:,} of {rows_read:,} rows ({share:.2%}) break a rule; "
        f"{limit}."
    ]
    lines += [
        f"  {reason}: {group.height:,} rows: {REASONS[reason].format(column=column)}; "
        f"first at line {first_line_numbers(group, len(paths), 3)}: {escape_text(group['text'][0] or '')}"
        for (reason, column), group in quarantined.group_by(["reason", "column"], maintain_order=True)
    ]
    if (quarantined["reason"] == "wrong_column_count").any():
        names = ",".join(column.name for column in schema.columns)
        lines.append(f"  The table has {len(schema.columns)} columns: {names}")
    optional = [
        column.name for column in schema.columns if column.optional and column.name in set(quarantined["column"])
    ]
    if optional and quarantined.height < rows_read:
        lines.append(f"  The column {', '.join(optional)} is optional: a file without it is accepted.")
    lines.append(
        "Check that this file is the right table."
        if quarantined.height == rows_read
        else "Correct the file, or raise quarantine.max_share in your configuration if the study can omit the rows."
    )
    return StudyError("\n".join(lines))
