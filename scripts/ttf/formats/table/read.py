"""Read a table of any layout, CSV or Parquet, with one row per job or outage; the registry defines its columns.

The registry's entry of such a trace has `mapping` (our name -> name in the file), for jobs `outcomes` (outcome ->
status words), and may have `times` (format and zone), `unique_ids`, `delimiter`, `quoted`, `blank`. schema_document
builds the schema of the raw table from it; derive.py the jobs or the records of outages. registry.schema.yaml explains
the keys.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import scan_parquet
from ttf.formats.format_declaration import BYTES_PER_MIB, UNITS, UNITS_IN_BYTES, outcome_by_word
from ttf.formats.protocol import Reading
from ttf.formats.table.page_checksums import find_damaged_column
from ttf.raw.headers import BYTE_ORDER_MARK, fit_header, parse_header
from ttf.raw.raw_files import read_line_blocks
from ttf.raw.raw_tables import (
    AUTOMATIC,
    MAX_NUMBER,
    MAX_SECOND,
    MAX_TEXT_SHOWN,
    QUARANTINED_SCHEMA,
    Column,
    Reader,
    RowPair,
    TableSchema,
    check_rows,
    escape_text,
    raw_lines,
    read_raw_table,
    table_schemas,
)
from ttf.raw.record_files import DELIMITER, read_record_rows, read_record_texts
from ttf.records.jobs import status_word

TABLE = "rows"

# Key of the mapping -> our column.
COLUMNS = {
    "job_id": "job_id",
    "task": "task",
    "user": "user",
    "account": "account",
    "partition": "partition",
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
    "memory_peak": "mem_peak_mib",
    "unit": "unit_id",
    "duration": "duration_s",
    **{key: key for key in ("level", "class", "cause", "planned", "group", "rack", "node", "kind")},
}
# A word of outcomes that stands for all others.
OTHER_WORDS = "*"
# Keys that are required in every row.
REQUIRED = ("job_id", "unit")
# Columns that the common job record lacks: extras of the jobs, if they are mapped.
EXTRAS = ("partition", "reason", "exit_code", "memory_peak")
TIMES = ("submit", "start", "end")
COUNTS = ("size", "nodes")
# Names that replace those of COLUMNS: for memory in units that do not divide a MiB, and for a status of which only the
# first word counts.
MEMORY_BYTES, STATUS_PHRASE = "mem_bytes", "status_phrase"
MAX_WORD_SHOWN = 60
MAX_LIST_SHOWN = 200
CHUNK_ROWS = 250_000
# Rows with an unknown status that are collected before another pass over the file fetches their lines.
MAX_PENDING_ROWS = 200_000
ISO_FORMAT = "%Y-%m-%dT%H:%M:%S"


def schema_document(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Build the schema of the raw table of a trace, in the structure of a shipped schema.

    `entry` is the trace's entry in the registry. The columns are in the order of COLUMNS; the status column has all
    status words as its `values`. Raises StudyError for a time format or zone that Polars cannot read.
    """
    mapping = select_read_columns(entry["mapping"])
    times = make_time_rules(entry) if any(key in mapping for key in TIMES) else {}
    # An empty field is blank in CSV, but an empty text in Parquet.
    blank = list(dict.fromkeys(["", *entry.get("blank", [])]))
    table = {
        "columns": [
            {
                "name": get_option(mapping[key], "column", mapping[key]),
                "as": stored_name(key, mapping[key]),
                "blank": blank,
            }
            | _column_rules(key, mapping[key], times, entry)
            for key in COLUMNS
            if key in mapping
        ],
        "order": [COLUMNS[key] for key in TIMES if key in mapping],
        "delimiter": DELIMITER if "records" in entry else entry.get("delimiter", ","),
        "quoted": entry.get("quoted", False) and "records" not in entry,
        "runs": "unit" not in mapping,
    }
    if "job_id" in mapping and entry.get("unique_ids", True) and not entry.get("snapshots", False):
        table["key"] = [key for key in ("job_id", "task") if key in mapping]
    return {"version": 1, "header": True, "tables": {TABLE: table}}


