"""Ingest: raw tables -> typed Parquet, an account of every row, and the rows that broke a rule.

Rows read = rows kept + rows excluded, for every table, always.

A trace is read whole (`ingest`), or part by part (`ingest_part`, a file a week, say) and then put together (`merge`):
the products are the same bytes. A part knows its own rows only, so whatever is a matter between rows, a key that an
earlier row has or an owner that is not there, is looked at in the whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import polars as pl
from polars.io.plugins import register_io_source

from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.partitions import key_hashes, number_of
from ttf.raw.raw_contracts import ANOMALIES, ROW_ACCOUNT, ROW_ACCOUNT_BY_PART
from ttf.raw.raw_tables import (
    ASIDE_SCHEMA,
    LINES,
    LONGEST_FIELD,
    Reader,
    TableSchema,
    file_labels,
    first_places,
    printable,
)

QUARANTINE_SCHEMA = {"table": pl.String, "file": pl.String} | ASIDE_SCHEMA

# What each reason code means, in the words of the report; {column} is the file's name for the column.
REASONS = {
    "header_row": "a header row stands where the format has none",
    "not_utf8": "the line is not valid UTF-8",
    "wrong_column_count": "the line has more or fewer fields than the table has columns",
    "missing_value": "{column} is blank and must not be",
    "not_a_time": "{column} is not a time in any of the ways the schema knows",
    "not_a_number": "{column} is not a number of the kind expected (times and counts are whole)",
    "not_a_duration": "{column} is not a duration, written as [days-][hours:]minutes:seconds",
    "wrong_form": "{column} is not written as its values are",
    "wrong_type": "{column} is of another kind than expected, such as a number in place of a text",
    "out_of_range": "{column} is negative or beyond its largest possible value",
    "implausible_time": "{column} is of a year that is not plausible: before 1970, or after 5138",
    "field_too_long": f"{{column}} (where none is named: a field) is longer than {LONGEST_FIELD:,} bytes, the limit of "
    "a text",
    "unknown_value": "{column} holds a word the format does not know",
    "end_before_start": "{column} lies before the time it must follow",
    "end_without_start": "the end of what has not begun, or has ended before",
    "duplicate_key": "an earlier row has the same {column}; the first one is kept",
    "orphan": "no row of the table it belongs to has this {column}",
}

# A file that is not the table at all need not be read, and held in memory, to its end.
HOPELESS_ROWS = 1_000_000
HOPELESS_SHARE = 0.5
# A stored table's row group: its bytes do not depend on the blocks its rows were read in. Small enough that a group's
# distinct values stay in the processor's cache while they are numbered.
PIECE_ROWS = 1 << 17

NO_READERS: Mapping[str, Reader] = MappingProxyType({})
# Keys whose hashes are compared at once; those of a larger table in parts.
MOST_KEYS = 4_000_000

# A row's place: which file of its table, from 0, and which line (of a table of records: which record), from 1.
Place = tuple[int, int]


@dataclass(frozen=True)
class Part:
    """A part of a trace: its name, the file of each of its tables, and what `ingest_part` has made of them."""

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

    `readers` has one for each table that is no plain table of lines.

    Returns the row account (ROW_ACCOUNT) and the quarantine (QUARANTINE_SCHEMA).
    Raises StudyError where a file cannot be its table, where a table keeps no row, or where more than `max_share` of
    its rows break a rule.
    """
    found = {}
    for name, paths in files.items():
        reader = readers.get(name, LINES)
        rows_read, aside = _read(paths, schemas[name], folder, max(max_share, HOPELESS_SHARE), reader)
        aside = _checked_between_rows(paths, schemas[name], folder, reader, aside)
        _refuse_too_many(paths, schemas[name], rows_read, aside, max_share)
        found[name] = rows_read, aside
    return _accounted(found)


