"""Ingest: raw tables -> typed Parquet, an account of every row, and the rows that broke a rule.

Rows read = rows kept + rows put aside, for every table, always.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import polars as pl
from polars.io.plugins import register_io_source

from ttf.errors import StudyError
from ttf.raw_tables import ASIDE_SCHEMA, TableSchema, printable, raw_lines, read_table

QUARANTINE_SCHEMA = {"table": pl.String, "file": pl.String} | ASIDE_SCHEMA

# What each reason code means, in the words of the report; {column} is the file's name for the column.
REASONS = {
    "header_row": "a header row stands where the format has none",
    "not_utf8": "the line is not valid UTF-8",
    "wrong_column_count": "the line has more or fewer fields than the table has columns",
    "missing_value": "{column} is blank and must not be",
    "not_a_time": "{column} is not a time in any of the ways the schema knows",
    "not_a_number": "{column} is not a number of the kind expected (times and counts are whole)",
    "out_of_range": "{column} is negative or beyond its largest possible value",
    "unknown_value": "{column} holds a word the format does not know",
    "end_before_start": "{column} lies before the time it must follow",
    "duplicate_key": "an earlier row has the same {column}; the first one is kept",
    "orphan": "no row of the table it belongs to has this {column}",
}

# A file that is not the table at all need not be read, and held in memory, to its end.
HOPELESS_ROWS = 1_000_000

# Reads one file of a table: yields (rows kept, with the columns of TableSchema.stored; rows put aside), as read_table.
Reader = Callable[[Path, TableSchema], Iterator[tuple[pl.DataFrame, pl.DataFrame]]]
# A row's place: which file of its table, from 0, and which line (of a table of records: which record), from 1.
Place = tuple[int, int]

ANOMALIES_SCHEMA = {
    "table": pl.String,
    "column": pl.String,
    "code": pl.String,
    "severity": pl.String,
    "rows": pl.Int64,
    "share": pl.Float64,
    "first_lines": pl.String,
    "sentence": pl.String,
    "suggestion": pl.String,
}


def ingest(
    files: dict[str, list[Path]],
    schemas: dict[str, TableSchema],
    folder: Path,
    max_share: float,
    readers: dict[str, Reader] | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the raw tables in `files` (name -> its files, in order) and write `folder`/<name>.parquet for each.

    `readers` has a function for each table that is no table of lines (see `Reader`).

    Returns the row account (table, rows_read, rows_kept, rows_quarantined) and the quarantine (QUARANTINE_SCHEMA).
    Raises StudyError where a file cannot be its table, where a table keeps no row, or where more than `max_share` of
    its rows break a rule. `report` is called with a line of progress per table.
    """
    account, quarantine = [], []
    for name, paths in files.items():
        reader = (readers or {}).get(name, read_table)
        rows_read, aside = _ingest_table(paths, schemas[name], folder, max_share, reader)
        _refuse_too_many(paths, schemas[name], rows_read, aside, max_share)
        account.append((name, rows_read, rows_read - aside.height, aside.height))
        quarantine.append(aside)
        report(f"{name}: {rows_read:,} rows read, {aside.height:,} put aside")
    columns = {"table": pl.String, "rows_read": pl.Int64, "rows_kept": pl.Int64, "rows_quarantined": pl.Int64}
    return pl.DataFrame(account, schema=columns, orient="row"), pl.concat(
        [pl.DataFrame(schema=QUARANTINE_SCHEMA), *quarantine]
    )


def anomalies(
    quarantine: pl.DataFrame,
    account: pl.DataFrame,
    suggestions: Mapping[tuple[str, str | None, str], str] = MappingProxyType({}),
) -> pl.DataFrame:
    """One row per table, column and reason code: rows, their share of the table, first line numbers, a sentence.

    suggestions: (table, column, code) -> the change of the schema that the rows suggest, in plain words.
    """
    rows_read = dict(account.select("table", "rows_read").iter_rows())
    rows = []
    for (table, column, code), group in quarantine.group_by(["table", "column", "reason"], maintain_order=True):
        sentence = REASONS[code].format(column=column)
        lines = ", ".join(str(line) for line in group["line"].head(5))
        share = group.height / rows_read[table]
        suggestion = suggestions.get((table, column, code))
        rows.append((table, column, code, "error", group.height, share, lines, sentence, suggestion))
    return pl.DataFrame(rows, schema=ANOMALIES_SCHEMA, orient="row")


