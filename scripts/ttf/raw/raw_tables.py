"""Check raw tables against their schema: every row is typed and accepted, or quarantined with the rule it breaks.

A table's schema (`schema` in scripts/ttf/formats) names the columns in file order, their types and the rules of a
row. A fast method reads a block without errors at once, its numbers as numbers; nearly all blocks are such. A careful
method reads any other block column by column as text, if need be line by line. Both methods give the same rows.
"""

import csv
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import read_csv, scan_csv
from ttf.raw.headers import BYTE_ORDER_MARK, fit_header, parse_header
from ttf.raw.plausible_times import EARLIEST_S, LATEST_S, is_plausible_time
from ttf.raw.raw_files import may_have_longer_line, read_line_blocks

QUARANTINED_SCHEMA = {"table": pl.String, "line": pl.Int64} | dict.fromkeys(("reason", "column", "text"), pl.String)
MAX_TEXT_SHOWN = 500
MAX_TEXT_IN_MESSAGE = 160
MAX_LINES_SHOWN = 5
BREAKS_RULE = "breaks a rule"
# Default maximum of a stored column. It is far beyond any trace, catches a time in milliseconds, and keeps the sum of a
# column within 64 bits.
MAX_SECOND = 10**11
MAX_NUMBER = 10**9
# Several times the longest list of nodes of any cluster.
MAX_FIELD_BYTES, TOO_LONG = 1 << 17, "field_too_long"
CLOCK = r"^\s*(?:([0-9]{1,6})-)?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2})(?:\.[0-9]+)?\s*$"
# Unit of a duration written as text -> (its words, its seconds).
_DURATION_WORDS = {
    "w(?:ks?|eeks?)?": 604_800,
    "d(?:ays?)?": 86_400,
    "h(?:rs?|ours?)?": 3600,
    "m(?:ins?|inutes?)?": 60,
    "s(?:ecs?|econds?)?": 1,
    "m(?:s|secs?|illis|illiseconds?)": 1e-3,
    "(?:us|µs|μs|microseconds?)": 1e-6,
}
_AMOUNT = r"[0-9]+(?:\.[0-9]+)?"
_DURATION = rf"^(?:{_AMOUNT} *(?:{'|'.join(_DURATION_WORDS)})(?: *,? *| and ))+$"
_DAYS_AND_CLOCK = r"^(?:([0-9]{1,6}) *(?:-|days?,? +))?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2}(?:\.[0-9]+)?)$"
# Decimal mark -> characters that may group the digits before it.
_GROUP_MARKS = {",": ".", ".": ","}
_OTHER_GROUP_MARKS = " '_\u00a0\u202f\u2019"
# The format of times that are ISO 8601, or numbers since 1970 of a unit that their size shows.
AUTOMATIC = "automatic"
_ISO = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?"
    r"(?: ?(Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)(?: UTC)?)?)?$"
)
# 0000-00-00, as databases write a date that is missing.
_ZERO_DATE = r"^\s*0{1,4}[-/.]0?0[-/.]0{1,4}\b"
# Smallest number since 1970 -> parts of a second that it counts. A smaller number counts from an unknown origin.
_EPOCH_UNITS = {10**8: 1, MAX_SECOND: 10**3, 10**14: 10**6, 10**17: 10**9}
# A row with line breaks inside quotes has at most this many lines.
MAX_ROW_LINES = 1_000
# Blank lines are skipped, but a file of almost nothing else is no table.
MAX_BLANK_LINES = 1_000_000

DataTypeClass: TypeAlias = type[pl.DataType]
# (reason code, name of the column in the file, condition that breaks the rule; it is never null).
Rule: TypeAlias = tuple[str, str, pl.Expr]
# Accepted rows (TableSchema.dtypes) and quarantined rows (QUARANTINED_SCHEMA).
RowPair: TypeAlias = tuple[pl.DataFrame, pl.DataFrame]

# From this size on, picking out the special bytes of a block saves time.
_LARGE_BLOCK = 1 << 20
# Replaces the delimiter once the quotes are removed. No table of text holds this character.
_UNQUOTED_DELIMITER = b"\x1f"