def submission_columns(entry: Mapping[str, Any], at_submission: Collection[str]) -> tuple[Column, ...]:
    """Return the columns of a job's id, its submission and what is known then; times may also be in ISO 8601."""
    keys = [key for key in entry["mapping"] if key in ("job_id", "submit") or COLUMNS[key] in at_submission]
    document = schema_document({**entry, "mapping": {key: entry["mapping"][key] for key in keys}})
    columns = table_schemas(document)[TABLE].columns
    return tuple(replace(c, formats=(*c.formats, ISO_FORMAT, f"{ISO_FORMAT}%#z")) if c.formats else c for c in columns)


def read_rows(path: Path, schema: TableSchema) -> Iterator[RowPair]:
    """Yield (accepted rows, quarantined rows) block by block as read_raw_table does, from CSV or .parquet.

    `line` counts the lines of a CSV file, or the rows of a Parquet file from 1. A row whose status is in no list of
    outcomes is quarantined as unknown_value; its text starts with the word and the known words.
    Raises StudyError if the file cannot be read, or lacks a column of the mapping.
    """
    text_schema = _drop_values(schema)
    if path.name.lower().endswith(".parquet"):
        yield from _read_parquet_rows(path, schema, text_schema)
    else:
        _check_header(path, schema)
        yield from _check_statuses(path, schema, read_raw_table(path, text_schema), raw_lines)


def _drop_values(schema: TableSchema) -> TableSchema:
    """Drop the words of the status: read_raw_table neither takes the first word nor lists the known words."""
    return replace(schema, columns=tuple(replace(column, values=()) for column in schema.columns))


def row_texts(path: Path, schema: TableSchema, numbers: set[int]) -> dict[int, str]:
    """Map each of these row numbers to the text that the quarantine shows."""
    if not path.name.lower().endswith(".parquet"):
        return raw_lines(path, schema, numbers)
    lines = pl.DataFrame({"line": sorted(numbers)}, schema={"line": pl.Int64})
    scan = scan_parquet(path)
    dtypes = scan.collect_schema()
    columns = [_cast_text(path, column, dtypes[column.name])[1] for column in schema.columns]
    rows = scan.select(columns).with_row_index("line", 1).with_columns(pl.col("line").cast(pl.Int64))
    rows = rows.join(lines.lazy(), on="line", how="semi").select("line", _format_row_text(schema.columns))
    return dict(rows.collect().iter_rows())


READERS = {TABLE: Reader(read_rows, row_texts)}


def build_readers(entry: Mapping) -> Mapping[str, Reader]:
    """Return the readers; a file that is no table is read as the `records` of the entry say."""
    if "records" not in entry:
        return READERS
    texts = partial(read_record_texts, records=entry["records"])

    def read(path: Path, schema: TableSchema) -> Iterator[RowPair]:
        rows = read_record_rows(path, _drop_values(schema), entry["records"])
        return _check_statuses(path, schema, rows, texts)

    return {TABLE: Reader(read, texts)}


READING = Reading(READERS, schema_document, build_readers)


# The entry ----------------------------------------------------------------------------------------------


def get_option(part: str | Mapping, key: str, default):
    """Return an option of a mapped column: `part` is its name, or its name and options {column: ..., key: ...}."""
    return default if isinstance(part, str) else part.get(key, default)


