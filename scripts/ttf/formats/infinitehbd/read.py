"""Read the raw table of the InfiniteHBD trace: one JSON array of events, each with the object `fault_type`."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from ttf.formats.infinitehbd.derive import mark_started_ends
from ttf.formats.protocol import Reading
from ttf.raw.raw_json import read_record_texts, read_records, read_whole, record_start
from ttf.raw.raw_tables import QUARANTINED_SCHEMA, Reader, TableSchema, check_rows

KIND = "fault_type"


class _NumberText(str):
    """The text of a JSON number, distinguished from a JSON text."""


def read_events(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (accepted events, quarantined records) as read_raw_table does; `line` is the number of a record from 1.

    In addition to the rules of the schema, an end without an open fault of its kind on the node is quarantined.
    Raises StudyError if the file is no JSON array, or is truncated.
    """
    text = read_whole(path).decode("utf-8", errors="surrogateescape")
    rows, invalid, span_by_line = [], [], {}
    for number, (record, start, end) in enumerate(read_records(path, text, _NumberText), start=1):
        span_by_line[number] = start, end
        fields = _read_fields(record, schema)
        if isinstance(fields, dict):
            rows.append((number, *(fields.get(column.name) for column in schema.columns)))
        else:
            invalid.append((number, *fields))
    types = {"line": pl.Int64, **dict.fromkeys((column.name for column in schema.columns), pl.String)}
    accepted, failed = check_rows(pl.DataFrame(rows, schema=types, orient="row"), schema.columns, schema)
    accepted = mark_started_ends(accepted)
    orphans = accepted.filter(~pl.col("has_started"))
    orphans = orphans.select("line", reason=pl.lit("end_without_start"), column=pl.lit(KIND))
    failures = [*invalid, *failed.select("line", "reason", "column").rows(), *orphans.rows()]
    rows = [
        (schema.name, line, reason, column, record_start(text, *span_by_line[line]))
        for line, reason, column in sorted(failures)
    ]
    quarantined = pl.DataFrame(rows, schema=QUARANTINED_SCHEMA, orient="row")
    yield accepted.filter("has_started").drop("has_started").sort("line"), quarantined


def _read_fields(record: object, schema: TableSchema) -> dict[str, object] | tuple[str, str | None]:
    """Return the fields of a record, or (reason, field) if it is not an object of texts and one number."""
    if not isinstance(record, dict):
        return "wrong_column_count", None
    kind = record.get(KIND)
    if kind is not None and not isinstance(kind, dict):
        return "wrong_type", KIND
    fields = record | (kind or {})
    for column in schema.columns:
        value = fields.get(column.name)
        if value is not None and type(value) is not (str if column.type == "text" else _NumberText):
            return "wrong_type", column.name
    try:
        "".join(value for value in fields.values() if isinstance(value, str)).encode()
    except UnicodeEncodeError:
        return "not_utf8", None
    return fields


READING = Reading({"events": Reader(read_events, read_record_texts)})