def _ingest_table(
    paths: list[Path], schema: TableSchema, folder: Path, max_share: float, reader: Reader = read_table
) -> tuple[int, pl.DataFrame]:
    """Write one table's Parquet file; return the number of rows read and the rows put aside."""
    aside: list[pl.DataFrame] = []
    rows_kept = rows_aside = 0
    trouble: list[StudyError] = []

    def source(*_unused) -> Iterator[pl.DataFrame]:
        nonlocal rows_kept, rows_aside
        try:
            for number, path in enumerate(paths):
                for kept, broken in reader(path, schema):
                    rows_kept += kept.height
                    rows_aside += broken.height
                    aside.append(broken.insert_column(1, pl.lit(path.name).alias("file")))
                    yield kept.select(pl.lit(number, pl.Int32).alias("file"), pl.all())
                    if rows_aside >= HOPELESS_ROWS and rows_aside > max(max_share, 0.5) * (rows_kept + rows_aside):
                        _refuse_too_many(paths, schema, rows_kept + rows_aside, pl.concat(aside), max_share)
        except StudyError as error:  # the engine would wrap it in an error of its own
            trouble.append(error)

    target = folder / f"{schema.name}.parquet"
    register_io_source(source, schema={"file": pl.Int32} | schema.stored).sink_parquet(
        target, compression="lz4", statistics=False
    )
    if trouble:
        raise trouble[0]
    rows_read = rows_kept + rows_aside
    against_others = _duplicates(target, schema) | _orphans(target, schema, folder)
    if against_others:
        rows = []
        for number, path in enumerate(paths):
            lines = {line: reason for (file, line), reason in against_others.items() if file == number}
            # A table with a reader of its own has records, not lines of text.
            texts = raw_lines(path, set(lines)) if reader is read_table else {}
            rows += [(schema.name, path.name, line, *reason, texts.get(line)) for line, reason in lines.items()]
        aside.append(pl.DataFrame(rows, schema=QUARANTINE_SCHEMA, orient="row"))
        _drop_rows(target, list(against_others))
    quarantine = pl.concat([pl.DataFrame(schema=QUARANTINE_SCHEMA), *aside])
    order = {path.name: number for number, path in enumerate(paths)}
    place = pl.col("file").replace_strict(order, return_dtype=pl.Int32)
    return rows_read, quarantine.sort(place, "line", maintain_order=True)


def _duplicates(target: Path, schema: TableSchema) -> dict[Place, tuple[str, str]]:
    """Place -> (reason, key columns) of the rows whose key an earlier row has."""
    if not schema.key:
        return {}
    rows = pl.scan_parquet(target)
    height, distinct = (
        rows.select(pl.len(), pl.struct(schema.key).n_unique().alias("distinct")).collect(engine="streaming").row(0)
    )
    if distinct == height:  # as nearly always; which rows repeat takes longer to say
        return {}
    keys = rows.select("file", "line", *schema.key).collect()
    repeated = keys.filter(~pl.struct(schema.key).is_first_distinct())
    return dict.fromkeys(repeated.select("file", "line").iter_rows(), ("duplicate_key", ", ".join(schema.key)))


def _orphans(target: Path, schema: TableSchema, folder: Path) -> dict[Place, tuple[str, str]]:
    """Place -> (reason, key columns) of the rows whose owner is not in the table they belong to."""
    if not schema.belongs_to:
        return {}
    owner, by = schema.belongs_to
    owners = pl.scan_parquet(folder / f"{owner}.parquet").select(by)
    rows = pl.scan_parquet(target).select("file", "line", *by)
    # Streamed, as all the keys of a large table fill a gigabyte. Whether there are any is the faster question.
    owned = rows.join(owners, on=by, how="semi").select(pl.len()).collect(engine="streaming").item()
    if owned == rows.select(pl.len()).collect().item():
        return {}
    places = rows.join(owners, on=by, how="anti").select("file", "line").collect(engine="streaming")
    return dict.fromkeys(places.sort("file", "line").iter_rows(), ("orphan", ", ".join(by)))


def _drop_rows(target: Path, places: list[Place]) -> None:
    gone = pl.DataFrame(places, schema={"file": pl.Int32, "line": pl.Int64}, orient="row").lazy()
    rest = pl.scan_parquet(target).join(gone, on=["file", "line"], how="anti", maintain_order="left")
    smaller = target.with_suffix(".smaller")
    rest.sink_parquet(smaller, compression="lz4", statistics=False)
    smaller.replace(target)


def _refuse_too_many(
    paths: list[Path], schema: TableSchema, rows_read: int, aside: pl.DataFrame, max_share: float
) -> None:
    path = paths[0] if len(paths) == 1 else f"{paths[0].parent} ({len(paths)} files of the table {schema.name})"
    if rows_read == 0:
        raise StudyError(f"{path}: the table has no rows. Check that the whole file is there.")
    share = aside.height / rows_read
    if share <= max_share and aside.height < rows_read:
        return
    limit = f"quarantine.max_share = {max_share:g} allows {max_share:.2%}" if share > max_share else "none is left"
    lines = [f"{path}: {aside.height:,} of {rows_read:,} rows ({share:.2%}) break a rule; {limit}."]
    for (reason, column), group in aside.group_by(["reason", "column"], maintain_order=True):
        first = ", ".join(str(line) for line in group["line"].head(3))
        if len(paths) > 1:
            first += f" of {group['file'][0]}"
        lines.append(
            f"  {reason}: {group.height:,} rows: {REASONS[reason].format(column=column)}; "
            f"first at line {first}: {printable(group['text'][0] or '')}"
        )
    if (aside["reason"] == "wrong_column_count").any():
        names = ",".join(column.name for column in schema.columns)
        lines.append(f"  The table has {len(schema.columns)} columns: {names}")
    lines.append(
        "Correct the file, or raise quarantine.max_share in your configuration if the study can do without them."
        if share > max_share
        else "Check that this file is the right table."
    )
    raise StudyError("\n".join(lines))