def ingest_part(
    files: Mapping[str, Path],
    schemas: Mapping[str, TableSchema],
    folder: Path,
    hopeless_share: float = HOPELESS_SHARE,
    readers: Mapping[str, Reader] = NO_READERS,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """As `ingest`, of one part of a trace: `files` has the file of each of its tables.

    Checks every row by itself. How many rows may break a rule is a matter of the whole trace, as are the rules between
    rows (see `merge`); a file of which a million rows and more than hopeless_share of all break one is given up here.
    """
    return _accounted(
        {
            name: _read([path], schemas[name], folder, hopeless_share, readers.get(name, LINES))
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
    """Put the parts of a trace together, in their order: what `ingest` gives for all their files at once.

    Returns the row account, the quarantine, and the account by part (part, then as the row account). A row that
    repeats one of an earlier part, or has no owner in any, is put aside and counts with the part it is in.
    Raises StudyError as `ingest` does; `max_share` is a limit on each table of the whole trace.
    """
    found, by_part = {}, []
    for name in [name for name in schemas if any(name in part.files for part in parts)]:
        having = [part for part in parts if name in part.files]
        paths = [part.files[name] for part in having]
        reader = readers.get(name, LINES)
        rows_of_parts = (
            rows.with_columns(file=pl.lit(number, pl.Int32))
            for number, part in enumerate(having)
            for rows in _stored_rows(part.folder / f"{name}.parquet")
        )
        _write(rows_of_parts, schemas[name], folder / f"{name}.parquet")
        labels = file_labels(paths)
        aside = _quarantine(
            part.quarantine.filter(pl.col("table") == name).with_columns(file=pl.lit(label))
            for part, label in zip(having, labels, strict=True)
        )
        aside = _checked_between_rows(paths, schemas[name], folder, reader, aside)
        read = [part.account.filter(pl.col("table") == name)["rows_read"].item() for part in having]
        _refuse_too_many(paths, schemas[name], sum(read), aside, max_share)
        found[name] = sum(read), aside
        broken = dict(aside.group_by("file").len().iter_rows())
        for part, label, rows in zip(having, labels, read, strict=True):
            by_part.append((part.name, name, rows, rows - broken.get(label, 0), broken.get(label, 0)))
    return *_accounted(found), pl.DataFrame(by_part, schema=ROW_ACCOUNT_BY_PART.schema, orient="row")


def anomalies(
    quarantine: pl.DataFrame,
    account: pl.DataFrame,
    suggestions: Mapping[tuple[str, str | None, str], str] = MappingProxyType({}),
    files: Mapping[str, Sequence[Path]] = MappingProxyType({}),
) -> pl.DataFrame:
    """One row per table, column and reason code: rows, their share of the table, first line numbers, a sentence.

    suggestions: (table, column, code) -> the change of the schema that the rows suggest, in plain words. files: those
    of each table; where there are several, the line numbers name theirs.
    """
    rows_read = dict(account.select("table", "rows_read").iter_rows())
    rows = []
    for (table, column, code), group in quarantine.group_by(["table", "column", "reason"], maintain_order=True):
        sentence = REASONS[code].format(column=column)
        lines = first_places(group, len(files.get(table, ())))
        share = group.height / rows_read[table]
        suggestion = suggestions.get((table, column, code))
        rows.append((table, column, code, "error", group.height, share, lines, sentence, suggestion))
    return pl.DataFrame(rows, schema=ANOMALIES.schema, orient="row")


def _accounted(found: Mapping[str, tuple[int, pl.DataFrame]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The row account and the quarantine, from the rows read of each table and those of them put aside."""
    rows = [(name, read, read - aside.height, aside.height) for name, (read, aside) in found.items()]
    account = pl.DataFrame(rows, schema=ROW_ACCOUNT.schema, orient="row")
    return account, _quarantine(aside for _, aside in found.values())


def _quarantine(pieces: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=QUARANTINE_SCHEMA), *pieces])


def _read(
    paths: Sequence[Path], schema: TableSchema, folder: Path, hopeless_share: float, reader: Reader
) -> tuple[int, pl.DataFrame]:
    """Write one table's Parquet file, every row checked by itself; return the rows read, and those put aside."""
    aside: list[pl.DataFrame] = []
    rows_kept = rows_aside = 0

    def rows() -> Iterator[pl.DataFrame]:
        nonlocal rows_kept, rows_aside
        for number, (path, label) in enumerate(zip(paths, file_labels(paths), strict=True)):
            for kept, broken in reader.rows(path, schema):
                rows_kept += kept.height
                rows_aside += broken.height
                aside.append(broken.insert_column(1, pl.lit(label).alias("file")))
                yield kept.select(pl.lit(number, pl.Int32).alias("file"), pl.all())
                if rows_aside >= HOPELESS_ROWS and rows_aside > hopeless_share * (rows_kept + rows_aside):
                    raise _too_many(paths, schema, rows_kept + rows_aside, _quarantine(aside), "reading has stopped")

    _write(rows(), schema, folder / f"{schema.name}.parquet")
    return rows_kept + rows_aside, _in_order(_quarantine(aside), paths)


def _in_order(quarantine: pl.DataFrame, paths: Sequence[Path]) -> pl.DataFrame:
    """The quarantine of one table by file and line."""
    order = {label: number for number, label in enumerate(file_labels(paths))}
    place = pl.col("file").replace_strict(order, return_dtype=pl.Int32)
    return quarantine.sort(place, "line", maintain_order=True)


def _stored_rows(path: Path) -> Iterator[pl.DataFrame]:
    rows = scan_parquet(path)
    for offset in range(0, _height(rows), PIECE_ROWS):
        yield rows.slice(offset, PIECE_ROWS).collect()


def _write(rows: Iterator[pl.DataFrame], schema: TableSchema, target: Path) -> None:
    """Store the rows of a table; the bytes depend on them alone, not on the pieces they come in."""
    trouble: list[StudyError] = []

    def source(*_unused) -> Iterator[pl.DataFrame]:
        try:
            yield from rows
        except StudyError as error:  # the engine would wrap it in an error of its own
            trouble.append(error)

    # Uncompressed: the texts are stored once a row group as it is, and most of them are hashes. It is read three times
    # as fast, by every rule that comes after.
    register_io_source(source, schema={"file": pl.Int32} | schema.stored).sink_parquet(
        target, compression="uncompressed", statistics=False, row_group_size=PIECE_ROWS
    )
    if trouble:
        raise trouble[0]


def _checked_between_rows(
    paths: Sequence[Path], schema: TableSchema, folder: Path, reader: Reader, aside: pl.DataFrame
) -> pl.DataFrame:
    """Take rows out of the stored table that another row's key or a missing owner rules out; return all put aside."""
    target = folder / f"{schema.name}.parquet"
    against_others = _duplicates(target, schema) | _orphans(target, schema, folder)
    if not against_others:
        return aside
    rows = []
    for number, (path, label) in enumerate(zip(paths, file_labels(paths), strict=True)):
        lines = {line: reason for (file, line), reason in against_others.items() if file == number}
        texts = reader.texts(path, schema, set(lines)) if lines else {}
        rows += [(schema.name, label, line, *reason, texts.get(line)) for line, reason in lines.items()]
    smaller = target.with_suffix(".smaller")
    _write(_rows_without(target, list(against_others)), schema, smaller)
    smaller.replace(target)
    return _in_order(_quarantine([aside, pl.DataFrame(rows, schema=QUARANTINE_SCHEMA, orient="row")]), paths)


def _rows_without(target: Path, places: list[Place]) -> Iterator[pl.DataFrame]:
    gone = pl.DataFrame(places, schema={"file": pl.Int32, "line": pl.Int64}, orient="row")
    for piece in _stored_rows(target):
        yield piece.join(gone, on=["file", "line"], how="anti", maintain_order="left")


def _duplicates(target: Path, schema: TableSchema) -> dict[Place, tuple[str, str]]:
    """Place -> (reason, key columns) of the rows whose key an earlier row has."""
    if not schema.key:
        return {}
    rows = scan_parquet(target).select("file", "line", *schema.key, hash=number_of(schema.key, 0))
    # Rows with one key have one hash, and hardly any others do: only theirs need be compared.
    doubtful = pl.concat(
        rows.filter(of_part).group_by("hash").len().filter(pl.col("len") > 1).collect(engine="streaming")
        for of_part in _by_hash(rows)
    )
    if doubtful.is_empty():
        return {}
    keys = rows.join(doubtful.lazy(), on="hash", how="semi").collect(engine="streaming").sort("file", "line")
    repeated = keys.filter(~pl.struct(schema.key).is_first_distinct())
    return dict.fromkeys(repeated.select("file", "line").iter_rows(), ("duplicate_key", ", ".join(schema.key)))


def _orphans(target: Path, schema: TableSchema, folder: Path) -> dict[Place, tuple[str, str]]:
    """Place -> (reason, key columns) of the rows whose owner is not in the table they belong to."""
    owner, by = schema.belongs_to or ("", ())
    # A trace may come without the table of the owners.
    if not owner or not (folder / f"{owner}.parquet").is_file():
        return {}
    hashes = key_hashes(by)
    owners = scan_parquet(folder / f"{owner}.parquet").select(**hashes)
    rows = scan_parquet(target).select("file", "line", **hashes)

    def matched(how: str, columns: Sequence[pl.Expr]) -> Iterator[pl.DataFrame]:
        for of_part in _by_hash(owners):
            found = rows.filter(of_part).join(owners.filter(of_part), on=list(hashes), how=how)
            yield found.select(columns).collect(engine="streaming")

    # Whether there are any is the faster question.
    if sum(found.item() for found in matched("semi", [pl.len()])) == _height(rows):
        return {}
    places = pl.concat(matched("anti", [pl.col("file"), pl.col("line")]))
    return dict.fromkeys(places.sort("file", "line").iter_rows(), ("orphan", ", ".join(by)))


def _by_hash(rows: pl.LazyFrame) -> list[pl.Expr]:
    """Conditions on the column `hash` that part the rows, so that the keys of one part are not too many to hold."""
    parts = 1 + _height(rows) // MOST_KEYS
    return [pl.col("hash") % parts == part for part in range(parts)]


def _height(rows: pl.LazyFrame) -> int:
    return rows.select(pl.len()).collect(engine="streaming").item()


def _refuse_too_many(
    paths: Sequence[Path], schema: TableSchema, rows_read: int, aside: pl.DataFrame, max_share: float
) -> None:
    if rows_read == 0 and schema.may_be_empty:
        return
    if rows_read == 0:
        raise StudyError(f"{_named(paths, schema)}: the table has no rows. Check that the whole file is there.")
    if aside.height / rows_read > max_share:
        raise _too_many(paths, schema, rows_read, aside, f"quarantine.max_share = {max_share:g} allows {max_share:.2%}")
    if aside.height == rows_read:
        raise _too_many(paths, schema, rows_read, aside, "none is left")


def _named(paths: Sequence[Path], schema: TableSchema) -> str:
    if len(paths) == 1:
        return str(paths[0])
    folders = sorted({str(path.parent) for path in paths})
    return (
        f"{', '.join(folders[:3])}{' ...' if len(folders) > 3 else ''} ({len(paths)} files of the table {schema.name})"
    )


def _too_many(
    paths: Sequence[Path], schema: TableSchema, rows_read: int, aside: pl.DataFrame, limit: str
) -> StudyError:
    """What to say where too many rows break a rule, and what is to be done."""
    share = aside.height / rows_read
    lines = [f"{_named(paths, schema)}: {aside.height:,} of {rows_read:,} rows ({share:.2%}) break a rule; {limit}."]
    lines += [
        f"  {reason}: {group.height:,} rows: {REASONS[reason].format(column=column)}; "
        f"first at line {first_places(group, len(paths), 3)}: {printable(group['text'][0] or '')}"
        for (reason, column), group in aside.group_by(["reason", "column"], maintain_order=True)
    ]
    if (aside["reason"] == "wrong_column_count").any():
        names = ",".join(column.name for column in schema.columns)
        lines.append(f"  The table has {len(schema.columns)} columns: {names}")
    optional = [column.name for column in schema.columns if column.optional and column.name in set(aside["column"])]
    if optional and aside.height < rows_read:
        lines.append(f"  The table may do without the column {', '.join(optional)}: a file without it is read.")
    lines.append(
        "Check that this file is the right table."
        if aside.height == rows_read
        else "Correct the file, or raise quarantine.max_share in your configuration if the study can do without them."
    )
    return StudyError("\n".join(lines))
