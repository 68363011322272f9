"""What the excluded rows say about the schema: for each anomaly the change that would let the rows in, or why none.

A suggestion is never put in force by itself. It stands in the anomaly report and in suggested_schema.yaml, for a person
to look at, correct and adopt.
"""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from ttf.engine.errors import StudyError
from ttf.raw.headers import found_and_missing, names_of
from ttf.raw.raw_files import blocks_of_lines
from ttf.raw.raw_tables import (
    LARGEST_NUMBER,
    LATEST_SECOND,
    LONGEST_TEXT_SHOWN,
    Column,
    TableSchema,
    file_labels,
    first_places,
    printable,
)

# A word is suggested where it makes up this share of the rows that one column excluded: at most 20 words, and a
# column full of rubbish suggests nothing.
OFTEN_ENOUGH = 0.05
LONGEST_WORD = 60
UNQUOTED_DELIMITER = "\x1f"

# Codes for which another schema would be the wrong answer, and what to do instead.
NO_CHANGE = {
    "header_row": "none: take the header rows out of the middle of the file",
    "not_utf8": "none: save the file as UTF-8",
    "wrong_column_count": "none: look for a delimiter inside a field, or another version of the table",
    "not_a_time": "none: correct the times, or add their way of writing to the formats of {column}",
    "not_a_number": "none: correct the values of {column}, or name their words for no value under its key blank",
    "not_a_duration": "none: correct {column}, or name its words for no value under its key blank",
    "wrong_form": "none: correct the values of {column}, or take it for another version of the table",
    "missing_value": "none: rows cannot be told apart or put together without {column}; fill it in",
    "wrong_type": "none: look for another version of the table; {column} is read as text or as a list of its kind",
    "out_of_range": "none: correct the values of {column}",
    "implausible_time": "none: correct the values of {column}; look whether they count milliseconds",
    "field_too_long": "none: correct {column}; look for a quote that is never closed, or for what is no table",
    "unknown_value": "none: no word stands often enough in {column} to be one of its values; correct the rows",
    "end_before_start": "none: correct the times; look whether both are of one clock and one time zone",
    "end_without_start": "none: look whether the file begins after the first outages, or holds events twice",
    "duplicate_key": "none: take the repeated rows out; look whether a file was joined with itself",
    "orphan": "none: fetch the rows that these belong to; look whether both tables are of one period",
}
OTHERWISE = "none: correct the rows at their source"


@dataclass(frozen=True)
class Suggestion:
    """What to do about one anomaly (table, column, code).

    column: the file's name for the column, None for a rule of the whole line. words: the change in plain words, or
    why there is none. column_keys, table_keys: the keys of the schema with their new values; empty for no change.
    rows: how many rows say so; first_lines: where the first of them stand.
    """

    table: str
    column: str | None
    code: str
    words: str
    rows: int
    first_lines: str
    column_keys: dict = field(default_factory=dict)
    table_keys: dict = field(default_factory=dict)

    @property
    def is_change(self) -> bool:
        return bool(self.column_keys or self.table_keys)


def suggest(
    quarantine: pl.DataFrame, schemas: Mapping[str, TableSchema], files: Mapping[str, Sequence[Path]]
) -> list[Suggestion]:
    """One suggestion per table, column and code of the quarantine, in its order.

    quarantine: table, file, line, reason, column, text (QUARANTINE_SCHEMA); text is blank where a table has a reader
    of its own, and then only what needs no value is suggested. files: the raw files of each table; of those with a
    header row the first line is read again, as it says where a column stands.
    """
    found = []
    # A column as the suggestions before have it, so that a later one adds to them.
    so_far: dict[tuple[str, str | None], Column] = {}
    for (table, column, code), rows in quarantine.group_by(["table", "column", "reason"], maintain_order=True):
        schema = schemas[table]
        about = so_far.get((table, column)) or _column(schema, column)
        words, column_keys, table_keys = None, {}, {}
        if about and code in _OF_A_COLUMN:
            values = _values(rows, schema, about, files.get(table, ()))
            words, column_keys = _OF_A_COLUMN[code](about, values, rows.height, schema)
            keys = {key: tuple(value) if isinstance(value, list) else value for key, value in column_keys.items()}
            so_far[table, column] = replace(about, **keys)
        elif not about and code in _OF_A_TABLE:
            words, table_keys = _OF_A_TABLE[code](rows, schema)
        words = words or NO_CHANGE.get(code, OTHERWISE).format(column=column)
        lines = first_places(rows, len(files.get(table, ())))
        found.append(Suggestion(table, column, code, words, rows.height, lines, column_keys, table_keys))
    return found