@dataclass(frozen=True)
class Column:
    """A column of a raw table; `name` is its name in the file, `as_` its name in the typed table.

    also: alternative names in the file; the first one in the header counts. optional: the header may lack the column,
    which is then blank. blank: words for a missing value. pattern: a regular expression for the whole text. kilo: the
    factor of the suffix K of a number. A time is written in one of `formats` (strptime's, `epoch` or AUTOMATIC) and in
    `zone`. It is stored as whole seconds since 1970-01-01 UTC; an ambiguous hour is read as the earlier one. A clock is
    a duration written as [days-][hours:]minutes:seconds and stored as whole seconds; a duration may name its units, as
    in 2.1min. decimal: the decimal mark of numbers whose digits may be grouped, as in 1.234,5. digest: a text is stored
    as a 64-bit hash.
    """

    name: str
    type: str
    as_: str
    also: tuple[str, ...] = ()
    required: bool = False
    optional: bool = False
    keep: bool = True
    values: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()
    pattern: str | None = None
    formats: tuple[str, ...] = ()
    zone: str = "UTC"
    scale: int | float = 1
    kilo: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    zero_is_blank: bool = False
    decimal: str = ""
    digest: bool = False
    longest: int = MAX_FIELD_BYTES

    @property
    def text_name(self) -> str:
        """Name of the column in a frame of text, where `line` is the line number."""
        return "the file's line" if self.name == "line" else self.name

    @property
    def dtype(self) -> DataTypeClass:
        if self.digest:
            return pl.UInt64
        return pl.String if self.type == "text" else pl.Int64

    @property
    def is_whole(self) -> bool:
        """Whether a fraction breaks a rule rather than being rounded."""
        return self.type in ("seconds", "count", "time", "clock")

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """Smallest and largest value allowed, in the file's unit; no default maximum if the column is not stored."""
        if self.type == "text":
            return None, None
        largest = (MAX_NUMBER if self.type in ("count", "number", "duration") else MAX_SECOND) if self.keep else None
        smallest = 0 if self.is_whole else None
        if self.type == "time":
            smallest, largest = EARLIEST_S, LATEST_S
        return (
            smallest if self.minimum is None else self.minimum,
            largest if self.maximum is None else self.maximum,
        )

    @property
    def is_plain_number(self) -> bool:
        """Whether every text is a number or blank, without words for a missing value, format or unit."""
        is_number = self.type not in ("text", "time", "clock", "duration")
        return is_number and set(self.blank) <= {""} and not self.kilo and not self.decimal

    @property
    def is_read(self) -> bool:
        """Whether the column is stored or checked, so that it has to be parsed."""
        return self.keep or self.required or self.type != "text" or bool(self.values or self.pattern)


@dataclass(frozen=True)
class TableSchema:
    """A raw table: its columns in file order and the rules between columns, rows and tables.

    quoted: double quotes may enclose a field, which may then hold the delimiter, doubled quotes and line breaks.
    disjoint: the columns of a key, of a start and of an end: spans of one key do not overlap; a blank end is open.
    may_be_empty: the table may have no rows, as when nothing happened. may_repeat_columns: the header may name a column
    twice; both have the same values. lines: the column with the number of lines of the file that a row stands for.
    runs: the rows are jobs or their runs, so that an implausible time is blank (`ttf.raw.implausible_cells`).
    """

    name: str
    header: bool
    columns: tuple[Column, ...]
    delimiter: str = ","
    quoted: bool = False
    key: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    disjoint: tuple[str, ...] = ()
    belongs_to: tuple[str, tuple[str, ...]] | None = None
    may_be_empty: bool = False
    may_repeat_columns: bool = False
    lines: str = ""
    runs: bool = False

    @property
    def dtypes(self) -> dict[str, DataTypeClass]:
        """Types of the columns of a typed row; `line` is its line number in the raw file, from 1."""
        return {"line": pl.Int64, **{column.as_: column.dtype for column in self.columns if column.keep}}


@dataclass(frozen=True)
class Reader:
    """The functions that read a raw table.

    rows: yields the rows of one file in pairs.
    texts: returns the text of the rows with these numbers as the quarantine shows it, from a second pass.
    """

    rows: Callable[[Path, TableSchema], Iterator[RowPair]]
    texts: Callable[[Path, TableSchema, set[int]], dict[int, str]]


def freeze_lists(options: Mapping[str, Any]) -> dict[str, Any]:
    """Make tuples of the lists among the values."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}


def table_schemas(document: dict) -> dict[str, TableSchema]:
    """Build the schemas of a format's raw tables from its YAML document."""
    schemas = {}
    for name, table in document["tables"].items():
        columns = tuple(
            Column(
                **freeze_lists({key: value for key, value in column.items() if key != "as"}),
                as_=column.get("as", column["name"]),
            )
            for column in table["columns"]
        )
        options = {"header": document.get("header", True)} | freeze_lists(table) | {"columns": columns}
        if owner := table.get("belongs_to"):
            options["belongs_to"] = owner["table"], tuple(owner["by"])
        schemas[name] = TableSchema(name, **options)
    return schemas


