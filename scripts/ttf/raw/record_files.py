"""Read a file of records that is no table, as JSON or lines of accounting, as lines of cells.

The key `records` of a trace's entry says where the records are and how they become columns; registry.schema.yaml
explains it. A value in JSON has the names of its keys, joined by `_`: time_start, spec_containers_name. Any character
but letters, digits and `_` becomes `_`. In lists of objects:

- an object with count, value or status and with type, name or key also has its value under these: tres_allocated_cpu;
- of several values with one name, the first counts, or the sum, the minimum or the maximum if the entry says so;
- a list or an object is also a text by its own name: cpu=4,mem=16000,gres/gpu=1.
"""

import csv
import itertools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl

from ttf.engine.errors import StudyError
from ttf.raw.headers import BYTE_ORDER_MARK, DELIMITERS
from ttf.raw.raw_files import read_line_blocks, read_unpacked
from ttf.raw.raw_json import find_list_key, read_nested_records, read_whole
from ttf.raw.raw_tables import MAX_TEXT_SHOWN, RowPair, TableSchema, read_raw_table

DELIMITER = "|"
# Replaces the delimiter in a cell.
BAR = "¦"
ROWS = 20_000
# A draft looks at this many columns of an unknown file.
MAX_COLUMNS = 300
_VALUE_KEYS, _NAME_KEYS = ("count", "value", "status"), ("type", "name", "key")
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_REDUCTIONS: dict[str, Callable[[list[str]], Any]] = {
    "sums": lambda values: f"{sum(map(_to_number, values)):g}",
    "minima": lambda values: min(values, key=_sort_key),
    "maxima": lambda values: max(values, key=_sort_key),
}
# The cells of a record by name; the text of what is no record; or None for a line without one.
Record = dict[str, str] | str | None


def read_record_rows(path: Path, schema: TableSchema, records: Mapping[str, Any]) -> Iterator[RowPair]:
    """Yield (accepted rows, quarantined rows) as read_raw_table does; `line` counts lines, or records of JSON."""
    blocks = _format_records(path, records, schema)
    line = pl.col("line") - 1
    for accepted, quarantined in read_raw_table(path, schema, blocks):
        yield accepted.with_columns(line), quarantined.with_columns(line)


def read_record_texts(path: Path, schema: TableSchema, numbers: set[int], records: Mapping[str, Any]) -> dict[int, str]:
    """Map each of these numbers to the cells of its record, as the quarantine shows them: Reader.texts."""
    blocks = _format_records(path, records, schema)
    lines = itertools.chain.from_iterable(block.decode().split("\n")[:-1] for block in blocks)
    return {number: line[:MAX_TEXT_SHOWN] for number, line in enumerate(lines) if number in numbers}


def read_first_records(path: Path, count: int) -> tuple[dict[str, Any], pl.DataFrame]:
    """Return how to read a file of JSON (`records`), and its first records with all values of them.

    A column has the last key of its name if no other column has it; `columns` has the whole name.
    """
    text = read_whole(path).decode(errors="replace")
    key = find_list_key(text)
    rows, last_keys = [], dict[str, str]()
    for record in itertools.islice(read_nested_records(path, text, key), count):
        if isinstance(record, dict):
            rows.append(defaultdict[str, list[str]](list))
            _collect_values(record, "", None, rows[-1], last_keys)
    names = list(dict.fromkeys(name for row in rows for name in row))[:MAX_COLUMNS]
    keys = [last_keys[name] for name in names]
    short_names = {name: last if keys.count(last) == 1 else name for name, last in zip(names, keys, strict=True)}
    columns = {short: [row[name][0] if name in row else None for row in rows] for name, short in short_names.items()}
    records = ({"json": key} if key else {}) | {"columns": {short: name for name, short in short_names.items()}}
    return records, pl.DataFrame(columns, dict.fromkeys(columns, pl.String))