def select_read_columns(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping without `submit` if its column is also `start`; it is then read once."""
    return {key: part for key, part in mapping.items() if key != "submit" or part != mapping.get("start")}


def stored_name(key: str, part: str | Mapping) -> str:
    """Return the typed name of the raw column that is mapped under `key`."""
    if key == "status" and get_option(part, "first_word", False):
        return STATUS_PHRASE
    if key == "memory" and get_option(part, "unit", "MiB") in UNITS_IN_BYTES:
        return MEMORY_BYTES
    return COLUMNS[key]


def _mapping_key(column: Column) -> str:
    target = {MEMORY_BYTES: "mem_mib", STATUS_PHRASE: "status"}.get(column.as_, column.as_)
    return next(key for key, name in COLUMNS.items() if name == target)


def _column_rules(key: str, part: str | Mapping, times: dict[str, Any], entry: Mapping) -> dict[str, Any]:
    """Return type and rules of the column that is mapped under `key`."""
    if key in TIMES:
        return times | ({"required": True} if key == "start" and "unit" in entry["mapping"] else {})
    marks = {"decimal": decimal} if (decimal := entry.get("numbers", {}).get("decimal")) else {}
    if key in COUNTS:
        return {"type": "count"} | marks
    if key in UNITS:
        units = UNITS[key]
        unit = get_option(part, "unit", next(iter(units)))
        if unit == "text":
            return {"type": "duration", "minimum": 0}
        kind = {"type": "number", "scale": units[unit], "minimum": 0} | marks
        # MAX_NUMBER is in seconds or MiB.
        if key in ("runtime", "duration"):
            kind["maximum"] = int(MAX_NUMBER / units[unit])
        elif stored_name(key, part) == MEMORY_BYTES:
            kind["maximum"] = int(MAX_NUMBER * BYTES_PER_MIB / units[unit])
        return kind | ({"zero_is_blank": True} if get_option(part, "zero_is_blank", False) else {})
    if key == "status":
        words = outcome_by_word(entry["outcomes"])
        # A word such as running, in place of an end, may also be a state.
        blank = ["", *(word for word in entry.get("blank", []) if word not in words)]
        return {"type": "text", "required": True, "values": list(words), "blank": list(dict.fromkeys(blank))}
    return {"type": "text", "required": key in REQUIRED}


def make_time_rules(entry: Mapping) -> dict[str, Any]:
    times = entry.get("times", {})
    time_format, zone = times.get("format", AUTOMATIC), times.get("zone", "UTC")
    blank_rule = {"zero_is_blank": True} if times.get("zero_is_blank", False) else {}
    if time_format == "seconds":
        # Simulators count parts of a second, which are rounded.
        return {"type": "number", "minimum": 0, "maximum": MAX_SECOND} | blank_rule
    _refuse_unknown_zone(zone)
    if time_format not in ("epoch", AUTOMATIC):
        _check_format(time_format)
    return {"type": "time", "formats": [time_format], "zone": zone} | blank_rule


def _refuse_unknown_zone(zone: str) -> None:
    try:
        pl.Series([datetime(2019, 7, 16)]).dt.replace_time_zone(zone)
    except pl.exceptions.ComputeError:
        raise StudyError(
            f"times.zone: there is no time zone {escape_text(zone)!r}; expected a name of the IANA time zone database, "
            "such as America/Denver or UTC."
        ) from None


def _check_format(format_: str) -> None:
    """Raise StudyError unless a moment written in the format is read back, to the precision of the format."""
    moment = datetime(2019, 7, 16, 13, 45, 30)
    readable_moments = (moment, moment.replace(second=0), moment.replace(hour=0, minute=0, second=0))
    zone = "UTC" if "%z" in format_ else None
    try:
        text = pl.Series([moment]).dt.replace_time_zone(zone).dt.strftime(format_)
        parsed = text.str.to_datetime(format_, strict=False, time_unit="us", time_zone=zone).dt.replace_time_zone(None)
        # %s counts from 1970 in UTC; reading it as wall clock time would shift it by the zone.
        is_valid = parsed[0] in readable_moments and "%s" not in format_
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        is_valid = False
    if not is_valid:
        raise StudyError(
            f"times.format: {escape_text(format_)!r} is no format of a whole date and time; expected strptime's "
            'letters, as in "%Y-%m-%d %H:%M:%S" (an offset: %z). '
            "For seconds since 1970 write epoch, for seconds on the trace's own clock write seconds."
        )


# Rows ---------------------------------------------------------------------------------------------------


def _find_status_column(schema: TableSchema) -> Column | None:
    return next((column for column in schema.columns if _mapping_key(column) == "status"), None)


def _split_by_status(rows: pl.DataFrame, schema: TableSchema) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows with a known status, and line and word of the rows with another one."""
    status_column = _find_status_column(schema)
    if status_column is None:
        return rows, pl.DataFrame(schema={"line": pl.Int64, "word": pl.String})
    words = status_column.values
    rows = rows.with_columns(word=status_word(status_column.as_, status_column.as_ == STATUS_PHRASE))
    is_known = pl.col("word").is_not_null() if OTHER_WORDS in words else pl.col("word").is_in(words)
    return rows.filter(is_known).drop("word"), rows.filter(~is_known.fill_null(False)).select("line", "word")


def _quarantine_unknown(words: dict[int, str], texts: dict[int, str], schema: TableSchema) -> pl.DataFrame:
    """Return the rows quarantined for their status. words: line -> word; texts: line -> raw text."""
    status_column = _find_status_column(schema)
    if status_column is None or not words:
        return pl.DataFrame(schema=QUARANTINED_SCHEMA)
    # Without a delimiter, so that the fields of the row's text after it can still be counted.
    known_words = " / ".join(status_column.values)
    if len(known_words) > MAX_LIST_SHOWN:
        known_words = known_words[:MAX_LIST_SHOWN].rpartition(" / ")[0] + " ..."
    rows = [
        (
            schema.name,
            line,
            "unknown_value",
            status_column.name,
            # The row's own text follows, cut to the maximum length.
            f"{escape_text(word[:MAX_WORD_SHOWN])!r} is none of {known_words}: {texts.get(line, '')}"[:MAX_TEXT_SHOWN],
        )
        for line, word in words.items()
    ]
    return pl.DataFrame(rows, schema=QUARANTINED_SCHEMA, orient="row")


# CSV ----------------------------------------------------------------------------------------------------


def _check_statuses(
    path: Path,
    schema: TableSchema,
    pairs: Iterator[RowPair],
    texts: Callable[[Path, TableSchema, set[int]], dict[int, str]],
) -> Iterator[RowPair]:
    """Quarantine the rows with an unknown status. texts: as of a Reader."""
    no_rows = pl.DataFrame(schema=schema.dtypes)
    word_by_line: dict[int, str] = {}
    for rows, quarantined in pairs:
        accepted, words = _split_by_status(rows, schema)
        yield accepted, quarantined
        word_by_line |= dict(words.iter_rows())
        if len(word_by_line) >= MAX_PENDING_ROWS:
            yield no_rows, _quarantine_unknown(word_by_line, texts(path, schema, set(word_by_line)), schema)
            word_by_line = {}
    if word_by_line:
        yield no_rows, _quarantine_unknown(word_by_line, texts(path, schema, set(word_by_line)), schema)


def _check_header(path: Path, schema: TableSchema) -> None:
    """Raise StudyError for a file that is no CSV, or whose header row lacks a column of the mapping."""
    if Path(path.stem).suffix.lower() == ".parquet" and path.suffix != ".csv":
        raise StudyError(
            f"{path}: a compressed Parquet file, but Parquet is compressed inside. Unpack it to a name in .parquet."
        )
    with closing(read_line_blocks(path, 1 << 16)) as blocks:
        header = next(blocks).split(b"\n", 1)[0].removeprefix(BYTE_ORDER_MARK)
    if header.startswith(b"PAR1"):
        raise StudyError(f"{path}: the bytes are Parquet, but the name says CSV. Rename it to end in .parquet.")
    names = parse_header(header, schema.delimiter, schema.quoted)
    has_quotes = not schema.quoted and any('"' in name for name in names)
    hint = " The header has quotes: perhaps quoted: true is missing." if has_quotes else ""
    _check_columns(f"{path}: line 1: the header row", names, schema, hint)


def _check_columns(label: str, names: list[str], schema: TableSchema, hint: str = "") -> None:
    """Raise StudyError if a name of the mapping is missing."""
    fit = fit_header(names, schema.columns, may_repeat=True)
    if fit.missing:
        raise StudyError(
            f"{label} {fit.describe_problem(schema.delimiter)}{hint} Correct the mapping of this trace in the "
            "registry, or check that this file is the right table."
        )


# Parquet ------------------------------------------------------------------------------------------------


def _read_parquet_rows(path: Path, schema: TableSchema, text_schema: TableSchema) -> Iterator[RowPair]:
    """Read the columns of the mapping as text, with the same rules as for CSV."""
    try:
        scan = scan_parquet(path)
        dtypes = scan.collect_schema()
        _check_columns(f"{path}: the file", dtypes.names(), schema)
        if (damaged_name := find_damaged_column(path, {column.name for column in schema.columns})) is not None:
            raise StudyError(
                f"{path}: the column {damaged_name!r} does not match its checksum: the file is damaged. Fetch it "
                "again; compare its size or checksum with the publisher's."
            )
        columns, texts = zip(
            *(_cast_text(path, column, dtypes[column.name]) for column in text_schema.columns), strict=True
        )
        offset, height = 0, scan.select(pl.len()).collect().item()
        while offset < height:
            frame = scan.slice(offset, CHUNK_ROWS).select(texts).collect()
            lines = pl.int_range(offset + 1, offset + frame.height + 1, dtype=pl.Int64)
            yield _split_rows(frame.with_columns(lines.alias("line")), columns, schema, text_schema)
            offset += CHUNK_ROWS
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = escape_text(str(error).split("\n")[0])
        raise StudyError(
            f"{path}: cannot be read as Parquet ({reason}). Fetch the file again; compare its size or checksum with "
            "the publisher's. If it is CSV, rename it to end in .csv."
        ) from None


def _split_rows(
    frame: pl.DataFrame, columns: tuple[Column, ...], schema: TableSchema, text_schema: TableSchema
) -> RowPair:
    rows, failed = check_rows(frame, columns, replace(text_schema, columns=columns))
    accepted, words = _split_by_status(rows, schema)
    is_failed = pl.col("line").is_in(pl.concat([failed["line"], words["line"]]).implode())
    texts = frame.filter(is_failed).select("line", text=_format_row_text(columns))
    quarantined = failed.with_columns(table=pl.lit(schema.name))
    quarantined = quarantined.join(texts, on="line", how="left", maintain_order="left")
    unknown_rows = _quarantine_unknown(dict(words.iter_rows()), dict(texts.iter_rows()), schema)
    return accepted, pl.concat([quarantined.select(*QUARANTINED_SCHEMA), unknown_rows]).sort("line")


def _format_row_text(columns: tuple[Column, ...]) -> pl.Expr:
    starts = [pl.col(column.text_name).str.head(MAX_TEXT_SHOWN).fill_null("") for column in columns]
    values = [pl.lit(f"{column.name}=") + start for column, start in zip(columns, starts, strict=True)]
    return pl.concat_str(values, separator=", ").str.slice(0, MAX_TEXT_SHOWN)


def _cast_text(path: Path, column: Column, dtype: pl.DataType) -> tuple[Column, pl.Expr]:
    """Return the rules of the text, and its expression; time stamps and durations get our format and unit."""
    raw = pl.col(column.name)
    if isinstance(dtype, pl.Datetime | pl.Date) and column.type == "time":
        has_zone = isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
        moment = raw.dt.convert_time_zone("UTC") if has_zone else raw.cast(pl.Datetime("us"))
        zone = "UTC" if has_zone else column.zone
        text = moment.dt.strftime(ISO_FORMAT).alias(column.text_name)
        return replace(column, formats=(ISO_FORMAT,), zone=zone), text
    if isinstance(dtype, pl.Duration) and column.as_ in ("runtime_s", "duration_s"):
        seconds = raw.dt.total_microseconds() / 1_000_000
        return replace(column, scale=1, maximum=MAX_NUMBER), seconds.cast(pl.String).alias(column.text_name)
    if dtype.is_nested() or dtype.is_temporal() or dtype in (pl.Binary, pl.Object):
        words = {"time": "time stamps, text or numbers", "text": "text or numbers"}
        allowed = words.get(column.type, "numbers or text")
        raise StudyError(
            f"{path}: the column {column.name!r} (registry: mapping.{_mapping_key(column)}) holds {dtype}; "
            f"expected {allowed}. "
            + (
                'With format: seconds the times are numbers; name a format such as "%Y-%m-%d %H:%M:%S" under times.'
                if dtype.is_temporal() and _mapping_key(column) in TIMES
                else "Map another column, or write this one out as text."
            )
        )
    return column, raw.cast(pl.String).alias(column.text_name)