def read_raw_table(path: Path, schema: TableSchema, blocks: Iterator[bytes] | None = None) -> Iterator[RowPair]:
    """Yield (accepted rows, quarantined rows) block by block, in file order.

    blocks: the text of the file with one line per row; default: the file itself.
    Accepted rows have the columns of `schema.dtypes`, quarantined rows those of QUARANTINED_SCHEMA. Every row of the
    file is in one of the two; blank lines are no rows.
    Raises StudyError if the file cannot be the table (see read_line_blocks), or if its header row differs.
    """
    next_line, rows = 1, 0
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        pending: deque[Future] = deque()

        def next_result() -> RowPair:
            nonlocal next_line, rows
            accepted, quarantined, lines = pending.popleft().result()
            first, next_line, rows = next_line, next_line + lines, rows + accepted.height + quarantined.height
            # Joined lines leave blank ones behind.
            if next_line - rows > max(MAX_BLANK_LINES, 10 * rows):
                raise StudyError(
                    f"{path}: more than {MAX_BLANK_LINES:,} blank lines and {rows:,} rows up to line "
                    f"{next_line - 1:,}: not a table. Check that this file is the right table."
                )
            return accepted.with_columns(pl.col("line") + first), quarantined.with_columns(pl.col("line") + first)

        blocks = blocks or read_line_blocks(path)
        blocks = _join_quoted_lines(blocks, schema.delimiter) if schema.quoted else blocks
        for block, columns, has_header in _strip_header_rows(path, schema, blocks):
            next_line += has_header
            pending.append(pool.submit(read_block, block, columns, schema))
            # Read one block more than there are threads: no thread waits for the file, and memory stays bounded.
            if len(pending) > pl.thread_pool_size():
                yield next_result()
        while pending:
            yield next_result()


def _join_quoted_lines(blocks: Iterator[bytes], delimiter: str) -> Iterator[bytes]:
    """Yield the blocks with a row per line: a line break inside quotes becomes a space.

    The lines that it saves follow as blank ones, so that all lines keep their numbers. A quote that does not make a row
    of the right number of fields stays as it is.
    """
    fields, rest = 0, b""
    for block in itertools.chain(blocks, [b""]):
        is_last, block = not block, rest + block
        fields = fields or len(parse_header(block.partition(b"\n")[0], delimiter, quoted=True))
        lines = block.split(b"\n")[:-1] if b'"' in block else []
        # A line that opens or closes a quoted field has an odd number of quotes.
        odd_lines = [index for index, line in enumerate(lines) if line.count(b'"') % 2]
        position, rest = 0, b""
        while position < len(odd_lines):
            first = odd_lines[position]
            last = odd_lines[position + 1] if position + 1 < len(odd_lines) else len(lines)
            if last == len(lines) and not is_last and last - first < MAX_ROW_LINES:
                lines, rest = lines[:first], b"".join(line + b"\n" for line in lines[first:])
                break
            row = b" ".join(lines[first : last + 1]) if last < min(len(lines), first + MAX_ROW_LINES) else b""
            is_row = is_utf8(row) and len(_unquote_fields(row, delimiter)) == fields
            if is_row:
                lines[first : last + 1] = [row, *[b""] * (last - first)]
            position += 1 + is_row
        text = b"".join(line + b"\n" for line in lines) if odd_lines else block
        if text:
            yield text


def _strip_header_rows(
    path: Path, schema: TableSchema, blocks: Iterator[bytes]
) -> Iterator[tuple[bytes, tuple[Column, ...], bool]]:
    """Yield each block without BOM and header row, the file's columns, and whether a header row was removed."""
    columns = None
    for block in blocks:
        has_header = False
        if columns is None:
            columns = schema.columns
            block = block.removeprefix(BYTE_ORDER_MARK)
            header, _, rest = block.partition(b"\n")
            # A user may have added a header row to a table that is published without one.
            has_header = schema.header or header.rstrip(b"\r") == _header_row(columns, schema.delimiter.encode())
            if schema.header:
                columns = match_header_columns(path, header, schema)
            block = rest if has_header else block
        yield block, columns, has_header


