"""The first rows of an unknown table, as text, with the lines on which they stand."""

import csv
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl
from polars import selectors

from ttf.engine.checkout import CHECKOUT
from ttf.engine.storage.on_disk import scan_parquet
from ttf.raw.headers import BYTE_ORDER_MARK, DELIMITERS, parse_header
from ttf.raw.raw_tables import MAX_FIELD_BYTES
from ttf.raw.record_files import read_first_records
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.recognition.first_lines import LONGEST_NAME, read_first_bytes
from ttf.study.recognition.refusals import SAMPLE_BYTES

TERMS = load_yaml(CHECKOUT / "config" / "column_names.yaml")
BLANK_WORDS = TERMS["blank"].split()
MOST_BYTES, MOST_ROWS = SAMPLE_BYTES, 20_000


class Sample(NamedTuple):
    """The first rows of a table as text.

    rows: blanks and words for no value are null. words: the same, with words for no value. lines: the line of each row.
    options: how to read the file. notes: name of a column, or a line, that is left out -> why.
    """

    rows: pl.DataFrame
    words: pl.DataFrame
    lines: list[int]
    options: dict[str, Any]
    notes: dict[str, str]

    def describe_cells(self, name: str, is_shown: pl.Series) -> str:
        """Return the first of some cells of a column with their lines: 'soon' in line 3."""
        cells = zip(self.words[name], self.lines, is_shown, strict=True)
        shown = [f"{cell[:30]!r} in line {line}" for cell, line, is_shown in cells if is_shown]
        return ", ".join(shown[:3]) + (f" and {len(shown) - 3:,} more" if len(shown) > 3 else "")


def read_sample(path: Path) -> Sample | None:
    """Return the first rows of a table; None if it has fewer than two columns, no row, or cannot be read."""
    is_parquet = path.name.lower().endswith(".parquet")
    try:
        read = _read_first_json_records if is_json(path) else _read_first_text_rows
        sample = _read_first_parquet_rows(path) if is_parquet else read(path)
    except (Exception, pl.exceptions.PanicException):  # whatever libraries raise for a file that is no such table
        return None
    names = [name for name in sample.rows.columns if _is_usable_name(name)]
    if sample.rows.width < 2 or not sample.rows.height:
        return None
    words = sample.rows.select(pl.col(name).str.strip_chars().replace("", None) for name in names)
    values = words.select(pl.when(~pl.all().str.to_lowercase().is_in(BLANK_WORDS)).then(pl.all()))
    return sample._replace(rows=values, words=words)


def is_json(path: Path) -> bool:
    """Return whether the file starts as JSON does."""
    return (read_first_bytes(str(path)) or b"").removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


def split_header(head: bytes) -> tuple[list[str], dict[str, Any]]:
    """Return the names in the header row of a text, and its options: delimiter and quotes."""
    header = head.partition(b"\n")[0]
    delimiter = max(DELIMITERS, key=lambda mark: header.count(mark.encode()))
    quoted = b'"' in head
    options = ({"delimiter": delimiter} if delimiter != "," else {}) | ({"quoted": True} if quoted else {})
    return parse_header(header, delimiter, quoted), options


def split_rows(head: bytes, options: dict[str, Any]) -> tuple[list[list[str]], list[int], dict[str, str]]:
    """Return the fields of the rows below the header, the line on which each starts, and notes on lines left out."""
    lines = head.splitlines()[1:]
    long_lines = [number for number, line in enumerate(lines, 2) if len(line) > MAX_FIELD_BYTES][:3]
    text = f"has more than {MAX_FIELD_BYTES:,} characters, so its row is excluded"
    lines = lines if len(head) < MOST_BYTES else lines[:-1]  # the last line may be cut off
    texts = (line.decode("utf-8", "replace") if len(line) <= MAX_FIELD_BYTES else "" for line in lines)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if options.get("quoted") else csv.QUOTE_NONE
    reader = csv.reader(texts, delimiter=options.get("delimiter", ","), quoting=quoting)
    rows, numbers, first_line = list[list[str]](), list[int](), 2
    for row in reader:
        if row and len(rows) < MOST_ROWS:
            rows.append(row)
            numbers.append(first_line)
        first_line = reader.line_num + 2
    return rows, numbers, {f"line {number}": text for number in long_lines}


def _read_first_parquet_rows(path: Path) -> Sample:
    columns = selectors.all() - selectors.nested() - selectors.binary() - selectors.duration()
    rows = scan_parquet(path).head(MOST_ROWS).select(columns)
    rows = rows.with_columns(selectors.datetime(time_zone="*").dt.convert_time_zone("UTC"))
    text_rows = rows.select(pl.all().cast(pl.String)).collect()
    return Sample(text_rows, text_rows, [*range(1, text_rows.height + 1)], {}, {})


def _read_first_json_records(path: Path) -> Sample:
    records, rows = read_first_records(path, MOST_ROWS)
    return Sample(rows, rows, [*range(1, rows.height + 1)], {"records": records}, {})


def _read_first_text_rows(path: Path) -> Sample:
    head = read_first_bytes(str(path), MOST_BYTES) or b""
    names, options = split_header(head)
    rows, numbers, notes = split_rows(head, options)
    lines = [number for row, number in zip(rows, numbers, strict=True) if len(row) == len(names)]
    columns = zip(names, zip(*(row for row in rows if len(row) == len(names)), strict=True), strict=True)
    frame = pl.DataFrame({name: values for name, values in columns if names.count(name) == 1})
    notes |= {name: "two columns have this name; rename one of them" for name in names if names.count(name) > 1}
    return Sample(frame, frame, lines, options, notes)


def _is_usable_name(name: str) -> bool:
    return name.isprintable() and 0 < len(name) <= LONGEST_NAME and name not in ("line", " ")
