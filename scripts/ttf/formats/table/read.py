"""A table of any layout, CSV or Parquet, one row per job or outage: what its columns mean stands in the registry.

The registry's entry of a trace of the format table or outages has `mapping` (our name -> theirs), `times` (format and
zone), of jobs `outcomes` (outcome -> status words), and may have `unique_ids`, `delimiter`, `quoted`, `blank`. From it
follow the schema of the raw table (schema_document), and with derive.py the jobs or the records of outages. The keys
are explained in registry.schema.yaml.
"""

import difflib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import polars as pl
from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import scan_parquet
from ttf.formats.format_declaration import BYTES_OF_A_MIB, UNITS, UNITS_IN_BYTES, outcome_by_word
from ttf.formats.protocol import Reading
from ttf.formats.table.page_checksums import damaged_column
from ttf.raw.headers import BYTE_ORDER_MARK, DELIMITERS, found_and_missing, names_of
from ttf.raw.raw_files import blocks_of_lines
from ttf.raw.raw_tables import (
    ASIDE_SCHEMA,
    LARGEST_NUMBER,
    LONGEST_TEXT_SHOWN,
    Column,
    Reader,
    TableSchema,
    check_rows,
    printable,
    raw_lines,
    read_table,
)
from ttf.records.jobs import status_word

TABLE = "rows"

# Key of the mapping -> our column.
COLUMNS = {
    "job_id": "job_id",
    "task": "task",
    "user": "user",
    "account": "account",
    "submit": "submit_s",
    "start": "start_s",
    "end": "end_s",
    "runtime": "runtime_s",
    "status": "status",
    "gpu_type": "gpu_type",
    "gpus": "gpu_milli",
    "cpus": "cpu_milli",
    "memory": "mem_mib",
    "size": "size",
    "nodes": "nodes",
    "reason": "reason",
    "exit_code": "exit_code",
    "unit": "unit_id",
    "duration": "duration_s",
    **{key: key for key in ("level", "class", "cause", "planned", "group", "rack", "node", "kind")},
}
# Without which a row is none.
REQUIRED = ("job_id", "unit")
# Columns that the common job record does not have: extras of the jobs where they are mapped.
EXTRAS = ("reason", "exit_code")
TIMES = ("submit", "start", "end")
COUNTS = ("size", "nodes")
# What a raw column is stored as in place of its name in COLUMNS: memory in units of which a MiB is no whole number, and
# a status of which only the first word counts.
BYTES, PHRASE = "mem_bytes", "status_phrase"
LONGEST_WORD_SHOWN = 60
LONGEST_LIST_SHOWN = 200
CHUNK_ROWS = 250_000
# Rows with an unknown status that are held before their lines are looked up, in one more reading of the file.
HELD_ROWS = 200_000
MOMENT = "%Y-%m-%dT%H:%M:%S"


def schema_document(entry: dict) -> dict:
    """The schema of the raw table of a trace, in the structure of a shipped one.

    `entry` is the trace's entry in the registry. The columns stand in the order of COLUMNS; the status column has all
    status words as its `values`. Raises StudyError for a time format or zone that Polars cannot read.
    """
    mapping = entry["mapping"]
    times = _times(entry) if any(key in mapping for key in TIMES) else {}
    # A field of nothing has no value in CSV by itself; in Parquet it is a text.
    blank = list(dict.fromkeys(["", *entry.get("blank", [])]))
    table = {
        "columns": [
            {"name": _option(mapping[key], "column", mapping[key]), "as": stored_as(key, mapping[key]), "blank": blank}
            | _kind(key, mapping[key], times, entry)
            for key in COLUMNS
            if key in mapping
        ],
        "order": [COLUMNS[key] for key in TIMES if key in mapping],
        "delimiter": entry.get("delimiter", ","),
        "quoted": entry.get("quoted", False),
    }
    if "job_id" in mapping and entry.get("unique_ids", True):
        table["key"] = [key for key in ("job_id", "task") if key in mapping]
    return {"version": 1, "header": True, "tables": {TABLE: table}}