def read_block(
    block: bytes, columns: tuple[Column, ...], schema: TableSchema
) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Return the accepted and the quarantined rows of a block, with line numbers from 0, and its number of lines."""
    empty_quarantine = pl.DataFrame(schema=QUARANTINED_SCHEMA)
    if block.isspace():
        return pl.DataFrame(schema=schema.dtypes), empty_quarantine, block.count(b"\n")
    if (valid := read_valid_block(block, columns, schema)) is not None:
        return valid, empty_quarantine, valid.height
    numbers, text, delimiter, invalid_lines, lines = _split_valid_lines(block, columns, schema)
    frame = _parse_text(text, columns, delimiter).with_columns(line=numbers)
    accepted, failed = check_rows(frame, columns, schema)
    quarantined = pl.DataFrame(invalid_lines, schema=QUARANTINED_SCHEMA, orient="row")
    if failed.height:
        raw = text.split(b"\n")
        texts = [_text_start(raw[row], reason) for row, reason in failed.select("row", "reason").iter_rows()]
        failed = failed.with_columns(table=pl.lit(schema.name), text=pl.Series(texts))
        quarantined = pl.concat([quarantined, failed.select(*QUARANTINED_SCHEMA)]).sort("line")
    return accepted, quarantined, lines


def read_valid_block(block: bytes, columns: tuple[Column, ...], schema: TableSchema) -> pl.DataFrame | None:
    """Return the accepted rows of a block as read_block does, if all its lines are valid rows.

    None if a line is not a valid row, or if the fast method cannot tell.
    """
    delimiter = schema.delimiter.encode()
    marks = _special_bytes(block, delimiter)
    lines = _count_whole_rows(marks, delimiter, len(columns))
    # Polars skips blanks before a number; the careful method takes the text for no number.
    has_blanks = b" " in marks or b"\t" in marks
    types, views, checked_columns = _plan_fast_read(columns, schema, with_numbers=not has_blanks)
    is_in_doubt = (
        not lines
        or b"\r" in marks
        or may_have_longer_line(block, MAX_FIELD_BYTES)
        or (schema.quoted and b'"' in marks)
        or _looks_compressed(block)
        or not (marks.isascii() or is_utf8(block))
        # A header row has a word in a column of numbers. In a table without such columns, search for it.
        or (pl.Float64 not in types.values() and _has_header(block, columns, schema, delimiter))
    )
    if is_in_doubt:
        return None
    texts = scan_csv(block, has_header=False, schema=types, separator=schema.delimiter, quote_char=None)
    try:
        rows = texts.select(views).select(checked_columns).collect(engine="streaming")
    except (pl.exceptions.ComputeError, pl.exceptions.InvalidOperationError):  # not a number, or far too large
        return None
    if rows[BREAKS_RULE].any():
        return None
    return rows.drop(BREAKS_RULE).insert_column(0, pl.int_range(lines, dtype=pl.Int64, eager=True).alias("line"))


@lru_cache(maxsize=8)
def _plan_fast_read(
    columns: tuple[Column, ...], schema: TableSchema, with_numbers: bool
) -> tuple[dict[str, DataTypeClass], list[pl.Expr], list[pl.Expr]]:
    """Return the type of each column, the expressions of _views, and those of the stored columns and BREAKS_RULE."""
    read_columns = [column for column in columns if column.is_read]
    # A block without long lines has no text that is too long.
    rules = [rule for rule in _cell_and_time_rules(columns, schema) if rule[0] != TOO_LONG]
    numbers = [column for column in read_columns if with_numbers and column.is_plain_number]
    types: dict[str, DataTypeClass] = dict.fromkeys((column.text_name for column in columns), pl.String)
    types |= dict.fromkeys((column.text_name for column in numbers), pl.Float64)
    return types, _views(read_columns, numbers), [*_stored_columns(columns, schema), _breaks_a_rule(rules)]


def raw_lines(path: Path, _: TableSchema, numbers: set[int]) -> dict[int, str]:
    """Map each of these line numbers to the start of its line, from a second pass: Reader.texts of a table of lines."""
    text_by_line: dict[int, str] = {}
    pending_numbers = sorted(numbers, reverse=True)
    next_line = 1
    for block in read_line_blocks(path):
        if next_line == 1:
            block = block.removeprefix(BYTE_ORDER_MARK)
        first_line, next_line = next_line, next_line + block.count(b"\n")
        if pending_numbers and pending_numbers[-1] < next_line:
            lines = block.split(b"\n")
            while pending_numbers and pending_numbers[-1] < next_line:
                number = pending_numbers.pop()
                text_by_line[number] = _text_start(lines[number - first_line])
    return text_by_line


def apply_rules(
    rows: Iterator[RowPair],
    path: Path,
    schema: TableSchema,
    rules: Sequence[Rule],
    read_texts: Callable[[Path, TableSchema, set[int]], dict[int, str]] = raw_lines,
) -> Iterator[RowPair]:
    """Apply rules that no schema can express to the pairs of read_raw_table. read_texts: as Reader.texts.

    Rows that break one come in the last pair, because their text takes a second pass over the file.
    """
    failures = []
    for accepted, quarantined in rows:
        is_broken = accepted.select(_breaks_a_rule(rules)).to_series()
        if is_broken.any():
            failures += accepted.filter(is_broken).select("line", **_first_reason_and_column(rules)).rows()
            accepted = accepted.filter(~is_broken)
        yield accepted, quarantined
    if failures:
        texts = read_texts(path, schema, {line for line, _, _ in failures})
        failed_rows = [(schema.name, line, reason, column, texts.get(line)) for line, reason, column in failures]
        yield pl.DataFrame(schema=schema.dtypes), pl.DataFrame(failed_rows, schema=QUARANTINED_SCHEMA, orient="row")


# A plain table of lines.
LINES = Reader(read_raw_table, raw_lines)


def file_labels(paths: Sequence[Path]) -> list[str]:
    """Label the files of a table for the quarantine: by name, or by folder and name if names repeat."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [f"{path.parent.name}/{path.name}" for path in paths]


