"""What the first line of a raw file says, and whether it is the header of its table: told before any job.

The rule is the one that ingest follows (ttf.raw.headers). Not more than the start of a file is read, and nothing here
fails for what a file holds: what cannot be seen from its start is left to ingest.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from ttf.engine.errors import StudyError
from ttf.raw import extra_tables
from ttf.raw.headers import BYTE_ORDER_MARK, DELIMITERS, Wanted, found_and_missing, names_of
from ttf.raw.raw_files import is_a_table, unpacked

from study.documents import mean
from study.mapping import mapped_columns
from study.messages import show
from study.table_schema import load_table_schema
from study.trace_files import member_of, on_disk

MOST_BYTES = 1 << 16
MOST_NAMES = 8
# So many names of a header are compared with a missing one.
MOST_COMPARED = 500
LONGEST_NAME = 80


class Layout(NamedTuple):
    """What the start of a raw table must be: its columns, and how their names are written.

    header: whether there is a header row; json: whether the table is an array of objects; parquet: whether a file that
    ends in .parquet is read as such. repeats: whether a column may stand there twice.
    """

    columns: tuple[Wanted, ...]
    delimiter: str = ","
    quoted: bool = False
    header: bool = True
    json: bool = False
    parquet: bool = False
    repeats: bool = False


def layouts_of(entry: Mapping, format: Mapping) -> dict[str, Layout]:
    """Table -> layout, of a trace with this entry in the registry, from the declaration of its format.

    Raises ConfigError for a schema of the entry's own that is none.
    """
    if "mapping" in entry:
        columns = tuple(map(Wanted, mapped_columns(entry["mapping"])))
        about = {"delimiter": entry.get("delimiter", ","), "quoted": entry.get("quoted", False)}
        return {
            table: Layout(columns, **about, parquet=".parquet" in spec.get("every", ()))
            for table, spec in format["tables"].items()
        }
    document = load_table_schema(entry["schema"]) if "schema" in entry else format["schema"]
    return {
        table: Layout(
            tuple(Wanted(of["name"], of.get("also", ()), of.get("optional", False)) for of in about["columns"]),
            about.get("delimiter", ","),
            about.get("quoted", False),
            about.get("header", document.get("header", True)),
            format["tables"][table].get("json", False),
            repeats=about.get("may_repeat_columns", False),
        )
        for table, about in document["tables"].items()
        if table in format["tables"]
    }


# Those of files that every format may have beside its tables.
_GIVEN = {
    table: Layout(tuple(Wanted(column["name"]) for column in about["columns"]), quoted=about["quoted"])
    for table, about in extra_tables.SCHEMA["tables"].items()
}


def wrong_headers(trace: str, entry: Mapping, raw_files: Mapping[str, Sequence[str]], format: Mapping) -> list[str]:
    """A line for each raw file of a trace whose header row ingest would refuse.

    entry: that of the registry. raw_files: table -> its files, there or not yet. format: the declaration. A line names
    the file, what is missing, what was probably meant and the way out. Optional columns are no problem, and what is no
    table at all is left to ingest, as are tables behind others in a .tar.gz. Raises ConfigError as layouts_of.
    """
    layouts = layouts_of(entry, format) | _GIVEN
    return [
        f"registry.{trace}: {said(file)}: {header_problem(names, layouts[table])} {_way_out(trace, entry, table)}"
        for table, files in raw_files.items()
        for file in (files if layouts[table].header and not layouts[table].json else ())
        if (names := names_in(file, layouts[table])) is not None and not is_right(names, layouts[table])
    ]


def is_right(names: Sequence[str], layout: Layout) -> bool:
    """Whether a header row has all columns that it must have, each once."""
    found, missing = found_and_missing(names, layout.columns)
    return not missing and (layout.repeats or not any(names.count(name) > 1 for name in found))


def header_problem(names: Sequence[str], layout: Layout) -> str:
    """What is wrong with the names in a header row that is not right, in words."""
    what = "first object" if layout.json else "header row"
    found, missing = found_and_missing(names, layout.columns)
    if missing:
        near = [name for name in names[:MOST_COMPARED] if name.isprintable() and len(name) <= LONGEST_NAME]
        hints = [(column.name, mean(column.name, near, "").removeprefix("; ")) for column in missing[:MOST_NAMES]]
        columns = ", ".join(f"{name} ({hint})" if hint else name for name, hint in hints)
        others = f" and {len(missing) - MOST_NAMES} more" if len(missing) > MOST_NAMES else ""
        marks = [mark for mark in DELIMITERS if mark != layout.delimiter and len(names) == 1 and mark in names[0]]
        it_is = f" It is one field: {marks[0]!r} stands where {layout.delimiter!r} is expected." if marks else ""
        return f"the {what} has no column{'s' if len(missing) > 1 else ''} {columns}{others}.{it_is}"
    repeated = [said(name) for name in found if names.count(name) > 1]
    return f"the {what} names {', '.join(repeated)} more than once."


def _way_out(trace: str, entry: Mapping, table: str) -> str:
    if table in extra_tables.SCHEMA["tables"]:
        return "Name the columns so, or check that this file is the right table."
    if "mapping" in entry:
        return f"Correct registry.{trace}.mapping, or check that this file is the right table."
    return (
        f"Name the columns so, or check that this file is the table {table}; or give the trace a schema of its own in "
        f"which a column has also: [its name here] (registry.{trace}.schema)."
    )


# Looking into files -------------------------------------------------------------------------------------


def names_in(file: str, layout: Layout) -> list[str] | None:
    """The names in a file's header row (of JSON: in its first object; without a header row: the first fields).

    None where there is no such plain file, or its start does not tell.
    """
    if layout.parquet and file.lower().endswith(".parquet"):
        return _parquet_names(file)
    head = first_bytes(file)
    return None if head is None else names_at_start(head, layout)


def names_at_start(head: bytes, layout: Layout) -> list[str] | None:
    """The same of the first bytes of a table of text."""
    is_whole, head = len(head) < MOST_BYTES, head.removeprefix(BYTE_ORDER_MARK)
    if layout.json:
        return _json_names(head)
    # Of lines that end in CR ingest says so.
    line, end, _ = head.replace(b"\r", b"\n").partition(b"\n")
    return names_of(line, layout.delimiter, layout.quoted) if end or is_whole else None


def first_bytes(file: str) -> bytes | None:
    """The first bytes of a raw table, unpacked; None where it is no text at all.

    Nothing but plain files is opened. Of an archive in gzip only the first table is looked at.
    """
    if member_of(file) and not on_disk(file).lower().endswith(".zip"):
        return None
    try:
        if not Path(on_disk(file)).is_file():
            return None
        with closing(unpacked(Path(file), size=MOST_BYTES)) as pieces:
            head = b""
            while len(head) < MOST_BYTES and (piece := next(pieces, b"")):
                head += piece[:MOST_BYTES]
        return head if is_a_table(Path(file), head[:MOST_BYTES]) else None
    except StudyError:
        return None
    except Exception:  # a damaged archive can make its library raise anything
        return None


def _json_names(head: bytes) -> list[str] | None:
    """The names of the fields of the first object in an array."""
    text = head.decode("utf-8", errors="replace")
    if start := re.match(r"\s*\[\s*", text):
        with suppress(ValueError, RecursionError):
            record, _ = json.JSONDecoder().raw_decode(text, start.end())
            return list(record) if isinstance(record, dict) else None
    return None


def _parquet_names(file: str) -> list[str] | None:
    """The columns of a Parquet file, from its end."""
    import polars as pl  # a tenth of a second, and for such files only

    if not Path(file).is_file():
        return None
    try:
        with Path(file).open("rb") as source:
            return list(pl.read_parquet_schema(source))
    except (Exception, pl.exceptions.PanicException):
        return None


def said(name: str) -> str:
    """A name of a file or column as it may be shown: those of a trace are untrusted."""
    return name if name.isprintable() and len(name) <= 4 * LONGEST_NAME else show(name)