def read_rows(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (rows kept, rows put aside) block by block, as read_table; a file that ends in .parquet is read as such.

    `line` counts the lines of a CSV file, and the rows of a Parquet file from 1. A row whose status is in no list of
    outcomes is put aside as unknown_value; its text starts with the word and the words that are known.
    Raises StudyError where the file cannot be read, or has no column of a name that the mapping gives.
    """
    # The status word is looked at here: read_table knows neither first words nor what to say of an unknown one.
    plain = replace(schema, columns=tuple(replace(column, values=()) for column in schema.columns))
    if path.name.lower().endswith(".parquet"):
        yield from _parquet_rows(path, schema, plain)
    else:
        yield from _csv_rows(path, schema, plain)


def texts(path: Path, schema: TableSchema, numbers: set[int]) -> dict[int, str]:
    """The text of the rows with these numbers, as the quarantine keeps it."""
    if not path.name.lower().endswith(".parquet"):
        return raw_lines(path, schema, numbers)
    wanted = pl.DataFrame({"line": sorted(numbers)}, schema={"line": pl.Int64})
    scan = scan_parquet(path)
    types = scan.collect_schema()
    columns = [_as_text(path, column, types[column.name])[1] for column in schema.columns]
    rows = scan.select(columns).with_row_index("line", 1).with_columns(pl.col("line").cast(pl.Int64))
    rows = rows.join(wanted.lazy(), on="line", how="semi").collect()
    return dict(rows.select("line", _shown_row(schema.columns)).iter_rows())


READERS = {TABLE: Reader(read_rows, texts)}
READING = Reading(READERS, schema_document)


# The entry ----------------------------------------------------------------------------------------------


def _option(part: str | dict, key: str, default):
    return part.get(key, default) if isinstance(part, dict) else default


def stored_as(key: str, part: str | dict) -> str:
    """Our name of the raw column that stands under `key`."""
    if key == "status" and _option(part, "first_word", False):
        return PHRASE
    if key == "memory" and _option(part, "unit", "MiB") in UNITS_IN_BYTES:
        return BYTES
    return COLUMNS[key]


def _key(column: Column) -> str:
    """The key of the mapping that a raw column stands under."""
    ours = {BYTES: "mem_mib", PHRASE: "status"}.get(column.as_, column.as_)
    return next(key for key, name in COLUMNS.items() if name == ours)


def _kind(key: str, part: str | dict, times: dict, entry: dict) -> dict:
    """Type and rules of the column that stands under `key`."""
    if key in TIMES:
        return times | ({"required": True} if key == "start" and "unit" in entry["mapping"] else {})
    if key in COUNTS:
        return {"type": "count"}
    if key in UNITS:
        units = UNITS[key]
        scale = units[_option(part, "unit", next(iter(units)))]
        kind = {"type": "number", "scale": scale, "minimum": 0}
        # The largest number is meant in seconds and in MiB.
        if key in ("runtime", "duration"):
            kind["maximum"] = LARGEST_NUMBER // scale
        elif stored_as(key, part) == BYTES:
            kind["maximum"] = LARGEST_NUMBER * BYTES_OF_A_MIB // scale
        return kind | ({"zero_is_blank": True} if _option(part, "zero_is_blank", False) else {})
    if key == "status":
        return {"type": "text", "required": True, "values": list(outcome_by_word(entry["outcomes"]))}
    return {"type": "text", "required": key in REQUIRED}


def _times(entry: dict) -> dict:
    """Type and rules of the columns of times."""
    times = entry["times"]
    format_, zone = times["format"], times.get("zone", "UTC")
    blank = {"zero_is_blank": True} if times.get("zero_is_blank", False) else {}
    if format_ == "seconds":
        return {"type": "seconds"} | blank
    _check_zone(zone)
    if format_ != "epoch":
        _check_format(format_)
    return {"type": "time", "formats": [format_], "zone": zone} | blank


def _check_zone(zone: str) -> None:
    try:
        pl.Series([datetime(2019, 7, 16)]).dt.replace_time_zone(zone)
    except pl.exceptions.ComputeError:
        raise StudyError(
            f"times.zone: there is no time zone {printable(zone)!r}; expected a name of the IANA time zone database. "
            "Write it as in America/Denver, or UTC."
        ) from None


def _check_format(format_: str) -> None:
    """A moment written in the format must be the same moment when it is read, to what the format tells of it."""
    moment = datetime(2019, 7, 16, 13, 45, 30)
    tells = (moment, moment.replace(second=0), moment.replace(hour=0, minute=0, second=0))
    zone = "UTC" if "%z" in format_ else None
    try:
        text = pl.Series([moment]).dt.replace_time_zone(zone).dt.strftime(format_)
        read = text.str.to_datetime(format_, strict=False, time_unit="us", time_zone=zone).dt.replace_time_zone(None)
        # %s counts from 1970 in UTC; read as wall clock time it would be shifted by the zone.
        right = read[0] in tells and "%s" not in format_
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        right = False
    if not right:
        raise StudyError(
            f"times.format: {printable(format_)!r} is no format of a whole date and time; expected strptime's letters, "
            'as in "%Y-%m-%d %H:%M:%S" (an offset: %z). '
            "For seconds since 1970 write epoch, for seconds on the trace's own clock write seconds."
        )


# Rows ---------------------------------------------------------------------------------------------------


def _status(schema: TableSchema) -> Column | None:
    """The column of the status, which jobs have."""
    return next((column for column in schema.columns if _key(column) == "status"), None)


def _by_word(rows: pl.DataFrame, schema: TableSchema) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows with a known status; and line and word of the others."""
    status = _status(schema)
    if status is None:
        return rows, pl.DataFrame(schema={"line": pl.Int64, "word": pl.String})
    rows = rows.with_columns(word=status_word(status.as_, status.as_ == PHRASE))
    known = pl.col("word").is_in(status.values)
    return rows.filter(known).drop("word"), rows.filter(~known.fill_null(False)).select("line", "word")


def _unknown_words(words: dict[int, str], texts: dict[int, str], schema: TableSchema) -> pl.DataFrame:
    """Rows put aside for their status: line -> word, line -> raw text."""
    if not words:
        return pl.DataFrame(schema=ASIDE_SCHEMA)
    # No delimiter stands in it, so that the fields of the row behind it can still be counted.
    known = " / ".join(_status(schema).values)
    if len(known) > LONGEST_LIST_SHOWN:
        known = known[:LONGEST_LIST_SHOWN].rpartition(" / ")[0] + " ..."
    rows = [
        (
            schema.name,
            line,
            "unknown_value",
            _status(schema).name,
            # The row's own text follows, as far as there is room.
            f"{printable(word[:LONGEST_WORD_SHOWN])!r} is none of {known}: {texts.get(line, '')}"[:LONGEST_TEXT_SHOWN],
        )
        for line, word in words.items()
    ]
    return pl.DataFrame(rows, schema=ASIDE_SCHEMA, orient="row")


# CSV ----------------------------------------------------------------------------------------------------


def _csv_rows(path: Path, schema: TableSchema, plain: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    _check_header(path, schema)
    nothing = pl.DataFrame(schema=schema.stored)
    unknown: dict[int, str] = {}
    for rows, aside in read_table(path, plain):
        kept, words = _by_word(rows, schema)
        yield kept, aside
        unknown |= dict(words.iter_rows())
        if len(unknown) >= HELD_ROWS:
            yield nothing, _unknown_words(unknown, raw_lines(path, schema, set(unknown)), schema)
            unknown = {}
    if unknown:
        yield nothing, _unknown_words(unknown, raw_lines(path, schema, set(unknown)), schema)


def _check_header(path: Path, schema: TableSchema) -> None:
    """Refuse a file that is no CSV, or whose header row lacks a column of the mapping."""
    if Path(path.stem).suffix.lower() == ".parquet" and path.suffix != ".csv":
        raise StudyError(
            f"{path}: a packed Parquet file; Parquet is packed within. Unpack it and end its name in .parquet."
        )
    with closing(blocks_of_lines(path, 1 << 16)) as blocks:
        header = next(blocks).split(b"\n", 1)[0].removeprefix(BYTE_ORDER_MARK)
    if header.startswith(b"PAR1"):
        raise StudyError(f"{path}: the bytes are Parquet, but the name says CSV. End its name in .parquet.")
    text = header.decode("utf-8", errors="replace")
    names, hint = names_of(header, schema.delimiter, schema.quoted), ""
    if '"' in text and not schema.quoted:
        hint = " The header has quotes: perhaps quoted: true is missing."
    elif len(names) == 1 and (others := [other for other in DELIMITERS if other in text]):
        hint = f" The header is one field: perhaps the delimiter is {others[0]!r}, not {schema.delimiter!r}."
    _check_columns(f"{path}: line 1: the header row", names, schema, hint)


def _check_columns(what: str, names: list[str], schema: TableSchema, hint: str = "") -> None:
    """Refuse names without one of the mapping; say which key of the registry asks for it."""
    _, missing = found_and_missing(names, schema.columns)
    if not missing:
        return
    said = []
    for column in missing:
        near = difflib.get_close_matches(column.name, names, n=1)
        said.append(
            f"{column.name!r} (registry: mapping.{_key(column)})"
            + (f", perhaps {printable(near[0])!r} is meant" if near else "")
        )
    raise StudyError(
        f"{what} has no column {'; '.join(said)}. It has: {printable(', '.join(names))}.{hint} "
        "Correct the mapping of this trace in the registry, or check that this file is the right table."
    )


# Parquet ------------------------------------------------------------------------------------------------


def _parquet_rows(path: Path, schema: TableSchema, plain: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """The columns of the mapping as text, by the same rules as a CSV file's."""
    try:
        scan = scan_parquet(path)
        types = scan.collect_schema()
        _check_columns(f"{path}: the file", types.names(), schema)
        if (damaged := damaged_column(path, {column.name for column in schema.columns})) is not None:
            raise StudyError(
                f"{path}: the column {damaged!r} is not what its checksum in the file says: the file is damaged. Fetch "
                "it again; compare its size or checksum with the publisher's."
            )
        columns, texts = zip(*(_as_text(path, column, types[column.name]) for column in plain.columns), strict=True)
        offset, height = 0, scan.select(pl.len()).collect().item()
        while offset < height:
            frame = scan.slice(offset, CHUNK_ROWS).select(texts).collect()
            lines = pl.int_range(offset + 1, offset + frame.height + 1, dtype=pl.Int64)
            yield _checked(frame.with_columns(lines.alias("line")), columns, schema, plain)
            offset += CHUNK_ROWS
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = printable(str(error).split("\n")[0])
        raise StudyError(
            f"{path}: cannot be read as Parquet ({reason}). Fetch the file again; compare its size or checksum with "
            "the publisher's. If it is CSV, end its name in .csv."
        ) from None


def _checked(
    frame: pl.DataFrame, columns: tuple[Column, ...], schema: TableSchema, plain: TableSchema
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of text, kept and put aside; the text of one put aside names its columns."""
    rows, failed = check_rows(frame, columns, replace(plain, columns=columns))
    kept, words = _by_word(rows, schema)
    named = pl.col("line").is_in(pl.concat([failed["line"], words["line"]]).implode())
    shown = frame.filter(named).select("line", text=_shown_row(columns))
    aside = failed.join(shown, on="line", how="left", maintain_order="left").with_columns(table=pl.lit(schema.name))
    unknown = _unknown_words(dict(words.iter_rows()), dict(shown.iter_rows()), schema)
    return kept, pl.concat([aside.select(*ASIDE_SCHEMA), unknown]).sort("line")


def _shown_row(columns: tuple[Column, ...]) -> pl.Expr:
    """The start of a row of text, with the names of its columns."""
    starts = [pl.col(column.under).str.head(LONGEST_TEXT_SHOWN).fill_null("") for column in columns]
    values = [pl.lit(f"{column.name}=") + start for column, start in zip(columns, starts, strict=True)]
    return pl.concat_str(values, separator=", ").str.slice(0, LONGEST_TEXT_SHOWN)


def _as_text(path: Path, column: Column, dtype: pl.DataType) -> tuple[Column, pl.Expr]:
    """The column as text, and the rules its text then follows: time stamps and durations need no format or unit."""
    raw = pl.col(column.name)
    if isinstance(dtype, pl.Datetime | pl.Date) and column.type == "time":
        aware = isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
        moment = raw.dt.convert_time_zone("UTC") if aware else raw.cast(pl.Datetime("us"))
        zone = "UTC" if aware else column.zone
        return replace(column, formats=(MOMENT,), zone=zone), moment.dt.strftime(MOMENT).alias(column.under)
    if isinstance(dtype, pl.Duration) and column.as_ in ("runtime_s", "duration_s"):
        seconds = raw.dt.total_microseconds() / 1_000_000
        return replace(column, scale=1, maximum=LARGEST_NUMBER), seconds.cast(pl.String).alias(column.under)
    if dtype.is_nested() or dtype.is_temporal() or dtype in (pl.Binary, pl.Object):
        wanted = {"time": "time stamps, text or numbers", "text": "text or numbers"}.get(column.type, "numbers or text")
        raise StudyError(
            f"{path}: the column {column.name!r} (registry: mapping.{_key(column)}) holds {dtype}; expected {wanted}. "
            + (
                'With format: seconds the times are numbers; name a format such as "%Y-%m-%d %H:%M:%S" under times.'
                if column.type == "seconds" and dtype.is_temporal()
                else "Map another column, or write this one out as text."
            )
        )
    return column, raw.cast(pl.String).alias(column.under)