def first_line_numbers(rows: pl.DataFrame, files: int, max_lines: int = MAX_LINES_SHOWN) -> str:
    """List the first `max_lines` line numbers of rows: `3, 7`; if `files` is 2 or more: `3, 7 of a.csv; 2 of b.csv`."""
    first_rows = rows.select("file", "line").head(max_lines)
    if files < 2:
        return ", ".join(str(line) for line in first_rows["line"])
    return "; ".join(
        f"{', '.join(str(line) for line in file_rows['line'])} of {escape_text(file)}"
        for (file,), file_rows in first_rows.group_by("file", maintain_order=True)
    )


def escape_text(text: str) -> str:
    """Return the start of a raw text, escaped for a terminal: a trace is untrusted."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text[:MAX_TEXT_IN_MESSAGE]
    )


def _text_start(line: bytes, reason: str | None = None) -> str:
    """Return the start of a line as the quarantine shows it, after its length if the line is too long."""
    length = f"a row of {len(line):,} bytes: " if reason == TOO_LONG else ""
    return (length + line[: 4 * MAX_TEXT_SHOWN].decode("utf-8", errors="replace"))[:MAX_TEXT_SHOWN]


def match_header_columns(path: Path, header: bytes, schema: TableSchema) -> tuple[Column, ...]:
    """Return the columns in the order of the file's header; unknown columns are not read."""
    names = parse_header(header, schema.delimiter, schema.quoted)
    fit = fit_header(names, schema.columns, schema.may_repeat_columns)
    if not fit.is_valid:
        raise StudyError(
            f"{path}: line 1: the header row {fit.describe_problem(schema.delimiter)} Rename the columns, or check "
            "that this file is the right table."
        )
    column_by_name = {name: replace(column, name=name) for name, column in fit.column_by_name.items()}
    return tuple(
        column_by_name.get(
            "" if name in names[:index] else name, Column(name=label, type="text", as_=label, keep=False)
        )
        for index, name in enumerate(names)
        for label in [f"unknown column {index}"]
    )


def _split_valid_lines(
    block: bytes, columns: tuple[Column, ...], schema: TableSchema
) -> tuple[pl.Series, bytes, bytes, list[tuple], int]:
    """Separate the lines that are valid UTF-8 and have the right number of fields from the others.

    Returns their numbers (from 0), their text, its delimiter, the quarantined lines, and the number of lines in all.
    """
    delimiter = schema.delimiter.encode()
    lines = block.count(b"\n")
    fields = len(columns)
    has_header = _has_header(block, columns, schema, delimiter)
    has_quotes = schema.quoted and b'"' in block
    is_block_utf8 = is_utf8(block)
    if is_block_utf8 and not has_header and not has_quotes and _count_whole_rows(block, delimiter, fields) == lines:
        return pl.int_range(lines, dtype=pl.Int64, eager=True).alias("line"), block, delimiter, [], lines

    header = _header_row(columns, delimiter)
    good_lines, good_numbers, invalid_lines = [], [], []
    for number, line in enumerate(block.split(b"\n")[:-1]):
        if not line.strip():
            continue
        reason, values = None, line.split(delimiter, fields)
        if has_header and line == header:
            reason = "header_row"
        elif not is_block_utf8 and not is_utf8(line):
            reason = "not_utf8"
        elif has_quotes and b'"' in line:
            values = _unquote_fields(line, schema.delimiter)
        if not reason and len(values) != fields:
            # The csv module refuses a longer field.
            reason = TOO_LONG if not values and len(line) > csv.field_size_limit() else "wrong_column_count"
        if reason:
            invalid_lines.append((schema.name, number, reason, None, _text_start(line, reason)))
        else:
            good_lines.append(
                _UNQUOTED_DELIMITER.join(value.replace(_UNQUOTED_DELIMITER, b" ") for value in values)
                if has_quotes
                else line
            )
            good_numbers.append(number)
    text = b"\n".join(good_lines) + b"\n" if good_lines else b""
    delimiter = _UNQUOTED_DELIMITER if has_quotes else delimiter
    return pl.Series("line", good_numbers, dtype=pl.Int64), text, delimiter, invalid_lines, lines


