"""Suggest, for each anomaly, a schema change that would accept the quarantined rows, or say why there is none.

No suggestion takes effect by itself. The anomaly report and suggested_schema.yaml show it, so that a person can check,
correct and adopt it.
"""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from ttf.engine.errors import StudyError
from ttf.engine.words import join_list
from ttf.raw.headers import fit_header, parse_header
from ttf.raw.raw_files import read_line_blocks
from ttf.raw.raw_tables import (
    MAX_NUMBER,
    MAX_SECOND,
    MAX_TEXT_SHOWN,
    Column,
    TableSchema,
    escape_text,
    file_labels,
    first_line_numbers,
    freeze_lists,
)

# A word is suggested if at least this share of the rows quarantined for the column have it. So there are at most 20
# words, and a column of arbitrary texts leads to no suggestion.
MIN_WORD_SHARE = 0.05
MAX_WORD_LENGTH = 60
UNQUOTED_DELIMITER = "\x1f"

# Reason code -> advice if a schema change is not the solution.
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
    "overlap": "none: correct the times of one of the two rows",
    "orphan": "none: fetch the rows that these belong to; look whether both tables are of one period",
}
# Cells that are blanked have it too.
DEFAULT_ADVICE = "none: correct the rows at their source"


@dataclass(frozen=True)
class Suggestion:
    """The advice for one anomaly (table, column, code).

    column: the name in the file, None for a rule of the whole line. words: the change in plain words, or why there is
    none. column_keys, table_keys: the keys of the schema with their new values; empty for no change. rows: the number
    of rows behind it; first_lines: the first line numbers.
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
        """Whether it changes keys of the schema; otherwise it is advice."""
        return bool(self.column_keys or self.table_keys)


def suggest_changes(
    quarantine: pl.DataFrame, schemas: Mapping[str, TableSchema], files: Mapping[str, Sequence[Path]]
) -> list[Suggestion]:
    """Return one suggestion per table, column and code of the quarantine, in its order.

    quarantine: table, file, line, reason, column, text (QUARANTINE_SCHEMA). If a table with its own reader has no
    texts, only changes that need no value are suggested. files: the raw files of each table; the header row of each is
    read again to find the columns.
    """
    suggestions = []
    # Columns with the changes suggested so far, so that a later suggestion adds to them.
    updated_columns: dict[tuple[str, str | None], Column] = {}
    for (table, column, code), rows in quarantine.group_by(["table", "column", "reason"], maintain_order=True):
        schema = schemas[table]
        current_column = updated_columns.get((table, column)) or _find_column(schema, column)
        words, column_keys, table_keys = None, dict[str, Any](), dict[str, Any]()
        if current_column and code in _COLUMN_RULES:
            values = _count_values(rows, schema, current_column, files.get(table, ()))
            words, column_keys = _COLUMN_RULES[code](current_column, values, rows.height, schema)
            updated_columns[table, column] = replace(current_column, **freeze_lists(column_keys))
        elif not current_column and code in _TABLE_RULES:
            words, table_keys = _TABLE_RULES[code](rows, schema)
        words = words or NO_CHANGE.get(code, DEFAULT_ADVICE).format(column=column)
        lines = first_line_numbers(rows, len(files.get(table, ())))
        suggestions.append(Suggestion(table, column, code, words, rows.height, lines, column_keys, table_keys))
    return suggestions


def words_by_anomaly(suggestions: Sequence[Suggestion]) -> dict[tuple[str, str | None, str], str]:
    """Map (table, column, code) to the suggestion in plain words, for the anomaly report."""
    return {(suggestion.table, suggestion.column, suggestion.code): suggestion.words for suggestion in suggestions}


def _find_column(schema: TableSchema, name: str | None) -> Column | None:
    """Return the column with this name in the file; None for a rule over several columns or the whole line."""
    return next((column for column in schema.columns if name in (column.name, *column.also)), None)


# The values that broke a rule -----------------------------------------------------------------------------


def _count_values(rows: pl.DataFrame, schema: TableSchema, column: Column, files: Sequence[Path]) -> pl.DataFrame:
    """Count the values in the column: value, rows, most common first. Rows with a missing or cut text have no value."""
    parts = []
    path_by_label = dict(zip(file_labels(files), files, strict=True))
    for (name,), part in rows.drop_nulls("text").group_by(["file"], maintain_order=True):
        index = _column_indices(schema, path_by_label.get(name)).get(column.name)
        if index is None:
            continue
        if schema.quoted:
            fields = [_field_at(text, index, schema.delimiter) for text in part["text"]]
            parts.append(pl.Series("value", fields, dtype=pl.String))
            continue
        # A text of the maximum length is cut: the text after its last delimiter may be half a value.
        is_cut = pl.col("text").str.len_chars() >= MAX_TEXT_SHOWN
        complete_text = pl.col("text").str.replace(f"[^{re.escape(schema.delimiter)}]*$", "")
        split = pl.when(is_cut).then(complete_text).otherwise("text").str.split(schema.delimiter)
        parts.append(part.select(split.list.get(index, null_on_oob=True).alias("value")).to_series())
    values = pl.concat([pl.Series("value", [], dtype=pl.String), *parts]).str.strip_chars()
    counts = values.filter(values != "").to_frame().group_by("value").agg(rows=pl.len().cast(pl.Int64))
    return counts.sort(["rows", "value"], descending=[True, False])


def _column_indices(schema: TableSchema, file: Path | None) -> dict[str, int]:
    """Map each column of the schema to its index in a line of this file."""
    names = [column.name for column in schema.columns]
    if schema.header:
        if file is None:
            return {}
        try:
            names = parse_header(next(read_line_blocks(file)).partition(b"\n")[0], schema.delimiter, schema.quoted)
        except StudyError:  # a table with its own reader may not be a file of lines
            return {}
    column_by_name = fit_header(names, schema.columns).column_by_name
    return {column.name: names.index(name) for name, column in column_by_name.items()}


def _field_at(text: str, index: int, delimiter: str) -> str | None:
    # Of a line whose quotes were removed, the quarantine has the text with the replacement of the delimiter.
    fields = text.split(UNQUOTED_DELIMITER) if UNQUOTED_DELIMITER in text else _split_fields(text, delimiter)
    if len(text) >= MAX_TEXT_SHOWN:
        fields = fields[:-1]
    return fields[index] if index < len(fields) else None


def _split_fields(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []


def _common_words(values: pl.DataFrame, rows: int) -> list[str]:
    """Return the printable words that at least MIN_WORD_SHARE of the rows have. values: value, rows."""
    common = values.filter(pl.col("rows") >= MIN_WORD_SHARE * rows)["value"]
    return [word for word in common if 0 < len(word) <= MAX_WORD_LENGTH and word.isprintable()]


def _join_words(words: Iterable[str]) -> str:
    return join_list([escape_text(word) for word in words])


def _label_words(words: Sequence[str]) -> str:
    """Return `word A`, or `words A and B`."""
    return f"{'word' if len(words) == 1 else 'words'} {_join_words(words)}"


# Suggestions by reason code --------------------------------------------------------------------------------

# The change in words (None: NO_CHANGE applies), and the keys of the schema with their new values.
WordsAndKeys: TypeAlias = tuple[str | None, dict]


def _suggest_words(column: Column, values: pl.DataFrame, rows: int, _: TableSchema) -> WordsAndKeys:
    words = _common_words(values, rows)
    if not words or not column.values:  # without a list, the reader alone knows the words
        return None, {}
    return f"allow the {_label_words(words)} for {column.name}", {"values": [*column.values, *words]}


def _suggest_limits(column: Column, values: pl.DataFrame, _rows: int, _: TableSchema) -> WordsAndKeys:
    smallest, largest = column.limits
    numbers = values["value"].cast(pl.Float64, strict=False)
    finite_numbers = numbers.filter(numbers.is_finite())
    below_minimum = [number for number in finite_numbers if smallest is not None and number < smallest]
    above_maximum = [number for number in finite_numbers if largest is not None and number > largest]
    words, keys, refusals = [], dict[str, Any](), []
    if below_minimum:
        keys["minimum"] = math.floor(min(below_minimum))
        words.append(f"lower the minimum of {column.name} from {smallest:,} to {keys['minimum']:,}")
    if above_maximum:
        new_maximum = math.ceil(max(above_maximum))
        if column.keep and new_maximum > (MAX_SECOND if column.is_whole and column.type != "count" else MAX_NUMBER):
            # The value is implausible in any trace, so advise to check the unit.
            refusals.append(
                f"none for {column.name} up to {new_maximum:,}: no value is that large; look whether the column is in "
                + ("milliseconds" if column.type == "seconds" else "a smaller unit")
            )
        else:
            keys["maximum"] = new_maximum
            words.append(f"raise the maximum of {column.name} from {largest:,} to {new_maximum:,}")
    changes = " and ".join(words)
    return "; ".join([*([changes] if changes else []), *refusals]) or None, keys


def _suggest_not_required(column: Column, _values: pl.DataFrame, _rows: int, schema: TableSchema) -> WordsAndKeys:
    owner = schema.belongs_to[1] if schema.belongs_to else ()
    if column.as_ in (*schema.key, *owner):
        return None, {}
    return f"let {column.name} be blank (required: false)", {"required": False}


def _suggest_blank_words(column: Column, values: pl.DataFrame, rows: int, _: TableSchema) -> WordsAndKeys:
    # A word without a digit means a missing value; a misspelt number or time needs a correction.
    words = [word for word in _common_words(values, rows) if not any(character.isdigit() for character in word)]
    if not words or column.required:
        return None, {}
    return f"read the {_label_words(words)} of {column.name} as blank", {"blank": [*column.blank, *words]}


def _suggest_quotes(rows: pl.DataFrame, schema: TableSchema) -> WordsAndKeys:
    quoted_texts = [text for text in rows["text"].drop_nulls() if '"' in text]
    n_complete = sum(len(_split_fields(text, schema.delimiter)) == len(schema.columns) for text in quoted_texts)
    if schema.quoted or not quoted_texts or n_complete < MIN_WORD_SHARE * rows.height:
        return None, {}
    return "read fields in double quotes (quoted: true)", {"quoted": True}


_COLUMN_RULES = {
    "unknown_value": _suggest_words,
    "out_of_range": _suggest_limits,
    "missing_value": _suggest_not_required,
    "not_a_number": _suggest_blank_words,
    "not_a_time": _suggest_blank_words,
    "not_a_duration": _suggest_blank_words,
    "wrong_form": _suggest_blank_words,
}
_TABLE_RULES = {"wrong_column_count": _suggest_quotes}
