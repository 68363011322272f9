"""Raw tables against their schema: every row is either typed and kept, or excluded with the rule it broke.

A table's schema (`schema` in scripts/ttf/formats) names the columns in file order, their types and the rules of a
row. A block in which nothing is wrong, as nearly all are, is read at once, its numbers as numbers; any other goes the
careful way, column by column as text and where need be line by line. Both ways give the same rows.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import polars as pl

from ttf.engine.errors import StudyError
from ttf.engine.storage.on_disk import read_csv, scan_csv
from ttf.raw.headers import BYTE_ORDER_MARK, found_and_missing, names_of
from ttf.raw.raw_files import blocks_of_lines, may_have_a_line_of

ASIDE_SCHEMA = {"table": pl.String, "line": pl.Int64} | dict.fromkeys(("reason", "column", "text"), pl.String)
LONGEST_TEXT_SHOWN = 500
LONGEST_TEXT_IN_A_MESSAGE = 160
FIRST_LINES = 5
BROKEN = "breaks a rule"
# The largest values of a stored column, unless its schema says otherwise: far beyond any trace (a time in milliseconds
# is caught), and small enough that a sum over a column stays within 64 bits.
LATEST_SECOND = 10**11
LARGEST_NUMBER = 10**9
# Bytes of a text: several times the longest list of nodes of any cluster.
LONGEST_FIELD, TOO_LONG = 1 << 17, "field_too_long"
CLOCK = r"^\s*(?:([0-9]{1,6})-)?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2})(?:\.[0-9]+)?\s*$"
# Blank lines are read past, but a file of hardly anything else is no table.
MOST_BLANK_LINES = 1_000_000

# (reason, the file's word for the column, condition that breaks the rule; it is never null).
Rule = tuple[str, str, pl.Expr]

# From this size on a block's marks are worth picking out.
_LARGE_BLOCK = 1 << 20
# Stands in for the delimiter once quotes have been taken off: a character that no table of text holds.
_UNQUOTED_DELIMITER = b"\x1f"


@dataclass(frozen=True)
class Column:
    """One column of a raw table; `name` is the file's word for it, `as_` ours.

    also: other words of the file for it (the first one in the header counts). optional: the header may lack it, and it
    is blank then. blank: words that mean no value. pattern: a regular expression that the whole of a text matches.
    kilo: a number may end in K, which stands for this many. A time has `formats` (strptime's, or `epoch`), tried in
    turn, and the `zone` it is written in; it is stored as whole seconds since 1970-01-01 UTC, an ambiguous hour as its
    first passing. A clock is a duration written as [days-][hours:]minutes:seconds; it is stored as whole seconds.
    digest: of a text only a 64-bit number is stored, to compare it by.
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
    scale: int = 1
    kilo: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    zero_is_blank: bool = False
    digest: bool = False
    longest: int = LONGEST_FIELD

    @property
    def under(self) -> str:
        """What the column is called in a frame of text, where `line` is the number of the line."""
        return "the file's line" if self.name == "line" else self.name

    @property
    def dtype(self) -> type[pl.DataType]:
        if self.digest:
            return pl.UInt64
        return pl.String if self.type == "text" else pl.Int64

    @property
    def is_whole(self) -> bool:
        """A fraction of it would be a mistake, so it is not rounded away."""
        return self.type in ("seconds", "count", "time", "clock")

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """Smallest and largest value allowed, in the file's unit; what is not stored cannot grow too large."""
        if self.type == "text":
            return None, None
        largest = (LARGEST_NUMBER if self.type in ("count", "number") else LATEST_SECOND) if self.keep else None
        return (
            0 if self.is_whole and self.minimum is None else self.minimum,
            largest if self.maximum is None else self.maximum,
        )

    @property
    def is_plain_number(self) -> bool:
        """Whether its text is a number or blank, with no words for no value, no format and no unit."""
        return self.type not in ("text", "time", "clock") and set(self.blank) <= {""} and not self.kilo

    @property
    def is_read(self) -> bool:
        """A text that is neither stored nor checked need not be parsed."""
        return self.keep or self.required or self.type != "text" or bool(self.values or self.pattern)


@dataclass(frozen=True)
class TableSchema:
    """One raw table: its columns in file order and the rules that hold between columns, rows and tables.

    quoted: a field may stand in double quotes, with the delimiter inside and a quote doubled; a line break may not.
    may_be_empty: a table without rows says that nothing happened. may_repeat_columns: a column that stands there twice
    says the same twice.
    """

    name: str
    header: bool
    columns: tuple[Column, ...]
    delimiter: str = ","
    quoted: bool = False
    key: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    belongs_to: tuple[str, tuple[str, ...]] | None = None
    may_be_empty: bool = False
    may_repeat_columns: bool = False

    @property
    def stored(self) -> dict[str, type[pl.DataType]]:
        """Columns of a typed row; `line` is its place in the raw file, from 1."""
        return {"line": pl.Int64} | {column.as_: column.dtype for column in self.columns if column.keep}


@dataclass(frozen=True)
class Reader:
    """How a raw table is read.

    rows: yields (rows kept, with the columns of TableSchema.stored; rows excluded, ASIDE_SCHEMA) of one file, as
    read_table. texts: the text of the rows with these numbers as the quarantine keeps it, from a second reading.
    """

    rows: Callable[[Path, TableSchema], Iterator[tuple[pl.DataFrame, pl.DataFrame]]]
    texts: Callable[[Path, TableSchema, set[int]], dict[int, str]]


def table_schemas(document: dict) -> dict[str, TableSchema]:
    """The schemas of a format's raw tables, from its YAML document."""
    schemas = {}
    for name, table in document["tables"].items():
        columns = tuple(
            Column(
                **{
                    key: tuple(value) if isinstance(value, list) else value
                    for key, value in column.items()
                    if key != "as"
                },
                as_=column.get("as", column["name"]),
            )
            for column in table["columns"]
        )
        owner = table.get("belongs_to")
        schemas[name] = TableSchema(
            name=name,
            header=table.get("header", document.get("header", True)),
            columns=columns,
            delimiter=table.get("delimiter", ","),
            quoted=table.get("quoted", False),
            key=tuple(table.get("key", ())),
            order=tuple(table.get("order", ())),
            belongs_to=(owner["table"], tuple(owner["by"])) if owner else None,
            may_be_empty=table.get("may_be_empty", False),
            may_repeat_columns=table.get("may_repeat_columns", False),
        )
    return schemas


def read_table(
    path: Path, schema: TableSchema, blocks: Iterator[bytes] | None = None
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (rows kept, rows excluded) block by block, in file order.

    blocks: those of the file with a line for each row, where the file has not.
    Kept rows have the columns of `schema.stored`; the others those of ASIDE_SCHEMA. Every row of the file is in
    one of the two; blank lines are no rows.
    Raises StudyError where the file as a whole cannot be the table (see blocks_of_lines), or its header row differs.
    """
    next_line, rows = 1, 0
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        pending: deque[Future] = deque()

        def finished() -> tuple[pl.DataFrame, pl.DataFrame]:
            nonlocal next_line, rows
            kept, aside, lines = pending.popleft().result()
            first, next_line, rows = next_line, next_line + lines, rows + kept.height + aside.height
            # Rows that were joined leave some behind.
            if next_line - rows > max(MOST_BLANK_LINES, 10 * rows):
                raise StudyError(
                    f"{path}: more than {MOST_BLANK_LINES:,} blank lines up to line {next_line - 1:,}, beside {rows:,} "
                    "rows: not a table. Check that this file is the right table."
                )
            return kept.with_columns(pl.col("line") + first), aside.with_columns(pl.col("line") + first)

        for block, columns, has_header in _blocks(path, schema, blocks or blocks_of_lines(path)):
            next_line += has_header
            pending.append(pool.submit(read_block, block, columns, schema))
            # One block more than there are threads is read ahead: nobody waits for the file, and memory stays bounded.
            if len(pending) > pl.thread_pool_size():
                yield finished()
        while pending:
            yield finished()


def _blocks(
    path: Path, schema: TableSchema, blocks: Iterator[bytes]
) -> Iterator[tuple[bytes, tuple[Column, ...], bool]]:
    """The table's blocks without BOM and header row, the file's columns, and whether a header row stood before."""
    columns = None
    for block in blocks:
        has_header = False
        if columns is None:
            columns = schema.columns
            block = block.removeprefix(BYTE_ORDER_MARK)
            header, _, rest = block.partition(b"\n")
            # A table that has none as published may have been given one.
            has_header = schema.header or header.rstrip(b"\r") == _header_row(columns, schema.delimiter.encode())
            if schema.header:
                columns = columns_by_header(path, header, schema)
            block = rest if has_header else block
        yield block, columns, has_header


def read_block(
    block: bytes, columns: tuple[Column, ...], schema: TableSchema
) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """The rows of one block, kept and excluded, with line numbers from 0; and the number of its lines."""
    if block.isspace():
        return (
            pl.DataFrame(schema=schema.stored),
            pl.DataFrame(schema=ASIDE_SCHEMA),
            block.count(b"\n"),
        )
    kept = sound_rows(block, columns, schema)
    if kept is not None:
        return kept, pl.DataFrame(schema=ASIDE_SCHEMA), kept.height
    numbers, text, delimiter, broken, lines = _whole_lines(block, columns, schema)
    frame = _parse(text, columns, delimiter).with_columns(line=numbers)
    kept, failed = check_rows(frame, columns, schema)
    aside = pl.DataFrame(broken, schema=ASIDE_SCHEMA, orient="row")
    if failed.height:
        raw = text.split(b"\n")
        texts = [_shown(raw[row], reason) for row, reason in failed.select("row", "reason").iter_rows()]
        failed = failed.with_columns(table=pl.lit(schema.name), text=pl.Series(texts))
        aside = pl.concat([aside, failed.select(*ASIDE_SCHEMA)]).sort("line")
    return kept, aside, lines


def sound_rows(block: bytes, columns: tuple[Column, ...], schema: TableSchema) -> pl.DataFrame | None:
    """The rows of a block all of whose lines are rows that keep every rule, as read_block gives them.

    None where that is not so, or not plain to see.
    """
    delimiter = schema.delimiter.encode()
    marks = _marks(block, delimiter)
    lines = _lines_of_whole_rows(marks, delimiter, len(columns))
    # Polars reads past blanks before a number; as text they make it none.
    has_blanks = b" " in marks or b"\t" in marks
    types, views, checked = _sound_plan(columns, schema, with_numbers=not has_blanks)
    is_in_doubt = (
        not lines
        or b"\r" in marks
        or may_have_a_line_of(block, LONGEST_FIELD)
        or (schema.quoted and b'"' in marks)
        or _is_mistakable(block)
        or not is_utf8(block)
        # A header row has a word where a number stands; where none does, it must be looked for.
        or (pl.Float64 not in types.values() and _has_header(block, columns, schema, delimiter))
    )
    if is_in_doubt:
        return None
    rows = scan_csv(block, has_header=False, schema=types, separator=schema.delimiter, quote_char=None)
    try:
        rows = rows.select(views).select(checked).collect(engine="streaming")
    except (pl.exceptions.ComputeError, pl.exceptions.InvalidOperationError):  # a number that is none, or far too large
        return None
    if rows[BROKEN].any():
        return None
    return rows.drop(BROKEN).insert_column(0, pl.int_range(lines, dtype=pl.Int64, eager=True).alias("line"))


@lru_cache(maxsize=8)
def _sound_plan(
    columns: tuple[Column, ...], schema: TableSchema, with_numbers: bool
) -> tuple[dict[str, type[pl.DataType]], list[pl.Expr], list[pl.Expr]]:
    """What columns are read as, their views (see _views), and what is made of these: what is stored, and BROKEN."""
    read = [column for column in columns if column.is_read]
    # Of a block without long lines no text is too long.
    rules = [rule for rule in _rules_of_rows(columns, schema) if rule[0] != TOO_LONG]
    numbers = [column for column in read if with_numbers and column.is_plain_number]
    types = dict.fromkeys((column.under for column in columns), pl.String)
    types |= dict.fromkeys((column.under for column in numbers), pl.Float64)
    return (
        types,
        _views(read, numbers),
        [*_stored_columns(columns, schema), _is_broken(rules)],
    )


def raw_lines(path: Path, _: TableSchema, numbers: set[int]) -> dict[int, str]:
    """Reader.texts of a table of lines: the text of those with these numbers, from a second reading of the file."""
    found: dict[int, str] = {}
    wanted = sorted(numbers, reverse=True)
    next_line = 1
    for block in blocks_of_lines(path):
        if next_line == 1:
            block = block.removeprefix(BYTE_ORDER_MARK)
        first, next_line = next_line, next_line + block.count(b"\n")
        if wanted and wanted[-1] < next_line:
            lines = block.split(b"\n")
            while wanted and wanted[-1] < next_line:
                number = wanted.pop()
                found[number] = _shown(lines[number - first])
    return found


def with_more_rules(
    rows: Iterator[tuple[pl.DataFrame, pl.DataFrame]], path: Path, schema: TableSchema, rules: Sequence[Rule]
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """The pairs of read_table with rules that no schema can say.

    Rows that break one come in the last pair, as their text takes a second reading of the file.
    """
    broken = []
    for kept, aside in rows:
        is_broken = kept.select(_is_broken(rules)).to_series()
        if is_broken.any():
            broken += kept.filter(is_broken).select("line", **_first_broken(rules)).rows()
            kept = kept.filter(~is_broken)
        yield kept, aside
    if broken:
        texts = raw_lines(path, schema, {line for line, _, _ in broken})
        found = [(schema.name, line, reason, column, texts.get(line)) for line, reason, column in broken]
        yield pl.DataFrame(schema=schema.stored), pl.DataFrame(found, schema=ASIDE_SCHEMA, orient="row")


# A plain table of lines.
LINES = Reader(read_table, raw_lines)


def file_labels(paths: Sequence[Path]) -> list[str]:
    """What the files of a table are called in the quarantine: their names, with their folders' where names repeat."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [f"{path.parent.name}/{path.name}" for path in paths]


def first_places(rows: pl.DataFrame, files: int, most: int = FIRST_LINES) -> str:
    """Where the first `most` of these rows of the quarantine stand: `3, 7`.

    Of a table of several `files`: `3, 7 of a.csv; 2 of b.csv`.
    """
    first = rows.select("file", "line").head(most)
    if files < 2:
        return ", ".join(str(line) for line in first["line"])
    return "; ".join(
        f"{', '.join(str(line) for line in of_file['line'])} of {printable(file)}"
        for (file,), of_file in first.group_by("file", maintain_order=True)
    )


def printable(text: str) -> str:
    """The start of a raw text as it may be shown on a terminal: a trace is untrusted."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text[:LONGEST_TEXT_IN_A_MESSAGE]
    )


def _shown(line: bytes, reason: str | None = None) -> str:
    """The start of a line as the quarantine keeps it; of one that is too long its length first."""
    length = f"a row of {len(line):,} bytes: " if reason == TOO_LONG else ""
    return (length + line[: 4 * LONGEST_TEXT_SHOWN].decode("utf-8", errors="replace"))[:LONGEST_TEXT_SHOWN]


def columns_by_header(path: Path, header: bytes, schema: TableSchema) -> tuple[Column, ...]:
    """The file's columns in the order of its header; a column nobody knows is read past."""
    names = names_of(header, schema.delimiter, schema.quoted)
    found, missing = found_and_missing(names, schema.columns)
    known = {word: replace(column, name=word) for word, column in found.items()}
    if missing:
        expected = schema.delimiter.join(column.name for column in schema.columns)
        raise StudyError(
            f"{path}: line 1: the header row has no column {', '.join(column.name for column in missing)}; "
            f"expected {expected}, found {printable(_shown(header))}. "
            "Name the columns so, or check that this file is the right table."
        )
    repeated = sorted({name for name in names if names.count(name) > 1 and name in known})
    if repeated and not schema.may_repeat_columns:
        raise StudyError(
            f"{path}: line 1: the header row names {printable(', '.join(repeated))!r} more than once. "
            "Give each column a name of its own."
        )
    return tuple(
        known.get("" if name in names[:place] else name, Column(name=unread, type="text", as_=unread, keep=False))
        for place, name in enumerate(names)
        for unread in [f"unknown column {place}"]
    )


def _whole_lines(
    block: bytes, columns: tuple[Column, ...], schema: TableSchema
) -> tuple[pl.Series, bytes, bytes, list[tuple], int]:
    """The lines with the right number of fields in valid UTF-8: their numbers (from 0), their text, its delimiter.

    Then the other lines, excluded, and the number of lines in the block.
    """
    delimiter = schema.delimiter.encode()
    lines = block.count(b"\n")
    fields = len(columns)
    has_header = _has_header(block, columns, schema, delimiter)
    has_quotes = schema.quoted and b'"' in block
    in_utf8 = is_utf8(block)
    if in_utf8 and not has_header and not has_quotes and _lines_of_whole_rows(block, delimiter, fields) == lines:
        return pl.int_range(lines, dtype=pl.Int64, eager=True).alias("line"), block, delimiter, [], lines

    header = _header_row(columns, delimiter)
    good, good_numbers, broken = [], [], []
    for number, line in enumerate(block.split(b"\n")[:-1]):
        if not line.strip():
            continue
        reason, values = None, line.split(delimiter, fields)
        if has_header and line == header:
            reason = "header_row"
        elif not in_utf8 and not is_utf8(line):
            reason = "not_utf8"
        elif has_quotes and b'"' in line:
            values = _unquoted(line, schema.delimiter)
        if not reason and len(values) != fields:
            # The reader of quotes gives up at a field of as many characters.
            reason = TOO_LONG if not values and len(line) > csv.field_size_limit() else "wrong_column_count"
        if reason:
            broken.append((schema.name, number, reason, None, _shown(line, reason)))
        else:
            good.append(
                _UNQUOTED_DELIMITER.join(value.replace(_UNQUOTED_DELIMITER, b" ") for value in values)
                if has_quotes
                else line
            )
            good_numbers.append(number)
    text = b"\n".join(good) + b"\n" if good else b""
    delimiter = _UNQUOTED_DELIMITER if has_quotes else delimiter
    return pl.Series("line", good_numbers, dtype=pl.Int64), text, delimiter, broken, lines


def _unquoted(line: bytes, delimiter: str) -> list[bytes]:
    """The fields of a line in UTF-8 with their quotes taken off; no fields where a quote is left open."""
    try:
        rows = list(csv.reader([line.decode("utf-8")], delimiter=delimiter, strict=True))
    except csv.Error:
        return []
    return [value.replace("\x1f", " ").replace("\n", " ").encode() for value in rows[0]] if len(rows) == 1 else []


def _marks(block: bytes, delimiter: bytes) -> bytes:
    """All bytes of a block that may have a meaning of their own, in their order, and perhaps others.

    They are the delimiter and whatever is no larger than a comma: line ends, blanks, quotes.
    """
    if len(block) < _LARGE_BLOCK:
        return block
    import numpy as np  # a tenth of a second, so not for small tables

    text = pl.Series(np.frombuffer(block, np.uint8))
    is_mark = text <= ord(",")
    if delimiter > b",":
        is_mark |= text == ord(delimiter)
    return text.filter(is_mark).to_numpy().tobytes()


def _lines_of_whole_rows(marks: bytes, delimiter: bytes, fields: int) -> int:
    """How many lines there are, if every one has so many fields, else 0."""
    separators = marks.translate(None, bytes({*range(256)} - {*delimiter, *b"\n"}))
    row = delimiter * (fields - 1) + b"\n"
    lines = len(separators) // len(row)
    return lines if separators == row * lines else 0


def _header_row(columns: tuple[Column, ...], delimiter: bytes) -> bytes:
    return delimiter.join(column.name.encode() for column in columns)


def _has_header(block: bytes, columns: tuple[Column, ...], schema: TableSchema, delimiter: bytes) -> bool:
    """Whether there may be a header row, of a table that has none."""
    return not schema.header and _header_row(columns, delimiter) + b"\n" in block


def _is_mistakable(text: bytes) -> bool:
    """Whether Polars may take a text for a compressed file, as it does where one begins with "x^"."""
    return text[:1] == b"x"


def is_utf8(text: bytes) -> bool:
    """Whether a text is UTF-8."""
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _parse(text: bytes, columns: tuple[Column, ...], delimiter: bytes) -> pl.DataFrame:
    """Columns as text under their raw names; a blank field is null, a carriage return that ends one is dropped."""
    read = [place for place, column in enumerate(columns) if column.is_read]
    schema = {column.under: pl.String for column in columns}
    if not text:
        return pl.DataFrame(schema={columns[place].under: pl.String for place in read})
    is_mistakable = _is_mistakable(text)
    if is_mistakable:  # a line of blanks goes first
        text = delimiter * (len(columns) - 1) + b"\n" + text
    frame = read_csv(
        text,
        has_header=False,
        schema=schema,
        columns=read,
        separator=delimiter.decode(),
        quote_char=None,
        raise_if_empty=False,
    )
    return frame.slice(1) if is_mistakable else frame


def check_rows(
    frame: pl.DataFrame, columns: tuple[Column, ...], schema: TableSchema
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows of text into typed rows that keep every rule, and the others with the first rule each one broke.

    `frame` has `line` and the columns as Column.under calls them. The typed rows have the columns of `schema.stored`,
    the others row (their place in the frame), line, reason, column.
    """
    views = frame.select("line", *_views([column for column in columns if column.is_read]))
    rules = _rules_of_rows(columns, schema)
    stored = _stored_columns(columns, schema)
    broken = views.select(_is_broken(rules)).to_series()
    first = _first_broken(rules)
    if not broken.any():
        return views.select("line", *stored), views.clear().select(pl.lit(0).alias("row"), "line", **first)
    failed = views.with_row_index("row").filter(broken).select("row", "line", **first)
    return views.filter(~broken).select("line", *stored), failed


def _views(read: Sequence[Column], numbers: Sequence[Column] = ()) -> list[pl.Expr]:
    """Each column read under up to two names, its text and its number, of which ours may be the file's for another.

    numbers: those that are numbers already.
    """
    return [
        *((pl.col(column.under) if column in numbers else _raw(column)).alias(f"raw {column.as_}") for column in read),
        *(
            (pl.col(column.under) if column in numbers else _parsed(column)).alias(f"parsed {column.as_}")
            for column in read
            if column.type != "text"
        ),
    ]


def _stored_columns(columns: tuple[Column, ...], schema: TableSchema) -> list[pl.Expr]:
    """What is kept of a row, null where the file does not have the column."""
    there = {column.as_ for column in columns}
    return [
        _stored(column) if column.as_ in there else pl.lit(None, column.dtype).alias(column.as_)
        for column in schema.columns
        if column.keep
    ]


def _rules_of_rows(columns: tuple[Column, ...], schema: TableSchema) -> list[Rule]:
    """The rules of all columns that are read, and of their order."""
    return [rule for column in columns if column.is_read for rule in _rules(column)] + _order_rules(columns, schema)


def _is_broken(rules: Sequence[Rule]) -> pl.Expr:
    return pl.any_horizontal(pl.lit(False), *(condition for _, _, condition in rules)).alias(BROKEN)


def _first_broken(rules: Sequence[Rule]) -> dict[str, pl.Expr]:
    """Reason and column of the first rule that a row breaks; null where it breaks none."""
    return {
        "reason": pl.coalesce(pl.when(condition).then(pl.lit(code)) for code, _, condition in rules),
        "column": pl.coalesce(pl.when(condition).then(pl.lit(name)) for _, name, condition in rules),
    }


def _raw(column: Column) -> pl.Expr:
    """The text of a column, null where it is one of its words for no value."""
    raw = pl.col(column.under)
    return pl.when(~raw.str.strip_chars().is_in(column.blank)).then(raw) if column.blank else raw


def _parsed(column: Column) -> pl.Expr:
    """The number a text stands for, null where it is none; a time as seconds since 1970-01-01 UTC."""
    raw = _raw(column)
    if column.type == "clock":
        return _clock_s(raw)
    if column.kilo:
        number = raw.str.strip_suffix("K").cast(pl.Float64, strict=False)
        return pl.when(raw.str.ends_with("K")).then((number * column.kilo).round()).otherwise(number)
    if column.type != "time":
        return raw.cast(pl.Float64, strict=False)
    return pl.coalesce(_moment(raw, format_, column.zone) for format_ in column.formats)


def _clock_s(raw: pl.Expr) -> pl.Expr:
    """Seconds of [days-][hours:]minutes:seconds, fractions dropped; null for anything else."""
    parts = raw.str.extract_groups(CLOCK)
    days, hours, minutes, seconds = (parts.struct.field(str(n)).cast(pl.Float64, strict=False) for n in range(1, 5))
    return days.fill_null(0) * 86400 + hours.fill_null(0) * 3600 + minutes * 60 + seconds


def _moment(raw: pl.Expr, format_: str, zone: str) -> pl.Expr:
    if format_ == "epoch":
        return raw.cast(pl.Float64, strict=False)
    if format_.endswith(("%z", "%#z")):  # the text names its own offset
        moment = raw.str.to_datetime(format_, strict=False, time_unit="us", time_zone="UTC")
    else:
        moment = raw.str.to_datetime(format_, strict=False, time_unit="us").dt.replace_time_zone(
            zone, ambiguous="earliest", non_existent="null"
        )
    return moment.dt.epoch("s").cast(pl.Float64)


def _stored(column: Column) -> pl.Expr:
    """The value as it is kept: a number as a whole number of its small unit."""
    if column.type == "text":
        text = pl.col(f"raw {column.as_}")
        return (text.hash(0) if column.digest else text).alias(column.as_)
    value = pl.col(f"parsed {column.as_}")
    if not column.is_whole:
        value = (value * column.scale).round(0, mode="half_away_from_zero")
    whole = value.cast(pl.Int64)
    return (pl.when(whole != 0).then(whole) if column.zero_is_blank else whole).alias(column.as_)


def _rules(column: Column) -> list[Rule]:
    """The rules of one column."""
    raw, parsed = pl.col(f"raw {column.as_}"), pl.col(f"parsed {column.as_}")
    rules = []
    if column.required:
        rules.append(("missing_value", column.name, raw.is_null()))
    if column.type != "text":
        sound = parsed.is_finite()
        if column.is_whole:
            sound &= parsed == parsed.floor()
        code = {"time": "not_a_time", "clock": "not_a_duration"}.get(column.type, "not_a_number")
        rules.append((code, column.name, raw.is_not_null() & ~sound.fill_null(False)))
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


def _order_rules(columns: tuple[Column, ...], schema: TableSchema) -> list[Rule]:
    """Times that must not go backwards, each against all before it; a blank (or 0 for it) breaks nothing."""
    by_name = {column.as_: column for column in columns}
    rules = []
    for earlier, later in combinations((name for name in schema.order if name in by_name), 2):
        backwards = pl.col(f"parsed {later}") < pl.col(f"parsed {earlier}")
        if by_name[later].zero_is_blank:
            backwards &= pl.col(f"parsed {later}") != 0
        rules.append(("end_before_start", by_name[later].name, backwards.fill_null(False)))
    return rules