def suggestion_words(suggestions: Sequence[Suggestion]) -> dict[tuple[str, str | None, str], str]:
    """(table, column, code) -> the suggestion in plain words, for the anomaly report."""
    return {(one.table, one.column, one.code): one.words for one in suggestions}


def _column(schema: TableSchema, name: str | None) -> Column | None:
    """The column that the file calls so; None for a rule over several columns or the whole line."""
    return next((column for column in schema.columns if name in (column.name, *column.also)), None)


# The values that broke a rule -----------------------------------------------------------------------------


def _values(rows: pl.DataFrame, schema: TableSchema, column: Column, files: Sequence[Path]) -> pl.DataFrame:
    """What stood in the column: value, rows; the commonest first. Rows whose text is unknown or cut off have none."""
    parts = []
    by_label = dict(zip(file_labels(files), files, strict=True))
    for (name,), part in rows.drop_nulls("text").group_by(["file"], maintain_order=True):
        place = _places(schema, by_label.get(name)).get(column.name)
        if place is None:
            continue
        if schema.quoted:
            values = [_field(text, place, schema.delimiter) for text in part["text"]]
            parts.append(pl.Series("value", values, dtype=pl.String))
            continue
        # A text as long as is kept has been cut: what follows its last delimiter may be half a value.
        cut = pl.col("text").str.len_chars() >= LONGEST_TEXT_SHOWN
        whole = pl.col("text").str.replace(f"[^{re.escape(schema.delimiter)}]*$", "")
        split = pl.when(cut).then(whole).otherwise("text").str.split(schema.delimiter)
        parts.append(part.select(split.list.get(place, null_on_oob=True).alias("value")).to_series())
    values = pl.concat([pl.Series("value", [], dtype=pl.String), *parts]).str.strip_chars()
    counted = values.filter(values != "").to_frame().group_by("value").agg(rows=pl.len().cast(pl.Int64))
    return counted.sort(["rows", "value"], descending=[True, False])


def _places(schema: TableSchema, file: Path | None) -> dict[str, int]:
    """Column of the schema -> its place in a line of this file."""
    names = [column.name for column in schema.columns]
    if schema.header:
        if file is None:
            return {}
        try:
            names = names_of(next(blocks_of_lines(file)).partition(b"\n")[0], schema.delimiter, schema.quoted)
        except StudyError:  # a table with a reader of its own need not be a file of lines
            return {}
    found, _ = found_and_missing(names, schema.columns)
    return {column.name: names.index(word) for word, column in found.items()}


def _field(text: str, place: int, delimiter: str) -> str | None:
    # Where quotes have been taken off, the quarantine has the line with the delimiter that took their place.
    fields = text.split(UNQUOTED_DELIMITER) if UNQUOTED_DELIMITER in text else _fields(text, delimiter)
    if len(text) >= LONGEST_TEXT_SHOWN:
        fields = fields[:-1]
    return fields[place] if place < len(fields) else None