def _format_records(path: Path, records: Mapping[str, Any], schema: TableSchema) -> Iterator[bytes]:
    """Yield blocks of text with a line per record, the names first; a line without a record leaves a blank line."""
    columns = records.get("columns", {})
    names = [column.name for column in schema.columns if not column.optional or column.name in columns]
    expressions = [_make_expression(columns.get(name, name)) for name in names]
    needed = sorted({root for expression in expressions for root in expression.meta.root_names()})
    yield DELIMITER.join(names).encode() + b"\n"
    all_records = _read_records(path, records, needed)
    while batch := list(itertools.islice(all_records, ROWS)):
        cells = [record for record in batch if isinstance(record, dict)]
        frame = pl.DataFrame(
            {name: [record.get(name) for record in cells] for name in needed}, dict.fromkeys(needed, pl.String)
        )
        try:
            texts = frame.select(
                pl.concat_str(map(_format_cell, expressions), separator=DELIMITER).alias("line")
            ).to_series()
        except pl.exceptions.PolarsError as error:
            raise _column_error(str(error)) from None
        rows = iter(texts)
        lines = (next(rows) if isinstance(record, dict) else record or "" for record in batch)
        yield "".join(f"{line}\n" for line in lines).encode(errors="replace")


def _make_expression(text: str) -> pl.Expr:
    if _PLAIN_NAME.fullmatch(text):
        return pl.col(text)
    try:
        return pl.sql_expr(text)
    except pl.exceptions.PolarsError as error:
        raise _column_error(f"{text!r}: {error}") from None


def _column_error(problem: str) -> StudyError:
    return StudyError(f"records.columns: {problem.splitlines()[0]}. Expected names of the file, or SQL of them.")


def _format_cell(expression: pl.Expr) -> pl.Expr:
    text = expression.cast(pl.String).str.replace_all(r"\s+", " ").str.strip_chars()
    return text.str.replace_all(DELIMITER, BAR, literal=True).fill_null("")


def _read_records(path: Path, records: Mapping[str, Any], needed: Collection[str]) -> Iterator[Record]:
    if "line" in records:
        return _read_lines(path, records)
    with closing(read_unpacked(path)) as chunks:
        is_json = next(chunks).removeprefix(BYTE_ORDER_MARK).lstrip().startswith((b"{", b"["))
    if not is_json:
        return _read_table(path)
    return _read_json(path, read_whole(path).decode(errors="replace"), records, needed)


def _clean_name(name: str) -> str:
    return re.sub(r"\W", "_", name)


# JSON ---------------------------------------------------------------------------------------------------


def _read_json(path: Path, text: str, records: Mapping[str, Any], needed: Collection[str] | None) -> Iterator[Record]:
    """Yield the values with the needed names of each record; with all names if needed is None."""
    reductions = {name: key for key in _REDUCTIONS for name in records.get(key, ())}
    for record in read_nested_records(path, text, records.get("json", "")):
        if not isinstance(record, dict):
            yield json.dumps(record)[:MAX_TEXT_SHOWN].replace(DELIMITER, BAR)
            continue
        values: dict[str, list[str]] = defaultdict(list)
        texts: dict[str, list[str]] = defaultdict(list)
        _collect_values(record, "", needed, values, texts)
        cells = {name: ",".join(parts) for name, parts in texts.items()}
        for name, parts in values.items():
            cells[name] = _REDUCTIONS[reductions[name]](parts) if name in reductions else parts[0]
        yield cells


def _collect_values(value: Any, name: str, needed: Collection[str] | None, values: dict, texts: dict) -> None:
    """Add the values within `value` by their names, and its text if it is no single value.

    needed: the names to add. None: all, and `texts` gets the last key of each name.
    """
    if needed is not None and not any(needed_name.startswith(name) for needed_name in needed):
        return
    if isinstance(value, dict) and "set" in value and "number" in value:  # Slurm
        value = value["number"] if value["set"] and not value.get("infinite") else None
    if isinstance(value, dict):
        if needed is not None and name in needed:
            texts[name] += [f"{key}={part}" for key, part in value.items() if not isinstance(part, dict | list)]
        _collect_items(value, name, needed, values, texts)
    elif isinstance(value, list):
        words = [_describe_item(item) for item in value]
        if needed is not None:
            texts[name] += filter(None, words)
        elif value and not any(isinstance(item, dict | list) for item in value):
            values[name].append(",".join(words))
        for item, word in zip(value, words, strict=True):
            if isinstance(item, dict):
                named_amount = dict([word.split("=", 1)]) if word else {}
                _collect_items(named_amount | item, name, needed, values, texts)
    elif value is not None and (needed is None or name in needed):
        values[name].append(str(value).lower() if isinstance(value, bool) else str(value))