def _unquote_fields(line: bytes, delimiter: str) -> list[bytes]:
    """Return the fields of a UTF-8 line without their quotes; no fields if a quote is not closed."""
    try:
        records = list(csv.reader([line.decode("utf-8")], delimiter=delimiter, strict=True))
    except csv.Error:
        return []
    return [value.replace("\x1f", " ").replace("\n", " ").encode() for value in records[0]] if len(records) == 1 else []


def _special_bytes(block: bytes, delimiter: bytes) -> bytes:
    """Return the bytes of a block with a special meaning, in their order, and perhaps others.

    These are the delimiter, all bytes up to the comma (line ends, blanks, quotes), and all that are not ASCII.
    """
    if len(block) < _LARGE_BLOCK:
        return block
    import numpy as np  # takes a tenth of a second: too long for small tables

    text = pl.Series(np.frombuffer(block, np.int8))  # negative: not ASCII
    is_mark = text <= ord(",")
    if delimiter > b",":
        is_mark |= text == ord(delimiter)
    return text.filter(is_mark).to_numpy().tobytes()


def _count_whole_rows(marks: bytes, delimiter: bytes, fields: int) -> int:
    """Count the lines if each has this number of fields, else return 0."""
    separators = marks.translate(None, bytes({*range(256)} - {*delimiter, *b"\n"}))
    row = delimiter * (fields - 1) + b"\n"
    lines = len(separators) // len(row)
    return lines if separators == row * lines else 0


def _header_row(columns: tuple[Column, ...], delimiter: bytes) -> bytes:
    return delimiter.join(column.name.encode() for column in columns)


def _has_header(block: bytes, columns: tuple[Column, ...], schema: TableSchema, delimiter: bytes) -> bool:
    """Return whether a block may have a header row, in a table that is published without one."""
    return not schema.header and _header_row(columns, delimiter) + b"\n" in block


def _looks_compressed(text: bytes) -> bool:
    """Return whether Polars may take a text for a compressed file, as it does if the text begins with "x^"."""
    return text[:1] == b"x"


def is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _parse_text(text: bytes, columns: tuple[Column, ...], delimiter: bytes) -> pl.DataFrame:
    """Return the columns as text; a blank field is null, and a carriage return at its end is dropped."""
    read_indices = [index for index, column in enumerate(columns) if column.is_read]
    schema = {column.text_name: pl.String for column in columns}
    if not text:
        return pl.DataFrame(schema={columns[index].text_name: pl.String for index in read_indices})
    is_mistakable = _looks_compressed(text)
    if is_mistakable:  # prepend a row of blank fields
        text = delimiter * (len(columns) - 1) + b"\n" + text
    frame = read_csv(
        text,
        has_header=False,
        schema=schema,
        columns=read_indices,
        separator=delimiter.decode(),
        quote_char=None,
        raise_if_empty=False,
    )
    return frame.slice(1) if is_mistakable else frame