def _fields(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []


def _common_words(values: pl.DataFrame, rows: int) -> list[str]:
    """The words that stand in at least OFTEN_ENOUGH of these rows, the commonest first: short and printable."""
    common = values.filter(pl.col("rows") >= OFTEN_ENOUGH * rows)["value"]
    return [word for word in common if 0 < len(word) <= LONGEST_WORD and word.isprintable()]


def _numbers(values: pl.DataFrame) -> pl.Series:
    numbers = values["value"].cast(pl.Float64, strict=False).drop_nulls()
    return numbers.filter(numbers.is_finite())


def _quoted(words: Sequence[str]) -> str:
    shown = [printable(word) for word in words]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _words(words: Sequence[str]) -> str:
    return f"{'word' if len(words) == 1 else 'words'} {_quoted(words)}"


# What each code suggests: (words, keys with their new values); no words: NO_CHANGE has them ------------------


def _unknown_value(column: Column, values: pl.DataFrame, rows: int, _: TableSchema) -> tuple[str | None, dict]:
    words = _common_words(values, rows)
    if not words or not column.values:  # the words of a column without a list are known to its reader alone
        return None, {}
    return f"allow the {_words(words)} for {column.name}", {"values": [*column.values, *words]}


def _implausible_time(column: Column, values: pl.DataFrame, _rows: int, _: TableSchema) -> tuple[str | None, dict]:
    if values.is_empty():
        return None, {}
    return f"none: {printable(values['value'][0])} of {column.name} is no plausible time; correct it at its source", {}


def _out_of_range(column: Column, values: pl.DataFrame, _rows: int, _: TableSchema) -> tuple[str | None, dict]:
    smallest, largest = column.limits
    numbers = _numbers(values)
    below = numbers.filter(numbers < smallest) if smallest is not None else numbers.head(0)
    above = numbers.filter(numbers > largest) if largest is not None else numbers.head(0)
    words, keys, refused = [], {}, []
    if below.len() and (below == -1).all() and not column.required:
        written = values.filter(values["value"].cast(pl.Float64, strict=False) == -1)["value"]
        keys["blank"] = [*column.blank, *written]
        words.append(f"read {_quoted(written)} of {column.name} as blank")
    elif below.len():
        keys["minimum"] = math.floor(below.min())
        words.append(f"lower the minimum of {column.name} from {smallest:,} to {keys['minimum']:,}")
    if above.len():
        greatest = math.ceil(above.max())
        if column.keep and greatest > (LATEST_SECOND if column.is_whole and column.type != "count" else LARGEST_NUMBER):
            # Not a limit of the trace but of what is plausible: look at the unit instead.
            refused.append(
                f"none for {column.name} up to {greatest:,}: no value is that large; look whether the column is in "
                + ("milliseconds" if column.type == "seconds" else "a smaller unit")
            )
        else:
            keys["maximum"] = greatest
            words.append(f"raise the maximum of {column.name} from {largest:,} to {greatest:,}")
    said = " and ".join(words)
    return "; ".join([*([said] if said else []), *refused]) or None, keys


def _missing_value(column: Column, _values: pl.DataFrame, _rows: int, schema: TableSchema) -> tuple[str | None, dict]:
    owner = schema.belongs_to[1] if schema.belongs_to else ()
    if column.as_ in (*schema.key, *owner):
        return None, {}
    return f"let {column.name} be blank (required: false)", {"required": False}


def _not_a_value(column: Column, values: pl.DataFrame, rows: int, _: TableSchema) -> tuple[str | None, dict]:
    # A word without a digit stands for no value; a misspelt number or time is to be corrected.
    words = [word for word in _common_words(values, rows) if not any(character.isdigit() for character in word)]
    if not words or column.required:
        return None, {}
    return f"read the {_words(words)} of {column.name} as blank", {"blank": [*column.blank, *words]}


def _wrong_column_count(rows: pl.DataFrame, schema: TableSchema) -> tuple[str | None, dict]:
    quotes = [text for text in rows["text"].drop_nulls() if '"' in text]
    sound = sum(len(_fields(text, schema.delimiter)) == len(schema.columns) for text in quotes)
    if schema.quoted or not quotes or sound < OFTEN_ENOUGH * rows.height:
        return None, {}
    return "read fields in double quotes (quoted: true)", {"quoted": True}


_OF_A_COLUMN = {
    "unknown_value": _unknown_value,
    "out_of_range": _out_of_range,
    "implausible_time": _implausible_time,
    "missing_value": _missing_value,
    "not_a_number": _not_a_value,
    "not_a_time": _not_a_value,
    "not_a_duration": _not_a_value,
    "wrong_form": _not_a_value,
}
_OF_A_TABLE = {"wrong_column_count": _wrong_column_count}