def _collect_items(item: dict, name: str, needed: Collection[str] | None, values: dict, texts: dict) -> None:
    for key, part in item.items():
        item_name = f"{name}_{_clean_name(key)}" if name else _clean_name(key)
        if needed is None:
            texts[item_name] = _clean_name(key)
        _collect_values(part, item_name, needed, values, texts)


def _describe_item(item: Any) -> str:
    """Return an item of a list as a word; gres/gpu=2 of an object with a name and an amount, empty for any other."""
    if not isinstance(item, dict):
        return "" if item is None else str(item)
    name = "/".join(str(item[key]) for key in _NAME_KEYS if item.get(key))
    amount = next((item[key] for key in _VALUE_KEYS if key in item), None)
    return f"{name}={amount}" if name and amount is not None else ""


def _to_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _sort_key(text: str) -> tuple[float, str]:
    return _to_number(text), text


# Lines --------------------------------------------------------------------------------------------------


def _read_lines(path: Path, records: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the named parts of each line with a record; a line that nothing in the entry expects is a text."""
    line_form, known_form = re.compile(records["line"]), re.compile(records.get("other", r"\s*$"))
    head_form, cell_form, pair_form = (
        re.compile(records[key]) if key in records else None for key in ("head", "cells", "pairs")
    )
    head: dict[str, str] = {}
    for line in _read_text_lines(path):
        if match := line_form.match(line):
            cells = head | {name: text for name, text in match.groupdict().items() if text}
            if cell_form:
                cells |= _name_fields(cell_form.findall(line), records["fields"])
            if pair_form:
                cells |= {_clean_name(name): text.strip('"') for name, text in pair_form.findall(line)}
            yield cells
        else:
            if head_form and (match := head_form.match(line)):
                head[_clean_name(match[1])] = match[2]
            yield None if known_form.match(line) or not line.strip() else line.replace(DELIMITER, BAR)


def _read_text_lines(path: Path) -> Iterator[str]:
    for number, block in enumerate(read_line_blocks(path)):
        yield from (block if number else block.removeprefix(BYTE_ORDER_MARK)).decode(errors="replace").split("\n")[:-1]


def _name_fields(cells: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Name the fields of a line; a name that ends in * takes as many fields as the field before it says."""
    fields: dict[str, str] = {}
    rest = iter(cells)
    previous = "0"
    for name in names:
        if name.endswith("*"):
            fields[name[:-1]] = " ".join(itertools.islice(rest, int(_to_number(previous))))
        elif cell := next(rest, "").strip('"'):
            fields[name] = previous = cell
    return fields


def _read_table(path: Path) -> Iterator[Record]:
    """Yield the cells of a CSV file, or one with tabs, as database clients write it; NULL is blank."""
    lines = _read_text_lines(path)
    header = next(lines)
    delimiter = max(DELIMITERS, key=header.count)
    names = [_clean_name(name.strip()) for name in next(csv.reader([header], delimiter=delimiter))]
    rows = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    yield None
    last_line = 0
    for row in rows:
        yield from itertools.repeat(None, rows.line_num - last_line - 1)
        last_line = rows.line_num
        if len(row) == len(names):
            yield {name: cell for name, cell in zip(names, row, strict=True) if cell not in ("", "NULL", r"\N")}
        else:
            yield " ".join(row).replace(DELIMITER, BAR) or None