def check_rows(
    frame: pl.DataFrame, columns: tuple[Column, ...], schema: TableSchema
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows of text into typed rows that satisfy every rule, and failed rows with the first rule each one breaks.

    `frame` has `line` and the columns by their Column.text_name. The typed rows have the columns of `schema.dtypes`,
    the failed rows have row (the index in the frame), line, reason, column.
    """
    views = frame.select("line", *_views([column for column in columns if column.is_read]))
    rules = _cell_and_time_rules(columns, schema)
    stored = _stored_columns(columns, schema)
    is_failed = views.select(_breaks_a_rule(rules)).to_series()
    first_rule = _first_reason_and_column(rules)
    if not is_failed.any():
        return views.select("line", *stored), views.clear().select(pl.lit(0).alias("row"), "line", **first_rule)
    failed = views.with_row_index("row").filter(is_failed).select("row", "line", **first_rule)
    return views.filter(~is_failed).select("line", *stored), failed


def _views(columns: Sequence[Column], numbers: Sequence[Column] = ()) -> list[pl.Expr]:
    """Return expressions of each column's text (`raw NAME`) and, unless it is text, its number (`parsed NAME`).

    numbers: the columns that are read as numbers.
    """
    return [
        *((pl.col(c.text_name) if c in numbers else _blank_to_null(c)).alias(f"raw {c.as_}") for c in columns),
        *(
            (pl.col(c.text_name) if c in numbers else parse_number(c)).alias(f"parsed {c.as_}")
            for c in columns
            if c.type != "text"
        ),
    ]


def _stored_columns(columns: tuple[Column, ...], schema: TableSchema) -> list[pl.Expr]:
    """Return an expression of each stored column of the schema; it is null if the file lacks the column."""
    file_columns = {column.as_ for column in columns}
    return [
        _stored_value(column) if column.as_ in file_columns else pl.lit(None, column.dtype).alias(column.as_)
        for column in schema.columns
        if column.keep
    ]


def _cell_and_time_rules(columns: tuple[Column, ...], schema: TableSchema) -> list[Rule]:
    return [rule for column in columns if column.is_read for rule in _cell_rules(column)] + _time_rules(columns, schema)


def _breaks_a_rule(rules: Sequence[Rule]) -> pl.Expr:
    return pl.any_horizontal(pl.lit(False), *(condition for _, _, condition in rules)).alias(BREAKS_RULE)


def _first_reason_and_column(rules: Sequence[Rule]) -> dict[str, pl.Expr]:
    return {
        "reason": pl.coalesce(pl.when(condition).then(pl.lit(code)) for code, _, condition in rules),
        "column": pl.coalesce(pl.when(condition).then(pl.lit(name)) for _, name, condition in rules),
    }


def _blank_to_null(column: Column) -> pl.Expr:
    raw = pl.col(column.text_name)
    return pl.when(~raw.str.strip_chars().is_in(column.blank)).then(raw) if column.blank else raw


def parse_number(column: Column) -> pl.Expr:
    """Parse a text as a number, or a time as seconds since 1970-01-01 UTC; null if it is neither."""
    raw = _blank_to_null(column)
    if column.type == "clock":
        return _parse_duration_s(raw)
    if column.type == "duration":
        return _parse_duration_text(raw.str.strip_chars().str.to_lowercase())
    if column.decimal:
        return _parse_grouped_number(raw.str.strip_chars(), column.decimal)
    if column.kilo:
        number = raw.str.strip_suffix("K").cast(pl.Float64, strict=False)
        return pl.when(raw.str.ends_with("K")).then((number * column.kilo).round()).otherwise(number)
    if column.type != "time":
        return raw.cast(pl.Float64, strict=False)
    moments = (parse_time(raw, format_, column.zone) for format_ in column.formats)
    return pl.coalesce(*moments, pl.when(raw.str.contains(_ZERO_DATE)).then(0.0))


def _parse_duration_s(raw: pl.Expr) -> pl.Expr:
    """Parse [days-][hours:]minutes:seconds as seconds, without fractions; null for anything else."""
    parts = raw.str.extract_groups(CLOCK)
    days, hours, minutes, seconds = (parts.struct.field(str(n)).cast(pl.Float64, strict=False) for n in range(1, 5))
    return days.fill_null(0) * 86400 + hours.fill_null(0) * 3600 + minutes * 60 + seconds


def _parse_duration_text(text: pl.Expr) -> pl.Expr:
    """Parse 7.6s, 2.1min, 1h 3m, 2 days, 1-02:03:04, 0:00:06.155 or pt1h2m as seconds; null for anything else."""
    parts = text.str.extract_groups(_DAYS_AND_CLOCK)
    days, hours, minutes, seconds = (parts.struct.field(str(n)).cast(pl.Float64, strict=False) for n in range(1, 5))
    clock_s = days.fill_null(0) * 86_400 + hours.fill_null(0) * 3600 + minutes * 60 + seconds
    # ISO 8601 without its letters p and t.
    text = text.str.replace("^p", "").str.replace(r"^(.*[wd])?t([0-9])", "${1} ${2}").str.strip_chars_start()
    text = text.str.replace_all("([0-9]),([0-9])", "${1}.${2}")
    amounts = (
        text.str.extract(rf"({_AMOUNT}) *{words}(?:[^a-z]|$)").cast(pl.Float64) * seconds
        for words, seconds in _DURATION_WORDS.items()
    )
    return pl.coalesce(clock_s, pl.when(text.str.contains(_DURATION)).then(pl.sum_horizontal(amounts)))


def _parse_grouped_number(text: pl.Expr, decimal: str) -> pl.Expr:
    """Parse 1.234,5 (decimal comma) or 1,234.5 (decimal point) as a number; null unless groups have three digits."""
    marks = f"[{_GROUP_MARKS[decimal]}{_OTHER_GROUP_MARKS}]"
    number = rf"^[+-]?(?:[0-9]+|[0-9]{{1,3}}(?:{marks}[0-9]{{3}})+)(?:[{decimal}][0-9]+)?(?:[eE][+-]?[0-9]+)?$"
    plain = text.str.replace_all(marks, "").str.replace(decimal, ".", literal=True)
    return pl.when(text.str.contains(number)).then(plain.cast(pl.Float64, strict=False))


def parse_time(raw: pl.Expr, format_: str, zone: str) -> pl.Expr:
    """Parse a text as seconds since 1970-01-01 UTC, by one of the formats of a Column; null if it is none."""
    if format_ == "epoch":
        return raw.cast(pl.Float64, strict=False)
    if format_ == AUTOMATIC:
        return _parse_automatically(raw.str.strip_chars(), zone)
    if format_.endswith(("%z", "%#z")):  # the text names its own offset
        moment = raw.str.to_datetime(format_, strict=False, time_unit="us", time_zone="UTC")
    else:
        moment = raw.str.to_datetime(format_, strict=False, time_unit="us").dt.replace_time_zone(
            zone, ambiguous="earliest", non_existent="null"
        )
    return moment.dt.epoch("s").cast(pl.Float64)


def _parse_automatically(text: pl.Expr, zone: str) -> pl.Expr:
    """Parse ISO 8601, or a number since 1970, as whole seconds. 0 and less stay, which may mean that there is none."""
    parts = text.str.extract_groups(_ISO)
    day, clock, second, offset = (parts.struct.field(str(n)) for n in range(1, 5))
    wall = pl.concat_str(day, pl.lit(" "), clock.fill_null("00:00"), pl.lit(":"), second.fill_null("00"))
    offset = offset.replace(["Z", "UTC"], "+00:00")
    absolute = parse_time(pl.concat_str(wall, offset), "%Y-%m-%d %H:%M:%S%#z", zone)
    iso = pl.when(offset.is_null()).then(parse_time(wall, "%Y-%m-%d %H:%M:%S", zone)).otherwise(absolute)
    number, seconds = text.cast(pl.Float64, strict=False), pl.lit(None, pl.Float64)
    for smallest, parts_of_second in _EPOCH_UNITS.items():
        seconds = pl.when(number >= smallest).then((number / parts_of_second).floor()).otherwise(seconds)
    return pl.coalesce(iso, seconds, pl.when(number <= 0).then(number))


def _stored_value(column: Column) -> pl.Expr:
    """Return the value as it is stored: text or its hash, or a whole number in the integer unit of the column."""
    if column.type == "text":
        text = pl.col(f"raw {column.as_}")
        return (text.hash(0) if column.digest else text).alias(column.as_)
    value = pl.col(f"parsed {column.as_}")
    if not column.is_whole:
        value = (value * column.scale).round(0, mode="half_away_from_zero")
    integer = value.cast(pl.Int64)
    return (pl.when(integer != 0).then(integer) if column.zero_is_blank else integer).alias(column.as_)


def _cell_rules(column: Column) -> list[Rule]:
    raw, parsed = pl.col(f"raw {column.as_}"), pl.col(f"parsed {column.as_}")
    rules = []
    if column.required:
        rules.append(("missing_value", column.name, raw.is_null()))
    if column.type != "text":
        is_valid = parsed.is_finite()
        if column.is_whole:
            is_valid &= parsed == parsed.floor()
        code = {"time": "not_a_time", "clock": "not_a_duration", "duration": "not_a_duration"}.get(
            column.type, "not_a_number"
        )
        rules.append((code, column.name, raw.is_not_null() & ~is_valid.fill_null(False)))
    else:
        rules.append((TOO_LONG, column.name, (raw.str.len_bytes() > column.longest).fill_null(False)))
    smallest, largest = column.limits
    code = "implausible_time" if column.type == "time" else "out_of_range"
    if smallest is not None:
        rules.append((code, column.name, (parsed < smallest).fill_null(False)))
    if largest is not None:
        rules.append((code, column.name, (parsed > largest).fill_null(False)))
    if column.values:
        rules.append(("unknown_value", column.name, (~raw.is_in(column.values)).fill_null(False)))
    if column.pattern:
        matches = raw.str.contains(f"^(?:{column.pattern})$")
        rules.append(("wrong_form", column.name, (~matches).fill_null(False)))
    return rules


def _time_rules(columns: tuple[Column, ...], schema: TableSchema) -> list[Rule]:
    """Return a rule per pair of times: the later must not precede the earlier. Blanks, and zeros for blanks, pass."""
    column_by_name = {column.as_: column for column in columns}
    rules = []
    for earlier, later in itertools.combinations((name for name in schema.order if name in column_by_name), 2):
        backwards = pl.col(f"parsed {later}") < pl.col(f"parsed {earlier}")
        if column_by_name[later].zero_is_blank:
            backwards &= pl.col(f"parsed {later}") != 0
        if column_by_name[later].type == "time":
            backwards &= is_plausible_time(pl.col(f"parsed {earlier}")) & is_plausible_time(pl.col(f"parsed {later}"))
        rules.append(("end_before_start", column_by_name[later].name, backwards.fill_null(False)))
    return rules
