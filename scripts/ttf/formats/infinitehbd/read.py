"""Reads the raw table of the InfiniteHBD trace: one JSON array of events, with the object `fault_type` in each."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl
from ttf.formats.infinitehbd.derive import has_begun
from ttf.formats.protocol import Reading
from ttf.raw.raw_json import records_in, shown, texts_of_records, whole
from ttf.raw.raw_tables import ASIDE_SCHEMA, Reader, TableSchema, check_rows

KIND = "fault_type"


class _Number(str):
    """The text of a number, which is no text."""


def read_events(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (events kept, records put aside), as read_table, with `line` a record's number from 1.

    Beside what breaks a rule of the schema an end is put aside before which no fault of its kind has begun on the node,
    or whose fault has ended before. Raises StudyError where the file is no JSON array, or is cut short.
    """
    text = whole(path).decode("utf-8", errors="surrogateescape")
    rows, unsound, places = [], [], {}
    for number, (record, start, end) in enumerate(records_in(path, text, _Number), start=1):
        places[number] = start, end
        problem = _problem(record, schema)
        if problem:
            unsound.append((number, *problem))
        else:
            fields = record | (record.get(KIND) or {})
            rows.append((number, *(fields.get(column.name) for column in schema.columns)))
    names = dict.fromkeys((column.name for column in schema.columns), pl.String)
    kept, failed = check_rows(
        pl.DataFrame(rows, schema={"line": pl.Int64} | names, orient="row"), schema.columns, schema
    )
    kept = has_begun(kept)
    orphans = kept.filter(~pl.col("begun")).select("line", reason=pl.lit("end_without_start"), column=pl.lit(KIND))
    broken = [*unsound, *failed.select("line", "reason", "column").rows(), *orphans.rows()]
    aside = pl.DataFrame(
        [(schema.name, line, reason, column, shown(text, *places[line])) for line, reason, column in sorted(broken)],
        schema=ASIDE_SCHEMA,
        orient="row",
    )
    yield kept.filter("begun").drop("begun").sort("line"), aside


def _problem(record: object, schema: TableSchema) -> tuple[str, str | None] | None:
    """(reason, field) of a record that is not of the form expected: an object of texts and of one number."""
    if not isinstance(record, Mapping):
        return "wrong_column_count", None
    kind = record.get(KIND)
    if kind is not None and not isinstance(kind, Mapping):
        return "wrong_type", KIND
    fields = record | (kind or {})
    for column in schema.columns:
        value = fields.get(column.name)
        if value is not None and type(value) is not (str if column.type == "text" else _Number):
            return "wrong_type", column.name
    try:
        "".join(value for value in fields.values() if isinstance(value, str)).encode()
    except UnicodeEncodeError:
        return "not_utf8", None
    return None


READING = Reading({"events": Reader(read_events, texts_of_records)})
